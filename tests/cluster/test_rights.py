"""Users and quotas of a cluster: changed at any broker, known to all of them within a second, still there after all were killed."""

import itertools
from collections.abc import Iterator
from contextlib import ExitStack, closing
from typing import Any

import pytest

from pylog_spark._native import RawConnection
from tests.cluster.sharing import ask, connect
from tests.harness.bench import Bench
from tests.harness.waiting import seconds_until

#: How long a change may take until every broker knows it.
WITHIN_S = 1.0
SALT, SALTED = "73616c74", "ab" * 32


def alter_user(connection: RawConnection, name: str, *, delete: bool = False) -> None:
    """Set or delete a credential of SCRAM-SHA-256."""
    key = {"name": name, "mechanism": 1}
    upsertion = {**key, "iterations": 4096, "salt": SALT, "salted_password": SALTED}
    asked: dict[str, Any] = {"deletions": [key] if delete else [], "upsertions": [] if delete else [upsertion]}
    (result,) = ask(connection, "AlterUserScramCredentials", 0, **asked)["results"]
    assert result["error_code"] == 0, result


def users(connection: RawConnection) -> set[str]:
    """The users that a broker knows."""
    return {result["user"] for result in ask(connection, "DescribeUserScramCredentials", 0, users=None)["results"]}


def set_quota(connection: RawConnection, user: str, value: float) -> None:
    entity = [{"entity_type": "user", "entity_name": user}]
    op = {"key": "producer_byte_rate", "value": value, "remove": False}
    answer = ask(connection, "AlterClientQuotas", 1, entries=[{"entity": entity, "ops": [op]}], validate_only=False)
    assert answer["entries"][0]["error_code"] == 0, answer


def quotas(connection: RawConnection) -> dict[str, float]:
    """The quotas of users that a broker knows."""
    entries = ask(connection, "DescribeClientQuotas", 1, components=[], strict=False)["entries"]
    return {entry["entity"][0]["entity_name"]: entry["values"][0]["value"] for entry in entries}


def all_know(connections: dict[int, RawConnection], known: Any, wanted: Any) -> float:
    """Wait until every broker knows what is wanted; how long that took."""
    return seconds_until(
        lambda: all(known(connection) == wanted for connection in connections.values()),
        lambda: f"every broker knows {wanted}: {[(number, known(each)) for number, each in connections.items()]}",
    )


@pytest.fixture
def everywhere(bench: Bench) -> Iterator[dict[int, RawConnection]]:
    """A connection to each broker."""
    with ExitStack() as stack:
        yield {number: stack.enter_context(closing(connect(broker))) for number, broker in bench.brokers.items()}


def test_what_one_broker_changes_all_know_within_a_second(everywhere: dict[int, RawConnection]) -> None:
    took = []
    before = users(everywhere[1])
    for number, (at, connection) in enumerate(itertools.islice(itertools.cycle(everywhere.items()), 9)):
        alter_user(connection, f"user-{number}")
        # Who changed it knows it when it answers.
        assert f"user-{number}" in users(connection)
        took.append(all_know(everywhere, users, before | {f"user-{number}"}))
        alter_user(everywhere[at % 3 + 1], f"user-{number}", delete=True)
        took.append(all_know(everywhere, users, before))
    median = sorted(took)[len(took) // 2]
    print(f"median {median:.3f} s, longest {max(took):.3f} s")
    # A busy machine may stand still during one of them.
    assert median < WITHIN_S


def test_changes_at_several_brokers_at_once_are_all_stored(everywhere: dict[int, RawConnection]) -> None:
    for number, connection in enumerate(itertools.islice(itertools.cycle(everywhere.values()), 30)):
        set_quota(connection, f"at-once-{number}", number + 1.0)
        alter_user(connection, f"at-once-{number}")
    wanted = {f"at-once-{number}": number + 1.0 for number in range(30)}
    all_know(everywhere, quotas, wanted)
    all_know(everywhere, lambda connection: users(connection) & wanted.keys(), set(wanted))


def test_users_and_quotas_are_there_after_all_brokers_were_killed(bench: Bench) -> None:
    with closing(connect(bench.brokers[1])) as connection:
        alter_user(connection, "survivor")
        set_quota(connection, "survivor", 7.0)
    for number in bench.ids:
        bench.kill(number)
    bench.heal()
    for broker in bench.brokers.values():
        with closing(connect(broker)) as connection:
            assert "survivor" in users(connection)
            assert quotas(connection)["survivor"] == 7.0
