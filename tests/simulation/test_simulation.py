"""Thousands of small clusters under faults lose nothing that was promised, and a planted mistake never goes unnoticed.

`PYLOG_SIM_SEEDS` is how many seeds to run, from `PYLOG_SIM_FIRST` on; a failure names its seed.
"""

from collections import Counter
from dataclasses import replace

import pytest

from tests.harness import runs
from tests.simulation.oracle import Violation
from tests.simulation.planted import IN_BROKERS, IN_DECISIONS
from tests.simulation.simulation import Cluster, simulate

SEEDS = runs.rounds("PYLOG_SIM_SEEDS", 60, 1_000)
FIRST = runs.seed("PYLOG_SIM_FIRST")

# In how many of its seeds at most a planted mistake must be noticed.
SEARCH = 300

THREE = Cluster(
    brokers=3,
    partitions=1,
    factor=3,
    min_isr=2,
    flushed=False,
    unclean=False,
    power=True,
    boot_known=True,
    reconfigured=False,
)
MOVING = replace(THREE, brokers=5)
RECONFIGURED = replace(THREE, power=False, boot_known=False, reconfigured=True)
FLUSHED = replace(THREE, flushed=True)
CANCELLED = replace(MOVING, factor=2, only=("move", "cancel", "kill", "isolate"))
LATE = replace(MOVING, late=0.1)

# Where a mistake shows soonest; the others show anywhere.
SHAPES = {
    "a move completes early": MOVING,
    "a cancelled move leaves too few": CANCELLED,
    "another min.insync.replicas without reconciling": RECONFIGURED,
    "the leader's page cache counts as flushed": FLUSHED,
    "a follower's page cache counts as flushed": FLUSHED,
    "a zombie controller writes": LATE,
}

# What has to happen often enough in a run of many seeds, or the faults did not bite: at least so many in ten seeds.
BITES = {
    "acknowledged": 300,
    "leaders": 30,
    "controllers elected": 20,
    "sessions expired": 50,
    "ISR proposals": 40,
    "truncations": 8,
    "records truncated": 50,
    "conflicts": 5,
    "fetches fenced": 5,
    "kills": 15,
    "power losses": 4,
    "tails lost": 1,
    "pauses": 10,
    "cuts": 30,
    "clean stops": 4,
    "moves": 3,
    "cancels": 1,
    "preferred elections": 2,
}


@pytest.mark.slow
@pytest.mark.timeout(60 + SEEDS)
def test_no_cluster_breaks_a_promise_and_the_faults_bite() -> None:
    figures: Counter[str] = Counter()
    for seed in range(FIRST, FIRST + SEEDS):
        figures += simulate(seed)
    print(f"seeds {FIRST} to {FIRST + SEEDS - 1}: {dict(sorted(figures.items()))}")
    blunt = {name: figures[name] for name, least in BITES.items() if figures[name] * 10 < least * SEEDS}
    assert SEEDS < 50 or blunt == {}, f"these faults did not bite: {blunt}"
    assert SEEDS < 150 or figures["zombie controllers fenced"] > 0


def test_the_same_seed_is_the_same_run() -> None:
    assert simulate(7) == simulate(7)
    assert simulate(7) != simulate(8)


def violation_of(seed: int, mistake: str, shape: Cluster) -> str | None:
    """How a run of `seed` breaks a promise with the mistake planted."""
    try:
        simulate(seed, frozenset({mistake}), shape)
    except Violation as violation:
        return str(violation)
    return None


@pytest.mark.slow
@pytest.mark.parametrize("mistake", [*IN_DECISIONS, *IN_BROKERS])
def test_a_planted_mistake_is_noticed(mistake: str) -> None:
    shape = SHAPES.get(mistake, THREE)
    noticed = ((seed, violation_of(seed, mistake, shape)) for seed in range(SEARCH))
    seed, sentence = next((found for found in noticed if found[1]), (0, None))
    assert sentence is not None, f"{SEARCH} seeds did not notice: {mistake}"
    print(f"{mistake}: {sentence}")
    simulate(seed, shape=shape)
