"""Every anomaly that the checker knows, planted into a history without one: it and nothing else is flagged."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.cluster.checker import AVAILABLE_WITHIN_S, KINDS, check, recovery_s
from tests.cluster.segments import batch
from tests.harness.history import (
    DELIVERIES_MAX,
    End,
    FinalRead,
    GroupOffset,
    History,
    Outcome,
    Place,
    Poll,
    Replica,
    Send,
    State,
    Taken,
    Transaction,
)

OK, FAILED, UNKNOWN = Outcome.OK, Outcome.FAILED, Outcome.UNKNOWN
PLACE: Place = ("t", 0)
OUT: Place = ("out", 0)
#: Of PLACE: offset -> value; 5, 7 and 9 are markers, `gone` was aborted, `late` was never answered.
LOG = {0: "a", 1: "b", 2: "c", 3: "x1", 4: "x2", 6: "gone", 8: "maybe", 10: "late", 11: "d"}
HEALED_AT = 50.0


def clean() -> History:
    """A history with everything in it that may happen."""
    committed, aborted = Transaction("first", OK, 3.0), Transaction("second", FAILED, 5.0)
    unknown, never = Transaction("third", UNKNOWN, 6.0), Transaction("fourth", UNKNOWN, 7.0)
    copied = Transaction("copies", OK, 20.0)
    history = History()
    history.sends = [
        *(_send("plain", number, value, number) for number, value in ((0, "a"), (1, "b"), (2, "c"))),
        _send("plain", 3, "refused", None, FAILED),
        _send("plain", 4, "late", None, UNKNOWN),
        _send("plain", 5, "vanished", None, UNKNOWN),
        _send("plain", 6, "d", 11, at=HEALED_AT + 1),
        _send("transactional", 0, "x1", 3, transaction=committed),
        _send("transactional", 1, "x2", 4, transaction=committed),
        _send("transactional", 2, "gone", 6, transaction=aborted),
        _send("transactional", 3, "maybe", 8, transaction=unknown),
        _send("transactional", 4, "nowhere", None, UNKNOWN, transaction=never),
        *(
            Send("copier", number, OUT, f"copy-{value}", HEALED_AT, HEALED_AT + 2, OK, number, copied, ("t", 0, offset))
            for number, (offset, value) in enumerate(_committed().items())
        ),
    ]
    history.polls = [
        _poll("careless", False, (0, 1, 2, 3), 2.0),
        _poll("careless", False, (4, 6, 8), 5.5),
        _poll("careful", True, (0, 1, 2), 2.0),
        _poll("careful", True, (3, 4, 8), 8.0),
        _poll("careful", True, (2, 3), 9.0, session=2),
    ]
    history.finals = [
        FinalRead(PLACE, False, tuple(LOG.items())),
        FinalRead(PLACE, True, tuple(_committed().items())),
        *(
            FinalRead(OUT, only, tuple(enumerate(f"copy-{value}" for value in _committed().values())))
            for only in (False, True)
        ),
    ]
    history.copied = {PLACE: 12}
    history.group_offsets = [
        GroupOffset("g", PLACE, 2, 3.0, 4.0),
        GroupOffset("g", PLACE, 1, 5.0, 6.0, UNKNOWN),
        GroupOffset("g", PLACE, 4, 7.0, 8.0),
        GroupOffset("g", PLACE, 4, 9.0, 9.5, fetched=True),
    ]
    # The second delivery of `a` was accepted; the one of `b` has no answer.
    history.taken = [
        _taken("a", "early", count=1, outcome=UNKNOWN),
        _taken("b", "early", count=1, outcome=UNKNOWN),
        *(_taken(value, "member", count=1 + (value == "a")) for value in _committed().values() if value != "b"),
    ]
    history.shared = {"takers": [PLACE]}
    # The second and the third overlap: either may have been first.
    history.ends = [
        End(PLACE, False, 3, 1.0, 2.0), End(PLACE, False, 9, 3.0, 6.0), End(PLACE, False, 8, 5.0, 7.0), End(PLACE, False, 12, 8.0, 9.0),
        End(PLACE, True, 3, 1.0, 2.0), End(PLACE, True, 12, 8.0, 9.0),
    ]  # fmt: skip
    history.replicas = [
        Replica(broker, PLACE, _segment(), high_watermark) for broker, high_watermark in ((1, 12), (2, 11))
    ]
    history.states = [
        State(PLACE, 0.0, (1, 2, 3), 1, 0, (1, 2, 3)),
        State(PLACE, 1.0, (1, 2, 3), 1, 0, (1, 2), 1),
        State(PLACE, 2.0, (1, 2, 3), -1, 1, (2,), 2),
        State(PLACE, 3.0, (1, 2, 3), 2, 2, (2, 3), 3),
    ]
    history.healed = [HEALED_AT]
    return history


def _committed() -> dict[int, str]:
    return {offset: value for offset, value in LOG.items() if value != "gone"}


def _send(
    producer: str,
    number: int,
    value: str,
    offset: int | None,
    outcome: Outcome = OK,
    transaction: Transaction | None = None,
    at: float = 0.0,
) -> Send:
    return Send(producer, number, PLACE, value, at, at + 1.0, outcome, offset, transaction)


def _poll(consumer: str, committed_only: bool, offsets: tuple[int, ...], at: float, session: int = 1) -> Poll:
    records = tuple((offset, LOG[offset]) for offset in offsets)
    return Poll(consumer, session, committed_only, PLACE, records, at, at + 0.1)


def _taken(value: str, member: str, count: int, outcome: Outcome = OK) -> Taken:
    offset = next(offset for offset, known in LOG.items() if known == value)
    return Taken("takers", member, PLACE, offset, value, count, 60.0, outcome)


def _segment(*, without: int | None = None, epoch: int = 0) -> bytes:
    marks = [batch(o, 1, epoch, control=o in (5, 7, 9), body=LOG.get(o, "marker").encode()) for o in range(12)]
    return b"".join(mark for offset, mark in enumerate(marks) if offset != without)


def _sent(history: History, value: str) -> Send:
    return next(send for send in history.sends if send.value == value)


def _final(history: History, committed_only: bool, records: dict[int, str], place: Place = PLACE) -> None:
    history.finals = [
        final for final in history.finals if (final.place, final.committed_only) != (place, committed_only)
    ]
    history.finals.append(FinalRead(place, committed_only, tuple(sorted(records.items()))))


def _longer(history: History, log: dict[int, str]) -> None:
    """Both final reads say `log`, a longer one, and the replicas hold it."""
    _final(history, False, log)
    _final(history, True, {offset: value for offset, value in log.items() if value != "gone"})
    more = b"".join(batch(offset, 1) for offset in range(12, max(log) + 1))
    history.replicas = [replace(replica, batches=replica.batches + more) for replica in history.replicas]


def duplicate(history: History) -> None:
    _longer(history, {**LOG, 12: "late"})


def lost_write(history: History) -> None:
    _sent(history, "vanished").outcome = OK
    _sent(history, "vanished").offset = 10
    history.taken = [record for record in history.taken if record.value != "late"]
    _final(history, False, {o: v for o, v in LOG.items() if v != "late"})
    _final(history, True, {o: v for o, v in _committed().items() if v != "late"})
    history.replicas = [
        replace(replica, batches=_segment(without=10) + batch(10, 1, control=True)) for replica in history.replicas
    ]


def lost_after_it_was_read(history: History) -> None:
    history.polls.append(Poll("other", 1, False, PLACE, ((12, "vanished"),), 9.0, 9.1))


def lost_for_readers_of_committed_records(history: History) -> None:
    _final(history, True, {o: v for o, v in _committed().items() if o != 11})


def unseen(history: History) -> None:
    history.sends.append(_send("other", 0, "more", 13))


def inconsistent_offsets(history: History) -> None:
    _sent(history, "d").offset = 10


def two_values_read_at_one_offset(history: History) -> None:
    history.polls.append(Poll("other", 1, False, PLACE, ((10, "vanished"),), 9.0, 9.1))


def aborted_read(history: History) -> None:
    history.polls.append(Poll("other", 1, True, PLACE, ((6, "gone"),), 9.0, 9.1))


def aborted_read_at_the_end(history: History) -> None:
    _final(history, True, LOG)


def refused_write_read(history: History) -> None:
    _sent(history, "late").outcome = FAILED


def precommitted_read(history: History) -> None:
    history.polls.append(Poll("other", 1, True, PLACE, ((3, "x1"),), 2.5, 2.9))


def committed_by_nobody(history: History) -> None:
    transaction = _sent(history, "maybe").transaction
    assert transaction is not None
    transaction.began = float("inf")


def invented(history: History) -> None:
    _longer(history, {**LOG, 12: "what?"})


def torn_transaction(history: History) -> None:
    history.sends.append(_send("transactional", 5, "rest", None, UNKNOWN, _sent(history, "maybe").transaction))


def duplicate_copy(history: History) -> None:
    history.sends.append(replace(_sent(history, "copy-a"), number=99, value="again", offset=8))
    for committed_only in (False, True):
        _final(
            history, committed_only, {**dict(enumerate(f"copy-{v}" for v in _committed().values())), 8: "again"}, OUT
        )


def lost_copy(history: History) -> None:
    history.sends = [send for send in history.sends if send.value != "copy-d"]
    for committed_only in (False, True):
        _final(history, committed_only, dict(enumerate(f"copy-{v}" for v in _committed().values() if v != "d")), OUT)


def gap(history: History) -> None:
    plain = batch(9, 1, body=b"marker")
    history.replicas = [replace(replica, batches=_segment(without=9) + plain) for replica in history.replicas]


def poll_skip(history: History) -> None:
    history.polls += [_poll("other", False, (0, 1), 9.0), _poll("other", False, (3,), 9.2)]


def nonmonotonic_poll(history: History) -> None:
    history.polls += [_poll("other", False, (0, 1), 9.0), _poll("other", False, (1,), 9.2)]


def int_poll_skip(history: History) -> None:
    history.polls.append(_poll("other", False, (0, 1, 3), 9.0))


def int_nonmonotonic_poll(history: History) -> None:
    history.polls.append(_poll("other", False, (1, 0), 9.0))


def nonmonotonic_send(history: History) -> None:
    _sent(history, "a").number, _sent(history, "b").number = 1, 0


def int_nonmonotonic_send(history: History) -> None:
    _sent(history, "x1").number, _sent(history, "x2").number = 1, 0


def high_watermark_back(history: History) -> None:
    history.ends.append(End(PLACE, False, 11, 9.5, 9.6))


def last_stable_offset_back(history: History) -> None:
    history.ends.append(End(PLACE, True, 11, 9.5, 9.6))


def group_offset_back(history: History) -> None:
    history.group_offsets.append(GroupOffset("g", PLACE, 3, 10.0, 11.0))


def group_offset_lost(history: History) -> None:
    history.group_offsets.append(GroupOffset("g", PLACE, -1, 10.0, 11.0, fetched=True))


def accepted_twice(history: History) -> None:
    history.taken.append(_taken("c", "other", count=2))


def not_delivered(history: History) -> None:
    history.taken = [record for record in history.taken if record.value != "b"]


def delivered_too_often(history: History) -> None:
    history.taken.append(_taken("b", "other", count=DELIVERIES_MAX + 1, outcome=UNKNOWN))


def aborted_record_taken(history: History) -> None:
    history.taken.append(_taken("gone", "other", count=1))


def isr_not_of_replicas(history: History) -> None:
    history.states.append(State(PLACE, 4.0, (1, 2, 3), 2, 3, (2, 4), 4))


def leader_not_in_isr(history: History) -> None:
    history.states.append(State(PLACE, 4.0, (1, 2, 3), 1, 3, (2, 3), 4))


def two_leaders(history: History) -> None:
    history.states.append(State(PLACE, 4.0, (1, 2, 3), 3, 2, (2, 3), 4))


def replicas_differ(history: History) -> None:
    history.replicas[1] = replace(history.replicas[1], batches=_segment(epoch=1))


def replica_is_behind(history: History) -> None:
    history.replicas[1] = replace(history.replicas[1], batches=_segment(without=11))


def unavailable(history: History) -> None:
    for send in history.sends:
        if send.began >= HEALED_AT and send.place == PLACE:
            send.ended = HEALED_AT + AVAILABLE_WITHIN_S + 1


PLANTED: tuple[tuple[str, Callable[[History], None]], ...] = (
    ("duplicate", duplicate),
    ("lost write", lost_write),
    ("lost write", lost_after_it_was_read),
    ("lost write", lost_for_readers_of_committed_records),
    ("unseen", unseen),
    ("inconsistent offsets", inconsistent_offsets),
    ("inconsistent offsets", two_values_read_at_one_offset),
    ("aborted read", aborted_read),
    ("aborted read", aborted_read_at_the_end),
    ("aborted read", refused_write_read),
    ("precommitted read", precommitted_read),
    ("precommitted read", committed_by_nobody),
    ("invented", invented),
    ("torn transaction", torn_transaction),
    ("duplicate copy", duplicate_copy),
    ("lost copy", lost_copy),
    ("gap", gap),
    ("poll skip", poll_skip),
    ("nonmonotonic poll", nonmonotonic_poll),
    ("int-poll skip", int_poll_skip),
    ("int-nonmonotonic poll", int_nonmonotonic_poll),
    ("nonmonotonic send", nonmonotonic_send),
    ("int-nonmonotonic send", int_nonmonotonic_send),
    ("high watermark back", high_watermark_back),
    ("last stable offset back", last_stable_offset_back),
    ("group offset back", group_offset_back),
    ("group offset back", group_offset_lost),
    ("accepted twice", accepted_twice),
    ("not delivered", not_delivered),
    ("delivery count", delivered_too_often),
    ("aborted read", aborted_record_taken),
    ("ISR not of replicas", isr_not_of_replicas),
    ("leader not in ISR", leader_not_in_isr),
    ("two leaders", two_leaders),
    ("replicas differ", replicas_differ),
    ("replicas differ", replica_is_behind),
    ("unavailable", unavailable),
)


def test_every_kind_of_anomaly_is_planted() -> None:
    assert {kind for kind, _ in PLANTED} == KINDS


def test_a_history_in_which_nothing_is_wrong_is_found_clean() -> None:
    assert check(clean()) == []


@pytest.mark.parametrize(("kind", "plant"), PLANTED, ids=[plant.__name__ for _, plant in PLANTED])
def test_a_planted_anomaly_and_nothing_else_is_flagged(kind: str, plant: Callable[[History], None]) -> None:
    history = clean()
    plant(history)
    found = check(history)
    assert {anomaly.kind for anomaly in found} == {kind}, found


def test_a_transaction_whose_records_have_others_between_them_is_no_anomaly() -> None:
    history = clean()
    _sent(history, "b").producer = _sent(history, "b").value
    _sent(history, "x1").offset, _sent(history, "b").offset = 1, 3
    swap = {1: "x1", 3: "b"}
    _final(history, False, {**LOG, **swap})
    _final(history, True, {**_committed(), **swap})
    history.polls, history.taken, history.shared = [], [], {}
    assert check(history) == []


@pytest.mark.parametrize("there", [True, False])
def test_a_send_without_an_answer_may_be_there_or_not(there: bool) -> None:
    history = clean()
    if there:
        _longer(history, {**LOG, 12: "vanished"})
    assert check(history) == []


def test_a_producer_that_may_repeat_a_record_may_have_written_it_twice() -> None:
    history = clean()
    duplicate(history)
    nonmonotonic_send(history)
    for send in history.sends:
        send.may_repeat = send.producer == "plain"
    assert check(history) == []


def test_a_record_refused_the_second_time_may_have_been_written_the_first() -> None:
    history = clean()
    refused_write_read(history)
    assert check(history) != []
    _sent(history, "late").may_repeat = True
    assert check(history) == []


def test_recovery_is_counted_from_the_heal_to_the_first_record_sent_after_it() -> None:
    assert recovery_s(clean(), HEALED_AT) == {PLACE: 2.0, OUT: 2.0}


def test_a_partition_that_was_tried_for_a_moment_only_is_not_called_unavailable() -> None:
    history = clean()
    for send in history.sends:
        if send.began >= HEALED_AT and send.place == PLACE:
            send.outcome = UNKNOWN
    history.polls, history.finals = [], []
    assert [anomaly for anomaly in check(history) if anomaly.kind == "unavailable"] == []
