"""The cluster and its topics, as a user may see them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pylog_spark
from pylog_spark.client.admin import EARLIEST, LATEST
from pylog_spark.client.errors import LogError
from pylog_spark.results.topics import ListedTopic, PartitionDescription, TopicDescription
from pylog_spark.web.console.call import Call, number
from pylog_spark.web.console.refusals import bad_request

#: Most topics that one answer names.
TOPICS_MAX = 20_000
_SKIP_MAX = 2**31 - 1


def user(call: Call) -> dict[str, Any]:
    """Who asks."""
    return {"user": call.session.user}


def cluster(call: Call) -> dict[str, Any]:
    """The cluster, its brokers, each with how many of the user's partitions it leads and holds, and whether these are well."""
    described, seen = call.session.admin.cluster(), call.session.described()
    leads: dict[int, int] = {}
    replicas: dict[int, int] = {}
    for topic in seen:
        for partition in topic.partitions:
            leads[partition.leader] = leads.get(partition.leader, 0) + 1
            for broker in partition.replicas:
                replicas[broker] = replicas.get(broker, 0) + 1
    return {
        "cluster_id": described.cluster_id,
        "controller": described.controller_id,
        "user": call.session.user,
        "version": pylog_spark.__version__,
        "topics": len(seen),
        "partitions": sum(len(each.partitions) for each in seen),
        "under_replicated": sum(_under_replicated(each) for each in seen),
        "offline": sum(_offline(each) for each in seen),
        "brokers": [
            {
                "id": each.node_id,
                "host": each.host,
                "port": each.port,
                "rack": each.rack,
                "leads": leads.get(each.node_id, 0),
                "replicas": replicas.get(each.node_id, 0),
            }
            for each in described.brokers
        ],
    }


def topics(call: Call) -> dict[str, Any]:
    """A page of the topics that have a text in their names, in the order that is asked for. Of the others no more is asked than that they
    are there, unless the order needs it."""
    wanted, has_limit = call.query.get("search", "").lower(), bool(call.query.get("limit"))
    skip, limit = call.whole("skip", 0, 0, _SKIP_MAX) or 0, call.whole("limit", TOPICS_MAX, 1, TOPICS_MAX)
    visible = [each for each in call.session.topics() if call.has("internal") or not each.is_internal]
    names, known = _ordered(call, [each for each in visible if wanted in each.name.lower()])
    given = names[skip:][:limit]
    # Some may be gone meanwhile.
    known = known or {each.name: each for each in call.session.admin.topics(given) if not each.error}
    left = len(names) - skip - len(given)
    return {
        "topics": [_line(known[name]) for name in given if name in known],
        "total": len(names),
        "all": len(visible),
        "cut": f"{TOPICS_MAX} topics are listed, {left} more have such names: search for more of the name."
        if left > 0 and not has_limit
        else None,
    }


def topic(call: Call) -> dict[str, Any]:
    """One topic with its partitions and settings."""
    admin, (name,) = call.session.admin, call.named
    described = admin.topic(name)
    configs, refused = _configs(call, name)
    return {
        "name": name,
        "id": described.topic_id,
        "internal": described.is_internal,
        "partitions": _partitions(call, described),
        "configs": configs,
        "configs_refused": refused,
    }


def _ordered(call: Call, found: list[ListedTopic]) -> tuple[list[str], dict[str, TopicDescription]]:
    """The names in the order that is asked for, and the topics by name if they had to be asked for it. The session's order is by name; what is
    equal otherwise keeps it."""
    order, down = call.query.get("sort") or "name", call.has("descending")
    names = [each.name for each in found]
    if order == "name":
        return names[::-1] if down else names, {}
    if order == "partitions":
        return [each.name for each in sorted(found, key=lambda topic: len(topic.partitions), reverse=down)], {}
    if order not in _ORDERS:
        raise bad_request(f"sort is name, partitions, {', '.join(_ORDERS)}.")
    known = {each.name: each for each in call.session.described()}
    of = _ORDERS[order]
    return sorted((name for name in names if name in known), key=lambda name: of(known[name]), reverse=down), known


def _line(topic: TopicDescription) -> dict[str, Any]:
    return {
        "name": topic.name,
        "partitions": len(topic.partitions),
        "replication": _replication(topic),
        "internal": topic.is_internal,
        "under_replicated": _under_replicated(topic),
        "offline": _offline(topic),
    }


def _replication(topic: TopicDescription) -> int:
    return max((len(each.replicas) for each in topic.partitions), default=0)


def _under_replicated(topic: TopicDescription) -> int:
    return sum(len(each.isr) < len(each.replicas) for each in topic.partitions)


def _offline(topic: TopicDescription) -> int:
    return sum(each.leader < 0 for each in topic.partitions)


#: By what topics can be ordered, besides their names and the numbers of their partitions.
_ORDERS: dict[str, Callable[[TopicDescription], tuple[int, ...]]] = {
    "replication": lambda topic: (_replication(topic),),
    "state": lambda topic: (_offline(topic), _under_replicated(topic)),
}


def _partitions(call: Call, topic: TopicDescription) -> list[dict[str, Any]]:
    led = [(topic.name, each.partition) for each in topic.partitions if each.leader >= 0]
    starts, ends = _offsets(call, led, EARLIEST), _offsets(call, led, LATEST)
    stable = _offsets(call, led, LATEST, "read_committed")
    here = {
        each["partition"]: each["size_bytes"]
        for each in json.loads(call.beside.broker.partition_numbers())
        if each["topic"] == topic.name and not each["offline"]
    }
    return [_partition(each, starts, ends, stable, here) for each in topic.partitions]


def _partition(
    partition: PartitionDescription,
    starts: dict[int, int],
    ends: dict[int, int],
    stable: dict[int, int],
    sizes: dict[int, int],
) -> dict[str, Any]:
    place = partition.partition
    return {
        "partition": place,
        "leader": partition.leader,
        "replicas": partition.replicas,
        "isr": partition.isr,
        "offline": partition.leader < 0,
        "start": number(starts[place]) if place in starts else None,
        "end": number(ends[place]) if place in ends else None,
        "stable": number(stable[place]) if place in stable else None,
        "bytes": number(sizes[place]) if place in sizes else None,
    }


def _offsets(
    call: Call, partitions: Sequence[tuple[str, int]], at: int, isolation: str = "read_uncommitted"
) -> dict[int, int]:
    """The offsets of the partitions; of none when one cannot be asked, such as while its leader changes."""
    if not partitions:
        return {}
    try:
        found = call.session.admin.offsets([(*each, at) for each in partitions], isolation)
    except LogError as error:
        if error.kind.endswith("AUTHORIZATION_FAILED"):
            raise
        return {}
    return {each.partition: each.offset for each in found}


def _configs(call: Call, name: str) -> tuple[list[dict[str, Any]], str | None]:
    """The topic's settings, and why they are not shown."""
    try:
        (described,) = call.session.admin.configs("topic", [name])
    except LogError as error:
        return [], error.sentence
    if described.error:
        return [], described.message or f"The settings are not shown: {described.error}."
    entries: Iterable[Any] = sorted(described.configs, key=lambda each: each.name)
    return [
        {
            "name": each.name,
            "value": each.value,
            "source": each.source,
            "type": each.type,
            "read_only": each.read_only,
            "sensitive": each.is_sensitive,
            "documentation": each.documentation,
        }
        for each in entries
    ], None
