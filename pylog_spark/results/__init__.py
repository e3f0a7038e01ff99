"""What brokers answer, as frozen dataclasses with Kafka's names, and the one place that makes them of the native half's documents.

The native half gives and takes JSON documents (`_native.pyi` says which); `decoding` turns each into its class here and refuses one
that does not fit. Everything is immutable, comparable and can be pickled; nothing here talks to a broker. Users find the classes in
`pylog_spark.client`.

What concerns a single topic, group or partition has ``error``, None or Kafka's name of the error, and mostly ``message``, its
sentence. Times end in ``_ms`` and are since 1970 UTC.
"""
