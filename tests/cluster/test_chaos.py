"""Faults under a mixed load on three brokers and ZooKeeper, and the checker over what the clients saw.

Two rounds in `make test`, which kinds of faults differs from commit to commit; many of each kind in `make test-long`, 500 by `make
cluster-chaos`. A round whose faults had no consequence counts as not run: others are run for it. A round takes some ten seconds: a fault
lasts as long as sessions do, and it waits until the cluster is whole again.
"""

from collections import Counter
from pathlib import Path

import pytest

from pylog_spark.testing import ZooKeeper
from tests.cluster.faults import FAULTS, KINDS
from tests.cluster.rounds import Campaign, plan, run
from tests.harness.history import Outcome
from tests.harness.runs import rounds, seed

ROUNDS = rounds("PYLOG_CHAOS_ROUNDS", few=2, many=60)
SEED = seed("PYLOG_CHAOS_SEED")
#: One cluster, and one history, for so many rounds.
_A_CAMPAIGN = 20
#: How many rounds may be needed for one that counts.
_PLANNED_FOR_ONE = 4
_ROUND_S = 45


@pytest.mark.slow
@pytest.mark.timeout(120 + ROUNDS * _ROUND_S)
def test_no_anomaly_in_rounds_of_random_faults_under_a_mixed_load(worker_zookeeper: ZooKeeper, tmp_path: Path) -> None:
    print(f"seed {SEED}: set PYLOG_CHAOS_SEED to repeat")
    planned = enumerate(plan(SEED, _PLANNED_FOR_ONE * ROUNDS))
    campaigns: list[Campaign] = []
    for first in range(0, ROUNDS, _A_CAMPAIGN):
        wanted = min(_A_CAMPAIGN, ROUNDS - first)
        campaigns.append(run(tmp_path / str(first), worker_zookeeper, SEED, planned, wanted))
        assert campaigns[-1].anomalies == [], (
            f"seed {SEED}, rounds {[a_round.number for a_round in campaigns[-1].rounds]}"
        )
        assert campaigns[-1].bitten == wanted, "the faults have no consequences"
        assert campaigns[-1].taken[Outcome.OK] > campaigns[-1].taken.total() / 2, "the share group accepts little"
    print(_figures(campaigns))


def _figures(campaigns: list[Campaign]) -> str:
    rounds = [a_round for campaign in campaigns for a_round in campaign.rounds]
    bitten = [a_round for a_round in rounds if a_round.bitten]
    lines = [
        f"{len(bitten)} of {len(rounds)} rounds bit: {sum(a_round.elections for a_round in rounds)} elections, "
        f"{sum(a_round.isr_changes for a_round in rounds)} ISR changes, {sum(a_round.truncations for a_round in rounds)} truncations, "
        f"{sum(a_round.controllers for a_round in rounds)} controllers, {sum(a_round.retries for a_round in rounds)} troubled sends"
    ]
    taken = sum((campaign.taken for campaign in campaigns), Counter[Outcome]())
    lines.append(
        f"{taken[Outcome.OK]} of {taken.total()} records that the share group was given are known to be accepted"
    )
    for what, values in (
        ("without a record", sorted(a_round.outage_s for a_round in bitten)),
        ("to recover", sorted(a_round.recovery_s for a_round in bitten)),
    ):
        if values:
            lines.append(f"seconds {what}: median {values[len(values) // 2]:.2f}, most {values[-1]:.2f}")
    return "\n".join(lines)


@pytest.mark.parametrize("number", range(5))
def test_a_plan_has_every_fault_before_any_comes_again_and_one_of_each_kind_first(number: int) -> None:
    firsts = [faults[0] for faults in plan(number, 200) if faults]
    assert set(firsts[: len(FAULTS)]) == set(FAULTS)
    assert plan(number, 200) == plan(number, 200) != plan(number + 1, 200)
    for faults in KINDS.values():
        assert any(kinds and kinds[0] in faults for kinds in plan(number, len(KINDS)))
