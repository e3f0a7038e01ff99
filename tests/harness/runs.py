"""How many rounds a run has, and what is drawn in it: few rounds and the commit's own seed in `make test`, many and a random one in a long run.

``PYLOG_TEST_LONG=1`` (`make test-long`) makes a run long. All that is drawn comes from one number, `SEED`, which a run shows first and
``PYLOG_TEST_SEED`` sets. A number of rounds or a seed of a single test that the environment names wins.
"""

import os
import random
import subprocess
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

#: Whether this run repeats more, and draws its seed at random.
LONG = os.environ.get("PYLOG_TEST_LONG", "0") == "1"
_ROOT = Path(__file__).parent.parent.parent


def _seed() -> int:
    if given := os.environ.get("PYLOG_TEST_SEED"):
        return int(given)
    if LONG:
        return random.SystemRandom().randrange(2**32)
    asked = subprocess.run(
        ["git", "rev-parse", "--short=8", "HEAD"], cwd=_ROOT, capture_output=True, text=True, check=False
    )
    # The same for every tree without a commit.
    return int(asked.stdout.strip()[:8] or "0", 16)


#: Of this run. The processes of a run of several have it by their environment.
SEED = _seed()
os.environ["PYLOG_TEST_SEED"] = str(SEED)


def rounds(variable: str, few: int, many: int) -> int:
    """How many rounds: what the environment's `variable` says, else `few`, or `many` in a long run."""
    given = os.environ.get(variable)
    return int(given) if given else (many if LONG else few)


def seed(variable: str) -> int:
    """The seed of what one test draws at random: what the environment's `variable` says, else one that comes of the run's.
    Tests that draw from it print it.
    """
    if given := os.environ.get(variable):
        return int(given)
    return zlib.crc32(f"{SEED} {variable}".encode())


def mostly_long(values: Iterable[Any], *often: Any) -> list[Any]:
    """Values of a parameter of which `make test` takes those in `often`, and a long run all.

    Parameters
    ----------
    values : iterable
        What ``pytest.mark.parametrize`` takes; a tuple for several parameters.
    *often : object
        Some of them.
    """

    def marked(value: Any) -> Any:
        parts = value if isinstance(value, tuple) else (value,)
        return pytest.param(*parts, marks=[] if value in often else pytest.mark.long)

    return [marked(value) for value in values]
