"""``pylog sink``: writes that a driver left undecided, decided or behind, seen and ended from outside."""

import json
import uuid

import pytest

from pylog_spark.errors import PylogError
from pylog_spark.sink import commit, overview, protocol
from pylog_spark.sink.identity import STREAM, Write, batch_write
from tests.spark.once import Job, committed_values


class Died(BaseException):
    """The driver was killed."""


@pytest.fixture
def topic(make_topic):
    return make_topic(f"topic-{uuid.uuid4()}", 2)


@pytest.fixture
def make_job(broker, topic):
    """Makes attempts at a query's batches, each with two tasks that are done."""
    key = f"{uuid.uuid4()}.{1}"

    def make(version, write=None):
        job = Job(broker.bootstrap_servers, topic, write or Write(STREAM, key, version))
        job.task(0, f"{version}-a")
        job.task(1, f"{version}-b")
        return job

    return make


@pytest.fixture
def decided(make_job, monkeypatch):
    """A batch whose driver died right after its decision."""
    job = make_job(0)

    def die(*_):
        raise Died

    with monkeypatch.context() as patched:
        patched.setattr(commit, "end", die)
        with pytest.raises(Died):
            job.commit()
    return job


def listed(pylog, key, *words):
    """(version, state, open transactions) of a write."""
    found = json.loads(pylog("sink", "list", "--json", *words).stdout)
    return [(row["version"], row["state"], row["transactions"]) for row in found if row["key"] == key]


def test_every_write_is_listed_with_its_version_its_state_what_is_open_and_where(pylog, topic, make_job):
    first = make_job(0)
    key = first.write.key
    assert listed(pylog, key) == [(0, "undecided", 2)]
    first.commit()
    assert listed(pylog, key) == [(0, "finished", 0)]
    assert listed(pylog, key, "--open") == []
    make_job(1)
    assert listed(pylog, key) == [(0, "finished", 0), (1, "undecided", 2)]
    lines = pylog("sink", "list").stdout.splitlines()
    assert lines[0].split() == ["KEY", "VERSION", "STATE", "OPEN", "OPEN-FOR-S", "TOPICS"]
    assert [line.split()[:4] for line in lines if key in line] == [
        [key, "0", "finished", "0"],
        [key, "1", "undecided", "2"],
    ]
    assert [line.split()[5] for line in lines if key in line] == ["-", topic]


def test_a_prepared_transaction_is_shown_as_one_that_no_broker_ends_with_where_it_holds_readers_back(
    pylog, topic, make_job
):
    job = make_job(0)
    listed = {each["transactional_id"]: each for each in json.loads(pylog("transaction", "list", "--json").stdout)}
    own = [listed[each.transaction.transactional_id] for each in job.outcomes]
    assert [(each["state"], each["prepared"]) for each in own] == [("Ongoing", True)] * 2
    name = own[0]["transactional_id"]
    assert [line.split()[2] for line in pylog("transaction", "list").stdout.splitlines() if name in line] == ["yes"]
    assert "s, prepared: no broker ends it\n" in pylog("transaction", "describe", name).stdout
    (described,) = json.loads(pylog("topic", "describe", topic, "--json").stdout)
    bounds = [(each["stable_offset"], each["end_offset"]) for each in described["partitions"]]
    assert (min(bounds)[0], max(bounds)[1] > 0) == (0, True)


def test_what_is_decided_is_finished_and_seen(pylog, broker, topic, decided):
    assert listed(pylog, decided.write.key) == [(0, "unfinished", 2)]
    assert committed_values(broker.bootstrap_servers, topic, waiting=True) == []
    done = pylog("sink", "finish", decided.write.key)
    assert (done.returncode, done.stderr) == (0, "Finished 1 write.\n")
    assert listed(pylog, decided.write.key) == [(0, "finished", 0)]
    assert committed_values(broker.bootstrap_servers, topic) == ["0-a", "0-b"]


def test_what_is_decided_is_not_aborted(pylog, broker, topic, decided):
    done = pylog("sink", "abort", decided.write.key, "--execute")
    assert (done.returncode, "are decided" in done.stderr) == (1, True), done.stderr
    decided.commit()
    assert committed_values(broker.bootstrap_servers, topic) == ["0-a", "0-b"]


@pytest.mark.long  # what is decided: below
def test_what_came_late_is_left_over_and_ended_by_finish(pylog, broker, topic, make_job):
    late, first = make_job(0), make_job(0)
    decision = commit.Decision(first.write, (first.outcomes[0].transaction, first.outcomes[1].transaction), 0)
    with_ledger = commit.Ledger(first.client)
    driver = commit.fence(with_ledger, first.write)
    commit.decide(driver, decision)
    driver.close()
    with_ledger.close()
    assert sorted(listed(pylog, late.write.key)) == [(0, "left over", 2), (0, "unfinished", 2)]
    assert pylog("sink", "finish").returncode == 0
    assert listed(pylog, late.write.key) == [(0, "finished", 0)]
    assert committed_values(broker.bootstrap_servers, topic) == ["0-a", "0-b"]


def test_an_abort_is_only_shown_until_it_is_to_be_executed(pylog, broker, topic, make_job):
    job = make_job(0)
    key = job.write.key
    shown = pylog("sink", "abort", key)
    assert (shown.returncode, shown.stderr) == (
        0, f"Would abort 2 transactions of {key}; nothing is changed without --execute.\n"
    )  # fmt: skip
    assert listed(pylog, key) == [(0, "undecided", 2)]
    done = pylog("sink", "abort", key, "--execute")
    assert (done.returncode, done.stderr) == (0, f"Aborted 2 transactions of {key}.\n")
    assert listed(pylog, key) == []
    assert committed_values(broker.bootstrap_servers, topic) == []


def test_a_driver_that_lives_cannot_commit_what_was_aborted_and_writes_it_again(pylog, broker, topic, make_job):
    first = make_job(0)
    first.commit()
    aborted = make_job(1)
    assert pylog("sink", "abort", aborted.write.key, "--execute").returncode == 0
    with pytest.raises(PylogError, match="was ended before it was committed, with pylog sink abort"):
        aborted.commit()
    again = make_job(1)
    again.commit()
    assert committed_values(broker.bootstrap_servers, topic) == ["0-a", "0-b", "1-a", "1-b"]


def test_a_driver_whose_turn_comes_in_the_middle_of_an_abort_commits_nothing_of_it(
    pylog, broker, topic, make_job, monkeypatch
):
    """The abort has written down what it ends and has ended nothing yet, when the driver decides."""
    from pylog_spark.sink.ledger import Ledger

    job = make_job(0)
    fence = Ledger.fence

    def driver_first(self, ids):
        with pytest.raises(PylogError, match="was ended before it was committed, with pylog sink abort"):
            job.commit()
        fence(self, ids)

    with monkeypatch.context() as patched:
        patched.setattr(Ledger, "fence", driver_first)
        assert len(overview.abort_undecided(job.client, job.write.key)) == 2
    assert committed_values(broker.bootstrap_servers, topic) == []


@pytest.mark.long  # of one: above
def test_an_abort_of_more_than_one_record_can_revoke_takes_several(pylog, broker, topic, make_job, monkeypatch):
    job = make_job(0)
    monkeypatch.setattr(protocol, "REVOKED_BYTES_MAX", 1)
    assert len(overview.abort_undecided(job.client, job.write.key)) == 2
    assert job.decision().revoked == (max(each.transaction.transactional_id for each in job.outcomes),)
    with pytest.raises(PylogError, match="was ended before it was committed, with pylog sink abort"):
        job.commit()
    assert committed_values(broker.bootstrap_servers, topic) == []


def test_a_batch_without_a_name_can_be_given_up(pylog, broker, topic, make_job):
    job = make_job(0, batch_write(None, None))
    assert pylog("sink", "abort", job.write.key, "--execute").returncode == 0
    with pytest.raises(PylogError, match="was ended before it was committed, with pylog sink abort"):
        job.commit()
    assert committed_values(broker.bootstrap_servers, topic) == []


def test_a_driver_cannot_commit_what_was_given_up_so_long_ago_that_its_record_is_gone(broker, topic, make_job):
    job = make_job(0, batch_write(None, None))
    overview.abort_undecided(job.client, job.write.key)
    commit.finish(job.client, job.write)  # as a neighbour's commit does after minutes: it drops the record
    assert job.decision() is None
    with pytest.raises(PylogError, match="was ended before it was committed, with pylog sink abort"):
        job.commit()
    assert committed_values(broker.bootstrap_servers, topic) == []


def test_wrong_words_are_one_sentence(pylog):
    for words, code, part in (
        (["finish", "none"], 1, "There is no write 'none'"),
        (["abort", "none"], 1, "No write 'none' has an open transaction"),
        (["abort"], 2, "Missing argument 'KEY'"),
    ):
        done = pylog("sink", *words)
        assert (done.returncode, part in done.stderr) == (code, True), (words, done.stderr)
