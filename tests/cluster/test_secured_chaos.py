"""kill -9 and other faults under a mixed load on three brokers behind TLS, logins that end every three seconds, and ACLs.

The rounds are those of `test_chaos`, every other one a kill -9; what besides must hold of users, ACLs and quotas is in `guarded`. 40 rounds
in `make test-long`, four where the file is run by itself. A round whose faults had no consequence counts as not run: others are run for it.
"""

import random
from pathlib import Path

import pytest

from pylog_spark.testing import ZooKeeper
from tests.cluster.faults import KINDS
from tests.cluster.guarded import LOAD_USERS, Guarded, guarded
from tests.cluster.rounds import Campaign, plan, run
from tests.harness.history import Outcome
from tests.harness.mixed import FINAL, LAST_TAKER
from tests.harness.runs import rounds, seed
from tests.harness.security import ADMIN

ROUNDS = rounds("PYLOG_SECURED_CHAOS_ROUNDS", few=4, many=40)
SEED = seed("PYLOG_SECURED_CHAOS_SEED")
#: One cluster, and one history, for so many rounds.
_A_CAMPAIGN = 20
#: How many rounds may be needed for one that counts.
_PLANNED_FOR_ONE = 4
_ROUND_S = 45
_KILLS = tuple(KINDS["kill"])
_KILL_ALL = "kill all brokers"


def plan_kills(seed: int, rounds: int) -> list[tuple[str, ...]]:
    """Faults of each round: every other one a kill -9, of one broker and of all in turn, the others as `plan` has them."""
    others, randomness = plan(seed, rounds), random.Random(seed)
    kills: list[str] = []
    while len(kills) < rounds:
        kills += [kill for one in randomness.sample(_KILLS, len(_KILLS)) for kill in (_KILL_ALL, one)]
    pairs = zip(kills, others, strict=False)
    return [faults for kill, other in pairs for faults in ((kill,), other)][:rounds]


@pytest.mark.slow
@pytest.mark.long  # chaos is in test_chaos.py, and that nobody comes in or gains a right while brokers die in test_cut_off_rights.py and test_rights.py
@pytest.mark.timeout(120 + ROUNDS * _ROUND_S)
def test_a_secured_cluster_that_dies_again_and_again_loses_nothing_lets_nobody_in_and_forgets_no_right(
    worker_zookeeper: ZooKeeper, tmp_path: Path
) -> None:
    print(f"seed {SEED}: set PYLOG_SECURED_CHAOS_SEED to repeat")
    planned = enumerate(plan_kills(SEED, _PLANNED_FOR_ONE * ROUNDS))
    for first in range(0, ROUNDS, _A_CAMPAIGN):
        directory, wanted = tmp_path / str(first), min(_A_CAMPAIGN, ROUNDS - first)
        company = guarded(directory, SEED)
        campaign = run(directory, worker_zookeeper, SEED, planned, wanted, company.security, company)
        assert campaign.anomalies == [], f"seed {SEED}, rounds {[a_round.number for a_round in campaign.rounds]}"
        assert campaign.bitten == wanted, "the faults have no consequences"
        print(_figures(campaign, company))
        check_took_part(campaign)
        check_had_effect(campaign, company)


def check_took_part(campaign: Campaign) -> None:
    """Every client of the load, each a user with its own ACLs, did what it is for."""
    history = campaign.history
    acknowledged = {send.producer for send in history.sends if send.outcome is Outcome.OK}
    committed = {send.producer for send in history.sends if send.transaction and send.transaction.outcome is Outcome.OK}
    asked = {"observer"} if history.ends else set()
    active = {*acknowledged, *(poll.consumer for poll in history.polls), *(one.member for one in history.taken), *asked}
    # Who has read everything was needed for the verdict; who takes the rest may have found none.
    assert active >= set(LOAD_USERS) - {FINAL, LAST_TAKER}
    assert committed == {"transactional-1", "transactional-2", "copier"}
    assert campaign.taken[Outcome.OK] > campaign.taken.total() / 2, "the share group accepts little"


def check_had_effect(campaign: Campaign, company: Guarded) -> None:
    """Leaders died, logins ended, and brokers were away, while rights changed and intruders tried."""
    assert sum(a_round.elections for a_round in campaign.rounds) > 0
    assert company.failures > 0, "no fault met a change of rights"
    assert company.again_under_faults > 0
    assert all(company.again[user] > 0 for user in (ADMIN, *LOAD_USERS) if user not in (FINAL, LAST_TAKER)), (
        company.again
    )
    for intruder in company.intruders:
        assert all(intruder.refused[what] > 0 for what in intruder.tries), intruder.refused
        assert intruder.gone > 0


def _figures(campaign: Campaign, company: Guarded) -> str:
    tries, gone = (
        sum(each) for each in zip(*((one.refused.total(), one.gone) for one in company.intruders), strict=True)
    )
    return (
        f"{sum(a_round.elections for a_round in campaign.rounds)} elections; {company.again.total()} logins once more, "
        f"{company.again[ADMIN]} of brokers, {company.again_under_faults} under faults; {company.failures} changes of rights that had to be "
        f"tried again, known everywhere within {max(company.took_s):.2f} s; {tries} intrusions refused, {gone} at no broker"
    )


@pytest.mark.parametrize("number", range(5))
def test_every_other_round_of_a_plan_is_a_kill_of_one_broker_or_of_all_in_turn(number: int) -> None:
    planned = plan_kills(number, 40)
    assert set(planned[::4]) == {(_KILL_ALL,)}
    assert {faults for (faults,) in planned[2::4]} == set(_KILLS)
    assert planned == plan_kills(number, 40) != plan_kills(number + 1, 40)
