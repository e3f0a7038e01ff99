"""The oracle: every anomaly in a recorded `History`. Pure; raises nothing, whatever the history says.

A request without an answer (`UNKNOWN`) may have happened or not. The final reads are the truth about what is in the log and in
which order; they must reach the end. The names of anomalies of the data are those of Jepsen's Kafka workload.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

from tests.cluster.segments import Batch, batches
from tests.harness.history import DELIVERIES_MAX, End, GroupOffset, History, Outcome, Place, Poll, Replica, Send

#: How long after the last fault was healed a partition may take until it accepts a record.
AVAILABLE_WITHIN_S = 30.0

#: Every kind of anomaly. A transaction whose records have others between them in the log ("int-send-skip") is none.
KINDS = frozenset(
    {
        "duplicate", "lost write", "unseen", "inconsistent offsets", "aborted read", "precommitted read", "invented",
        "torn transaction", "duplicate copy", "lost copy", "gap", "poll skip", "nonmonotonic poll", "nonmonotonic send",
        "int-poll skip", "int-nonmonotonic poll", "int-nonmonotonic send", "high watermark back", "last stable offset back",
        "group offset back", "accepted twice", "not delivered", "delivery count", "ISR not of replicas", "leader not in ISR", "two leaders", "replicas differ", "unavailable",
    }
)  # fmt: skip

_Event = TypeVar("_Event", End, GroupOffset)


@dataclass(frozen=True, slots=True)
class Anomaly:
    """One thing that must not happen: its kind, and a sentence with the place and the evidence."""

    kind: str
    sentence: str


class _View:
    """A history, looked up by value and by place."""

    def __init__(self, history: History) -> None:
        self.history = history
        self.by_value = {send.value: send for send in history.sends}
        self.refused = {send.value for send in history.sends if refused(send)}
        self.log: dict[Place, dict[int, str]] = {}
        self.committed: dict[Place, dict[int, str]] = {}
        for final in history.finals:
            (self.committed if final.committed_only else self.log).setdefault(final.place, {}).update(final.records)

    def visible(self, place: Place, committed_only: bool) -> dict[int, str]:
        """Offset -> value of what a reader may see of `place`."""
        if not committed_only:
            return self.log.get(place, {})
        log = self.committed.get(place, {})
        return {offset: value for offset, value in log.items() if value not in self.refused}

    def reads(self) -> Iterator[tuple[str, Place, bool, float, Iterable[tuple[int, str]]]]:
        """(who, place, only committed ones, until when, records) of every poll and final read."""
        for poll in self.history.polls:
            yield poll.consumer, poll.place, poll.committed_only, poll.ended, poll.records
        for taken in self.history.taken:
            yield taken.member, taken.place, True, taken.ended, [(taken.offset, taken.value)]
        for final in self.history.finals:
            yield "the final read", final.place, final.committed_only, float("inf"), final.records


def check(history: History, available_within_s: float = AVAILABLE_WITHIN_S) -> list[Anomaly]:
    """Every anomaly, in the order of the rules."""
    view = _View(history)
    rules: Sequence[Callable[[_View], Iterator[Anomaly]]] = (
        _duplicates, _lost_and_unseen, _inconsistent_offsets, _aborted_reads, _precommitted_reads, _invented,
        _torn_transactions, _copies, _gaps, _polls, _send_order, _ends, _group_offsets,
        _shares, _states, _replicas,
    )  # fmt: skip
    found = [anomaly for rule in rules for anomaly in rule(view)]
    return found + list(_unavailable(history, available_within_s))


def acknowledged(send: Send) -> bool:
    """Whether its record must be there."""
    return send.outcome is Outcome.OK and (send.transaction is None or send.transaction.outcome is Outcome.OK)


def refused(send: Send) -> bool:
    """Whether no reader of committed records may ever see it.

    Who may send a record again may be refused the second time, after the first was written.
    """
    aborted = send.transaction is not None and send.transaction.outcome is Outcome.FAILED
    return (send.outcome is Outcome.FAILED and not send.may_repeat) or aborted


def _duplicates(view: _View) -> Iterator[Anomaly]:
    seen: dict[str, tuple[Place, int]] = {}
    for place, log in view.log.items():
        for offset, value in log.items():
            send = view.by_value.get(value)
            if value in seen and not (send is not None and send.may_repeat):
                yield Anomaly("duplicate", f"{value} is at {_at(*seen[value])} and at {_at(place, offset)}")
            seen[value] = (place, offset)


def _lost_and_unseen(view: _View) -> Iterator[Anomaly]:
    there = {place: set(log.values()) for place, log in view.log.items()}
    committed = {place: set(log.values()) for place, log in view.committed.items()}
    for send in filter(acknowledged, view.history.sends):
        where = f"{send.value} was acknowledged at {_at(send.place, send.offset)}"
        for name, values in (("the log", there), ("what is committed", committed)):
            if send.place in values and send.value not in values[send.place]:
                highest = max(view.log.get(send.place, {}), default=-1)
                kind = "lost write" if send.offset is None or send.offset <= highest else "unseen"
                yield Anomaly(kind, f"{where} and is not in {name}, which was read up to {highest}")
                break
    for who, place, _, _, records in view.reads():
        log = view.log.get(place)
        for offset, value in records if log is not None else ():
            if offset not in log and value not in there[place]:
                yield Anomaly("lost write", f"{who} read {value} at {_at(place, offset)}; it is not in the log")


def _inconsistent_offsets(view: _View) -> Iterator[Anomaly]:
    values: dict[tuple[Place, int], set[str]] = defaultdict(set)
    for send in filter(acknowledged, view.history.sends):
        if send.offset is not None:
            values[send.place, send.offset].add(send.value)
    for _, place, _, _, records in view.reads():
        for offset, value in records:
            values[place, offset].add(value)
    for (place, offset), different in values.items():
        if len(different) > 1:
            yield Anomaly("inconsistent offsets", f"{_at(place, offset)} is {' and '.join(sorted(different))}")


def _aborted_reads(view: _View) -> Iterator[Anomaly]:
    for who, place, committed_only, _, records in view.reads():
        for offset, value in records:
            send = view.by_value.get(value)
            if send is not None and refused(send) and (committed_only or send.transaction is None):
                yield Anomaly("aborted read", f"{who} read {value} at {_at(place, offset)}, which was given up")


def _precommitted_reads(view: _View) -> Iterator[Anomaly]:
    for who, place, committed_only, until, records in view.reads():
        for offset, value in records if committed_only else ():
            send = view.by_value.get(value)
            transaction = send.transaction if send is not None else None
            if transaction is None or transaction.outcome is Outcome.FAILED:
                continue
            if until < transaction.began or transaction.began == float("inf"):
                yield Anomaly(
                    "precommitted read", f"{who} read {value} at {_at(place, offset)} before {transaction.name} ended"
                )


def _invented(view: _View) -> Iterator[Anomaly]:
    for who, place, _, _, records in view.reads():
        for offset, value in records:
            send = view.by_value.get(value)
            if send is None or send.place != place:
                yield Anomaly("invented", f"{who} read {value!r} at {_at(place, offset)}; no producer sent it there")


def _torn_transactions(view: _View) -> Iterator[Anomaly]:
    seen = {value for log in view.committed.values() for value in log.values()}
    parts: dict[str, list[Send]] = defaultdict(list)
    for send in view.history.sends:
        transaction = send.transaction if send.place in view.committed else None
        if transaction is not None and transaction.outcome is Outcome.UNKNOWN:
            parts[transaction.name].append(send)
    for name, sends in parts.items():
        visible = [send.value for send in sends if send.value in seen]
        if visible and len(visible) < len(sends):
            yield Anomaly(
                "torn transaction", f"of {name}, {len(sends)} records, only {', '.join(visible)} is committed"
            )


def _copies(view: _View) -> Iterator[Anomaly]:
    copies: dict[tuple[str, int, int], list[str]] = defaultdict(list)
    for log in view.committed.values():
        for value in log.values():
            send = view.by_value.get(value)
            if send is not None and send.source is not None:
                copies[send.source].append(value)
    for source, values in copies.items():
        if len(values) > 1:
            yield Anomaly("duplicate copy", f"{source} was copied as {' and '.join(values)}")
    for (topic, partition), end in view.history.copied.items():
        for offset, value in view.visible((topic, partition), committed_only=True).items():
            if offset < end and (topic, partition, offset) not in copies:
                yield Anomaly("lost copy", f"{value} at {topic}-{partition}@{offset} was passed and not copied")


def _gaps(view: _View) -> Iterator[Anomaly]:
    markers: dict[Place, set[int]] = defaultdict(set)
    for replica in view.history.replicas:
        for batch in batches(replica.batches):
            if batch.control:
                markers[replica.place].update(range(batch.base_offset, batch.last_offset + 1))
    for place, log in view.log.items():
        missing = [
            offset for offset in range(max(log, default=-1)) if offset not in log and offset not in markers[place]
        ]
        if missing:
            yield Anomaly("gap", f"{_at(place, missing[0])} and {len(missing) - 1} more hold neither record nor marker")


def _polls(view: _View) -> Iterator[Anomaly]:
    last: dict[tuple[str, Place], tuple[Poll, int]] = {}
    orders = {(place, only): sorted(view.visible(place, only)) for place in view.log for only in (False, True)}
    ranks = {key: {offset: number for number, offset in enumerate(order)} for key, order in orders.items()}
    for poll in view.history.polls:
        order, rank = (of.get((poll.place, poll.committed_only), {}) for of in (orders, ranks))
        for offset, _ in poll.records:
            before, position = last.get((poll.consumer, poll.place), (poll, -1))
            last[poll.consumer, poll.place] = (poll, offset)
            if position < 0 or before.session != poll.session:
                continue
            inside = "int-" if before is poll else ""
            where = f"{poll.consumer} read {_at(poll.place, offset)} after {position}"
            if offset <= position:
                yield Anomaly(f"{inside}nonmonotonic poll", where)
            elif offset in rank and position in rank and rank[offset] > rank[position] + 1:
                skipped = order[rank[position] + 1]
                yield Anomaly(f"{inside}poll skip", f"{where}, passing over {skipped}")


def _send_order(view: _View) -> Iterator[Anomaly]:
    by_producer: dict[tuple[str, Place], list[Send]] = defaultdict(list)
    for send in view.history.sends:
        # A producer that may send a record again may be answered with the offset of the second copy.
        if send.outcome is Outcome.OK and send.offset is not None and not refused(send) and not send.may_repeat:
            by_producer[send.producer, send.place].append(send)
    for (producer, place), sends in by_producer.items():
        for send, other in pairwise(sorted(sends, key=lambda send: send.number)):
            if other.offset < send.offset:
                inside = "int-" if send.transaction is not None and send.transaction is other.transaction else ""
                yield Anomaly(
                    f"{inside}nonmonotonic send",
                    f"{producer} sent {send.value} before {other.value}; they are at {send.offset} and {other.offset} of {place}",
                )


def _ends(view: _View) -> Iterator[Anomaly]:
    ends_by_client: dict[tuple[Place, bool], list[End]] = defaultdict(list)
    for end in view.history.ends:
        ends_by_client[end.place, end.committed_only].append(end)
    for (place, committed_only), ends in ends_by_client.items():
        name = "last stable offset" if committed_only else "high watermark"
        for before, after in _backwards(ends):
            yield Anomaly(f"{name} back", f"{place} was answered as {before.offset} and later as {after.offset}")


def _group_offsets(view: _View) -> Iterator[Anomaly]:
    offsets_by_group: dict[tuple[str, Place], list[GroupOffset]] = defaultdict(list)
    for group_offset in view.history.group_offsets:
        if group_offset.outcome is Outcome.OK:
            offsets_by_group[group_offset.group, group_offset.place].append(group_offset)
    for (group, place), offsets in offsets_by_group.items():
        for before, after in _backwards(offsets):
            what = "found" if after.fetched else "committed"
            yield Anomaly(
                "group offset back", f"{group} had {before.offset} of {place}, later {after.offset} was {what}"
            )


def _shares(view: _View) -> Iterator[Anomaly]:
    accepted: dict[tuple[str, Place, int], str] = {}
    for record in view.history.taken:
        where = f"{record.member} of {record.group} was given {_at(record.place, record.offset)}"
        if not 1 <= record.count <= DELIVERIES_MAX:
            yield Anomaly("delivery count", f"{where} as delivery {record.count}, of {DELIVERIES_MAX} at most")
        key = (record.group, record.place, record.offset)
        if record.outcome is Outcome.OK and key in accepted:
            yield Anomaly("accepted twice", f"{where} and accepted it, as {accepted[key]} had done")
        elif record.outcome is Outcome.OK:
            accepted[key] = record.member
    for group, places in view.history.shared.items():
        given = {(record.place, record.value) for record in view.history.taken if record.group == group}
        there = {(place, value) for place in places for value in view.committed.get(place, {}).values()}
        missing = there - given
        for send in filter(acknowledged, view.history.sends):
            if (send.place, send.value) in missing:
                yield Anomaly(
                    "not delivered",
                    f"{send.value} was acknowledged at {_at(send.place, send.offset)}; {group} never got it",
                )


def _backwards(events: list[_Event]) -> Iterator[tuple[_Event, _Event]]:
    """Pairs of which the second began after the first had ended, and is lower."""
    ended = sorted(events, key=lambda event: event.ended)
    highest: _Event | None = None
    taken = 0
    for after in sorted(events, key=lambda event: event.began):
        while taken < len(ended) and ended[taken].ended < after.began:
            if highest is None or ended[taken].offset > highest.offset:
                highest = ended[taken]
            taken += 1
        if highest is not None and after.offset < highest.offset:
            yield highest, after


def _states(view: _View) -> Iterator[Anomaly]:
    leaders: dict[tuple[Place, int], int] = {}
    for state in view.history.states:
        if not set(state.isr) <= set(state.replicas):
            yield Anomaly("ISR not of replicas", f"{state.place}: ISR {state.isr} of replicas {state.replicas}")
        if state.leader < 0:
            continue
        if state.leader not in state.isr:
            yield Anomaly("leader not in ISR", f"{state.place}: leader {state.leader}, ISR {state.isr}")
        first = leaders.setdefault((state.place, state.leader_epoch), state.leader)
        if first != state.leader:
            epoch = f"{state.place}: {first} and {state.leader} in epoch {state.leader_epoch}"
            yield Anomaly("two leaders", epoch)


def _replicas(view: _View) -> Iterator[Anomaly]:
    by_place: dict[Place, list[Replica]] = defaultdict(list)
    for replica in view.history.replicas:
        by_place[replica.place].append(replica)
    for place, replicas in by_place.items():
        end = max(replica.high_watermark for replica in replicas)
        first, *others = [_below(replica, end) for replica in replicas]
        for replica, other in zip(replicas[1:], others, strict=True):
            if other != first:
                pair = f"{replicas[0].broker} and {replica.broker}"
                yield Anomaly("replicas differ", f"{place} on {pair} below {end}: {_difference(first, other)}")


def _below(replica: Replica, end: int) -> list[Batch]:
    return [batch for batch in batches(replica.batches) if batch.last_offset < end]


def _difference(first: list[Batch], second: list[Batch]) -> str:
    for left, right in zip(first, second, strict=False):
        if left != right:
            names = ", ".join(f"{b.base_offset} to {b.last_offset} of epoch {b.leader_epoch}" for b in (left, right))
            return f"batches {names}"
    return f"{len(first)} and {len(second)} batches"


def _unavailable(history: History, within_s: float) -> Iterator[Anomaly]:
    sends: dict[Place, list[Send]] = defaultdict(list)
    for send in history.sends:
        sends[send.place].append(send)
    for place, all_of_it in sends.items():
        last = max(time for send in all_of_it for time in (send.began, send.ended) if time < float("inf"))
        # Who stopped trying before the time was over does not show that the partition would have taken nothing.
        for healed in (healed for healed in history.healed if healed + within_s < last):
            tried = [send for send in all_of_it if healed <= send.began <= healed + within_s]
            if tried and not any(send.outcome is Outcome.OK and send.ended <= healed + within_s for send in tried):
                yield Anomaly("unavailable", f"{place} took no record within {within_s} s after {healed:.1f}")


def recovery_s(history: History, healed: float) -> dict[Place, float]:
    """Seconds from `healed` to the first record that each partition accepted and that was sent after it."""
    first: dict[Place, float] = {}
    for send in history.sends:
        if send.outcome is Outcome.OK and send.began >= healed:
            first[send.place] = min(first.get(send.place, float("inf")), send.ended - healed)
    return first


def _at(place: Place, offset: int | None) -> str:
    return f"{place[0]}-{place[1]}@{offset}"
