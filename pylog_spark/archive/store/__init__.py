"""An archive of logs on any file system, read without brokers: objects of record batches in frames of zstandard, and a manifest per partition.

::

    URL/pylog-archive.json                                    that it is one
    URL/topics/TOPIC/TOPIC_ID/topic.json                      `layout.StoredTopic`
    URL/topics/TOPIC/TOPIC_ID/PARTITION/manifest-*.json       `manifest`: which segments there are
    URL/topics/TOPIC/TOPIC_ID/PARTITION/FIRST-RANDOM.pylog.zst    `segment`: their batches

`objects` is the file system, `writing` adds segments to a partition, one writer at a time, `copying` brings them from a cluster, `reading` answers as a
broker does and gives a reader its batches, `pruning` removes. docs/archive.md describes the format.
"""
