"""Exactly-once under kill -9: every step of the sink x every victim, and what a plain reader of committed data sees after it.

A round is one kill. One query for each step copies the same rows into a topic of its own; each is stopped at its step (see
`steps/sink_steps.py`), all wait there at the same time, then the victim is killed: a round is a kill at every step. A step that is not
reached, or a victim that does not die, fails the test. 3 rounds here, 100 by `make crash-sink`.

With three brokers (`make test-cluster`) the broker that dies is, one test each, the leader of the partitions that are written, the
coordinator of the transactions, the controller; in every other round its work has to be done before it is back. No query may
fail by that.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable

import pytest

from tests.brokers import SEVERAL
from tests.crash.sink_bench import Bench, descendants, kill
from tests.crash.steps.sink_steps import FLUSHED, IN_TASKS, ON_DRIVER

pytestmark = pytest.mark.cluster

ROUNDS = int(os.environ.get("PYLOG_SINK_ROUNDS", "3"))
_TIMEOUT_S = 600 + 120 * ROUNDS


@pytest.mark.slow
@pytest.mark.timeout(_TIMEOUT_S)
def test_each_row_is_seen_once_though_the_driver_is_killed_at_every_step(bench: Callable[..., Bench]) -> None:
    one = bench()
    for number in range(ROUNDS):
        one.stop_everywhere()
        one.control.leave(one.driver.kill(workers=number % 2 == 0))
        if number % 3 == 2:
            for query in one.queries.values():
                query.forget_newest_commit()
    one.finish()


@pytest.mark.slow
@pytest.mark.timeout(_TIMEOUT_S)
def test_each_row_is_seen_once_though_the_python_worker_is_killed_at_every_step(bench: Callable[..., Bench]) -> None:
    one = bench()
    for _ in range(ROUNDS):
        kill(one.stop_everywhere().values())
        one.control.release()
    one.finish()
    assert len(one.driver.failures()) >= ROUNDS * len(ON_DRIVER), one.driver.failures()


@pytest.mark.slow
@pytest.mark.timeout(_TIMEOUT_S)
def test_each_row_is_seen_once_though_the_broker_is_killed_at_every_step(bench: Callable[..., Bench]) -> None:
    one = bench()
    for number in range(ROUNDS):
        one.stop_everywhere()
        one.broker.kill()
        if number % 2:
            one.control.release()
        one.broker.start()
        one.control.release()
    one.finish()


@pytest.mark.slow
@pytest.mark.skipif(not SEVERAL, reason="one broker has all roles: `make test-cluster` has three")
@pytest.mark.timeout(_TIMEOUT_S)
@pytest.mark.parametrize("role", ["leader", "coordinator", "controller"])
def test_each_row_is_seen_once_though_the_broker_in_a_role_is_killed_at_every_step(
    bench: Callable[..., Bench], role: str
) -> None:
    one = bench()
    for number in range(ROUNDS):
        one.stop_everywhere()
        one.kill(role)
        one.control.release()
        if number % 2 == 0:
            one.idle()
        one.broker.start()
    one.finish()
    # A driver that was held before its decision for longer than its transaction may take is told so, and its query is started
    # again; the death itself costs no query.
    others = [
        why for why in one.driver.failures() if not re.search(r"transaction pylog-sink\.\S+ is not open any more", why)
    ]
    assert not others, "\n".join(others)


@pytest.mark.slow
@pytest.mark.timeout(_TIMEOUT_S)
def test_each_row_is_seen_once_though_an_executor_is_killed_at_every_step(bench: Callable[..., Bench]) -> None:
    one = bench(master="local-cluster[2,2,1024]")
    for _ in range(ROUNDS):
        waiting = one.stop_everywhere()
        victims = {one.driver.executor_of(waiting[step]) for step in IN_TASKS}
        workers = [pid for victim in victims for pid in descendants(victim)]
        kill(victims)
        kill(workers)
        one.control.release()
    one.finish()


@pytest.mark.slow
@pytest.mark.timeout(_TIMEOUT_S)
def test_each_row_is_seen_once_though_the_newest_commit_of_spark_is_lost(bench: Callable[..., Bench]) -> None:
    one = bench(("only",))
    query = one.queries["only"]
    for _ in range(ROUNDS):
        one.fill()
        one.driver.start()
        one.idle()
        one.driver.stop()
        assert query.forget_newest_commit() == query.newest("offsets")
    one.finish()


@pytest.mark.slow
def test_the_checks_bite_at_least_once_does_not_pass_them(bench: Callable[..., Bench]) -> None:
    one = bench((FLUSHED,), options={"delivery": "at-least-once"})
    kill(one.stop_everywhere().values())
    with pytest.raises(AssertionError, match="more than once"):
        one.finish()
