"""``pylog cluster describe | reassign | moves | cancel | elect | unregister``: brokers, their replicas, moving those, leaders.

Changes that move or lose records are only shown until --execute is given. A move goes on when the command is stopped. Nothing is
decided here: `cluster.placement` chooses the replicas that the request names, and the controller accepts or refuses them.
"""

import json
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TextIO

import click

from pylog_spark.cli.common import (
    admin_of,
    bootstrap_option,
    client_config_option,
    document,
    echo_json,
    echo_table,
    execute_option,
    json_option,
    partitions_of,
    plural,
    refuse_failed,
    say,
)
from pylog_spark.client.admin import Admin
from pylog_spark.cluster.errors import Refusal
from pylog_spark.cluster.model import BrokerInfo
from pylog_spark.cluster.placement import Placement, changes, plan
from pylog_spark.topic_partition import TopicPartition

_POLL_S = 0.2
_RATE = "follower.replication.throttled.rate"
_THROTTLED = "follower.replication.throttled.replicas"
_PLAN_HELP = (
    "A file in the format of kafka-reassign-partitions: the brokers of each partition, the preferred leader first."
)


@click.command(epilog="Example: pylog cluster describe")
@bootstrap_option
@client_config_option
@json_option
def describe(bootstrap: str, client_config: list[tuple[str, str]], as_json: bool) -> None:
    """Show the brokers that run with their leaders and replicas, dead brokers, and partitions that lack replicas or a leader."""
    with admin_of(bootstrap, client_config) as admin:
        cluster, topics, dead = admin.cluster(), admin.topics(), admin.dead_brokers()
    partitions = [(topic.name, partition) for topic in topics for partition in topic.partitions]
    leads = Counter(partition.leader for _, partition in partitions)
    holds = Counter(broker for _, partition in partitions for broker in partition.replicas)
    in_sync = Counter(broker for _, partition in partitions for broker in partition.isr)
    brokers = [
        {
            **document(broker),
            "controller": broker.node_id == cluster.controller_id,
            "leads": leads[broker.node_id],
            "replicas": holds[broker.node_id],
            "in_sync": in_sync[broker.node_id],
        }
        for broker in sorted(cluster.brokers, key=lambda broker: broker.node_id)
    ]
    troubled = [
        (topic, partition)
        for topic, partition in partitions
        if partition.leader < 0 or len(partition.isr) < len(partition.replicas)
    ]
    if as_json:
        kept = ("partition", "leader", "replicas", "isr")
        shown = [{"topic": topic, **{key: getattr(partition, key) for key in kept}} for topic, partition in troubled]
        echo_json({"cluster_id": cluster.cluster_id, "brokers": brokers, "dead": dead, "not_in_sync": shown})
        return
    say(f"Cluster {cluster.cluster_id}: {plural(len(brokers), 'broker')}, {plural(len(partitions), 'partition')}.")
    rows = [
        (
            broker["node_id"],
            f"{broker['host']}:{broker['port']}",
            broker["rack"] or "-",
            "yes" if broker["controller"] else "",
            broker["leads"],
            broker["replicas"],
            broker["in_sync"],
        )
        for broker in brokers
    ]
    echo_table(["BROKER", "ADDRESS", "RACK", "CONTROLLER", "LEADS", "REPLICAS", "IN-SYNC"], rows)
    for node in dead:
        has = plural(holds[node.node_id], "replica")
        say(f"Broker {node.node_id}, last at {node.host}:{node.port}, is dead; it has {has}.")
    if troubled:
        click.echo()
        say(f"{plural(len(troubled), 'partition')} not in sync:")
        lacking = [
            (
                topic,
                partition.partition,
                partition.leader if partition.leader >= 0 else "none",
                _ids(partition.replicas),
                _ids(partition.isr),
            )
            for topic, partition in troubled
        ]
        echo_table(["TOPIC", "PARTITION", "LEADER", "REPLICAS", "ISR"], lacking)


@click.command(epilog="""\b
Examples:
  pylog cluster reassign events --brokers 1,2,4 --execute        broker 3 gives its replicas away
  pylog cluster reassign events:0,1 --replication-factor 3 --execute
  pylog cluster reassign --plan plan.json --throttle 10000000 --execute
""")  # fmt: skip
@click.argument("topics", nargs=-1, metavar="[TOPIC[:0,1]]...")
@click.option("--brokers", metavar="ID,ID...", help="Brokers that may have replicas; all live brokers when left out.")
@click.option(
    "--replication-factor", "-r", type=click.IntRange(1), help="How many replicas; as many as now when left out."
)
@click.option("--plan", "plan_file", type=click.File(), help=_PLAN_HELP)
@click.option(
    "--throttle", type=click.IntRange(1), metavar="BYTES", help="Most bytes a second that each broker copies."
)
@click.option("--wait/--no-wait", default=True, help="Show the progress until all is moved.", show_default=True)
@execute_option
@bootstrap_option
@client_config_option
@json_option
def reassign(
    topics: tuple[str, ...],
    brokers: str | None,
    replication_factor: int | None,
    plan_file: TextIO | None,
    throttle: int | None,
    wait: bool,
    execute: bool,
    bootstrap: str,
    client_config: list[tuple[str, str]],
    as_json: bool,
) -> None:
    """Move replicas of TOPICs to other brokers, or change how many there are; as few as possible move."""
    if bool(topics) == bool(plan_file):
        raise click.UsageError("Name topics, or give a plan with --plan.")
    if throttle is not None and not wait:
        raise click.UsageError("--throttle needs --wait: the throttle is removed when all replicas are moved.")
    with admin_of(bootstrap, client_config) as admin:
        present = _present(admin)
        if plan_file:
            moves = changes(present, _read_plan(plan_file))
        else:
            moves = _plan(admin, present, topics, brokers, replication_factor)
        if as_json:
            shown = [{"topic": partition.topic, "partition": partition.partition, "from": present.get(partition), "to": to}
                     for partition, to in moves.items()]  # fmt: skip
            echo_json({"executed": execute, "moves": shown})
        elif moves:
            rows = [(*partition, _ids(present.get(partition, ())), _ids(to)) for partition, to in moves.items()]
            echo_table(["TOPIC", "PARTITION", "FROM", "TO"], rows)
        else:
            say("Every replica is where it should be.", err=True)
        if not moves:
            return
        if not execute:
            say("Nothing was moved: add --execute to do it.", err=True)
            return
        _move(admin, moves, throttle, wait)


@click.command(epilog="Example: pylog cluster moves")
@bootstrap_option
@client_config_option
@json_option
def moves(bootstrap: str, client_config: list[tuple[str, str]], as_json: bool) -> None:
    """List the moves of replicas that are under way."""
    with admin_of(bootstrap, client_config) as admin:
        found = admin.reassignments()
    if as_json:
        echo_json(found)
    elif found:
        rows = [
            (
                reassignment.topic,
                reassignment.partition,
                _ids(reassignment.replicas),
                _ids(reassignment.adding),
                _ids(reassignment.removing),
            )
            for reassignment in found
        ]
        echo_table(["TOPIC", "PARTITION", "REPLICAS", "ADDING", "REMOVING"], rows)
    else:
        say("No replica is being moved.", err=True)


@click.command(epilog="Example: pylog cluster cancel events --execute")
@click.argument("topics", nargs=-1, metavar="[TOPIC[:0,1]]...")
@execute_option
@bootstrap_option
@client_config_option
def cancel(topics: tuple[str, ...], execute: bool, bootstrap: str, client_config: list[tuple[str, str]]) -> None:
    """Cancel moves that are under way, of TOPICs or of all topics: the replicas stay where they were."""
    with admin_of(bootstrap, client_config) as admin:
        wanted = {partition for text in topics for partition in partitions_of(admin, text)}
        under_way = [(reassignment.topic, reassignment.partition) for reassignment in admin.reassignments()]
        chosen = [partition for partition in under_way if not topics or partition in wanted]
        if execute and chosen:
            refuse_failed(admin.reassign(dict.fromkeys(chosen)))
            # The throttle of a command that was stopped is removed when its move is cancelled.
            _unthrottle(admin, {topic for topic, _ in chosen})
    done = "Ended" if execute else "Would end"
    say(f"{done} {plural(len(chosen), 'move')}." + ("" if execute or not chosen else " Add --execute to do it."))


@click.command(epilog="Example: pylog cluster elect events")
@click.argument("topics", nargs=-1, metavar="[TOPIC[:0,1]]...")
@click.option("--unclean", is_flag=True, help="Give partitions without a leader any live replica: records may be lost.")
@execute_option
@bootstrap_option
@client_config_option
def elect(
    topics: tuple[str, ...], unclean: bool, execute: bool, bootstrap: str, client_config: list[tuple[str, str]]
) -> None:
    """Make the preferred replica of each partition its leader, of TOPICs or of all topics."""
    if unclean and not execute:
        raise click.UsageError("--unclean may lose committed records: add --execute to do it.")
    with admin_of(bootstrap, client_config) as admin:
        chosen = [partition for text in topics for partition in partitions_of(admin, text)] if topics else None
        results = admin.elect_leaders(chosen, unclean=unclean)
    refuse_failed(results)
    say(f"Elected {plural(len(results), 'leader')}.")


@click.command(epilog="Example: pylog cluster unregister 3 --execute")
@click.argument("broker", type=click.IntRange(0))
@execute_option
@bootstrap_option
@client_config_option
def unregister(broker: int, execute: bool, bootstrap: str, client_config: list[tuple[str, str]]) -> None:
    """Unregister BROKER, which is dead and will not come back: no replica is placed on it any more."""
    with admin_of(bootstrap, client_config) as admin:
        left = sum(broker in replicas for replicas in _present(admin).values())
        if execute:
            admin.unregister_broker(broker)
    done = "is unregistered" if execute else "would be unregistered; add --execute to do it"
    say(f"Broker {broker} {done}.")
    if left:
        say(f"It still has {plural(left, 'replica')}: move them with pylog cluster reassign.", err=True)


def _present(admin: Admin) -> Placement:
    return {
        TopicPartition(topic.name, partition.partition): partition.replicas
        for topic in admin.topics()
        for partition in topic.partitions
    }


def _plan(
    admin: Admin, present: Placement, topics: Sequence[str], brokers: str | None, factor: int | None
) -> Placement:
    """Ask the cluster for its brokers and partitions, and `cluster.placement` for the moves."""
    live = [BrokerInfo(broker.node_id, rack=broker.rack) for broker in admin.cluster().brokers]
    chosen = {TopicPartition(*partition) for text in topics for partition in partitions_of(admin, text)}
    broker_ids = None if brokers is None else _numbers(brokers)
    moves = plan({each: present[each] for each in sorted(chosen)}, live, broker_ids=broker_ids, factor=factor)
    if isinstance(moves, Refusal):
        raise click.UsageError(moves.message)
    return moves


def _read_plan(plan_file: TextIO) -> Placement:
    try:
        body = json.load(plan_file)
        found = {
            TopicPartition(str(partition["topic"]), int(partition["partition"])): tuple(map(int, partition["replicas"]))
            for partition in body["partitions"]
        }
    except (ValueError, KeyError, TypeError) as error:
        sentence = f'{plan_file.name} is no plan ({error!r}): write {{"version": 1, "partitions": [{{"topic", "partition", "replicas"}}]}}.'
        raise click.BadParameter(sentence) from None
    return found


def _numbers(text: str) -> set[int]:
    try:
        return {int(number) for number in text.split(",")}
    except ValueError:
        raise click.BadParameter(f"{text!r} is no list of brokers such as 1,2,3.") from None


def _ids(brokers: Iterable[int]) -> str:
    return ",".join(map(str, brokers)) or "-"


def _move(admin: Admin, moves: Placement, throttle: int | None, wait: bool) -> None:
    topics = {topic for topic, _ in moves}
    if throttle is not None:
        _throttle(admin, topics, throttle)
    try:
        refuse_failed(admin.reassign({(partition.topic, partition.partition): to for partition, to in moves.items()}))
        if wait:
            _watch(admin, set(moves))
    finally:
        if throttle is not None and not (topics & {reassignment.topic for reassignment in admin.reassignments()}):
            _unthrottle(admin, topics)


def _watch(admin: Admin, moves: set[TopicPartition]) -> None:
    """Wait until all replicas are moved; with a progress bar on a terminal, and one line at the end."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    started = time.monotonic()
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("partitions moved", total=len(moves))
        while True:
            left = len(moves & {(reassignment.topic, reassignment.partition) for reassignment in admin.reassignments()})
            progress.update(task, completed=len(moves) - left)
            if not left:
                break
            time.sleep(_POLL_S)
    say(f"Moved {plural(len(moves), 'partition')} in {time.monotonic() - started:.1f} s.", err=True)


def _throttle(admin: Admin, topics: set[str], rate: int) -> None:
    for topic in topics:
        admin.alter_configs("topic", topic, {_THROTTLED: "*"})
    for broker in admin.cluster().brokers:
        admin.alter_configs("broker", str(broker.node_id), {_RATE: str(rate)})


def _unthrottle(admin: Admin, topics: set[str]) -> None:
    for topic in topics:
        admin.alter_configs("topic", topic, {_THROTTLED: None})
    for broker in admin.cluster().brokers:
        admin.alter_configs("broker", str(broker.node_id), {_RATE: None})
