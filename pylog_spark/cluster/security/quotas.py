"""What AlterClientQuotas changes and DescribeClientQuotas shows (KIP-546, KIP-612), by Kafka's rules. Pure.

One difference: an address is an address, never the name of a host, because that is looked up in a network that may not answer.
"""

import enum
import ipaddress
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pylog_spark.cluster.errors import ErrorCode, Refusal
from pylog_spark.cluster.security.documents import entity_of
from pylog_spark.cluster.security.model import Entity, Limits, Quotas

USER, CLIENT_ID, IP = "user", "client-id", "ip"
_LONG_MAX = 2**63 - 1
_INT_MAX = 2**31 - 1
#: For each quota the largest value and the name of its type, or None where fractions count.
_OF_CLIENTS: Mapping[str, tuple[int, str] | None] = {
    "producer_byte_rate": (_LONG_MAX, "LONG"),
    "consumer_byte_rate": (_LONG_MAX, "LONG"),
    "request_percentage": None,
    "controller_mutation_rate": None,
}
_OF_ADDRESSES: Mapping[str, tuple[int, str] | None] = {"connection_creation_rate": (_INT_MAX, "INT")}
_FRACTION = 1e-6


@dataclass(frozen=True, slots=True)
class Op:
    """Set quota `key` to `value`, or remove it when that is None."""

    key: str
    value: float | None


@dataclass(frozen=True, slots=True)
class Alteration:
    """Changes of an entity's quotas; its parts as they were named, even twice."""

    parts: tuple[tuple[str, str | None], ...]
    ops: tuple[Op, ...]

    @property
    def entity(self) -> Entity:
        """The entity; of a type that is named twice the last name, as in Kafka."""
        return entity_of(dict(self.parts).items())


def alter(
    known: Mapping[Entity, Quotas], alterations: Sequence[Alteration], limits: Limits
) -> dict[Entity, Quotas | Refusal]:
    """Give for each entity that is named its quotas afterwards, or why they stay."""
    times = Counter(alteration.entity for alteration in alterations)
    outcomes: dict[Entity, Quotas | Refusal] = {}
    count = len(known)
    for alteration in alterations:
        entity = alteration.entity
        if times[entity] > 1:
            outcomes[entity] = _invalid(f"Ignoring duplicate entity {_shown(entity)}")
            continue
        outcome = _altered(known.get(entity, Quotas(entity, {})), alteration, limits)
        if isinstance(outcome, Quotas) and not outcome.is_empty and entity not in known:
            if count >= limits.entities:
                outcome = _too_many(limits)
            else:
                count += 1
        outcomes[entity] = outcome
    return outcomes


def _altered(before: Quotas, alteration: Alteration, limits: Limits) -> Quotas | Refusal:
    keys = [op.key for op in alteration.ops]
    twice = next((key for key, times in Counter(keys).items() if times > 1), None)
    if twice is not None:
        # Kafka's words, though no entity is named twice.
        return _invalid(f"Ignoring duplicate entity {_shown(before.entity)}")
    valid = _valid_keys(before.entity, limits)
    if isinstance(valid, Refusal):
        return valid
    values = dict(before.values)
    for op in alteration.ops:
        if op.value is None:
            values.pop(op.key, None)
            continue
        refused = _refused_value(valid, op.key, op.value)
        if refused is not None:
            return _invalid(refused)
        values[op.key] = op.value
    return Quotas(before.entity, values)


def _valid_keys(entity: Entity, limits: Limits) -> Mapping[str, tuple[int, str] | None] | Refusal:
    if not entity:
        return _invalid("Invalid empty client quota entity")
    for kind, name in entity:
        if kind not in (USER, CLIENT_ID, IP):
            return _invalid(f"Unhandled client quota entity type: {kind}")
        if name == "":
            return _invalid(f"Empty {kind} not supported")
        if name is not None and len(name.encode()) > limits.name_bytes:
            return _invalid(f"A name may have {limits.name_bytes} bytes (security.name.max.bytes).")
    names = dict(entity)
    if IP not in names:
        return _OF_CLIENTS
    if len(names) > 1:
        return _invalid("Invalid quota entity combination, IP entity shouldnot be combined with User or ClientId")
    address = names[IP]
    if address is not None and not _is_address(address):
        return _invalid(f"{address} is not a valid IP or resolvable host.")
    return _OF_ADDRESSES


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _refused_value(valid: Mapping[str, tuple[int, str] | None], key: str, value: float) -> str | None:
    if key not in valid:
        return f"Invalid configuration key {key}"
    if not value > 0 or math.isinf(value):
        return f"Quota {key} must be greater than 0"
    whole = valid[key]
    if whole is None:
        return None
    most, kind = whole
    if value > most:
        return f"Proposed value for {key} is too large for {'an' if kind == 'INT' else 'a'} {kind}."
    return f"{key} cannot be a fractional value." if value % 1 > _FRACTION else None


def _too_many(limits: Limits) -> Refusal:
    sentence = f"{limits.entities} entities have quotas already (security.quota.entities.max): remove some, or raise the setting."
    return Refusal(ErrorCode.POLICY_VIOLATION, sentence)


def _invalid(sentence: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_REQUEST, sentence)


def _shown(entity: Entity) -> str:
    return f"ClientQuotaEntity(entries={{{', '.join(f'{kind}={name}' for kind, name in entity)}}})"


class MatchType(enum.IntEnum):
    """How a component of a filter matches, with the protocol's numbers."""

    EXACT = 0
    DEFAULT = 1
    SPECIFIED = 2


@dataclass(frozen=True, slots=True)
class Component:
    """What an entity must have of a type."""

    kind: str
    match_type: int
    match: str | None


def describe(known: Mapping[Entity, Quotas], components: Sequence[Component], strict: bool) -> list[Quotas] | Refusal:
    """Give the quotas of the entities that fit all `components`; with `strict` only of those without other parts."""
    refused = _refused_components(components)
    if refused is not None:
        return refused
    found = []
    for entity, quotas in known.items():
        names = dict(entity)
        fits = all(
            component.kind in names
            and (component.match_type == MatchType.SPECIFIED or names[component.kind] == component.match)
            for component in components
        )
        if fits and not (strict and len(names) != len(components)):
            found.append(quotas)
    return found


def _refused_components(components: Sequence[Component]) -> Refusal | None:
    kinds: set[str] = set()
    for component in components:
        kind = component.kind
        if not kind:
            return _invalid("Invalid empty entity type.")
        if kind in kinds:
            return _invalid(f"Entity type {kind} cannot appear more than once in the filter.")
        if kind not in (USER, CLIENT_ID, IP):
            return Refusal(ErrorCode.UNSUPPORTED_VERSION, f"Unsupported entity type {kind}")
        if component.match_type not in tuple(MatchType):
            return _invalid(f"Unknown match type {component.match_type}")
        name = MatchType(component.match_type).name
        if component.match_type == MatchType.EXACT and component.match is None:
            return _invalid(f"Request specified MATCH_TYPE_{name}, but set match string to null.")
        if component.match_type != MatchType.EXACT and component.match is not None:
            return _invalid(f"Request specified MATCH_TYPE_{name}, but also specified a match string.")
        kinds.add(kind)
    if IP in kinds and len(kinds) > 1:
        return _invalid(
            "Invalid entity filter component combination. IP filter component should not be used with user or clientId filter "
            "component."
        )
    return None
