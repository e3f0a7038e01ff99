"""``pylog acl list | create | delete``, with the options of Kafka's kafka-acls."""

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
    say,
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
                        help="How resource names match.")  # fmt: skip


def _entry_options(command: _Command) -> _Command:
    """Add the options that name principals, hosts and operations."""
    options = [
        click.option("--allow-principal", "allowed", multiple=True, metavar="User:NAME",
                     help="Principal to allow. Repeatable."),
        click.option("--deny-principal", "denied", multiple=True, metavar="User:NAME",
                     help="Principal to deny; a denial wins. Repeatable."),
        click.option("--allow-host", "allowed_from", multiple=True, metavar="ADDRESS",
                     help="Host that the allowed principals connect from. Repeatable.  [default: any host]"),
        click.option("--deny-host", "denied_from", multiple=True, metavar="ADDRESS",
                     help="Host that the denied principals connect from. Repeatable.  [default: any host]"),
        click.option("--operation", "operations", multiple=True, metavar="OPERATION",
                     help="Operation, such as Read, Write, Describe or All. Repeatable.  [default: All]"),
        click.option("--producer", is_flag=True, help="The operations of a producer: WRITE, DESCRIBE and CREATE on the topics, WRITE "
                                                      "and DESCRIBE on the transactional ids."),
        click.option("--consumer", is_flag=True, help="The operations of a consumer: READ and DESCRIBE on the topics, READ on the groups."),
        click.option("--idempotent", is_flag=True, help="With --producer: also IDEMPOTENT_WRITE on the cluster, which idempotent producers "
                                                        "of old clients need."),
    ]  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


@click.group()
def acl() -> None:
    """List, create and delete ACLs: which principal may do what.

    Denials win. With an authorizer, whatever no ACL allows is refused.
    """


@acl.command("list", epilog="""\b
Examples:
  pylog acl list
  pylog acl list --principal User:alice
  pylog acl list --topic events --resource-pattern-type match
""")  # fmt: skip
@click.option(
    "--principal", "principals", multiple=True, metavar="User:NAME", help="Only ACLs of this principal. Repeatable."
)
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
    """List all ACLs, or those of the given resources and principals."""
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
        say("There are no such ACLs.", err=True)


@acl.command(epilog="""\b
Examples:
  pylog acl create --allow-principal User:alice --producer --topic events
  pylog acl create --allow-principal User:bob --consumer --topic events --group readers
  pylog acl create --deny-principal User:carol --operation Read --topic pay --resource-pattern-type prefixed
""")  # fmt: skip
@_entry_options
@_resource_options
@_pattern_option("literal", "prefixed", default="literal")
@bootstrap_option
@client_config_option
def create(bootstrap: str, client_config: list[tuple[str, str]], pattern_type: str, **given: Any) -> None:
    """Create an ACL for each combination of principal, host, operation and resource."""
    wanted = _bindings(pattern_type, given)
    with admin_of(bootstrap, client_config) as admin:
        refuse_failed(admin.create_acls(wanted))
    say(f"Created {plural(len(wanted), 'ACL')}.")


@acl.command(epilog="""\b
Examples:
  pylog acl delete --topic events --execute
  pylog acl delete --allow-principal User:bob --consumer --topic events --group readers --execute
""")  # fmt: skip
@_entry_options
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
    """Delete exactly the given ACLs; with resources only: all their ACLs."""
    filters = _filters(pattern_type, given)
    with admin_of(bootstrap, client_config) as admin:
        found = dict.fromkeys(acl for acl_filter in filters for acl in admin.describe_acls(acl_filter))
        if execute and found:
            results = admin.delete_acls(filters)
            refuse_failed(results)
            found = dict.fromkeys(each for result in results for each in result.acls)
    if as_json:
        echo_json({"executed": execute, "acls": list(found)})
        return
    for each in found:
        say(f"{each.permission} {each.principal} from {each.host}: {each.operation} on {each.pattern_type} {each.resource_type} "
                   f"{each.resource_name}")  # fmt: skip
    done = "Deleted" if execute else "Would delete"
    say(f"{done} {plural(len(found), 'ACL')}." + ("" if execute or not found else " Add --execute to do it."))


def resources_of(
    topics: Sequence[str],
    groups: Sequence[str],
    transactional_ids: Sequence[str],
    user_principals: Sequence[str],
    cluster: bool,
) -> list[Resource]:
    """The given resources, each once."""
    named = {"TOPIC": topics, "GROUP": groups, "TRANSACTIONAL_ID": transactional_ids, "USER": user_principals}
    found = [(kind, name) for kind, names in named.items() for name in names]
    return list(dict.fromkeys([*found, *([("CLUSTER", _CLUSTER_NAME)] if cluster else [])]))


def operation_of(text: str) -> str:
    """Kafka's name of an operation, which may be written as ``Read``, ``READ`` or ``describe-configs``."""
    found = _KNOWN.get(text.replace("-", "").replace("_", "").upper())
    if found is None:
        raise click.BadParameter(f"{text!r} is not an operation: it must be one of {', '.join(_KNOWN.values())}.")
    return found


def operations_on(
    resources: Sequence[Resource], operations: Sequence[str], *, producer: bool, consumer: bool, idempotent: bool
) -> list[tuple[Resource, str]]:
    """The operations on each resource: `operations` (by Kafka's names), or those of producers and consumers."""
    if not (producer or consumer):
        if idempotent:
            raise click.UsageError("--idempotent needs --producer.")
        for (kind, _), operation in product(resources, operations):
            if operation != _ALL and operation not in _OPERATIONS[kind]:
                raise click.UsageError(
                    f"{operation} is not an operation on {kind}; use {', '.join((*_OPERATIONS[kind], _ALL))}."
                )
        return list(product(resources, operations or [_ALL]))
    if operations:
        raise click.UsageError("--producer and --consumer choose the operations: leave --operation out.")
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
        raise click.UsageError("Missing --topic, --group, --transactional-id, --user-principal or --cluster.")
    words = {word: given[word] for word in ("producer", "consumer", "idempotent")}
    return operations_on(resources, [operation_of(text) for text in given["operations"]], **words)


def _principals(given: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Principal, host and permission of each combination."""
    for principals, hosts, word in (("allowed", "allowed_from", "allow"), ("denied", "denied_from", "deny")):
        if given[hosts] and not given[principals]:
            raise click.UsageError(f"--{word}-host needs --{word}-principal.")
    return [
        *((principal, host, "ALLOW") for principal, host in product(given["allowed"], given["allowed_from"] or ["*"])),
        *((principal, host, "DENY") for principal, host in product(given["denied"], given["denied_from"] or ["*"])),
    ]


def _bindings(pattern_type: str, given: dict[str, Any]) -> list[AclBinding]:
    principals = _principals(given)
    if not principals:
        raise click.UsageError("Missing --allow-principal User:NAME or --deny-principal User:NAME.")
    return [
        # There is one cluster, so its name is no prefix.
        AclBinding(
            kind, name, "LITERAL" if kind == "CLUSTER" else pattern_type.upper(), principal, host, operation, permission
        )
        for ((kind, name), operation), (principal, host, permission) in product(_done(given), principals)
    ]


def _filters(pattern_type: str, given: dict[str, Any]) -> list[AclBindingFilter]:
    done, principals = _done(given), _principals(given)
    everything = not given["operations"] and not given["producer"] and not given["consumer"]
    if not principals:
        if not everything:
            raise click.UsageError(
                "Missing --allow-principal or --deny-principal. To delete all ACLs of the resources, leave --operation, --producer and "
                "--consumer out."
            )
        return [AclBindingFilter(kind, name, pattern_type.upper()) for (kind, name), _ in done]
    return [
        AclBindingFilter(kind, name, pattern_type.upper(), principal, host, operation, permission)
        for ((kind, name), operation), (principal, host, permission) in product(done, principals)
    ]
