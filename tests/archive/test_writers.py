"""Several writers of one partition of an archive, each step of theirs in any order, killed at any: what was acknowledged stays named.

The file system is a dictionary here, so that an operation is a step and a seed is a schedule; `test_store` has real ones.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from pylog_spark.archive.store.layout import ROOT, partition_folder, root_document
from pylog_spark.archive.store.manifest import StoredSegment
from pylog_spark.archive.store.objects import Objects
from pylog_spark.archive.store.writing import PartitionWriter, read_manifest
from pylog_spark.client.errors import LogError
from tests.harness import runs

pytestmark = pytest.mark.long  # two copies: test_store.py

SCHEDULES = runs.rounds("PYLOG_ARCHIVE_SCHEDULES", 60, 4_000)
SEED = runs.seed("PYLOG_ARCHIVE_SEED")
WRITERS = 3
SEGMENTS = 4
STEPS = 400
_DEADLINE_S = 30


class Killed(OSError):
    """The writer's process ends here."""


class Turns:
    """Threads that go on one at a time, in the order of a seed."""

    def __init__(self, drawn: random.Random) -> None:
        self._drawn = drawn
        self._may_go = [threading.Semaphore(0) for _ in range(WRITERS)]
        self._waits = threading.Semaphore(0)
        self.ended = [False] * WRITERS
        self.is_over = False

    def pause(self, writer: int) -> None:
        """Wait for the writer's turn, before a step. Raises `Killed` when it is its last one."""
        self._waits.release()
        assert self._may_go[writer].acquire(timeout=_DEADLINE_S)
        if self.is_over or self._drawn.random() < 0.01:
            raise Killed

    def end(self, writer: int) -> None:
        """The writer does no more."""
        self.ended[writer] = True
        self._waits.release()

    def run(self, check: Callable[[], None]) -> None:
        """Let the writers go on until all have ended; `check` after each step."""
        for _ in range(WRITERS):
            assert self._waits.acquire(timeout=_DEADLINE_S)
        steps = 0
        while not all(self.ended):
            steps += 1
            self.is_over = steps > STEPS
            self._may_go[self._drawn.choice([each for each in range(WRITERS) if not self.ended[each]])].release()
            assert self._waits.acquire(timeout=_DEADLINE_S)
            check()


class Shelf(Objects):
    """Objects in a dictionary that a writer uses in its turns; `None` looks at once."""

    def __init__(self, content: dict[str, bytes], pause: Callable[[], None] | None = None) -> None:
        self.where, self._content, self._pause = "shelf", content, pause or (lambda: None)

    def files(self, folder: str) -> list[str]:
        self._pause()
        return sorted(name.removeprefix(f"{folder}/") for name in self._content if name.startswith(f"{folder}/"))

    def read(self, name: str) -> bytes:
        self._pause()
        if name not in self._content:
            raise FileNotFoundError(name)
        return self._content[name]

    def read_part(self, name: str, position: int, size: int) -> bytes:
        return self.read(name)[position : position + size]

    def put(self, name: str, content: bytes | bytearray) -> None:
        self._pause()
        self._content[name] = bytes(content)
        self._pause()  # The answer may be lost.

    def delete(self, name: str) -> None:
        self._pause()
        self._content.pop(name, None)


def test_what_was_acknowledged_stays_named_whoever_else_writes_or_is_killed() -> None:
    print(f"PYLOG_ARCHIVE_SEED={SEED}")
    acknowledged = fenced = 0
    for schedule in range(SCHEDULES):
        found = _Schedule(SEED + schedule)
        found.run()
        acknowledged += len(found.acknowledged)
        fenced += found.fenced
    assert acknowledged > SCHEDULES
    assert fenced > SCHEDULES // 10


class _Schedule:
    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._content = {ROOT: root_document()}
        self._turns = Turns(random.Random(seed))
        self.acknowledged: set[tuple[int, str]] = set()
        self.fenced = 0

    def run(self) -> None:
        with ThreadPoolExecutor(WRITERS) as pool:
            writing = [pool.submit(self._write, each) for each in range(WRITERS)]
            self._turns.run(self._check)
        for each in writing:
            each.result()

    def _check(self) -> None:
        _, manifest = read_manifest(Shelf(self._content), "t", "id", 0)
        named = {(segment.first, segment.name) for segment in manifest.segments}
        assert self.acknowledged <= named, f"seed {self._seed}"
        folder = partition_folder("t", "id", 0)
        assert all(f"{folder}/{name}" in self._content for _, name in named), f"seed {self._seed}"
        assert manifest.missing(0, manifest.end) == [], f"seed {self._seed}"

    def _write(self, number: int) -> None:
        """One process after the other."""
        objects = Shelf(self._content, lambda: self._turns.pause(number))
        try:
            while not self._turns.is_over:
                self.fenced += self._is_fenced(objects)
        finally:
            self._turns.end(number)

    def _is_fenced(self, objects: Objects) -> bool:
        """Write some segments; whether a later writer has ended that."""
        try:
            with PartitionWriter(objects, "t", "id", 0) as writer:
                for _ in range(SEGMENTS):
                    first = writer.manifest.end
                    writer.add(b"batches", StoredSegment("", first, first + 1, 0, 0, 7, 1, 1, 0), {})
                    self.acknowledged.add((first, writer.manifest.segments[-1].name))
        except LogError as error:
            if error.kind != "FENCED":
                raise
            return True
        except Killed:
            pass
        return False
