"""Benches for the tests of the sink."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.crash.sink_bench import AUDIT, SinkBench
from tests.crash.steps.sink_steps import STEPS


@pytest.fixture
def make_bench(tmp_path: Path) -> Iterator[Callable[..., SinkBench]]:
    """Makes a bench with one query for each step, or for each of some names; its driver is not started."""
    made: list[SinkBench] = []

    def make(names: Iterable[str] = STEPS, **plan: Any) -> SinkBench:
        made.append(SinkBench(tmp_path, names, **plan))
        return made[0]

    yield make
    for bench in made:
        bench.close()


class Shared:
    """A bench with one query for each step that goes from test to test, with its driver running: to start one costs more than all
    that a test does with it. A test that fails leaves none to the next test.
    """

    def __init__(self, tmp_path_factory: pytest.TempPathFactory) -> None:
        self._folders = tmp_path_factory
        self._idle: SinkBench | None = None

    @contextmanager
    def bench(self) -> Iterator[SinkBench]:
        """The bench as the test before has left it, checked and with all its rows written, or a new one."""
        bench, self._idle = self._idle or self._made(), None
        try:
            yield bench
        except BaseException:
            bench.close()
            raise
        self._idle = bench

    def _made(self) -> SinkBench:
        folder = self._folders.mktemp("bench")
        return SinkBench(folder, STEPS, last_life=str(folder / "last-life"), options={"auditTopic": AUDIT})

    def close(self) -> None:
        """Leave nothing behind."""
        if self._idle is not None:
            self._idle.close()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shared]:
    """The bench that the tests of a file share."""
    shared_bench = Shared(tmp_path_factory)
    yield shared_bench
    shared_bench.close()
