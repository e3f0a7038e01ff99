"""kill -9 of the source, of Apache Kafka as the target and of the mirror under load: each committed record is in the copy once, in order.

1 round in `make test`, which kills all three, and 20 in a long run, each of one, two or all three. One costs 20 s, 20 about
four minutes, since Apache Kafka starts again in most.
"""

import random
from pathlib import Path

import pytest

from pylog_spark.client import Admin
from pylog_spark.testing import LocalBroker
from tests.harness.runs import rounds, seed
from tests.harness.waiting import let_pass, until
from tests.mirror.load import Load
from tests.mirror.support import MirrorProcess, ends, until_equal
from tests.peers.kafka import KafkaBroker

# Kills of the mirror into a Kafka that runs are in tests/mirror/test_into_kafka.py.
pytestmark = [pytest.mark.peers, pytest.mark.long]

ROUNDS = rounds("PYLOG_MIRROR_KAFKA_ROUNDS", 1, 20)
SEED = seed("PYLOG_MIRROR_KAFKA_SEED")
TOPIC, PARTITIONS = "killed", 3


@pytest.mark.timeout(240 + 60 * ROUNDS)
def test_that_kills_of_source_target_and_mirror_neither_lose_nor_double_a_record(tmp_path: Path) -> None:
    randomness = random.Random(SEED)
    print(f"seed {SEED}: set PYLOG_MIRROR_KAFKA_SEED to repeat")
    source, target = LocalBroker(tmp_path / "source"), KafkaBroker(tmp_path / "target", heap="512m", quick=True)
    try:
        source.start()
        target.start()
        with Admin(source.bootstrap_servers) as admin:
            admin.create_topic(TOPIC, PARTITIONS, config={"retention.ms": "-1"})
        with (
            MirrorProcess(source.bootstrap_servers, target.bootstrap_servers) as mirror,
            Load(source.bootstrap_servers, TOPIC, pause_s=0.01) as load,
        ):
            for number in range(ROUNDS):
                _moves_on(target, load)
                victims = [source, target, mirror]
                chosen = victims if number == 0 else randomness.sample(victims, randomness.randint(1, 3))
                let_pass(randomness.random() * 0.5)
                for victim in chosen:
                    victim.kill()
                # The mirror last: it begins only where both answer.
                for victim in sorted(chosen, key=victims.index):
                    victim.start()
            _moves_on(target, load)
            load.__exit__()
            assert not load.failed
            found = until_equal(source.bootstrap_servers, target.bootstrap_servers, TOPIC, PARTITIONS)
            assert all(found)
    finally:
        source.close()
        target.stop()


def _moves_on(target: KafkaBroker, load: Load) -> None:
    """The copy grows, and transactions end in the source."""
    before, done = sum(ends(target.bootstrap_servers, TOPIC, PARTITIONS)), load.transactions
    until(lambda: sum(ends(target.bootstrap_servers, TOPIC, PARTITIONS)) > before + 500, "the copy grows", 120)
    until(lambda: load.transactions > done, "transactions end", 60)
