"""Exactly-once under kill -9: every step of the sink x every victim, and what a plain reader of committed data sees after it.

A round is one kill. One query for each step copies the same rows into a topic of its own; each is stopped at its step (see
`steps/sink_steps.py`), all wait there at the same time, then the victim is killed: a round is a kill at every step. A step that is not
reached, or a victim that does not die, fails the test. 1 round in `make test`, 3 in a long run, 100 by `make crash-sink`.

It takes minutes, which is the time of the drivers (a Java process, and two Python processes for each of seven queries): the tests
share one where they can, and hand it on running.

With three brokers (`make test-cluster`) the broker that dies is, one test each, the leader of the partitions that are written, the
coordinator of the transactions, the controller; in every other round its work has to be done before it is back. No query may
fail by that.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.crash.conftest import Shared
from tests.crash.sink_bench import DEADLINE_S, Driver, SinkBench, kill
from tests.crash.steps.sink_steps import FLUSHED, IN_TASKS, ON_DRIVER, STEPS
from tests.harness.brokers import SEVERAL
from tests.harness.processes import descendants
from tests.harness.runs import rounds, seed
from tests.harness.waiting import until

# without Spark's engine: test_sink_batches.py, test_abandoned.py
pytestmark = [pytest.mark.long, pytest.mark.cluster]

ROUNDS = rounds("PYLOG_SINK_ROUNDS", 1, 3)
#: What one round does in one way and the next in another; which comes first differs from commit to commit.
WAYS = [(number + seed("PYLOG_SINK_SEED")) % 2 == 0 for number in range(ROUNDS)]
_TIMEOUT_S = 600 + 120 * ROUNDS


@pytest.mark.slow
@pytest.mark.timeout(_TIMEOUT_S)
def test_each_row_is_seen_once_though_the_driver_is_killed_at_every_step(shared: Shared) -> None:
    print(f"are its workers killed with it, by round: {WAYS}; PYLOG_SINK_SEED=0 begins with yes")
    with shared.bench() as bench:
        for number, workers in enumerate(WAYS):
            bench.stop_everywhere()
            bench.control.leave(bench.driver.kill(workers=workers))
            if number % 3 == 2:
                for query in bench.queries.values():
                    query.forget_newest_commit()
        bench.finish()


@pytest.mark.slow
@pytest.mark.timeout(_TIMEOUT_S)
def test_each_row_is_seen_once_though_the_python_worker_is_killed_at_every_step(shared: Shared) -> None:
    with shared.bench() as bench:
        waiting = bench.stop_everywhere()
        before = len(bench.driver.failures())
        kill(waiting.values())
        bench.control.release()
        for _ in range(ROUNDS - 1):
            kill(bench.stop_everywhere().values())
            bench.control.release()
        bench.finish()
        failures = bench.driver.failures()[before:]
        assert len(failures) >= ROUNDS * len(ON_DRIVER), failures


@pytest.mark.slow
@pytest.mark.timeout(_TIMEOUT_S)
def test_each_row_is_seen_once_though_the_broker_is_killed_at_every_step(shared: Shared) -> None:
    print(f"do they go on before it is back, by round: {WAYS}; PYLOG_SINK_SEED=0 begins with yes")
    with shared.bench() as bench:
        for early in WAYS:
            bench.stop_everywhere()
            bench.broker.kill()
            if early:
                bench.control.release()
            bench.broker.start()
            bench.control.release()
        bench.finish()


@pytest.mark.long  # the same in one batch: tests/crash/test_abandoned.py
@pytest.mark.timeout(_TIMEOUT_S)
def test_a_driver_that_was_stopped_at_any_step_and_goes_on_after_another_took_over_changes_nothing(
    shared: Shared,
) -> None:
    with shared.bench() as bench:
        stopped = bench.stop_everywhere()
        old = bench.driver
        before = len(old.failures())
        old.signal(signal.SIGSTOP)
        Path(old.plan.last_life).touch()
        try:
            bench.driver = Driver(replace(old.plan, last_life=""))
            bench.control.leave(stopped.values())
            bench.driver.start()
            bench.idle()
            bench.control.release_files()
            old.signal(signal.SIGCONT)
            until(lambda: len(old.failures()) == before + len(STEPS), "the old driver has met the new one", DEADLINE_S)
            bench.finish()
        finally:
            old.close()


@pytest.mark.slow
@pytest.mark.skipif(not SEVERAL, reason="one broker has all roles: `make test-cluster` has three")
@pytest.mark.timeout(_TIMEOUT_S)
@pytest.mark.parametrize("role", ["leader", "coordinator", "controller"])
def test_each_row_is_seen_once_though_the_broker_in_a_role_is_killed_at_every_step(
    make_bench: Callable[..., SinkBench], role: str
) -> None:
    bench = make_bench()
    for number in range(ROUNDS):
        bench.stop_everywhere()
        bench.kill(role)
        bench.control.release()
        if number % 2 == 0:
            bench.idle()
        bench.broker.start()
    bench.finish()
    # A driver that was held before its decision for longer than its transaction may take fails with that, and its query is started
    # again; the death itself costs no query.
    others = [
        why
        for why in bench.driver.failures()
        if not re.search(r"transaction pylog-sink\.\S+ is not open any more", why)
    ]
    assert not others, "\n".join(others)


@pytest.mark.long  # to Spark, and to the sink, it is the death of a Python worker, which is above
@pytest.mark.timeout(_TIMEOUT_S)
def test_each_row_is_seen_once_though_an_executor_is_killed_at_every_step(make_bench: Callable[..., SinkBench]) -> None:
    bench = make_bench(master="local-cluster[2,2,1024]")
    for _ in range(ROUNDS):
        waiting = bench.stop_everywhere()
        victims = {bench.driver.executor_of(waiting[step]) for step in IN_TASKS}
        workers = [pid for victim in victims for pid in descendants(victim)]
        kill(victims)
        kill(workers)
        bench.control.release()
    bench.finish()


@pytest.mark.long  # a batch that Spark runs again since its commit is lost: tests/spark/test_sink_once.py
@pytest.mark.timeout(_TIMEOUT_S)
def test_each_row_is_seen_once_though_the_newest_commit_of_spark_is_lost(make_bench: Callable[..., SinkBench]) -> None:
    bench = make_bench(("only",))
    query = bench.queries["only"]
    for _ in range(ROUNDS):
        bench.fill()
        bench.driver.start()
        bench.idle()
        bench.driver.stop()
        assert query.forget_newest_commit() == query.newest("offsets")
    bench.finish()


@pytest.mark.long
def test_the_checks_bite_at_least_once_does_not_pass_them(make_bench: Callable[..., SinkBench]) -> None:
    bench = make_bench((FLUSHED,), options={"delivery": "at-least-once"})
    kill(bench.stop_everywhere().values())
    with pytest.raises(AssertionError, match="more than once"):
        bench.finish()
