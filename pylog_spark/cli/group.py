"""``pylog group list | describe | reset-offsets | delete``. Resets and deletions are only shown until --execute is given."""

from typing import Any

import click

from pylog_spark.cli.common import (
    admin_of,
    bootstrap_option,
    client_config_option,
    echo_json,
    echo_table,
    execute_option,
    json_option,
    plural,
    refuse_failed,
    say,
)
from pylog_spark.cli.reset import Partition, expanded, moves_of, reset_options, scenario_of, selection_of
from pylog_spark.client.admin import Admin
from pylog_spark.client.errors import LogError
from pylog_spark.client.places import bounds_of
from pylog_spark.results.groups import GroupDescription, MemberDescription

# A group in one of these states has no members.
_INACTIVE = frozenset({"Empty", "Dead"})

_SHARE = "share"
#: The fields of a group's description that are shown.
_KEPT = ("group_id", "type", "state", "protocol_type", "assignor", "coordinator", "members")


@click.group()
def group() -> None:
    """List and describe consumer groups and share groups, reset their offsets, delete them."""


@group.command("list")
@click.option("--state", "states", multiple=True, metavar="STATE", help="Only groups in it, such as Empty. Repeatable.")
@click.option("--type", "types", multiple=True, metavar="TYPE", help="Only classic, consumer or share groups.")
@bootstrap_option
@client_config_option
@json_option
def list_(
    states: tuple[str, ...],
    types: tuple[str, ...],
    bootstrap: str,
    client_config: list[tuple[str, str]],
    as_json: bool,
) -> None:
    """List groups."""
    with admin_of(bootstrap, client_config) as admin:
        found = admin.groups(states, types)
    if as_json:
        echo_json(found)
    elif found:
        rows = [(group.group_id, group.state, group.type, group.protocol_type or "-") for group in found]
        echo_table(["GROUP", "STATE", "TYPE", "PROTOCOL"], rows)
    else:
        say("There are no groups.", err=True)


@group.command(epilog="Example: pylog group describe my-group --members")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option("--members", is_flag=True, help="Also list the members.")
@bootstrap_option
@client_config_option
@json_option
def describe(
    names: tuple[str, ...], members: bool, bootstrap: str, client_config: list[tuple[str, str]], as_json: bool
) -> None:
    """Show the committed offsets of groups, their lag, and who reads which partition."""
    with admin_of(bootstrap, client_config) as admin:
        described = [_described(admin, name) for name in names]
    if as_json:
        echo_json(described)
        return
    for index, group in enumerate(described):
        if index:
            click.echo()
        _show(group, members)


@group.command("reset-offsets", epilog="""\b
Examples:
  pylog group reset-offsets my-group --topic events --to-earliest
  pylog group reset-offsets my-group --topic events:0,3 --shift-by -100 --execute
  pylog group reset-offsets my-group --all-topics --by-duration PT1H --execute
""")  # fmt: skip
@click.argument("name")
@click.option(
    "--topic", "topics", multiple=True, metavar="TOPIC[:0,1]", help="All or some of its partitions. Repeatable."
)
@click.option("--all-topics", is_flag=True, help="Every partition that the group has an offset for.")
@reset_options
@click.option("--to-current", is_flag=True, help="To the committed offset; to the end where there is none.")
@execute_option
@bootstrap_option
@client_config_option
@json_option
def reset_offsets(
    name: str,
    topics: tuple[str, ...],
    all_topics: bool,
    execute: bool,
    bootstrap: str,
    client_config: list[tuple[str, str]],
    as_json: bool,
    **ways: Any,
) -> None:
    """Reset the offsets of the group NAME, which must have no members."""
    scenario = scenario_of(ways)
    if bool(topics) == all_topics:
        raise click.UsageError("Say which partitions: --topic TOPIC[:0,1], or --all-topics.")
    wanted = selection_of(topics)
    with admin_of(bootstrap, client_config) as admin:
        is_share = _refuse_active(admin, name) == _SHARE
        current = (
            {partition: at.start_offset for partition, at in admin.share_group_offsets(name).items()}
            if is_share
            else admin.group_offsets(name)
        )
        partitions = sorted(current) if all_topics else expanded(admin, wanted)
        if not partitions:
            raise LogError("GROUP_ID_NOT_FOUND", f"Group '{name}' has no offsets: name the topics with --topic.")
        moves = moves_of(admin, partitions, current, scenario)
        if execute:
            alter = admin.alter_share_group_offsets if is_share else admin.alter_group_offsets
            alter(name, {(move["topic"], move["partition"]): move["new_offset"] for move in moves})
    if as_json:
        echo_json({"group_id": name, "executed": execute, "offsets": moves})
        return
    rows = [(move["topic"], move["partition"], _or_dash(move["offset"]), move["new_offset"]) for move in moves]
    echo_table(["TOPIC", "PARTITION", "OFFSET", "NEW-OFFSET"], rows)
    _say(execute, f"moved group {name} in {plural(len(moves), 'partition')}")


@group.command(epilog="Example: pylog group delete my-group --execute")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@execute_option
@bootstrap_option
@client_config_option
@json_option
def delete(
    names: tuple[str, ...], execute: bool, bootstrap: str, client_config: list[tuple[str, str]], as_json: bool
) -> None:
    """Delete groups without members, with their offsets; of share groups also which records they have acknowledged."""
    with admin_of(bootstrap, client_config) as admin:
        if execute:
            refuse_failed(admin.delete_groups(names))
        else:
            for name in names:
                _refuse_active(admin, name)
    if as_json:
        echo_json({"groups": list(names), "executed": execute})
    _say(execute, f"deleted {', '.join(names)}")


def _say(executed: bool, done: str) -> None:
    if executed:
        say(f"{done[0].upper()}{done[1:]}.", err=True)
    else:
        say(f"Would have {done}; nothing is changed without --execute.", err=True)


def _or_dash(value: object) -> object:
    return "-" if value is None else value


def _described(admin: Admin, name: str) -> dict[str, Any]:
    found = admin.group(name)
    if found.type == _SHARE:
        return _shared(admin, found)
    committed = admin.group_offsets(name)
    owners: dict[Partition, MemberDescription] = {
        partition: member for member in found.members for partition in member.partitions
    }
    partitions = sorted({*committed, *owners})
    bounds = bounds_of(admin, partitions)
    rows = []
    for partition in partitions:
        offset, end = committed.get(partition), bounds[partition].end if partition in bounds else None
        member = owners.get(partition)
        rows.append({
            "topic": partition[0], "partition": partition[1], "offset": offset, "end_offset": end,
            "lag": None if offset is None or end is None else max(end - offset, 0),
            **{key: getattr(member, key, None) for key in ("member_id", "client_id", "host")},
        })  # fmt: skip
    return {**{key: getattr(found, key) for key in _KEPT}, "partitions": rows}


def _shared(admin: Admin, found: GroupDescription) -> dict[str, Any]:
    """Describe a share group: no partition belongs to one member, and records are acknowledged out of order."""
    begun = admin.share_group_offsets(found.group_id)
    read = {partition for member in found.members for partition in member.partitions}
    partitions = sorted({*begun, *read})
    bounds = bounds_of(admin, partitions)
    rows = []
    for partition in partitions:
        at = begun.get(partition)
        start, lag = (at.start_offset, at.lag) if at else (None, None)
        end = bounds[partition].end if partition in bounds else None
        members = sum(partition in member.partitions for member in found.members)
        rows.append(
            {
                "topic": partition[0],
                "partition": partition[1],
                "offset": start,
                "end_offset": end,
                "lag": lag,
                "members": members,
            }
        )
    return {**{key: getattr(found, key) for key in _KEPT}, "partitions": rows}


def _show(described: dict[str, Any], members: bool) -> None:
    rows = described["partitions"]
    lag = sum(row["lag"] or 0 for row in rows)
    how = f", {described['type']}" + (f", {described['assignor']}" if described["assignor"] else "")
    say(f"Group {described['group_id']} ({described['state']}{how})")
    say(f"{plural(len(described['members']), 'member')}, {plural(len(rows), 'partition')}, lag {lag}")
    if rows:
        shown = ["topic", "partition", "offset", "end_offset", "lag"]
        heads = ["TOPIC", "PARTITION", "OFFSET", "END", "LAG"]
        of_kind = {"MEMBERS": "members"} if described["type"] == _SHARE else {"CLIENT": "client_id", "HOST": "host"}
        echo_table([*heads, *of_kind], [[_or_dash(row[key]) for key in (*shown, *of_kind.values())] for row in rows])
    if members and described["members"]:
        echo_table(
            ["MEMBER", "INSTANCE", "CLIENT", "HOST", "PARTITIONS"],
            [
                (member.member_id, _or_dash(member.instance_id), member.client_id, member.host, len(member.partitions))
                for member in described["members"]
            ],
        )


def _refuse_active(admin: Admin, name: str) -> str:
    """Refuse a group that has members; returns the group's type. A group that does not exist has no members either, and a request that
    needs it to exist fails by itself."""
    found = admin.describe_groups([name])[0]
    if found.error is None and found.state not in _INACTIVE:
        sentence = f"Group '{name}' has members (state {found.state}): stop its consumers first."
        raise LogError("NON_EMPTY_GROUP", sentence)
    return found.type
