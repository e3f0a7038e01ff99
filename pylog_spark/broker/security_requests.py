"""The handlers of requests about SCRAM users, ACLs and client quotas. Called by the control loop only.

The native server has checked before that the client may send the request. Of SCRAM credentials only the user's name is logged: the
requests hold secrets.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import IntEnum
from typing import Any, TypeVar

from pylog_spark.broker import messages, security_messages
from pylog_spark.broker.answers import Handler, error_of
from pylog_spark.broker.registry import CONFLICTS_MAX, TopicRegistry, log
from pylog_spark.broker.security import CONFLICT, limits
from pylog_spark.cluster.errors import Refusal
from pylog_spark.cluster.security import acls, quotas, users
from pylog_spark.cluster.security.acls import Acl
from pylog_spark.cluster.security.model import (
    Entity,
    Entry,
    Operation,
    Pattern,
    PatternType,
    Permission,
    Quotas,
    ResourceType,
    Unit,
    User,
)

Number = TypeVar("Number", bound=IntEnum)
Decided = TypeVar("Decided")


def _committed(
    registry: TopicRegistry, decide: Callable[[], tuple[Sequence[Unit], Decided]]
) -> tuple[Refusal | None, Decided]:
    """Decide and store; decide again after a change by another broker. Returns why nothing is stored, and the decision."""
    refused: Refusal | None = CONFLICT
    for _ in range(CONFLICTS_MAX):
        units, decided = decide()
        refused = registry.security.commit(units, registry.level)
        if refused is not CONFLICT:
            break
    return refused, decided


def _who(request: security_messages.ByPrincipal) -> str:
    # What is stored by now does not fail for its line.
    return repr(request.get("principal"))


# Users


def alter_user_scram_credentials(
    registry: TopicRegistry, request: security_messages.AlterUserScramCredentialsRequest
) -> security_messages.AlterUserScramCredentialsResponse:
    """AlterUserScramCredentials."""
    deletions = [users.Deletion(item["name"], item["mechanism"]) for item in request["deletions"]]
    upsertions = [
        users.Upsertion(
            item["name"],
            item["mechanism"],
            item["iterations"],
            bytes.fromhex(item["salt"]),
            bytes.fromhex(item["salted_password"]),
        )
        for item in request["upsertions"]
    ]

    def decide() -> tuple[list[Unit], dict[str, users.Outcome]]:
        outcomes = users.alter(registry.security.users, deletions, upsertions, limits(registry.broker))
        return [outcome for outcome in outcomes.values() if isinstance(outcome, User)], outcomes

    refused, outcomes = _committed(registry, decide)
    results: list[security_messages.AlterUserScramCredentialsResult] = []
    for name, outcome in outcomes.items():
        error = error_of(refused if isinstance(outcome, User) else outcome)
        results.append({"user": name, **error})
        if error["error_code"] == 0:
            log.info("%s changed the SCRAM credentials of user %r.", _who(request), name)
    return {"throttle_time_ms": 0, "results": results}


def describe_user_scram_credentials(
    registry: TopicRegistry, request: security_messages.DescribeUserScramCredentialsRequest
) -> security_messages.DescribeUserScramCredentialsResponse:
    """DescribeUserScramCredentials: users, mechanisms and iterations, never keys or salts."""
    names = [item["name"] for item in request["users"] or ()]
    results: list[security_messages.DescribeUserScramCredentialsResult] = []
    for name, outcome in users.describe(registry.security.users, names).items():
        credentials = outcome.credentials if isinstance(outcome, User) else {}
        infos: list[security_messages.CredentialInfo] = [
            {"mechanism": mechanism.number, "iterations": credential.iterations}
            for mechanism, credential in sorted(credentials.items(), key=lambda item: item[0].number)
        ]
        results.append({"user": name, **error_of(outcome), "credential_infos": infos})
    return {"throttle_time_ms": 0, **error_of(None), "results": results}


# ACLs


def create_acls(
    registry: TopicRegistry, request: security_messages.CreateAclsRequest
) -> security_messages.CreateAclsResponse:
    """CreateAcls."""
    wanted = [
        Acl(
            Pattern(
                _enum(ResourceType, item["resource_type"]),
                item["resource_name"],
                _enum(PatternType, item["resource_pattern_type"]),
            ),
            Entry(
                item["principal"],
                item["host"],
                _enum(Operation, item["operation"]),
                _enum(Permission, item["permission_type"]),
            ),
        )
        for item in request["creations"]
    ]
    refused, refusals = _committed(
        registry, lambda: acls.create(registry.security.acls, wanted, limits(registry.broker))
    )
    for acl, why in zip(wanted, refusals, strict=True):
        if refused is None and why is None:
            log.info("%s created the ACL %s.", _who(request), _shown(acl))
    return {"throttle_time_ms": 0, "results": [error_of(why or refused) for why in refusals]}


def delete_acls(
    registry: TopicRegistry, request: security_messages.DeleteAclsRequest
) -> security_messages.DeleteAclsResponse:
    """DeleteAcls. The answer has all ACLs that were removed."""
    filters = [
        acls.Filter(
            _enum(ResourceType, item["resource_type_filter"]),
            item["resource_name_filter"],
            _enum(PatternType, item["pattern_type_filter"]),
            item["principal_filter"],
            item["host_filter"],
            _enum(Operation, item["operation"]),
            _enum(Permission, item["permission_type"]),
        )
        for item in request["filters"]
    ]
    matched: list[dict[Acl, None]] = [{} for _ in filters]

    def decide() -> tuple[Sequence[Unit], list[list[Acl] | Refusal]]:
        changed, outcomes = acls.delete(registry.security.acls, filters)
        # Of several batches some may be stored before another broker is faster.
        for found, outcome in zip(matched, outcomes, strict=True):
            found.update(dict.fromkeys(() if isinstance(outcome, Refusal) else outcome))
        return changed, outcomes

    refused, outcomes = _committed(registry, decide)
    results: list[security_messages.DeleteAclsFilterResult] = []
    for outcome, found in zip(outcomes, matched, strict=True):
        why = outcome if isinstance(outcome, Refusal) else refused
        results.append({**error_of(why), "matching_acls": [] if why else [_matching(acl) for acl in found]})
    if refused is None:
        for acl in dict.fromkeys(acl for found in matched for acl in found):
            log.info("%s deleted the ACL %s.", _who(request), _shown(acl))
    return {"throttle_time_ms": 0, "filter_results": results}


def _matching(acl: Acl) -> security_messages.DeleteAclsMatchingAcl:
    return {
        **error_of(None),
        "resource_type": int(acl.pattern.resource_type),
        "resource_name": acl.pattern.name,
        "pattern_type": int(acl.pattern.pattern_type),
        "principal": acl.entry.principal,
        "host": acl.entry.host,
        "operation": int(acl.entry.operation),
        "permission_type": int(acl.entry.permission),
    }


def _shown(acl: Acl) -> str:
    pattern, entry = acl.pattern, acl.entry
    return (
        f"{entry.permission.name} {entry.principal!r} from {entry.host!r} {entry.operation.name} on {pattern.pattern_type.name} "
        f"{pattern.resource_type.name} {pattern.name!r}"
    )


def _enum(kind: type[Number], number: int) -> Number:
    """The member with a number; `UNKNOWN` (0) when there is none, as in Kafka."""
    return kind(number if number in tuple(kind) else 0)


# Quotas


def alter_client_quotas(
    registry: TopicRegistry, request: security_messages.AlterClientQuotasRequest
) -> security_messages.AlterClientQuotasResponse:
    """AlterClientQuotas."""
    alterations = [
        quotas.Alteration(
            tuple((part["entity_type"], part["entity_name"]) for part in entry["entity"]),
            # What is no number comes as null.
            tuple(quotas.Op(op["key"], None if op["remove"] else _number(op["value"])) for op in entry["ops"]),
        )
        for entry in request["entries"]
    ]

    def decide() -> tuple[list[Unit], dict[Entity, Quotas | Refusal]]:
        outcomes = quotas.alter(registry.security.quotas, alterations, limits(registry.broker))
        changed = [] if request["validate_only"] else [each for each in outcomes.values() if isinstance(each, Quotas)]
        return list(changed), outcomes

    refused, outcomes = _committed(registry, decide)
    entries: list[security_messages.AlterClientQuotasEntryResult] = []
    for entity, outcome in outcomes.items():
        error = error_of(refused if isinstance(outcome, Quotas) else outcome)
        entries.append({**error, "entity": _entity_data(entity)})
        if error["error_code"] == 0 and isinstance(outcome, Quotas) and not request["validate_only"]:
            log.info("%s changed the quotas of %r to %r.", _who(request), dict(entity), dict(outcome.values))
    return {"throttle_time_ms": 0, "entries": entries}


def _number(value: float | None) -> float:
    return float("nan") if value is None else value


def describe_client_quotas(
    registry: TopicRegistry, request: security_messages.DescribeClientQuotasRequest
) -> security_messages.DescribeClientQuotasResponse:
    """DescribeClientQuotas."""
    components = [
        quotas.Component(item["entity_type"], item["match_type"], item["match"]) for item in request["components"]
    ]
    found = quotas.describe(registry.security.quotas, components, request["strict"])
    if isinstance(found, Refusal):
        return {"throttle_time_ms": 0, **error_of(found), "entries": None}
    entries: list[security_messages.DescribeClientQuotasEntry] = [
        {
            "entity": _entity_data(each.entity),
            "values": [{"key": key, "value": value} for key, value in sorted(each.values.items())],
        }
        for each in found
    ]
    return {"throttle_time_ms": 0, **error_of(None), "entries": entries}


def _entity_data(entity: Iterable[tuple[str, str | None]]) -> list[security_messages.EntityData]:
    return [{"entity_type": kind, "entity_name": name} for kind, name in entity]


HANDLERS: dict[str, Handler] = {
    "alter_user_scram_credentials": alter_user_scram_credentials,
    "describe_user_scram_credentials": describe_user_scram_credentials,
    "create_acls": create_acls,
    "delete_acls": delete_acls,
    "alter_client_quotas": alter_client_quotas,
    "describe_client_quotas": describe_client_quotas,
}


def failed(kind: str, request: Mapping[str, Any], refusal: Refusal) -> messages.Answer:
    """The answer when a handler raises: the error for each item, or for the whole request."""
    error = error_of(refusal)
    items: dict[str, tuple[str, list[messages.Answer]]] = {
        "alter_user_scram_credentials": (
            "results",
            [
                {"user": name, **error}
                for name in dict.fromkeys(
                    item["name"] for field in ("deletions", "upsertions") for item in request.get(field, ())
                )
            ],
        ),
        "create_acls": ("results", [error for _ in request.get("creations", ())]),
        "delete_acls": ("filter_results", [error for _ in request.get("filters", ())]),
        "alter_client_quotas": (
            "entries",
            [{**error, "entity": entry["entity"]} for entry in request.get("entries", ())],
        ),
    }
    if kind not in items:
        return {"throttle_time_ms": 0, **error}
    field, results = items[kind]
    return {"throttle_time_ms": 0, field: results}
