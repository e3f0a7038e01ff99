"""How many rounds a run has, and from which seed: few and the commit's own in `make test`, many and random in a long run.

``PYLOG_TEST_LONG=1`` (`make test-long`) makes a run long. A number of rounds or a seed that the environment names wins.
"""

import functools
import os
import random
import subprocess
import zlib
from pathlib import Path

#: Whether this run repeats more, and draws its seeds at random.
LONG = os.environ.get("PYLOG_TEST_LONG", "0") == "1"
_ROOT = Path(__file__).parent.parent.parent


def rounds(variable: str, few: int, many: int) -> int:
    """How many rounds: what the environment's `variable` says, else `few`, or `many` in a long run."""
    given = os.environ.get(variable)
    return int(given) if given else (many if LONG else few)


def seed(variable: str) -> int:
    """The seed of what is drawn at random: what the environment's `variable` says, else one of the commit's, so that `make test`
    does the same thing again; at random in a long run. Tests that draw from it print it.
    """
    if given := os.environ.get(variable):
        return int(given)
    if LONG:
        return random.SystemRandom().randrange(2**32)
    return zlib.crc32(f"{_commit()} {variable}".encode())


@functools.cache
def _commit() -> str:
    """The commit that is checked out; the same for every tree without one."""
    asked = subprocess.run(["git", "rev-parse", "HEAD"], cwd=_ROOT, capture_output=True, text=True, check=False)
    return asked.stdout.strip() if asked.returncode == 0 else "no commit"
