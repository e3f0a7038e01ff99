"""A broker's archive: what `remote.storage.enable` and `archive.url` do. Runs in the broker's process, in threads of its own.

======================  ==================================================================================================
`beside`                what it knows of its broker and the cluster; where a broker begins it
`service`               the threads, from a broker's start to its stop
`broker`                what the native broker says (`pylog_spark._native.BrokerArchives`), with names
`known`                 what the archive has of the partitions that are led here: read when leadership begins, and given to the broker
`copier`                copies closed segments, and lets the broker know, which deletes its own only then; lets the archive begin later
`removing`              deletes the objects of what the archive begins behind, and knows which are still to go
`counting`              what was done, for monitoring
`sweeping`              removes what the archive has of topics that were deleted
`reader`                answers clients that want old records, with a bounded cache
======================  ==================================================================================================
"""
