"""Writes what this release leaves to the next: ``python -m tests.upgrade.write``; see `release`. It takes some 20 s and needs Java for Spark."""

import io
import json
import sys
import tarfile
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

import zstandard
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient

import pylog_spark
from pylog_spark.testing import LocalBroker, spark_session
from tests.harness.waiting import until
from tests.upgrade import release
from tests.upgrade.release import (
    CODECS,
    COMPACTED,
    COPIES,
    IN_TRANSACTIONS,
    PARTITIONS,
    RECORDS,
    command,
    producer,
    put,
)

#: Files of logs as small as they can be, so that there are several.
_SEGMENTS = ("--config", "segment.bytes=16384", "--config", "retention.ms=-1")
_COMPACTED = ("--config", "cleanup.policy=compact", "--config", "min.cleanable.dirty.ratio=0.01")
_TIMEOUT_S = 30.0
SCHEMAS = (
    '{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}',
    '{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}, '
    '{"name": "note", "type": ["null", "string"], "default": null}]}',
)


def write_topics(servers: str) -> None:
    """Each codec, transactions that are committed and aborted, a topic that is compacted."""
    for name in (*CODECS, IN_TRANSACTIONS, COPIES):
        command(servers, "topic", "create", name, "--partitions", str(PARTITIONS), *_SEGMENTS)
    command(servers, "topic", "create", COMPACTED, "--partitions", "1", "--config", "segment.bytes=16384", *_COMPACTED)
    for codec in CODECS:
        with producer(servers, **{"compression.type": codec, "batch.num.messages": 5}) as plain:
            put(plain, codec, range(RECORDS))
    with producer(servers, **{"transactional.id": release.TRANSACTIONAL_ID}) as writer:
        writer.init_transactions(_TIMEOUT_S)
        for begin in range(0, RECORDS, 10):
            writer.begin_transaction()
            put(writer, IN_TRANSACTIONS, range(begin, begin + 10))
            assert writer.flush(_TIMEOUT_S) == 0
            writer.abort_transaction(_TIMEOUT_S) if begin == 10 else writer.commit_transaction(_TIMEOUT_S)
    with producer(servers, **{"batch.num.messages": 10}) as plain:
        for number in range(600):
            plain.produce(COMPACTED, None if number >= 598 else b"value %d" % number * 10, b"key-%d" % (number % 20))


def write_documents(running: LocalBroker) -> None:
    """Offsets of a group, a user, rights, quotas, schemas."""
    servers = running.bootstrap_servers
    settings = {"bootstrap.servers": servers, "group.id": release.GROUP, "enable.auto.commit": False}
    with closing(Consumer(settings)) as reader:
        wanted = [TopicPartition(name, 1, 7, metadata=f"at {name}") for name in ("gzip", "lz4")]
        reader.commit(offsets=wanted, asynchronous=False)
    command(servers, "user", "create", "alice", "--password-file", "-", given=release.PASSWORD)
    command(servers, "acl", "create", "--allow-principal", "User:alice", "--operation", "Read", "--topic", "gzip")
    command(servers, "acl", "create", "--allow-principal", "User:alice", "--operation", "Read", "--group", "nobody")
    command(servers, "quota", "set", "--user", "alice", "consumer_byte_rate=1000000")
    with closing(SchemaRegistryClient({"url": running.schema_registry_url})) as registry:
        for text in SCHEMAS:
            registry.register_schema("orders-value", Schema(text, "AVRO"))


def write(running: LocalBroker, made: Path) -> dict[str, Any]:
    """All that a release leaves, and what is seen of it at the end."""
    servers = running.bootstrap_servers
    write_topics(servers)
    write_documents(running)
    with spark_session() as spark:
        release.copy(spark, servers, str(made / "checkpoint"))
    cleaned = made / "data" / "cleaner-offset-checkpoint"
    until(lambda: cleaned.exists() and f"{COMPACTED} 0 " in cleaned.read_text(), "the topic is compacted")
    command(servers, "archive", "export", "zstd", "-o", str(made / "topic.pylog.zst"))
    command(servers, "archive", "copy", "zstd", "--to", str(made / "history"))
    return release.seen(running)


def pack(file: Path, folder: Path) -> None:
    """Write a folder as a tar archive that is the same for the same files."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for path in sorted(folder.rglob("*")):
            tar.add(path, str(path.relative_to(folder)), recursive=False, filter=_nobodys)
    file.write_bytes(zstandard.ZstdCompressor(level=19).compress(packed.getvalue()))


def _nobodys(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


def main() -> None:
    """Write it, or say that it is there."""
    place = release.DATA / pylog_spark.__version__
    if place.exists():
        sys.exit(f"{place} is there: what a release left is not written again.")
    with tempfile.TemporaryDirectory() as name:
        made = Path(name, "made")
        made.mkdir()
        with release.broker(made / "data") as running:
            found = write(running, made)
            running.kill()
        place.mkdir(parents=True)
        pack(place / "killed.tar.zst", made)
        with release.broker(made / "data") as running:
            now = release.seen(running)
            for what, was in found.items():
                assert now[what] == was, f"{what}: {was}, and after a kill {now[what]}"
            running.terminate()
        pack(place / "stopped.tar.zst", made)
        (place / "seen.json").write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
