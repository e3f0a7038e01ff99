"""kill -9 of the source, the target and the mirror under load: in the end both logs have the same bytes at the same offsets.

2 rounds in `make test`, 20 in a long run; each kills one, two or all three. It takes about ten seconds for 2 rounds.
"""

import hashlib
import random
from pathlib import Path

import pytest

from pylog_spark.client import Admin
from pylog_spark.testing import LocalBroker
from tests.harness.runs import rounds, seed
from tests.harness.waiting import let_pass, until
from tests.mirror.load import Load
from tests.mirror.support import MirrorProcess, committed, ends, raw_batches, until_copied

pytestmark = pytest.mark.long  # test_mirror.py goes on after kills

ROUNDS = rounds("PYLOG_MIRROR_ROUNDS", 1, 20)
SEED = seed("PYLOG_MIRROR_SEED")
TOPIC, PARTITIONS = "killed", 3
# Small, so that kills fall on rolls and on recovery of several segments, too.
_SETTINGS = {"log_segment_bytes": 500_000, "log_index_interval_bytes": 1_000}


@pytest.mark.timeout(180 + 30 * ROUNDS)
def test_that_kills_of_source_target_and_mirror_leave_the_same_bytes_at_the_same_offsets(tmp_path: Path) -> None:
    randomness = random.Random(SEED)
    print(f"seed {SEED}: set PYLOG_MIRROR_SEED to repeat")
    source, target = (LocalBroker(tmp_path / name, **_SETTINGS) for name in ("source", "target"))
    try:
        source.start()
        target.start()
        with Admin(source.bootstrap_servers) as admin:
            admin.create_topic(TOPIC, PARTITIONS)
        with (
            MirrorProcess(source.bootstrap_servers, target.bootstrap_servers) as mirror,
            Load(source.bootstrap_servers, TOPIC) as load,
        ):
            for number in range(ROUNDS):
                _moves_on(target, load)
                victims = [source, target, mirror]
                chosen = victims if number == 0 else randomness.sample(victims, randomness.randint(1, 3))
                let_pass(randomness.random() * 0.2)
                for victim in chosen:
                    victim.kill()
                # The mirror last: it begins only where both answer.
                for victim in sorted(chosen, key=victims.index):
                    victim.start()
            _moves_on(target, load)
            load.__exit__()
            wanted = until_copied(source.bootstrap_servers, target.bootstrap_servers, TOPIC, PARTITIONS)
            assert not load.failed
        _same(source.bootstrap_servers, target.bootstrap_servers, wanted)
    finally:
        source.close()
        target.close()


def _moves_on(target: LocalBroker, load: Load) -> None:
    """The copy grows, and transactions end."""
    before, done = sum(ends(target.bootstrap_servers, TOPIC, PARTITIONS)), load.transactions
    until(lambda: sum(ends(target.bootstrap_servers, TOPIC, PARTITIONS)) > before + 500, "the copy grows", 60)
    until(lambda: load.transactions > done, "transactions end", 60)


def _same(source: str, target: str, wanted: list[int]) -> None:
    for partition, end in enumerate(wanted):
        hashes = [
            hashlib.sha256(raw_batches(servers, TOPIC, partition, 0, end)).hexdigest() for servers in (source, target)
        ]
        assert hashes[0] == hashes[1], f"partition {partition}"
    assert committed(source, TOPIC, PARTITIONS, wanted) == committed(target, TOPIC, PARTITIONS, wanted)
