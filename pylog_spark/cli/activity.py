"""What ``pylog top`` shows: brokers, topics and groups, with rates and lag, from requests that every Kafka cluster answers.

Rates are differences of offsets between two looks, so that they count transaction markers and what a producer aborted, too; where a topic was made again or a
group moved back, nothing is counted. Bounded: what there is too much of is left out, and `Sample.left_out` says how much. One thread.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pylog_spark.cli.common import plural
from pylog_spark.client.admin import EARLIEST, LATEST, Admin
from pylog_spark.client.errors import LogError
from pylog_spark.results.groups import GroupDescription
from pylog_spark.results.topics import ClusterDescription, TopicDescription

#: Most partitions whose offsets are asked for at each look; topics behind them, by name, are left out.
PARTITIONS_MAX = 20_000
#: Most groups whose offsets are asked for at each look, one request each.
GROUPS_MAX = 200

Partition = tuple[str, int]


@dataclass(frozen=True)
class BrokerActivity:
    """One broker: what it leads and holds, and the records that partitions which it leads got each second (None at the first look)."""

    node_id: int
    address: str
    rack: str | None
    is_controller: bool
    leads: int
    replicas: int
    records_per_s: float | None


@dataclass(frozen=True)
class TopicActivity:
    """One topic: its partitions, those of them that are not in sync or have no leader, how many records it has and gets each second."""

    name: str
    partitions: int
    under_replicated: int
    offline: int
    records: int
    records_per_s: float | None


@dataclass(frozen=True)
class GroupActivity:
    """One group: how far it is behind (None where that is not known), and the records that it commits each second."""

    group_id: str
    type: str
    state: str
    members: int
    lag: int | None
    records_per_s: float | None


@dataclass(frozen=True)
class Sample:
    """What was seen at one look; the busiest topic and the group with the most lag come first.

    Attributes
    ----------
    at_ms : int
        When, in ms since 1970.
    interval_s : float or None
        Since the look before, over which rates are; None at the first.
    cluster_id : str or None
        None where brokers have none.
    brokers, topics, groups : tuple
        All that was looked at.
    left_out : tuple of str
        What was not looked at, and how much of it, in words.
    """

    at_ms: int
    interval_s: float | None
    cluster_id: str | None
    brokers: tuple[BrokerActivity, ...]
    topics: tuple[TopicActivity, ...]
    groups: tuple[GroupActivity, ...]
    left_out: tuple[str, ...]


@dataclass
class _Look:
    """Offsets at one moment; topics with their ids, since one that was made again begins anew."""

    seconds: float
    starts: dict[Partition, int] = field(default_factory=dict)
    ends: dict[Partition, int] = field(default_factory=dict)
    ids: dict[str, str] = field(default_factory=dict)
    committed: dict[tuple[str, Partition], int] = field(default_factory=dict)


class Activity:
    """Looks at a cluster, again and again.

    Parameters
    ----------
    admin : Admin
        Who is asked; stays open.
    internal : bool
        Whether internal topics are shown.
    """

    def __init__(self, admin: Admin, *, internal: bool = False) -> None:
        self._admin, self._internal = admin, internal
        self._before: _Look | None = None

    def look(self) -> Sample:
        """Look once. Raises `LogError` when the brokers do not answer."""
        now = _Look(time.monotonic())
        left_out: list[str] = []
        cluster = self._admin.cluster()
        topics = self._topics(left_out)
        self._take_offsets(topics, now)
        groups = self._groups(now, left_out)
        before, self._before = self._before, now
        rates = _Rates(before, now)
        shown = [each for each in topics if self._internal or not each.is_internal]
        return Sample(
            at_ms=time.time_ns() // 1_000_000,
            interval_s=rates.seconds,
            cluster_id=cluster.cluster_id,
            brokers=_brokers(cluster, topics, rates),
            topics=tuple(
                sorted(
                    (_topic(each, now, rates) for each in shown), key=lambda row: (-(row.records_per_s or 0), row.name)
                )
            ),
            groups=tuple(
                sorted((_group(*each, rates) for each in groups), key=lambda row: (-(row.lag or 0), row.group_id))
            ),
            left_out=tuple(left_out),
        )

    def _topics(self, left_out: list[str]) -> list[TopicDescription]:
        found = sorted(self._admin.topics(), key=lambda topic: topic.name)
        kept: list[TopicDescription] = []
        room = PARTITIONS_MAX
        for topic in found:
            room -= len(topic.partitions)
            if room >= 0:
                kept.append(topic)
        if len(kept) < len(found):
            left_out.append(
                f"{plural(len(found) - len(kept), 'topic')}: offsets of {PARTITIONS_MAX:,} partitions are asked for"
            )
        return kept

    def _take_offsets(self, topics: Sequence[TopicDescription], now: _Look) -> None:
        led = [(topic.name, each.partition) for topic in topics for each in topic.partitions if each.leader >= 0]
        now.ids = {topic.name: topic.topic_id for topic in topics}
        for timestamp, into in ((EARLIEST, now.starts), (LATEST, now.ends)):
            for found in self._admin.offsets([(*partition, timestamp) for partition in led]) if led else ():
                into[found.topic, found.partition] = found.offset

    def _groups(self, now: _Look, left_out: list[str]) -> list[tuple[GroupDescription, int | None]]:
        names = [each.group_id for each in self._admin.groups()]
        if len(names) > GROUPS_MAX:
            left_out.append(f"{plural(len(names) - GROUPS_MAX, 'group')}: {GROUPS_MAX} are asked for their offsets")
        described = self._admin.describe_groups(names[:GROUPS_MAX]) if names else []
        return [(group, self._lag(group, now)) for group in described if group.error is None]

    def _lag(self, group: GroupDescription, now: _Look) -> int | None:
        """How far a group is behind; what it has committed goes into `now`."""
        name = group.group_id
        try:
            if group.type == "share":
                lags = [each.lag for each in self._admin.share_group_offsets(name).values()]
                return None if None in lags else sum(lag or 0 for lag in lags)
            committed = self._admin.group_offsets(name)
        except LogError:
            # Gone meanwhile, or not ours to see: it is listed all the same.
            return None
        now.committed |= {(name, partition): offset for partition, offset in committed.items()}
        behind = [now.ends[partition] - offset for partition, offset in committed.items() if partition in now.ends]
        return sum(max(each, 0) for each in behind)


class _Rates:
    """Records each second, from what two looks saw."""

    def __init__(self, before: _Look | None, now: _Look) -> None:
        self.seconds = None if before is None else round(now.seconds - before.seconds, 3)
        self._written: dict[Partition, float] = {}
        self._committed: dict[str, float] = defaultdict(float)
        if before is None or not self.seconds:
            return
        for partition, end in now.ends.items():
            is_same = before.ids.get(partition[0]) == now.ids.get(partition[0])
            was = before.ends.get(partition, 0) if is_same else end
            self._written[partition] = max(end - was, 0) / self.seconds
        for (group, partition), offset in now.committed.items():
            was = before.committed.get((group, partition), offset)
            self._committed[group] += max(offset - was, 0) / self.seconds

    def written(self, partitions: Sequence[Partition]) -> float | None:
        """Of partitions together; None at the first look."""
        if self.seconds is None:
            return None
        return round(sum(self._written.get(partition, 0.0) for partition in partitions), 1)

    def committed(self, group: str) -> float | None:
        """Of a group; None at the first look."""
        return None if self.seconds is None else round(self._committed.get(group, 0.0), 1)


def _brokers(
    cluster: ClusterDescription, topics: Sequence[TopicDescription], rates: _Rates
) -> tuple[BrokerActivity, ...]:
    leads: Mapping[int, list[Partition]] = defaultdict(list)
    replicas: dict[int, int] = defaultdict(int)
    for topic in topics:
        for each in topic.partitions:
            leads[each.leader].append((topic.name, each.partition))
            for replica in each.replicas:
                replicas[replica] += 1
    return tuple(
        BrokerActivity(
            node_id=node.node_id,
            address=f"{node.host}:{node.port}",
            rack=node.rack,
            is_controller=node.node_id == cluster.controller_id,
            leads=len(leads[node.node_id]),
            replicas=replicas[node.node_id],
            records_per_s=rates.written(leads[node.node_id]),
        )
        for node in sorted(cluster.brokers, key=lambda node: node.node_id)
    )


def _topic(topic: TopicDescription, now: _Look, rates: _Rates) -> TopicActivity:
    places = [(topic.name, each.partition) for each in topic.partitions]
    return TopicActivity(
        name=topic.name,
        partitions=len(places),
        under_replicated=sum(len(each.isr) < len(each.replicas) for each in topic.partitions),
        offline=sum(each.leader < 0 for each in topic.partitions),
        records=sum(max(now.ends.get(place, 0) - now.starts.get(place, 0), 0) for place in places),
        records_per_s=rates.written(places),
    )


def _group(group: GroupDescription, lag: int | None, rates: _Rates) -> GroupActivity:
    return GroupActivity(
        group_id=group.group_id,
        type=group.type,
        state=group.state,
        members=len(group.members),
        lag=lag,
        records_per_s=None if group.type == "share" else rates.committed(group.group_id),
    )
