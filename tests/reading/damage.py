"""Logs that lose something between a plan and its reading."""

import os
from pathlib import Path
from typing import Any

import pytest

from pylog_spark._native import Client
from pylog_spark.datasource import PylogDataSource
from tests.harness.brokers import SEVERAL, Brokers
from tests.reading.support import schema
from tests.spark.support import Topic


class Task:
    """A range of partition 0 planned now, to be read later as Spark's worker reads it."""

    def __init__(self, topic: Topic, **options: str) -> None:
        self._options = {"kafka.bootstrap.servers": topic.servers, "subscribe": topic.name, **options}
        (self._planned,) = self._reader("true").partitions()

    def values(self, fail: str) -> list[bytes]:
        return [value for batch in self._reader(fail).read(self._planned) for value in batch.column(0).to_pylist()]

    def _reader(self, fail: str) -> Any:
        source = PylogDataSource({**self._options, "failOnDataLoss": fail})
        return source.reader(schema("value"))


class Own:
    """Brokers of a test's own, whose files it may change; their topic is ``t``."""

    def __init__(self, broker: Brokers) -> None:
        self._broker = broker
        self._client = Client({"bootstrap.servers": broker.bootstrap_servers})

    def topic(self, **configs: str) -> Topic:
        topic = Topic(None, self._broker.bootstrap_servers, self._client, "t", 1)
        topic.create(**configs)
        return topic

    def size(self, topic: Topic) -> int:
        """Bytes of the log of partition 0."""
        if SEVERAL:
            pytest.skip("what one broker loses its leader has: only the log of a broker alone can be cut")
        return sum(path.stat().st_size for path in self._folder(topic).glob("*.log"))

    def cut(self, topic: Topic, size: int) -> None:
        """Stop the broker, cut the log as a lost disk write would, and start it again."""
        self._broker.terminate()
        data = self._broker.data_dir
        for path in (*self._folder(topic).iterdir(), *data.glob("*-checkpoint"), data / ".kafka_cleanshutdown"):
            if path.suffix in (".index", ".timeindex", ".snapshot") or path.parent == data:
                path.unlink(missing_ok=True)
        (log,) = self._folder(topic).glob("*.log")
        os.truncate(log, size)
        self._broker.start()

    def _folder(self, topic: Topic) -> Path:
        return self._broker.data_dir / f"{topic.name}-0"
