"""Faults under a mixed load on three brokers and ZooKeeper, and the checker over what the clients saw.

20 rounds here, 500 by `make cluster-chaos`. A round whose faults had no consequence counts as not run: others are run for it.
"""

import os
import random
from pathlib import Path

import pytest

from tests.cluster.faults import FAULTS
from tests.cluster.rounds import Campaign, plan, run

ROUNDS = int(os.environ.get("PYLOG_CHAOS_ROUNDS", "20"))
SEED = int(os.environ.get("PYLOG_CHAOS_SEED") or random.SystemRandom().randrange(2**32))
#: One cluster, and one history, for so many rounds.
_A_CAMPAIGN = 20
#: How many rounds may be needed for one that counts.
_PLANNED_FOR_ONE = 2
_ROUND_S = 45


@pytest.mark.slow
@pytest.mark.timeout(120 + ROUNDS * _ROUND_S)
def test_no_anomaly_in_rounds_of_random_faults_under_a_mixed_load(tmp_path: Path) -> None:
    print(f"seed {SEED}: set PYLOG_CHAOS_SEED to repeat")
    planned = enumerate(plan(SEED, _PLANNED_FOR_ONE * ROUNDS))
    campaigns: list[Campaign] = []
    for first in range(0, ROUNDS, _A_CAMPAIGN):
        wanted = min(_A_CAMPAIGN, ROUNDS - first)
        campaigns.append(run(tmp_path / str(first), SEED, planned, wanted))
        assert campaigns[-1].anomalies == [], f"seed {SEED}, rounds {[one.number for one in campaigns[-1].rounds]}"
        assert campaigns[-1].bitten == wanted, "the faults have no consequences"
    print(_figures(campaigns))


def _figures(campaigns: list[Campaign]) -> str:
    rounds = [one for campaign in campaigns for one in campaign.rounds]
    bitten = [one for one in rounds if one.bitten]
    lines = [
        f"{len(bitten)} of {len(rounds)} rounds bit: {sum(one.elections for one in rounds)} elections, "
        f"{sum(one.isr_changes for one in rounds)} ISR changes, {sum(one.truncations for one in rounds)} truncations, "
        f"{sum(one.controllers for one in rounds)} controllers, {sum(one.retries for one in rounds)} troubled sends"
    ]
    for what, values in (
        ("without a record", sorted(one.outage_s for one in bitten)),
        ("to recover", sorted(one.recovery_s for one in bitten)),
    ):
        if values:
            lines.append(f"seconds {what}: median {values[len(values) // 2]:.2f}, most {values[-1]:.2f}")
    return "\n".join(lines)


@pytest.mark.parametrize("seed", range(5))
def test_a_plan_has_every_fault_before_any_comes_again(seed: int) -> None:
    firsts = [faults[0] for faults in plan(seed, 200) if faults]
    assert set(firsts[: len(FAULTS)]) == set(FAULTS)
    assert plan(seed, 200) == plan(seed, 200) != plan(seed + 1, 200)
