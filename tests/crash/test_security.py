"""kill -9 while users, ACLs and quotas are written, and a move from one store to another: no right appears or disappears."""

import random
import sys
from pathlib import Path

import pytest

from pylog_spark.broker.registry import TopicRegistry
from pylog_spark.cluster.security import documents
from pylog_spark.cluster.security.model import Unit
from tests.crash.secured_writer import ask, opened
from tests.harness.children import PipedChild
from tests.harness.runs import mostly_long, rounds, seed
from tests.harness.waiting import let_pass
from tests.harness.zookeeper import new_chroot

ROUNDS = rounds("PYLOG_CRASH_ROUNDS", 6, 50)
SEED = seed("PYLOG_CRASH_SEED")
_LONGEST_S = 0.1


def stored(registry: TopicRegistry) -> dict[str, Unit]:
    """Everything that there is, by its path."""
    known = registry.security
    units: list[Unit] = [*known.users.values(), *known.acls.values(), *known.quotas.values()]
    return {documents.path_of(unit): unit for unit in units}


def killed_while_writing(store: str, first: int, pause_s: float) -> int:
    """Run the writer from request `first`, kill it; the number of the first request that was not answered."""
    with PipedChild([sys.executable, "-m", "tests.crash.secured_writer", store, str(first)]) as writer:
        assert writer.line() == "ready"
        let_pass(pause_s)
        writer.kill()
        answered = [int(line) for line in writer.waiting_lines() if line]
    return answered[-1] + 1 if answered else first


@pytest.fixture(params=mostly_long(["file", "zookeeper"], "file"))
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where the writer writes."""
    if request.param == "file":
        return str(tmp_path / "data")
    return f"zk:{request.getfixturevalue('worker_zookeeper').address}{new_chroot()}"


@pytest.mark.timeout(120 + 10 * ROUNDS)
def test_what_was_answered_survives_kill_9_and_nothing_else_is_there(store: str, tmp_path: Path) -> None:
    randomness = random.Random(SEED)
    print(f"seed {SEED}: set PYLOG_CRASH_SEED to repeat")
    # The same requests, carried out where nobody is killed.
    model = opened(str(tmp_path / "model"))
    at = 0
    for _ in range(ROUNDS):
        unanswered = killed_while_writing(store, at, randomness.uniform(0, _LONGEST_S))
        for number in range(at, unanswered):
            ask(model, number)
        before = stored(model)
        ask(model, unanswered)
        after = stored(model)
        survived = opened(store)
        now = stored(survived)
        # Of the request that was not answered each document is as before or as after; with ZooKeeper all of them are the same.
        wrong = {path for path in {*before, *after, *now} if now.get(path) not in (before.get(path), after.get(path))}
        assert wrong == set()
        if store.startswith("zk:"):
            assert now in (before, after)
        # It may be asked again, and the next round goes on from where both are the same.
        ask(survived, unanswered)
        assert stored(survived) == after
        survived.store.close()
        at = unanswered + 1
    assert at > ROUNDS


@pytest.mark.long  # tests/cluster/test_rights.py
def test_rights_that_are_moved_from_a_broker_to_a_cluster_are_the_same(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    alone = opened(str(tmp_path))
    for number in range(200):
        ask(alone, number)
    cluster = opened(f"zk:{request.getfixturevalue('worker_zookeeper').address}{new_chroot()}")
    before = stored(alone)
    assert cluster.security.commit(list(before.values()), cluster.level) is None
    cluster.security.read_all()
    assert stored(cluster) == before
    cluster.store.close()
