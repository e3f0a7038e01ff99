"""``pylog acl list | create | delete``: who may do what, with the options of Kafka's kafka-acls."""

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any, TypeVar

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
)
from pylog_spark.results.security import AclBinding, AclBindingFilter

_CLUSTER_NAME = "kafka-cluster"
#: The operations that an ACL of a resource may name, and ALL.
_OPERATIONS = {
    "TOPIC": ("READ", "WRITE", "CREATE", "DESCRIBE", "DELETE", "ALTER", "DESCRIBE_CONFIGS", "ALTER_CONFIGS"),
    "GROUP": ("READ", "DESCRIBE", "DELETE", "DESCRIBE_CONFIGS", "ALTER_CONFIGS"),
    "CLUSTER": (
        "CREATE",
        "CLUSTER_ACTION",
        "DESCRIBE_CONFIGS",
        "ALTER_CONFIGS",
        "IDEMPOTENT_WRITE",
        "ALTER",
        "DESCRIBE",
    ),
    "TRANSACTIONAL_ID": ("DESCRIBE", "WRITE", "TWO_PHASE_COMMIT"),
    "USER": ("CREATE_TOKENS", "DESCRIBE_TOKENS"),
}
_ALL = "ALL"
_KNOWN = {name.replace("_", ""): name for name in (_ALL, *dict.fromkeys(sum(_OPERATIONS.values(), ())))}
#: What a producer and a consumer do.
_PRODUCES = {"TOPIC": ("WRITE", "DESCRIBE", "CREATE"), "TRANSACTIONAL_ID": ("WRITE", "DESCRIBE")}
_CONSUMES = {"TOPIC": ("READ", "DESCRIBE"), "GROUP": ("READ",)}

_Command = TypeVar("_Command", bound=Callable[..., Any])
#: Type and name.
Resource = tuple[str, str]


def _resource_options(command: _Command) -> _Command:
    """Add the options that name resources."""
    named = {
        "--topic": "A topic; '*' is all. Repeatable.",
        "--group": "A consumer group; '*' is all. Repeatable.",
        "--transactional-id": "A transactional id; '*' is all. Repeatable.",
        "--user-principal": "A user, as a resource. Repeatable.",
    }
    command = click.option("--cluster", is_flag=True, help="The cluster.")(command)
    for option, text in reversed(named.items()):
        name = option.removeprefix("--").replace("-", "_") + "s"
        command = click.option(option, name, multiple=True, metavar="NAME", help=text)(command)
    return command


def _pattern_option(*words: str, default: str) -> Callable[[_Command], _Command]:
    """Add --resource-pattern-type."""
    return click.option("--resource-pattern-type", "pattern_type", type=click.Choice(words, case_sensitive=False),
                        default=default, show_default=True,
                        help="How the names of resources are meant.")  # fmt: skip


def _who_options(command: _Command) -> _Command:
    """Add the options that say who, from where and what."""
    options = [
        click.option("--allow-principal", "allowed", multiple=True, metavar="User:NAME", help="Who may. Repeatable."),
        click.option("--deny-principal", "denied", multiple=True, metavar="User:NAME",
                     help="Who may not, whatever else is allowed. Repeatable."),
        click.option("--allow-host", "allowed_from", multiple=True, metavar="ADDRESS",
                     help="From where those who may. Repeatable.  [default: everywhere]"),
        click.option("--deny-host", "denied_from", multiple=True, metavar="ADDRESS",
                     help="From where those who may not. Repeatable.  [default: everywhere]"),
        click.option("--operation", "operations", multiple=True, metavar="OPERATION",
                     help="Such as Read, Write, Describe or All. Repeatable.  [default: All]"),
        click.option("--producer", is_flag=True, help="What a producer does: writes, describes and creates the topics; writes and "
                                                      "describes the transactional ids."),
        click.option("--consumer", is_flag=True, help="What a consumer does: reads and describes the topics, reads the groups."),
        click.option("--idempotent", is_flag=True, help="With --producer: also what idempotent producers of old clients do."),
    ]  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


@click.group()
def acl() -> None:
    """List, create and delete ACLs: who may do what.

    What is denied counts before what is allowed. When the brokers have an authorizer, who is not allowed anything may do nothing.
    """


@acl.command("list", epilog="""\b
Examples:
  pylog acl list
  pylog acl list --principal User:alice
  pylog acl list --topic events --resource-pattern-type match
""")  # fmt: skip
@click.option("--principal", "principals", multiple=True, metavar="User:NAME", help="Only theirs. Repeatable.")
@_resource_options
@_pattern_option("any", "match", "literal", "prefixed", default="any")
@bootstrap_option
@client_config_option
@json_option
def list_(
    principals: tuple[str, ...],
    pattern_type: str,
    bootstrap: str,
    client_config: list[tuple[str, str]],
    as_json: bool,
    **named: Any,
) -> None:
    """List ACLs, all or those of the resources and principals that are named."""
    resources: Sequence[tuple[str, str | None]] = resources_of(**named) or [("ANY", None)]
    with admin_of(bootstrap, client_config) as admin:
        found = dict.fromkeys(
            each
            for (kind, name), principal in product(resources, principals or [None])
            for each in admin.describe_acls(AclBindingFilter(kind, name, pattern_type.upper(), principal))
        )
    if as_json:
        echo_json(list(found))
    elif found:
        rows = [(each.resource_type, each.resource_name, each.pattern_type, each.principal, each.host, each.operation, each.permission)
                for each in found]  # fmt: skip
        echo_table(["RESOURCE", "NAME", "PATTERN", "PRINCIPAL", "HOST", "OPERATION", "PERMISSION"], rows)
    else:
        click.echo("There are no such ACLs.", err=True)


@acl.command(epilog="""\b
Examples:
  pylog acl create --allow-principal User:alice --producer --topic events
  pylog acl create --allow-principal User:bob --consumer --topic events --group readers
  pylog acl create --deny-principal User:carol --operation Read --topic pay --resource-pattern-type prefixed
""")  # fmt: skip
@_who_options
@_resource_options
@_pattern_option("literal", "prefixed", default="literal")
@bootstrap_option
@client_config_option
def create(bootstrap: str, client_config: list[tuple[str, str]], pattern_type: str, **given: Any) -> None:
    """Create ACLs: what is named, for each who is named, on each resource."""
    wanted = _bindings(pattern_type, given)
    with admin_of(bootstrap, client_config) as admin:
        refuse_failed(admin.create_acls(wanted))
    click.echo(f"There are {plural(len(wanted), 'ACL')} now as asked." if len(wanted) > 1 else "There is this ACL now.")


@acl.command(epilog="""\b
Examples:
  pylog acl delete --topic events --execute
  pylog acl delete --allow-principal User:bob --consumer --topic events --group readers --execute
""")  # fmt: skip
@_who_options
@_resource_options
@_pattern_option("any", "match", "literal", "prefixed", default="literal")
@execute_option
@bootstrap_option
@client_config_option
@json_option
def delete(
    execute: bool,
    bootstrap: str,
    client_config: list[tuple[str, str]],
    as_json: bool,
    pattern_type: str,
    **given: Any,
) -> None:
    """Delete ACLs: exactly what is named; of resources without anybody named, all."""
    filters = _filters(pattern_type, given)
    with admin_of(bootstrap, client_config) as admin:
        found = dict.fromkeys(each for one in filters for each in admin.describe_acls(one))
        if execute and found:
            results = admin.delete_acls(filters)
            refuse_failed(results)
            found = dict.fromkeys(each for result in results for each in result.acls)
    if as_json:
        echo_json({"executed": execute, "acls": list(found)})
        return
    for each in found:
        click.echo(f"{each.permission} {each.principal} from {each.host}: {each.operation} on {each.pattern_type} {each.resource_type} "
                   f"{each.resource_name}")  # fmt: skip
    done = "Deleted" if execute else "Would delete"
    click.echo(f"{done} {plural(len(found), 'ACL')}." + ("" if execute or not found else " Say --execute to do it."))


def resources_of(
    topics: Sequence[str],
    groups: Sequence[str],
    transactional_ids: Sequence[str],
    user_principals: Sequence[str],
    cluster: bool,
) -> list[Resource]:
    """The resources that are named, each once."""
    named = {"TOPIC": topics, "GROUP": groups, "TRANSACTIONAL_ID": transactional_ids, "USER": user_principals}
    found = [(kind, name) for kind, names in named.items() for name in names]
    return list(dict.fromkeys([*found, *([("CLUSTER", _CLUSTER_NAME)] if cluster else [])]))


def operation_of(text: str) -> str:
    """Kafka's name of an operation, which may be written as ``Read``, ``READ`` or ``describe-configs``."""
    found = _KNOWN.get(text.replace("-", "").replace("_", "").upper())
    if found is None:
        raise click.BadParameter(f"{text!r} is no operation: it must be one of {', '.join(_KNOWN.values())}.")
    return found


def operations_on(
    resources: Sequence[Resource], operations: Sequence[str], *, producer: bool, consumer: bool, idempotent: bool
) -> list[tuple[Resource, str]]:
    """What is done to each resource: `operations` (by Kafka's names), or what producers and consumers do."""
    if not (producer or consumer):
        if idempotent:
            raise click.UsageError("--idempotent needs --producer.")
        for (kind, _), operation in product(resources, operations):
            if operation != _ALL and operation not in _OPERATIONS[kind]:
                raise click.UsageError(
                    f"{operation} is nothing that is done to a {kind}: that has {', '.join(_OPERATIONS[kind])}."
                )
        return list(product(resources, operations or [_ALL]))
    if operations:
        raise click.UsageError("--producer and --consumer say what is done: leave --operation out.")
    kinds = {kind for kind, _ in resources}
    if "TOPIC" not in kinds:
        raise click.UsageError("--producer and --consumer need a --topic.")
    if consumer and "GROUP" not in kinds:
        raise click.UsageError("--consumer needs a --group.")
    done: dict[tuple[Resource, str], None] = {}
    for table in [_PRODUCES] * producer + [_CONSUMES] * consumer:
        done.update(dict.fromkeys((each, operation) for each in resources for operation in table.get(each[0], ())))
    if idempotent:
        done[("CLUSTER", _CLUSTER_NAME), "IDEMPOTENT_WRITE"] = None
    return list(done)


def _done(given: dict[str, Any]) -> list[tuple[Resource, str]]:
    kinds = ("topics", "groups", "transactional_ids", "user_principals", "cluster")
    resources = resources_of(**{kind: given[kind] for kind in kinds})
    if not resources:
        raise click.UsageError(
            "On which resource? Give --topic, --group, --transactional-id, --user-principal or --cluster."
        )
    words = {word: given[word] for word in ("producer", "consumer", "idempotent")}
    return operations_on(resources, [operation_of(text) for text in given["operations"]], **words)


def _who(given: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Principal, host and permission of all who are named."""
    for principals, hosts, word in (("allowed", "allowed_from", "allow"), ("denied", "denied_from", "deny")):
        if given[hosts] and not given[principals]:
            raise click.UsageError(f"--{word}-host needs --{word}-principal.")
    return [
        *((who, host, "ALLOW") for who, host in product(given["allowed"], given["allowed_from"] or ["*"])),
        *((who, host, "DENY") for who, host in product(given["denied"], given["denied_from"] or ["*"])),
    ]


def _bindings(pattern_type: str, given: dict[str, Any]) -> list[AclBinding]:
    who = _who(given)
    if not who:
        raise click.UsageError("For whom? Give --allow-principal User:NAME or --deny-principal User:NAME.")
    return [
        # There is one cluster, so its name is no prefix.
        AclBinding(
            kind, name, "LITERAL" if kind == "CLUSTER" else pattern_type.upper(), principal, host, operation, permission
        )
        for ((kind, name), operation), (principal, host, permission) in product(_done(given), who)
    ]


def _filters(pattern_type: str, given: dict[str, Any]) -> list[AclBindingFilter]:
    done, who = _done(given), _who(given)
    everything = not given["operations"] and not given["producer"] and not given["consumer"]
    if not who:
        if not everything:
            raise click.UsageError(
                "Whose? Give --allow-principal or --deny-principal, or only resources to delete all their ACLs."
            )
        return [AclBindingFilter(kind, name, pattern_type.upper()) for (kind, name), _ in done]
    return [
        AclBindingFilter(kind, name, pattern_type.upper(), principal, host, operation, permission)
        for ((kind, name), operation), (principal, host, permission) in product(done, who)
    ]
