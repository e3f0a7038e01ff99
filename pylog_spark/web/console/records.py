"""Records of a topic, and the search among them.

Without a search an answer has the next records of all partitions in the order of their times, as far as one request can know it. A search
goes through one partition after the other. Each answer looks at so many records, bytes and seconds at most, and its token goes on from there;
without a search another one goes back to the records before it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Any, NamedTuple

from pylog_spark.client.admin import EARLIEST, LATEST
from pylog_spark.results.topics import PartitionOffset
from pylog_spark.web.console.call import Call, number
from pylog_spark.web.console.reading import Part, Reading, Row, Span
from pylog_spark.web.console.refusals import ConsoleRefusal, bad_request
from pylog_spark.web.console.views import HEADER_BYTES_MAX, VIEW_BYTES_MAX, view
from pylog_spark.web.console.wanted import Wanted, token, wanted

#: How many offsets and seconds one answer looks at.
SEARCH_RECORDS_MAX = 1_000_000
SEARCH_S = 5.0
#: Most bytes of keys, values and headers in an answer; at least one record is given.
ANSWER_BYTES_MAX = 8 << 20
#: Of a topic with more partitions one is named.
PARTITIONS_MAX = 200
# The newest records are looked for in so many of the last offsets, by what is wanted: markers and compaction leave offsets without records.
_REACHES = (1, 8, 64)
_TYPES = {0: "CreateTime", 1: "LogAppendTime"}


class _Log(NamedTuple):
    """The partitions that are read: where each starts and ends now."""

    topic_id: str
    starts: dict[int, int]
    ends: dict[int, int]


class _Found(NamedTuple):
    """What was found, where to go on, how many offsets were looked at, and what was left out; where to go back from in partitions of which
    nothing is shown, None where nobody can, as in a search."""

    rows: list[Row]
    positions: dict[int, int]
    searched: int
    cut: str | None
    before: dict[int, int] | None = None


def records(call: Call) -> dict[str, Any]:
    """The records that are asked for."""
    asked = wanted(call)
    log = _log(call, asked)
    is_newest = asked.before is not None or (
        asked.after is None and asked.start.kind == "latest" and not asked.is_search
    )
    if is_newest:
        ends = log.ends if asked.before is None else _back_from(asked.before, log)
        found = _last_before(call, asked, log, ends)
    else:
        positions, cut = _positions(call, asked, log)
        act = _searched if asked.is_search else _page
        found = act(call, asked, log, positions, cut)
    kept = _bounded(found, is_newest=is_newest)
    before = kept.before
    if before is not None and is_newest:
        before = before | _first(kept.rows)
    return {
        "records": [_shown(call, row) for row in kept.rows],
        "searched": kept.searched,
        "end": all(kept.positions[partition] >= end for partition, end in log.ends.items()),
        "next": token(kept.positions),
        "begin": before is not None and all(before[partition] <= start for partition, start in log.starts.items()),
        "previous": None if before is None else token(before),
        "cut": kept.cut or _headers_left_out(kept.rows),
    }


def _log(call: Call, asked: Wanted) -> _Log:
    described = call.session.admin.topic(asked.topic)
    partitions = [each.partition for each in described.partitions]
    if asked.partition is not None:
        if asked.partition not in partitions:
            sentence = f"Topic '{asked.topic}' has no partition {asked.partition}: it has 0 to {len(partitions) - 1}."
            raise ConsoleRefusal(404, "UNKNOWN_TOPIC_OR_PARTITION", sentence)
        partitions = [asked.partition]
    if len(partitions) > PARTITIONS_MAX:
        raise bad_request(
            f"Topic '{asked.topic}' has {len(partitions)} partitions, and records of {PARTITIONS_MAX} are shown together: name one."
        )
    starts = _at(call, asked, partitions, EARLIEST)
    ends = _at(call, asked, partitions, LATEST, asked.isolation)
    return _Log(
        described.topic_id,
        {each.partition: each.offset for each in starts},
        {each.partition: max(each.offset, starts[place].offset) for place, each in enumerate(ends)},
    )


def _at(
    call: Call, asked: Wanted, partitions: list[int], at: int, isolation: str = "read_uncommitted"
) -> list[PartitionOffset]:
    return call.session.admin.offsets([(asked.topic, partition, at) for partition in partitions], isolation)


def _positions(call: Call, asked: Wanted, log: _Log) -> tuple[dict[int, int], str | None]:
    """Where to begin, and a sentence when the log no longer has what was asked for."""
    if asked.after is not None:
        begins = {partition: asked.after.get(partition, start) for partition, start in log.starts.items()}
    elif asked.start.kind == "offset":
        begins = dict.fromkeys(log.starts, asked.start.number)
    elif asked.start.kind == "time":
        found = _at(call, asked, list(log.starts), asked.start.number)
        begins = {each.partition: each.offset if each.offset >= 0 else log.ends[each.partition] for each in found}
    else:
        begins = dict(log.starts)
    gone = [partition for partition, offset in begins.items() if offset < log.starts[partition]]
    beyond = [partition for partition, offset in begins.items() if offset > log.ends[partition]]
    cut = None
    if gone:
        cut = f"Partition {gone[0]} begins at offset {log.starts[gone[0]]}: what was before it is deleted."
    elif beyond and asked.after is None and len(beyond) == len(begins):
        cut = f"Partition {beyond[0]} ends at offset {log.ends[beyond[0]]}, before the one that is asked for."
    return {each: min(max(offset, log.starts[each]), log.ends[each]) for each, offset in begins.items()}, cut


def _reading(
    call: Call, asked: Wanted, log: _Log, spans: list[Span], limit: int | None = None, key: bytes | None = None
) -> Reading:
    settings = {**call.session.settings, "isolation.level": asked.isolation}
    return Reading(settings, asked.topic, log.topic_id, spans, limit=limit, key=key)


def _back_from(before: Mapping[int, int], log: _Log) -> dict[int, int]:
    """The offsets before which records are; none of a partition that was not there when the token was given."""
    return {each: min(max(before.get(each, start), start), log.ends[each]) for each, start in log.starts.items()}


def _first(rows: list[Row]) -> dict[int, int]:
    """By partition, the first of these offsets."""
    return {row.partition: row.offset for row in sorted(rows, key=lambda row: -row.offset)}


def _last_before(call: Call, asked: Wanted, log: _Log, ends: Mapping[int, int]) -> _Found:
    """The last records before these offsets, of all partitions together."""
    until, rows, searched = time.monotonic() + SEARCH_S, list[Row](), 0
    before = dict(ends)
    for partition, end in ends.items():
        last, begin = _last_of(call, asked, log, Span(partition, log.starts[partition], end), until)
        searched += end - begin
        if not last:
            before[partition] = begin
        rows = _by_time([*rows, *last])[-asked.limit :]
        if time.monotonic() > until:
            cut = f"The newest records were looked for during {SEARCH_S:.0f} s, and not in all partitions: name one."
            return _Found(rows, dict(ends), searched, cut)
    return _Found(rows, dict(ends), searched, None, before)


def _last_of(call: Call, asked: Wanted, log: _Log, whole: Span, until: float) -> tuple[list[Row], int]:
    """The last records of a partition's span, and from which offset on they were looked for."""
    partition, first, end = whole
    last, begin = list[Row](), end
    for reach in _REACHES:
        begin = max(end - asked.limit * reach, first)
        if begin == end:
            break
        last = []
        with closing(_reading(call, asked, log, [Span(partition, begin, end)])) as reading:
            for batch in reading.batches():
                last = [*last, *batch][-asked.limit :]
                if time.monotonic() > until:
                    return last, begin
        if len(last) == asked.limit or begin == first:
            break
    return last, begin


def _page(call: Call, asked: Wanted, log: _Log, positions: dict[int, int], cut: str | None) -> _Found:
    """The next records of all partitions together, in the order of their times."""
    until, searched = time.monotonic() + SEARCH_S, 0
    begins = dict(positions)
    ahead: list[Row] = []
    reached: dict[int, int] = {}
    for partition, begin in positions.items():
        if begin >= log.ends[partition] or time.monotonic() > until:
            continue
        with closing(
            _reading(call, asked, log, [Span(partition, begin, log.ends[partition])], limit=asked.limit)
        ) as reading:
            rows: list[Row] = []
            for batch in reading.batches():
                rows += batch
                if len(rows) >= asked.limit or time.monotonic() > until:
                    break
        reached[partition] = reading.positions[partition]
        if len(rows) >= asked.limit:
            reached[partition] = rows[asked.limit - 1].offset + 1
        searched += reached[partition] - begin
        ahead += rows[: asked.limit]
    taken = _by_time(ahead)
    first_left: dict[int, int] = {}
    for row in taken[asked.limit :]:
        first_left.setdefault(row.partition, row.offset)
    return _Found(taken[: asked.limit], {**positions, **reached, **first_left}, searched, cut, begins)


def _searched(call: Call, asked: Wanted, log: _Log, positions: dict[int, int], cut: str | None) -> _Found:
    """The next records that fit, of one partition after the other."""
    until, begins, rows = time.monotonic() + SEARCH_S, dict(positions), list[Row]()
    spans = list(_spans(positions, log))
    if spans:
        with closing(_reading(call, asked, log, spans, key=asked.key)) as reading:
            for batch in reading.batches(asked.contains):
                rows += batch
                positions.update(reading.positions)
                if len(rows) >= asked.limit:
                    if len(rows) > asked.limit:
                        # A batch is of one partition, so all that is found again is.
                        last = rows[asked.limit - 1]
                        positions[last.partition] = last.offset + 1
                    rows = rows[: asked.limit]
                    break
                if time.monotonic() > until:
                    break
    return _Found(rows, positions, sum(positions[each] - begins[each] for each in begins), cut)


def _spans(positions: dict[int, int], log: _Log) -> Iterator[Span]:
    """What one answer looks at."""
    left = SEARCH_RECORDS_MAX
    for partition, begin in positions.items():
        end = min(log.ends[partition], begin + left)
        if begin < end:
            yield Span(partition, begin, end)
            left -= end - begin
        if not left:
            return


def _by_time(rows: list[Row]) -> list[Row]:
    """By time, but never a partition's records in another order than their offsets."""
    latest: dict[int, int] = {}
    keyed = []
    for row in rows:
        latest[row.partition] = max(latest.get(row.partition, -1), row.timestamp_ms)
        keyed.append((latest[row.partition], row.partition, row.offset, row))
    return [row for *_, row in sorted(keyed, key=lambda each: each[:3])]


def _bounded(found: _Found, *, is_newest: bool) -> _Found:
    """As many of the records as an answer carries, the first ones, or the newest ones."""
    rows = found.rows[::-1] if is_newest else found.rows
    size, most = 0, 0
    for row in rows:
        size += row.kept
        if most and size > ANSWER_BYTES_MAX:
            break
        most += 1
    if most == len(rows):
        return found
    cut = f"{most} records are shown, since they are large; {len(rows) - most} more were found."
    if is_newest:
        return found._replace(rows=rows[:most][::-1], cut=cut)
    back = dict(found.positions)
    for row in rows[: most - 1 : -1]:
        back[row.partition] = row.offset
    return found._replace(rows=rows[:most], positions=back, cut=cut)


def _headers_left_out(rows: list[Row]) -> str | None:
    left = next((row for row in rows if row.headers_left_out), None)
    if left is None:
        return None
    return f"Of the record at offset {left.offset} of partition {left.partition} {left.headers_left_out} headers are left out."


def _shown(call: Call, row: Row) -> dict[str, Any]:
    schemas = call.beside.schemas

    def decode(schema_id: int, payload: bytes) -> str | None:
        assert schemas is not None
        return schemas.shown(schema_id, payload, call.authorization)

    def shown(part: Part, most: int = VIEW_BYTES_MAX) -> dict[str, Any] | None:
        is_header = most != VIEW_BYTES_MAX
        return view(part.data, part.size, None if schemas is None or is_header else decode, most)

    return {
        "partition": row.partition,
        "offset": number(row.offset),
        "timestamp": row.timestamp_ms,
        "timestamp_type": _TYPES.get(row.timestamp_type, "CreateTime"),
        "key": shown(row.key),
        "value": shown(row.value),
        "headers": [[name, shown(part, HEADER_BYTES_MAX)] for name, part in row.headers],
        "size": row.size,
    }
