"""A bench for the tests of the sink."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.crash.sink_bench import Bench
from tests.crash.steps.sink_steps import STEPS


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Callable[..., Bench]]:
    """Makes a bench with one query for each step, or for each of some names; its driver is not started."""
    made: list[Bench] = []

    def make(names: Iterable[str] = STEPS, **plan: Any) -> Bench:
        made.append(Bench(tmp_path, names, **plan))
        return made[0]

    yield make
    for one in made:
        one.close()
