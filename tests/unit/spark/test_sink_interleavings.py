"""The sink's own code in a world where everybody may be overtaken or killed at any request; see `sink_world`.

Drivers of one query run at the same time, as zombies do; so do several attempts at a task. Whatever happens: the rows of a version are
there once when its commit returns, and at the end; never twice; and no transaction is left open.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from pylog_spark.errors import PylogError
from pylog_spark.sink import abandoned, attempt, batch, commit, ledger, protocol, stream, task
from pylog_spark.sink.abandoned import end_abandoned
from pylog_spark.sink.identity import BATCH, ONCE, STREAM, Write, parse_task_id
from pylog_spark.sink.task import WritePlan, Written
from tests.harness import runs
from tests.harness.runs import mostly_long
from tests.unit.spark.sink_world import ABORTED, Actor, Dead, Native, World, me

COUNT = runs.rounds("PYLOG_INTERLEAVINGS", 12, 300)
#: The first of so many seeds: always the same in `make test`, where few must be enough to notice all that is planted.
FIRST = runs.seed("PYLOG_INTERLEAVINGS_FIRST") if runs.LONG else 0
SEEDS = range(FIRST, FIRST + COUNT)
CLIENT = {"bootstrap.servers": "nowhere:1"}
TASKS = 2
VERSIONS = 3
_RUNS_MAX = 40
_ATTEMPTS_MAX = 3


class Job:
    """One life of a driver: it runs the tasks of a version, commits, and goes on with the next, as Spark does."""

    def __init__(self, world: World, kind: str, checkpoint: set[int], *, skips: bool = False) -> None:
        self.world, self.kind, self.checkpoint, self.skips = world, kind, checkpoint, skips
        self.committed: list[int] = []

    def run(self) -> None:
        for version in range(max(self.checkpoint, default=-1) + 1, VERSIONS):
            if self.skips and self.world.random.random() < 0.2:
                continue
            self.write(Write(self.kind, "key.1", version))
            self.checkpoint.add(version)

    def write(self, write: Write) -> None:
        """One version. Raises what made it fail, after an abort."""
        plan = WritePlan(CLIENT, "sink", {"value": "value"}, batch=write)
        if self.kind == BATCH:
            plan = replace(plan, decided=batch._decided(plan))
        writer = stream._Outcome(plan) if self.kind == STREAM else _Batch(plan)
        messages: list[Written | None] = [None] * TASKS
        try:
            self.tasks(plan, messages)
            writer.commit(messages, write.version)
        except Exception:
            writer.abort(messages, write.version)
            raise
        later = any(int(each.split(b"/")[0]) > write.version for each in self.world.visible)
        for number in range(TASKS):
            there = row(write.version, number) in self.world.visible
            assert there or (self.kind == BATCH and later), f"{write} is committed and not there"
        self.committed.append(write.version)

    def tasks(self, plan: WritePlan, messages: list[Written | None]) -> None:
        """Run attempts until each task has one that is done; those that are still running are left to themselves."""
        attempts: list[list[Actor]] = [[] for _ in range(TASKS)]
        while None in messages:
            for number in range(TASKS):
                if messages[number] is None:
                    messages[number] = self.look(plan, number, attempts[number])
            me().pause()

    def look(self, plan: WritePlan, number: int, attempts: list[Actor]) -> Written | None:
        for actor in attempts:
            if isinstance(actor.result, Written):
                return actor.result
        running = [actor for actor in attempts if not actor.done]
        if not running and len(attempts) >= _ATTEMPTS_MAX:
            raise RuntimeError("the task has failed too often")
        if not running or (len(attempts) < 2 and self.world.random.random() < 0.2):
            attempts.append(self.world.spawn(f"task {number}", lambda: attempt_at(plan, number)))
        return None


class _Batch:
    """A batch writer whose plan is not checked again."""

    def __init__(self, plan: WritePlan) -> None:
        self._writer = batch.PylogWriter.__new__(batch.PylogWriter)
        self._writer._plan = plan

    def commit(self, messages: list[Written | None], _: int) -> None:
        self._writer.commit(messages)

    def abort(self, messages: list[Written | None], _: int) -> None:
        self._writer.abort(messages)


def row(version: int, number: int) -> bytes:
    return b"%d/%d" % (version, number)


def attempt_at(plan: WritePlan, number: int) -> Written:
    """What a Python worker does for a task."""
    assert plan.batch is not None
    attempt._looked_at.clear()
    me().number = number  # type: ignore[attr-defined]
    return plan.write(iter([pa.record_batch({"value": pa.array([row(plan.batch.version, number)], pa.binary())})]))


@pytest.fixture
def make_world(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., World]]:
    """Makes worlds, and puts the sink into them."""
    made: list[World] = []

    def make(seed: int, **more: Any) -> World:
        world = World(seed, **more)
        native = Native(world)
        for module in (attempt, ledger, task):
            monkeypatch.setattr(module, "native", lambda: native)
        made.append(world)
        return world

    def ledger_of_actor(client: Any) -> ledger.Ledger:
        me().ledger = me().ledger or ledger.Ledger(client)
        return me().ledger

    monkeypatch.setattr(attempt, "ledger_of_process", ledger_of_actor)
    monkeypatch.setattr(task, "_partition", lambda: me().number)  # type: ignore[attr-defined]
    # The module's name for it, not the function: other threads of this process sleep too (Py4J's).
    monkeypatch.setattr(ledger, "time", SimpleNamespace(monotonic=time.monotonic, sleep=lambda _: me().pause()))
    yield make
    for world in made:
        world.kill_all()


def lives(world: World, kind: str, *, skips: bool = False) -> list[Job]:
    """Start driver after driver on one checkpoint, also while older ones still run, until all versions are committed."""
    checkpoint: set[int] = set()
    jobs: list[Job] = []
    while max(checkpoint, default=-1) < VERSIONS - 1:
        assert len(jobs) < _RUNS_MAX, "no driver comes to an end"
        if len(jobs) > 6:
            world.death = world.fault = world.old = 0
        if checkpoint and world.random.random() < 0.3:
            checkpoint.remove(max(checkpoint))  # the newest file of commits/ is lost
        jobs.append(Job(world, kind, checkpoint, skips=skips and len(jobs) < 4))
        driver = world.spawn("driver", jobs[-1].run)
        pauses = world.random.choice((50, 200, 2_000))
        for _ in range(pauses):
            if driver.done:
                break
            if world.random.random() < world.old / 20:
                spawn_neighbour(world)
            _once(world)
        if world.random.random() < 0.2:
            world.forget()
    world.death = world.fault = world.old = 0
    world.run(lambda: False)
    return jobs


def spawn_neighbour(world: World) -> None:
    """Somebody who ends what he takes for abandoned: all that seems to be old. Two at most, or they only fence each other."""
    if sum(actor.name == "neighbour" and not actor.done for actor in world.actors) < 2:
        world.spawn("neighbour", lambda: end_abandoned(CLIENT))


def end_all_that_is_open(world: World) -> None:
    """As if everybody were gone for long: one who comes by, undisturbed."""
    world.time_out, world.old = 0, 1
    spawn_neighbour(world)
    world.run(lambda: False)
    assert world.actors[-1].error is None


def open_tasks(world: World) -> list[str]:
    """Open transactions of tasks; those of dead drivers time out."""
    return [open_id for open_id in world.open() if parse_task_id(open_id)]


def _once(world: World) -> None:
    done = iter((False, True))
    world.run(lambda: next(done))


def raised(world: World) -> list[BaseException]:
    """Errors that are the sink's own fault: not a death, and not one that it raises for the user."""
    errors = [actor.error for actor in world.actors if actor.error is not None]
    return [error for error in errors if not isinstance(error, Dead | PylogError | RuntimeError)]


def left_open(world: World) -> list[str]:
    """Open transactions of attempts that ended well: those of dead ones wait for the next commit."""
    well = {
        actor.result.outcome.transaction.transactional_id
        for actor in world.actors
        if isinstance(actor.result, Written) and actor.result.outcome.transaction is not None
    }
    return sorted(well & set(world.open()))


@pytest.mark.parametrize("two_phase", mostly_long([True, False], True), ids=["prepared", "ordinary"])
def test_every_version_of_a_query_is_there_once_however_its_drivers_and_tasks_overtake_each_other(
    make_world: Callable[..., World], two_phase: bool
) -> None:
    deaths = aborted = 0
    for seed in SEEDS:
        world = make_world(seed, two_phase=two_phase)
        world.death, world.fault = world.random.choice(((0, 0), (0.01, 0), (0, 0.02), (0.01, 0.02)))
        lives(world, STREAM)
        rows = sorted(row(version, number) for version in range(VERSIONS) for number in range(TASKS))
        assert (seed, raised(world)) == (seed, [])
        assert (seed, sorted(world.visible)) == (seed, rows)
        assert (seed, left_open(world)) == (seed, [])
        deaths += sum(isinstance(actor.error, Dead) for actor in world.actors)
        aborted += sum(
            producer.span is not None and producer.span.state == ABORTED for producer in world.producers.values()
        )
        commit_one_more(world)
        assert (seed, world.open()) == (seed, [])
    assert deaths > COUNT / 4, "hardly anybody was killed"
    assert aborted > COUNT / 4, "hardly anything was aborted"


def commit_one_more(world: World) -> None:
    """Another version, undisturbed: it clears away what the dead have left."""
    world.time_out = 0
    job = Job(world, STREAM, set())
    driver = world.spawn("last", lambda: job.write(Write(STREAM, "key.1", VERSIONS)))
    world.run(lambda: False)
    assert driver.error is None


@pytest.mark.parametrize("two_phase", mostly_long([True, False], True), ids=["prepared", "ordinary"])
def test_every_version_is_there_once_though_others_take_its_drivers_for_gone_at_any_moment(
    make_world: Callable[..., World], two_phase: bool
) -> None:
    ended = lost = 0
    for seed in SEEDS:
        world = make_world(seed, two_phase=two_phase)
        world.death, world.fault = world.random.choice(((0, 0), (0.01, 0), (0, 0.02)))
        world.old = world.random.choice((0.3, 0.9, 1))
        lives(world, world.random.choice((STREAM, BATCH)))
        rows = sorted(row(version, number) for version in range(VERSIONS) for number in range(TASKS))
        assert (seed, raised(world)) == (seed, [])
        assert (seed, sorted(world.visible)) == (seed, rows)
        lost += sum(
            isinstance(actor.error, PylogError) and "abandonedAfter" in str(actor.error) for actor in world.actors
        )
        end_all_that_is_open(world)
        assert (seed, open_tasks(world)) == (seed, [])
        assert (seed, sorted(world.visible)) == (seed, rows), "what was ended last was not decided"
        ended += sum(bool(actor.result) for actor in world.actors if actor.name == "neighbour")
    assert ended > COUNT / 4, "hardly anything was abandoned"
    assert lost > COUNT / 4, "hardly any driver was slow"


@pytest.mark.long  # all at once: above
def test_no_row_is_lost_or_repeated_though_abandoned_transactions_are_revoked_one_by_one(
    make_world: Callable[..., World], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protocol, "REVOKED_BYTES_MAX", 1)
    ended = 0
    for seed in SEEDS:
        world = make_world(seed, two_phase=True)
        world.death, world.old = world.random.choice((0, 0.01)), world.random.choice((0.3, 0.9, 1))
        lives(world, world.random.choice((STREAM, BATCH)))
        rows = sorted(row(version, number) for version in range(VERSIONS) for number in range(TASKS))
        assert (seed, raised(world)) == (seed, [])
        assert (seed, sorted(world.visible)) == (seed, rows)
        end_all_that_is_open(world)
        assert (seed, open_tasks(world)) == (seed, [])
        assert (seed, sorted(world.visible)) == (seed, rows), "what was ended last was not decided"
        ended += sum(bool(actor.result) for actor in world.actors if actor.name == "neighbour")
    assert ended > COUNT / 4, "hardly anything was abandoned"


def test_a_batch_without_a_name_is_there_once_when_its_driver_says_so_and_else_not_at_all_or_whole(
    make_world: Callable[..., World],
) -> None:
    """Its driver may be taken for gone at any moment, and what was stored about it be dropped before it comes back."""
    well = failed = 0
    for seed in SEEDS:
        world = make_world(seed, two_phase=True)
        world.death = world.random.choice((0, 0.01))
        driver = write_once_among_neighbours(world, seed)
        assert (seed, raised(world)) == (seed, [])
        end_all_that_is_open(world)
        assert (seed, open_tasks(world)) == (seed, [])
        there = sum(row(0, number) in world.visible for number in range(TASKS))
        assert there in (0, TASKS), f"seed {seed}: torn"
        assert there == TASKS or driver.error is not None, f"seed {seed}: the driver says that its rows are there"
        well, failed = well + (driver.error is None), failed + (there == 0)
    assert min(well, failed) > COUNT / 20, (well, failed)


def help_once(write: Write) -> None:
    """What one neighbour does for a batch that he takes for decided and left."""
    stored = commit.read_decision(ledger.Ledger(CLIENT), write)
    if stored is not None:
        commit.finish(CLIENT, stored.write)


def write_once_among_neighbours(world: World, seed: int) -> Actor:
    """A batch without a name; around its driver others end what they take for abandoned, finish what they take for decided and drop
    what is stored about it, and brokers forget ids."""
    world.old = world.random.choice((0.3, 1))
    write = Write(ONCE, f"{seed:032x}", 0)  # as such keys are: others know the kind of a write by it
    job = Job(world, ONCE, set())
    driver = world.spawn("driver", lambda: job.write(write))
    for _ in range(2_000):
        if driver.done:
            break
        if world.random.random() < 0.03:
            spawn_neighbour(world)
        if world.random.random() < 0.02:
            world.spawn("helper", lambda: help_once(write))
        if world.random.random() < 0.02:
            world.forget()
        _once(world)
    world.death = 0
    world.run(lambda: False)
    return driver


def test_a_named_batch_is_there_once_or_not_at_all_when_its_program_goes_on_with_the_next_version(
    make_world: Callable[..., World],
) -> None:
    skipped = 0
    for seed in SEEDS:
        world = make_world(seed, two_phase=True)
        world.death, world.fault = world.random.choice(((0.01, 0), (0.01, 0.02)))
        lives(world, BATCH, skips=True)
        assert (seed, raised(world)) == (seed, [])
        for version in range(VERSIONS):
            there = sum(row(version, number) in world.visible for number in range(TASKS))
            assert there in (0, TASKS), f"seed {seed}: version {version} is torn"
            skipped += there == 0
        assert (seed, left_open(world)) == (seed, [])
    assert skipped > 0


def test_a_batch_without_a_name_is_there_once_or_not_at_all(make_world: Callable[..., World]) -> None:
    outcomes = {True: 0, False: 0}
    for seed in SEEDS:
        world = make_world(seed, two_phase=True)
        world.death, world.fault = world.random.choice(((0, 0), (0.02, 0), (0, 0.05)))
        write = Write(ONCE, f"key-{seed}", 0)
        job = Job(world, ONCE, set())
        driver = world.spawn("driver", lambda job=job, write=write: job.write(write))
        world.run(lambda: False)
        assert (seed, raised(world)) == (seed, [])
        if driver.error is None:
            assert (seed, left_open(world)) == (seed, [])
        world.death = world.fault = 0
        helper = world.spawn("helper", lambda write=write: help_finish(write))
        world.run(lambda: False)
        assert (seed, helper.error) == (seed, None)
        there = sum(row(0, number) in world.visible for number in range(TASKS))
        assert there in (0, TASKS), f"seed {seed}: torn"
        outcomes[there == TASKS] += 1
        assert there == TASKS or driver.error is not None, seed
    assert min(outcomes.values()) > COUNT / 20, outcomes


def help_finish(write: Write) -> None:
    """What neighbours do for a batch whose driver died, until one is not disturbed by a time-out."""
    for _ in range(10):
        stored = commit.read_decision(ledger.Ledger(CLIENT), write)
        try:
            if stored is not None:
                commit.finish(CLIENT, stored.write)
        except PylogError:
            continue
        return
    raise AssertionError("no process can end the write")


def test_the_world_bites_a_sink_that_does_not_look_again_leaves_transactions_open(
    make_world: Callable[..., World], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attempt, "look_again", lambda client, write: False)
    found = 0
    for seed in SEEDS:
        world = make_world(seed, two_phase=True)
        job = Job(world, ONCE, set())
        world.spawn("driver", lambda job=job: job.write(Write(ONCE, "key", 0)))
        world.run(lambda: False)
        found += bool(left_open(world))
    assert found > 0


def test_the_world_bites_a_sink_that_ends_other_drivers_transactions_tears_a_version(
    make_world: Callable[..., World], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first draft of the protocol: a driver that gives up aborts all open transactions of the version, and no driver looks whether
    its own are still open."""
    monkeypatch.setattr(commit, "check_alive", lambda ledger, write, transactions: None)
    monkeypatch.setattr(
        commit,
        "given_up",
        lambda open_ids, write, job: [open_id for open_id in open_ids if open_id.startswith(write.task_prefix)],
    )
    torn = 0
    for seed in SEEDS:
        world = make_world(seed, two_phase=True)
        world.death, world.fault = 0.01, 0.03
        try:
            lives(world, STREAM)
            torn += any(isinstance(error, AssertionError) for error in raised(world))
        except AssertionError:
            torn += 1
        world.kill_all()
    assert torn > 0


@pytest.mark.parametrize("mistake", ["aborts what it has not revoked", "is not the only driver"])
def test_the_checks_find_a_neighbour_that_ends_writes_by_their_age_alone(
    make_world: Callable[..., World], monkeypatch: pytest.MonkeyPatch, mistake: str
) -> None:
    no_fence = SimpleNamespace(store=lambda _: None, close=lambda: None)
    instead = (
        {"decide": lambda *_: None} if mistake == "aborts what it has not revoked" else {"fence": lambda *_: no_fence}
    )
    monkeypatch.setattr(abandoned, "commit", SimpleNamespace(**{**vars(commit), **instead}))
    bitten = 0
    for seed in range(FIRST, FIRST + 4 * COUNT):
        world = make_world(seed, two_phase=True)
        try:
            write_once_among_neighbours(world, seed)
        except AssertionError:  # no end: the driver waits for transactions that are gone
            bitten += 1
        lost = any(
            isinstance(actor.error, PylogError) and "rows are lost" in str(actor.error) for actor in world.actors
        )
        bitten += lost or any(isinstance(error, AssertionError) for error in raised(world))
        world.kill_all()
        if bitten:
            return
    raise AssertionError("nothing was lost")
