"""Makes cuts, compares them with what they were, and forgets them (`cuts`). Not thread-safe."""

from __future__ import annotations

import hashlib
import time
from contextlib import ExitStack

from pylog_spark.archive.store.cuts import Cut, cut_path, encode_cut
from pylog_spark.archive.store.layout import CUTS
from pylog_spark.archive.store.objects import Objects
from pylog_spark.archive.store.reading import ArchiveLog
from pylog_spark.archive.store.writing import PartitionWriter
from pylog_spark.client.errors import LogError


def create_cut(
    objects: Objects, log: ArchiveLog, name: str, topic: str, ranges: dict[int, tuple[int, int]], *, is_own: bool
) -> Cut:
    """Keep ranges that `log` has under a new name.

    Raises
    ------
    LogError
        There is such a cut already, the archive does not have all of it, or another process changes the archive.
    OSError
        It cannot be read or written.
    """
    path = cut_path(name)
    if objects.exists(path):
        raise LogError("INVALID_ARGUMENT", f"There is a cut {name!r} already: delete it, or choose another name.")
    rows = tuple((number, *ranges[number]) for number in sorted(ranges))
    stored = log.stored_topics([topic])[0]
    digest = _hash(log, topic, rows)
    made = Cut(name, topic, stored.topic_id, rows, digest, is_own, time.time_ns() // 1_000_000)
    content = encode_cut(made)
    if is_own:
        objects.put(path, content)
        return made
    with ExitStack() as stack:
        # Who prunes from here on is refused; who has pruned before has changed the manifest.
        writers = [
            stack.enter_context(PartitionWriter(objects, topic, stored.topic_id, number)) for number, _, _ in rows
        ]
        if any(each.manifest.missing(start, end) for each, (_, start, end) in zip(writers, rows, strict=True)):
            raise LogError("OFFSET_OUT_OF_RANGE", f"Records of the cut {name!r} were pruned while it was made.")
        objects.put(path, content)
        try:
            for each in writers:
                # Above what a refused one may have put.
                each.change(each.manifest)
        except LogError:
            objects.delete(path)
            raise
    return made


def verify_cut(log: ArchiveLog, cut: Cut) -> None:
    """Read all of a cut that `log` has. Raises `LogError` when it is not what it was."""
    found = _hash(log, cut.topic, cut.ranges)
    if found != cut.sha256:
        raise LogError(
            "CORRUPT_BATCH", f"The cut {cut.name!r} is not what it was: its SHA-256 is {found}, and was {cut.sha256}."
        )


def delete_cut(objects: Objects, cut: Cut) -> None:
    """Forget a cut; batches that are its own go, too. Raises OSError."""
    objects.delete(cut.path)
    if cut.is_own:
        own = objects.below(f"{CUTS}/{cut.name}")
        for path in [*own.all_files("")]:
            own.delete(path)


def _hash(log: ArchiveLog, topic: str, ranges: tuple[tuple[int, int, int], ...]) -> str:
    digest = hashlib.sha256()
    for number, start, end in ranges:
        for batch in log.batches(topic, number, start, end):
            digest.update(batch)
    return digest.hexdigest()
