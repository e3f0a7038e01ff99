"""What CreateAcls and DeleteAcls change (KIP-140, KIP-290), by Kafka's rules. Pure."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pylog_spark.cluster.errors import ErrorCode, Refusal
from pylog_spark.cluster.security.documents import DOCUMENT_BYTES_MAX, encode
from pylog_spark.cluster.security.model import (
    Entry,
    Limits,
    Operation,
    Pattern,
    PatternType,
    Permission,
    ResourceAcls,
    ResourceType,
)

#: The only name of the resource CLUSTER.
CLUSTER_NAME = "kafka-cluster"
WILDCARD = "*"


@dataclass(frozen=True, slots=True, order=True)
class Acl:
    """One ACL."""

    pattern: Pattern
    entry: Entry


@dataclass(frozen=True, slots=True)
class Filter:
    """Which ACLs: None and `ANY` let all through; `PatternType.MATCH` all that concern the resource `name`."""

    resource_type: ResourceType
    name: str | None
    pattern_type: PatternType
    principal: str | None
    host: str | None
    operation: Operation
    permission: Permission

    def lets_through(self, acl: Acl) -> bool:
        """Whether it lets `acl` through."""
        return self.concerns(acl.pattern) and self._fits(acl.entry)

    def concerns(self, pattern: Pattern) -> bool:
        """Whether it lets ACLs of this pattern through."""
        if self.resource_type not in (ResourceType.ANY, pattern.resource_type):
            return False
        if self.pattern_type not in (PatternType.ANY, PatternType.MATCH, pattern.pattern_type):
            return False
        if self.name is None:
            return True
        if self.pattern_type is not PatternType.MATCH:
            return self.name == pattern.name
        if pattern.pattern_type is PatternType.PREFIXED:
            return self.name.startswith(pattern.name)
        return pattern.name in (self.name, WILDCARD)

    def _fits(self, entry: Entry) -> bool:
        return (
            self.principal in (None, entry.principal)
            and self.host in (None, entry.host)
            and self.operation in (Operation.ANY, entry.operation)
            and self.permission in (Permission.ANY, entry.permission)
        )


Known = Mapping[Pattern, ResourceAcls]


def create(known: Known, wanted: Sequence[Acl], limits: Limits) -> tuple[list[ResourceAcls], list[Refusal | None]]:
    """Give the patterns with other ACLs than before, and for each wanted one why it is refused, or None.

    One that is there already is no error and changes nothing.
    """
    entries: dict[Pattern, set[Entry]] = {}
    count = sum(len(acls.entries) for acls in known.values())
    changed: dict[Pattern, None] = {}
    refusals: list[Refusal | None] = []
    for acl in wanted:
        there = entries.get(acl.pattern)
        if there is None:
            there = entries[acl.pattern] = set(known[acl.pattern].entries if acl.pattern in known else ())
        refused = None if acl.entry in there else _refused(acl, limits) or _no_room(count, limits)
        refusals.append(refused)
        if refused is None and acl.entry not in there:
            there.add(acl.entry)
            count += 1
            changed[acl.pattern] = None
    after = {pattern: ResourceAcls(pattern, tuple(sorted(entries[pattern]))) for pattern in changed}
    too_large = {pattern for pattern, acls in after.items() if len(encode(acls)) > DOCUMENT_BYTES_MAX}
    for index, acl in enumerate(wanted):
        if acl.pattern in too_large:
            refusals[index] = refusals[index] or _too_large(acl.pattern)
    return [acls for pattern, acls in after.items() if pattern not in too_large], refusals


def _refused(acl: Acl, limits: Limits) -> Refusal | None:
    pattern, entry = acl.pattern, acl.entry
    sentence = None
    if pattern.resource_type is ResourceType.CLUSTER and pattern.name != CLUSTER_NAME:
        sentence = f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}"
    elif not pattern.name:
        sentence = "Invalid empty resource name"
    elif pattern.resource_type in (ResourceType.UNKNOWN, ResourceType.ANY):
        sentence = f"Invalid resourceType {pattern.resource_type.name}"
    elif pattern.pattern_type not in (PatternType.LITERAL, PatternType.PREFIXED):
        sentence = f"Invalid patternType {pattern.pattern_type.name}"
    elif entry.operation in (Operation.UNKNOWN, Operation.ANY):
        sentence = f"Invalid operation {entry.operation.name}"
    elif entry.permission not in (Permission.DENY, Permission.ALLOW):
        sentence = f"Invalid permissionType {entry.permission.name}"
    elif ":" not in entry.principal:
        sentence = (
            f"Could not parse principal from `{entry.principal}` (no colon is present separating the principal type from the "
            "principal name)"
        )
    elif max(len(text.encode()) for text in (pattern.name, entry.principal, entry.host)) > limits.name_bytes:
        sentence = f"A name, principal or host may have {limits.name_bytes} bytes (security.name.max.bytes)."
    return None if sentence is None else Refusal(ErrorCode.INVALID_REQUEST, sentence)


def _no_room(count: int, limits: Limits) -> Refusal | None:
    if count < limits.acls:
        return None
    sentence = f"There are {limits.acls} ACLs already (security.acls.max): delete some, or raise the setting."
    return Refusal(ErrorCode.POLICY_VIOLATION, sentence)


def _too_large(pattern: Pattern) -> Refusal:
    sentence = (
        f"The ACLs of {pattern.resource_type.name} {pattern.name[:100]!r} would take more than {DOCUMENT_BYTES_MAX} bytes together: "
        "use fewer principals, such as by a prefix, or one for each role."
    )
    return Refusal(ErrorCode.POLICY_VIOLATION, sentence)


def delete(known: Known, filters: Sequence[Filter]) -> tuple[list[ResourceAcls], list[list[Acl] | Refusal]]:
    """Give the patterns with other ACLs than before, and for each filter which ones it removes, or why it is refused."""
    removed: dict[Pattern, set[Entry]] = defaultdict(set)
    outcomes: list[list[Acl] | Refusal] = []
    for each in filters:
        refused = _unknown(each)
        if refused is not None:
            outcomes.append(refused)
            continue
        matching = [acl for pattern, acls in known.items() if each.concerns(pattern)
                    for entry in acls.entries if each.lets_through(acl := Acl(pattern, entry))]  # fmt: skip
        outcomes.append(sorted(matching))
        for acl in matching:
            removed[acl.pattern].add(acl.entry)
    changed = [
        ResourceAcls(pattern, tuple(entry for entry in known[pattern].entries if entry not in gone))
        for pattern, gone in removed.items()
    ]
    return changed, outcomes


def _unknown(each: Filter) -> Refusal | None:
    if ResourceType.UNKNOWN is each.resource_type or PatternType.UNKNOWN is each.pattern_type:
        return Refusal(ErrorCode.INVALID_REQUEST, "Unknown patternFilter.")
    if Operation.UNKNOWN is each.operation or Permission.UNKNOWN is each.permission:
        return Refusal(ErrorCode.INVALID_REQUEST, "Unknown entryFilter.")
    return None
