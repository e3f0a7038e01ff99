"""The end of a leader, as clients see it: how long nobody leads, and how soon all that a dead broker led is led again.

Both sides have the same session time-out (`clusters.SESSION_S`). One end gives all figures of a side, so that they can be compared:

- `eager`: a client that asks for metadata every 10 ms, so that what is left is the brokers' time;
- `plain`: a client as it comes. librdkafka looks for a leader that went away once a second, whoever the brokers are;
- `told`: no client at all: until every broker that is left names another leader in its metadata.

A session ends so long after the last sign of life, which came before the kill: a figure of less than nothing is right.
"""

import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from threading import Event

from confluent_kafka.admin import AdminClient, NewTopic

from benchmarks.bench import Bench, Runs
from benchmarks.clusters import BROKERS, EAGER, SESSION_S, Member, Writer, leaders_of, running
from benchmarks.load import create_topic, until
from pylog_spark._native import Client, NativeError

_ROUNDS_MAX = 3
_THOUSAND = 1_000
_DEADLINE_S = 120
_LOOK_S = 0.01
_TOPIC = "gaps"
_WARM_WRITES = 100
_TOPIC_PARTITIONS = 100

_Figures = dict[str, list[dict[str, float]]]
_measured: dict[tuple[object, ...], _Figures] = {}


def without_leader(bench: Bench, how: str, seen_by: str) -> Runs:
    """Milliseconds in which nothing was acknowledged, or nobody told, around the end of a leader; see the module.

    `how` is ``kill`` (SIGKILL; less the session time-out, in which nobody may lead) or ``terminate`` (a clean stop).
    """
    sides = {side: partial(_gaps_ms, bench, side, how) for side in bench.sides}
    return _once(("end", how), seen_by, lambda: bench.take_turns(sides, 0, _ROUNDS_MAX))


def many_partitions(bench: Bench, partitions: int, figure: str) -> Runs:
    """Seconds until that many partitions, three replicas each, are ready everywhere (`made`); and, less the session time-out,
    until all that the killed controller led has another leader (`moved`)."""
    sides = {side: partial(_many, bench, side, bench.records(partitions)) for side in bench.sides}
    return _once(("many", partitions), figure, lambda: bench.take_turns(sides, 0, _ROUNDS_MAX))


def _once(key: tuple[object, ...], figure: str, measure: Callable[[], _Figures]) -> Runs:
    """`figure` of the figures of `key`, measured at the first call for all of them."""
    if key not in _measured:
        _measured[key] = measure()
    return {side: [run[figure] for run in runs] for side, runs in _measured[key].items()}


def _gaps_ms(bench: Bench, side: str, how: str) -> dict[str, float]:
    with running(bench, side) as cluster, ThreadPoolExecutor() as pool:
        servers = cluster.bootstrap_servers
        create_topic(servers, _TOPIC, 1, BROKERS)
        writers = {"eager": Writer(servers, _TOPIC, EAGER), "plain": Writer(servers, _TOPIC, {})}
        for writer in writers.values():
            writer.warm(_WARM_WRITES)
        leader = leaders_of(servers, [_TOPIC])[0]
        enough = Event()
        try:
            writing = [pool.submit(_write, writer, enough) for writer in writers.values()]
            ended = time.perf_counter()
            end: Callable[[int], None] = cluster.kill if how == "kill" else cluster.terminate
            ending = pool.submit(end, leader)
            told = _until_moved(_others(servers, leader), [_TOPIC], leader) - ended
            # A clean stop takes as long as it takes; the gap is within it. After a kill each client has its gap.
            until(lambda: _is_over(ending, [*writers.values()] if how == "kill" else [], writing))
        finally:
            enough.set()
        for future in (ending, *writing):
            future.result()
        gaps = {name: writer.longest for name, writer in writers.items()}
        less = SESSION_S if how == "kill" else 0.0
        return {name: (gap - less) * _THOUSAND for name, gap in {**gaps, "told": told}.items()}


def _write(writer: Writer, enough: Event) -> None:
    while not enough.is_set():
        writer.write()


def _is_over(ending: "Future[None]", writers: Sequence[Writer], writing: Sequence["Future[None]"]) -> bool:
    time.sleep(_LOOK_S)
    failed = any(future.done() for future in writing)
    return failed or (ending.done() and all(writer.longest > SESSION_S / 2 for writer in writers))


def _many(bench: Bench, side: str, partitions: int) -> dict[str, float]:
    with running(bench, side) as cluster:
        servers = cluster.bootstrap_servers
        topics = [f"many-{number}" for number in range(-(-partitions // _TOPIC_PARTITIONS))]
        began = time.perf_counter()
        admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
        new = [NewTopic(topic, _TOPIC_PARTITIONS, BROKERS) for topic in topics]
        for future in admin.create_topics(new, request_timeout=_DEADLINE_S).values():
            future.result(_DEADLINE_S)
        # Apache Kafka answers before the brokers have made anything; who is killed meanwhile is another measurement.
        until(lambda: all(_has(member, len(topics)) for member in cluster.members()))
        until(lambda: all(_in_sync(server, topics) for server in servers.split(",")))
        made = time.perf_counter() - began
        controller = cluster.controller()
        others = _others(servers, controller)
        killed = time.perf_counter()
        cluster.kill(controller)
        return {"made": made, "moved": _until_moved(others, topics, controller) - killed - SESSION_S}


def _others(servers: str, broker: int) -> list[str]:
    return [server for number, server in enumerate(servers.split(","), 1) if number != broker]


def _until_moved(servers: Sequence[str], topics: list[str], gone: int) -> float:
    """When each of the brokers that are left knew that others lead all that `gone` led."""
    clients = [Client({"bootstrap.servers": server}) for server in servers]
    give_up = time.perf_counter() + _DEADLINE_S
    try:
        # The first topic alone is asked for often: answers about thousands of partitions cost the brokers' time.
        for asked in (topics[:1], topics):
            while not all(_is_led(client, asked, gone) for client in clients):
                if time.perf_counter() > give_up:
                    raise RuntimeError(f"broker {gone} still leads partitions {_DEADLINE_S} s after its end")
                time.sleep(_LOOK_S)
        return time.perf_counter()
    finally:
        for client in clients:
            client.close()


def _is_led(client: Client, topics: list[str], gone: int) -> bool:
    with suppress(NativeError):
        return {gone, -1}.isdisjoint(
            partition["leader"] for topic in client.describe_topics(topics) for partition in topic["partitions"]
        )
    return False


def _has(member: Member, topics: int) -> bool:
    """Whether the broker has made the logs of all partitions."""
    time.sleep(_LOOK_S)
    return sum(name.startswith("many-") for name in os.listdir(member.data_dir)) >= topics * _TOPIC_PARTITIONS


def _in_sync(server: str, topics: list[str]) -> bool:
    client = Client({"bootstrap.servers": server})
    try:
        found = [partition for topic in client.describe_topics(topics) for partition in topic["partitions"]]
    except NativeError:
        return False
    finally:
        client.close()
    everywhere = all(len(partition["isr"]) == BROKERS for partition in found)
    leaders = {partition["leader"] for partition in found}
    return everywhere and len(found) == len(topics) * _TOPIC_PARTITIONS and leaders == set(range(1, BROKERS + 1))
