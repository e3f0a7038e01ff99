"""What brokers answer, as frozen dataclasses with Kafka's names, and the one place that makes them from the native half's documents.

The native half gives and takes JSON documents (`_native.pyi` says which); `decoding` turns each into its class here and refuses one
that does not fit. Everything is immutable, comparable and can be pickled; nothing here talks to a broker. Users find the classes in
`pylog_spark.client`.

A result for a single topic, group or partition has ``error``, which is None or Kafka's name of the error, and mostly ``message``, its
sentence. Names of times end in ``_ms``: milliseconds since 1970 UTC.
"""
