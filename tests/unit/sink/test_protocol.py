"""What a driver does next, case by case."""

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from pylog_spark.errors import PylogError
from pylog_spark.results.transactions import TransactionDescription
from pylog_spark.sink import protocol
from pylog_spark.sink.decision import TOPIC_IDS_MAX, TRANSACTIONS_MAX, Decision, Transaction, encode, revoked_bytes
from pylog_spark.sink.identity import BATCH, ONCE, STREAM, Write, task_transaction_id
from pylog_spark.sink.protocol import (
    HELP_AFTER_MS,
    Abort,
    Decide,
    Finish,
    Nothing,
    Outcome,
    abandoned,
    abort_step,
    common_outcome,
    given_up,
    losers,
    needs_help,
    next_step,
    not_safe,
    open_for_ms,
    over,
    portion,
    revoking,
    timeouts_ms,
)

NOW = 1_000_000
JOB = "00000001"
_numbers = itertools.count(1)


def new_transaction(write: Write, partition: int = 0, job: str = JOB, *, prepared: bool = True) -> Transaction:
    return Transaction(task_transaction_id(write, partition, job), next(_numbers), 0, prepared)


def new_outcome(write: Write, *, rows: bool = True, skipped: bool = False, topic_id: str = "") -> Outcome:
    topic_ids = {"t": topic_id} if topic_id else {}
    return Outcome(write, JOB, new_transaction(write) if rows else None, skipped, topic_ids)


def query(version: int) -> Write:
    return Write(STREAM, "q", version)


def decided(write: Write, count: int = 2) -> Decision:
    return Decision(write, tuple(new_transaction(write, number) for number in range(count)), NOW)


def refusal(stored: Decision | None, write: Write, outcomes: Sequence[Outcome]) -> PylogError:
    with pytest.raises(PylogError) as caught:
        next_step(stored, write, outcomes, NOW)
    return caught.value


def test_the_first_version_is_decided_with_the_transactions_of_its_tasks() -> None:
    outcomes = [new_outcome(query(0)), new_outcome(query(0), rows=False), new_outcome(query(0))]
    wanted = tuple(outcome.transaction for outcome in outcomes if outcome.transaction)
    assert next_step(None, query(0), outcomes, NOW) == Decide(Decision(query(0), wanted, NOW), None)


def test_a_new_version_ends_what_the_last_one_may_have_left_open() -> None:
    before = decided(query(4))
    step = next_step(before, query(5), [new_outcome(query(5))], NOW)
    assert isinstance(step, Decide)
    assert step.earlier == before


def test_a_decision_keeps_the_ids_of_topics_that_earlier_versions_wrote_to() -> None:
    before = replace(decided(query(4)), topic_ids={"u": "1"})
    step = next_step(before, query(5), [new_outcome(query(5), topic_id="2"), new_outcome(query(5), rows=False)], NOW)
    assert isinstance(step, Decide)
    assert step.decision.topic_ids == {"t": "2", "u": "1"}


@pytest.mark.parametrize(("stored", "tasks"), [("1", ["2"]), ("", ["1", "2"])])
def test_a_version_that_was_written_into_another_topic_of_the_same_name_is_refused(
    stored: str, tasks: list[str]
) -> None:
    before = replace(decided(query(4)), topic_ids={"t": stored} if stored else {})
    error = refusal(before, query(5), [new_outcome(query(5), topic_id=topic_id) for topic_id in tasks])
    assert error.condition == "PYLOG_TOPIC_RECREATED"
    assert "its id was 1 and is now 2" in error.sentence


@pytest.mark.parametrize("stored", [5, 6, 99])
def test_a_decided_version_is_finished_whatever_the_tasks_wrote_again(stored: int) -> None:
    before = decided(query(stored))
    for outcomes in ([new_outcome(query(5))], [new_outcome(query(5), rows=False, skipped=True)], []):
        assert next_step(before, query(5), outcomes, NOW) == Finish(before)


def test_without_rows_nothing_is_decided_except_for_a_batch_with_a_name() -> None:
    assert next_step(decided(query(4)), query(5), [new_outcome(query(5), rows=False)], NOW) == Nothing()
    named = Write(BATCH, "orders", 5)
    assert next_step(None, named, [], NOW) == Decide(Decision(named, (), NOW), None)


def test_a_decision_that_vanished_under_a_running_query_is_refused() -> None:
    error = refusal(None, query(5), [new_outcome(query(5)), new_outcome(query(5), rows=False, skipped=True)])
    assert error.condition == "PYLOG_SINK_STATE"


def test_more_transactions_than_fit_into_a_decision_are_refused_with_what_to_do() -> None:
    outcome = new_outcome(query(0))
    error = refusal(None, query(0), [outcome] * (TRANSACTIONS_MAX + 1))
    assert "coalesce" in error.sentence


def test_a_write_that_was_given_up_is_not_committed_afterwards() -> None:
    write = Write(ONCE, "k", 0)
    mark = Decision(write, (), NOW, aborted=True)
    assert refusal(mark, write, [new_outcome(write)]).condition == "PYLOG_SINK_FENCED"
    skipped = [new_outcome(write, rows=False, skipped=True)]
    assert refusal(mark, write, skipped).condition == "PYLOG_SINK_FENCED", "its rows are nowhere"
    assert next_step(mark, write, [], NOW) == Finish(mark)


def test_tasks_of_two_writes_are_never_committed_together() -> None:
    assert common_outcome([]) is None
    with pytest.raises(PylogError, match="batch 1 of query q and batch 2 of query q"):
        common_outcome([new_outcome(query(1)), new_outcome(query(2))])


def test_giving_up_leaves_alone_what_is_decided_and_marks_only_a_write_that_is_never_repeated() -> None:
    before = decided(query(5))
    assert abort_step(before, query(5), NOW) == Finish(before)
    assert abort_step(before, query(6), NOW) == Abort(None)
    once = Write(ONCE, "k", 0)
    assert abort_step(None, once, NOW) == Abort(Decision(once, (), NOW, aborted=True))


def test_losers_are_the_open_transactions_of_the_key_up_to_the_decided_version_and_not_in_its_list() -> None:
    decision = decided(query(5))
    loser, old = new_transaction(query(5), 0), new_transaction(query(3), 1)
    newer, stranger = new_transaction(query(6)), new_transaction(Write(STREAM, "q.5", 1))
    mine = [transaction.transactional_id for transaction in decision.transactions]
    everybody = (
        [transaction.transactional_id for transaction in (loser, old, newer, stranger)] + mine + ["pylog-sink.q", "app"]
    )
    assert losers(everybody, decision) == sorted([loser.transactional_id, old.transactional_id])


def test_who_gives_up_ends_only_what_belongs_to_the_same_attempt() -> None:
    own, other = new_transaction(query(5), 0, "aaaaaaaa"), new_transaction(query(5), 0, "bbbbbbbb")
    later = new_transaction(query(6), 0, "aaaaaaaa")
    ids = [transaction.transactional_id for transaction in (own, other, later)]
    assert given_up(ids, query(5), "aaaaaaaa") == [own.transactional_id]


def test_a_revoked_transaction_stays_revoked_until_it_is_ended_or_its_version_decided() -> None:
    first, second, late = new_transaction(query(6)), new_transaction(query(6), 1), new_transaction(query(5))
    mine = first.transactional_id
    stored = revoking(decided(query(4)), query(4), [mine], [mine], NOW)
    again = revoking(stored, query(4), [second.transactional_id], [mine, second.transactional_id], NOW)
    assert again.revoked == (mine, second.transactional_id)
    assert revoking(again, query(4), [late.transactional_id], [late.transactional_id], NOW).revoked == (
        late.transactional_id,
    )
    step = next_step(again, query(5), [Outcome(query(5), JOB, late, skipped=False)], NOW)
    assert isinstance(step, Decide)
    assert step.decision.revoked == again.revoked
    own = Outcome(query(6), JOB, first, skipped=False)
    assert refusal(step.decision, query(6), [own]).condition == "PYLOG_SINK_FENCED"
    step = next_step(step.decision, query(6), [new_outcome(query(6))], NOW)
    assert isinstance(step, Decide)
    assert step.decision.revoked == ()


def test_more_than_one_record_can_revoke_is_revoked_in_portions_those_first_that_are_revoked_already(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ids = sorted(new_transaction(query(6), number).transactional_id for number in range(5))
    monkeypatch.setattr(protocol, "REVOKED_BYTES_MAX", 2 * revoked_bytes(ids[0]))
    assert portion(decided(query(4)), query(4), ids, ids) == ids[:2]
    # The one before could not end these: they count until they are ended.
    stored = revoking(decided(query(4)), query(4), ids[3:], ids, NOW)
    assert portion(stored, query(4), ids, ids) == ids[3:]
    assert portion(stored, query(4), ids[:3], ids) == ids[:1], "one at least"
    assert portion(stored, query(4), ids[:3], ids[:3]) == ids[:2]
    once = Write(ONCE, "k", 0)
    assert portion(None, once, ids, ids) == ids, "it is given up as a whole"


def test_a_record_with_all_that_a_decision_may_say_fits_into_a_batch() -> None:
    write = Write(STREAM, "0123456789abcdef0123456789abcdef0123", 2**31)
    tasks = tuple(
        Transaction(task_transaction_id(write, number, JOB, 2**40), 2**40 + number, 32_767, prepared=True)
        for number in range(TRANSACTIONS_MAX)
    )
    later = replace(write, version=write.version + 1)
    ids = [task_transaction_id(later, number, JOB) for number in range(TRANSACTIONS_MAX)]
    stored = Decision(write, tasks, NOW, topic_ids={f"{number:249}": "x" * 22 for number in range(TOPIC_IDS_MAX)})
    revoked = revoking(stored, write, portion(stored, write, ids, ids), ids, NOW)
    assert len(revoked.revoked) > 500
    # The batch's header and the record's own fields are some hundred bytes.
    assert len(encode(revoked)) < 1_048_588 - 1_000


def test_for_how_long_transactions_are_open_is_known_of_those_that_brokers_describe() -> None:
    (began,) = described(new_transaction(query(5)), start_time_ms=NOW - 5_000).values()
    assert open_for_ms([began, replace(began, start_time_ms=NOW - 9_000)], NOW) == 9_000
    assert open_for_ms([replace(began, start_time_ms=NOW + 5)], NOW) == 0, "the broker's clock is ahead"
    unknown = [replace(began, start_time_ms=-1), replace(began, error="NOT_COORDINATOR", start_time_ms=NOW - 1)]
    assert open_for_ms([*unknown, began], NOW) == 5_000
    assert open_for_ms(unknown, NOW) is None
    assert open_for_ms([], NOW) is None


def test_what_is_revoked_of_a_write_that_is_never_repeated_gives_it_up() -> None:
    write = Write(ONCE, "k", 0)
    transactional_id = new_transaction(write).transactional_id
    assert revoking(None, write, [transactional_id], [transactional_id], NOW) == Decision(write, (), NOW, aborted=True)


def test_a_prepared_transaction_is_decided_only_while_it_is_open() -> None:
    transaction = new_transaction(query(5))
    assert not_safe([transaction], described(transaction, timeout_ms=2**31 - 1, start_time_ms=0), NOW) == []
    for state in ("CompleteAbort", "PrepareAbort", "Empty"):
        assert not_safe([transaction], described(transaction, state=state), NOW) == [transaction.transactional_id]
    assert not_safe([transaction], {}, NOW) == [transaction.transactional_id], "forgotten"


def described(transaction: Transaction, **changes: Any) -> dict[str, TransactionDescription]:
    state = TransactionDescription(
        transaction.transactional_id,
        "Ongoing",
        transaction.producer_id,
        transaction.producer_epoch,
        timeout_ms=900_000,
        start_time_ms=NOW - 1000,
        partitions=(),
        coordinator=1,
        error=None,
        message=None,
    )
    return {transaction.transactional_id: replace(state, **changes)}


def test_a_transaction_that_can_time_out_is_decided_only_while_it_is_open_and_has_time_left() -> None:
    transaction = new_transaction(query(5), prepared=False)
    lost = [transaction.transactional_id]
    assert not_safe([transaction], described(transaction), NOW) == []
    assert not_safe([transaction], {}, NOW) == lost
    for state in ("CompleteAbort", "PrepareAbort", "Empty", "CompleteCommit", "PrepareEpochFence"):
        assert not_safe([transaction], described(transaction, state=state), NOW) == lost
    assert not_safe([transaction], described(transaction, producer_epoch=transaction.producer_epoch + 1), NOW) == lost
    assert not_safe([transaction], described(transaction, start_time_ms=NOW - 880_000), NOW) == lost
    assert not_safe([transaction], described(transaction, start_time_ms=NOW - 860_000), NOW) == []
    assert not_safe([transaction], described(transaction, timeout_ms=10_000, start_time_ms=NOW - 8_000), NOW) == []
    assert not_safe([transaction], described(transaction, timeout_ms=10_000, start_time_ms=NOW - 9_500), NOW) == lost


def test_a_batch_that_is_over_drops_its_list_and_one_without_a_name_its_record() -> None:
    named, once = decided(Write(BATCH, "orders", 1)), decided(Write(ONCE, "k", 0))
    assert over(named) == replace(named, transactions=())
    assert over(once) is None
    assert over(decided(query(1))) is not None


def test_help_is_for_batches_whose_drivers_are_long_silent() -> None:
    own = Write(ONCE, "mine", 0)
    later = NOW + HELP_AFTER_MS + 1
    named, once, stream = decided(Write(BATCH, "orders", 1)), decided(Write(ONCE, "k", 0)), decided(query(1))
    assert [needs_help(decision, own, later) for decision in (named, once, stream)] == [True, True, False]
    assert not needs_help(named, own, NOW + 1)
    assert not needs_help(replace(named, transactions=()), own, later)
    assert not needs_help(once, once.write, later)


def test_a_write_is_abandoned_when_all_of_its_open_transactions_are_open_for_longer_than_they_may_be() -> None:
    ids = [task_transaction_id(query(version), number, JOB) for version in (5, 6) for number in range(2)]
    usual = 1_200_000
    assert abandoned(ids, {usual: set(ids)}) == sorted(ids)
    assert abandoned(ids, {usual: set(ids[:3])}) == sorted(ids[:2]), "the other has a transaction that has just begun"
    assert abandoned(ids, {usual: set()}) == []
    assert abandoned(["somebody-elses"], {usual: {"somebody-elses"}}) == []


def test_the_most_patient_transaction_of_a_write_says_when_it_is_abandoned() -> None:
    ids = [task_transaction_id(query(5), number, JOB, (number + 1) * 1_000) for number in range(2)]
    assert timeouts_ms([*ids, "somebody-elses"]) == {("q", 5): 2_000}
    assert abandoned(ids, {1_000: set(ids), 2_000: {ids[0]}}) == []
    assert abandoned(ids, {2_000: set(ids)}) == sorted(ids)
