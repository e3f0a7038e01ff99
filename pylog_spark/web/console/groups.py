"""Groups, how far behind they are, and how far they were."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from contextlib import closing
from typing import Any

from pylog_spark.client.errors import LogError
from pylog_spark.results.groups import GroupDescription, MemberDescription
from pylog_spark.web.console.call import Call, number
from pylog_spark.web.console.other_brokers import Partition, ends_of
from pylog_spark.web.console.reading import Reading, Span

#: Most groups that one answer names.
GROUPS_MAX = 1_000
#: Of so many partitions the first record that is not read is looked at, for so many seconds at most.
SECONDS_MAX, SECONDS_S = 100, 3.0
#: Of so many groups whose lag this broker does not know others are asked.
ASKED_MAX = 50
_SHARE = "share"


def groups(call: Call) -> dict[str, Any]:
    """The groups that the user may describe."""
    listed = call.session.admin.groups()
    named = [each.group_id for each in listed[:GROUPS_MAX]]
    described = {each.group_id: each for each in (call.session.admin.describe_groups(named) if named else [])}
    lags = _lags(call)
    lags |= _lags_on_others(
        call, [each.group_id for each in listed if each.type != _SHARE and each.group_id not in lags]
    )
    cut = len(listed) - GROUPS_MAX
    return {
        "groups": [
            {
                "name": each.group_id,
                "type": each.type,
                "protocol": each.protocol_type,
                "state": each.state,
                "members": len(described[each.group_id].members) if each.group_id in described else 0,
                "query": _is_query(described.get(each.group_id)),
                "lag": lags.get(each.group_id),
            }
            for each in listed[:GROUPS_MAX]
        ],
        "cut": f"{GROUPS_MAX} groups are listed; {cut} more are not." if cut > 0 else None,
    }


def group(call: Call) -> dict[str, Any]:
    """One group with its members and offsets."""
    admin, (name,) = call.session.admin, call.named
    described = admin.group(name)
    if described.type == _SHARE:
        shares = admin.share_group_offsets(name)
        offsets = {partition: each.start_offset for partition, each in shares.items()}
        known = {partition: each.lag for partition, each in shares.items()}
    else:
        offsets, known = admin.group_offsets(name), {}
    ends = ends_of(admin, list(offsets))
    return {
        "name": name,
        "type": described.type,
        "state": described.state,
        "protocol": described.protocol_type,
        "query": _is_query(described),
        "members": [_member(each) for each in described.members],
        "offsets": _offsets(call, offsets, ends, known),
    }


def group_history(call: Call) -> dict[str, Any]:
    """How far behind a group was."""
    (name,) = call.named
    # Whoever may not describe it does not see it.
    call.session.admin.group(name)
    return call.beside.history.of_group(name)


def _offsets(
    call: Call,
    offsets: Mapping[Partition, int],
    ends: Mapping[Partition, int | None],
    known: Mapping[Partition, int | None],
) -> list[dict[str, Any]]:
    until, looked = time.monotonic() + SECONDS_S, 0
    lines = []
    for (topic, partition), offset in sorted(offsets.items()):
        end = ends.get((topic, partition))
        lag = known.get((topic, partition), None if end is None else max(end - offset, 0))
        seconds: float | None = 0.0 if lag == 0 else None
        if lag and end is not None and looked < SECONDS_MAX and time.monotonic() < until:
            looked += 1
            seconds = _age(call, topic, Span(partition, offset, end))
        lines.append(
            {
                "topic": topic,
                "partition": partition,
                "offset": number(offset),
                "end": None if end is None else number(end),
                "lag": None if lag is None else number(lag),
                "seconds": seconds,
            }
        )
    return lines


def _age(call: Call, topic: str, span: Span) -> float | None:
    """Seconds since the time of the first record of a span; None where it has none, or may not be read."""
    try:
        with closing(Reading(call.session.settings, topic, "", [span], limit=1)) as reading:
            for rows in reading.batches():
                if rows:
                    stamp = rows[0].timestamp_ms
                    return None if stamp < 0 else round(max(time.time() - stamp / 1000, 0.0), 3)
    except LogError:
        # Deleted meanwhile, or to be seen by others.
        return None
    return None


def _lags(call: Call) -> dict[str, int]:
    """The lag of each group that this broker coordinates, where it has replicas of all that the group reads."""
    lags: dict[str, int] = {}
    partly: set[str] = set()
    for each in json.loads(call.beside.broker.group_numbers())["offsets"]:
        if each["lag"] is None:
            partly.add(each["group"])
        else:
            lags[each["group"]] = lags.get(each["group"], 0) + each["lag"]
    return {name: lag for name, lag in lags.items() if name not in partly}


def _lags_on_others(call: Call, names: list[str]) -> dict[str, int]:
    """The lag of other groups; none of those whose offsets or logs cannot be asked for now."""
    committed: dict[str, dict[Partition, int]] = {}
    until = time.monotonic() + SECONDS_S
    for name in names[:ASKED_MAX]:
        if time.monotonic() > until:
            break
        try:
            committed[name] = call.session.admin.group_offsets(name)
        except LogError:
            # Deleted meanwhile, or its coordinator is away.
            continue
    ends = ends_of(call.session.admin, sorted({partition for offsets in committed.values() for partition in offsets}))
    lags: dict[str, int] = {}
    for name, offsets in committed.items():
        there = [(ends[partition], offset) for partition, offset in offsets.items() if partition in ends]
        known = [max(end - offset, 0) for end, offset in there if end is not None]
        if known and len(known) == len(there):
            lags[name] = sum(known)
    return lags


def _member(member: MemberDescription) -> dict[str, Any]:
    return {
        "id": member.member_id,
        "client": member.client_id,
        "host": member.host,
        "partitions": [[each.topic, each.partition] for each in member.partitions],
    }


def _is_query(group: GroupDescription | None) -> bool:
    """Whether its offsets were committed without members, as those of a Spark query are."""
    return group is not None and group.type != _SHARE and not group.members and not group.protocol_type
