"""pylog measured beside Apache Kafka and Spark's own Kafka connector, in one run. Start with `make bench`."""
