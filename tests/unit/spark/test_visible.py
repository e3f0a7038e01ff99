"""Limits in rows and bytes, over logs that a test invents: exact while there is enough, and no partition starves."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from pylog_spark.offsets import Offsets, TopicPartition
from pylog_spark.offsets.visible import Taken, Wish, cut_visible, shares

Batch = tuple[int, tuple[bool, ...]]  # stored bytes; which of its offsets are rows


class Shelf:
    """Partitions of stored batches."""

    def __init__(self, logs: Sequence[Sequence[Batch]]) -> None:
        self.logs = {TopicPartition("t", number): log for number, log in enumerate(logs)}

    @property
    def end(self) -> Offsets:
        return {each: sum(len(rows) for _, rows in log) for each, log in self.logs.items()}

    def rows(self, partition: TopicPartition, start: int, end: int) -> int:
        visible = [row for _, rows in self.logs[partition] for row in rows]
        return sum(visible[start:end])

    def advance(self, wishes: Sequence[Wish]) -> list[Taken]:
        return [self._advance(wish) for wish in wishes]

    def _advance(self, wish: Wish) -> Taken:
        at, taken_rows, taken_bytes = wish.start, 0, 0
        base = 0
        for stored, rows in self.logs[wish.partition]:
            low, base = base, base + len(rows)
            if base <= at:
                continue
            visible = [offset for offset in range(max(at, low), min(base, wish.end)) if rows[offset - low]]
            cost = stored * len(visible) // max(1, sum(rows))
            if (
                visible
                and wish.size is not None
                and taken_bytes + cost > wish.size
                and not (wish.at_least_one and taken_rows == 0)
            ):
                return Taken(at, taken_rows, taken_bytes)
            left = len(visible) if wish.records is None else wish.records - taken_rows
            if len(visible) > left:
                return Taken(visible[left], taken_rows + left, taken_bytes + stored * left // max(1, sum(rows)))
            at, taken_rows, taken_bytes = min(base, wish.end), taken_rows + len(visible), taken_bytes + cost
        return Taken(at, taken_rows, taken_bytes)


LOGS = st.lists(
    st.lists(st.tuples(st.integers(1, 100), st.lists(st.booleans(), min_size=1, max_size=8).map(tuple)), max_size=6),
    min_size=1,
    max_size=5,
)


@given(LOGS, st.integers(1, 40))
def test_batches_have_exactly_the_rows_allowed_until_there_are_no_more(logs: list[list[Batch]], limit: int) -> None:
    shelf = Shelf(logs)
    at = dict.fromkeys(shelf.end, 0)
    counts = []
    while at != shelf.end:
        cut = cut_visible(at, shelf.end, limit, None, shelf.advance)
        assert cut != at, "no progress"
        counts.append(sum(shelf.rows(each, at[each], cut[each]) for each in cut))
        at = cut
    total = sum(shelf.rows(each, 0, offset) for each, offset in shelf.end.items())
    assert sum(counts) == total
    full = [count for count in counts if count]
    assert all(count == limit for count in full[:-1])
    assert all(count <= limit for count in counts)


@given(LOGS, st.integers(1, 250), st.none() | st.integers(1, 20))
def test_batches_have_at_most_the_bytes_allowed_or_one_stored_batch(
    logs: list[list[Batch]], size: int, records: int | None
) -> None:
    shelf = Shelf(logs)
    at = dict.fromkeys(shelf.end, 0)
    for _ in range(1000):
        if at == shelf.end:
            break
        cut = cut_visible(at, shelf.end, records, size, shelf.advance)
        assert cut != at, "no progress"
        whole = [
            stored
            for each, log in shelf.logs.items()
            for stored, low, high in _spans(log)
            if low < cut[each] and high > at[each] and shelf.rows(each, max(low, at[each]), min(high, cut[each]))
        ]
        cut_short = sum(0 < cut[each] < shelf.end[each] for each in cut) + sum(offset > 0 for offset in at.values())
        # A batch that rows cut counts in part, in this trigger and in the next.
        assert sum(whole) <= size or len(whole) == 1 or (records is not None and cut_short)
        at = cut
    assert at == shelf.end


def _spans(log: list[Batch]) -> list[tuple[int, int, int]]:
    found, base = [], 0
    for stored, rows in log:
        found.append((stored, base, base + len(rows)))
        base += len(rows)
    return found


@given(st.integers(0, 1000), st.lists(st.integers(1, 10**9), min_size=1, max_size=9))
def test_shares_add_up_and_leave_nobody_out_when_there_is_enough(total: int, weights: list[int]) -> None:
    given_shares = shares(total, weights)
    assert sum(given_shares) == total
    assert min(given_shares) >= (1 if total >= len(weights) else 0)


def test_what_a_partition_of_gaps_cannot_use_goes_to_the_others() -> None:
    gaps = [(10, (False,) * 90 + (True,))]
    rows = [(10, (True,) * 9)]
    shelf = Shelf([gaps, rows])
    cut = cut_visible(dict.fromkeys(shelf.end, 0), shelf.end, 10, None, shelf.advance)
    assert cut == shelf.end
