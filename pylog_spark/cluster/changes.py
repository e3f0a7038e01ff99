"""How a set of configs may change (IncrementalAlterConfigs, AlterConfigs): pure decisions on name -> text mappings."""

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pylog_spark.cluster.errors import ErrorCode, Refusal


class ConfigOperation(enum.IntEnum):
    """The kind of a change, with the protocol's numbers (KIP-339)."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


@dataclass(frozen=True, slots=True)
class Change:
    """One change of one config; `value` is None for DELETE."""

    name: str
    operation: int
    value: str | None


@dataclass(frozen=True, slots=True)
class ConfigRules:
    """The settings that may be changed, and their values.

    Attributes
    ----------
    check : callable
        Takes a name and text, returns the text to store; raises ValueError with a sentence (unknown name, bad value).
    listed : callable
        Takes a name and the present mapping; returns the elements of the setting's value, None when it is not a list.
    """

    check: Callable[[str, str], str]
    listed: Callable[[str, Mapping[str, str]], Sequence[str] | None]


def incremental(present: Mapping[str, str], changes: Sequence[Change], rules: ConfigRules) -> dict[str, str] | Refusal:
    """Apply all `changes` to `present`, or none of them and give the `Refusal`."""
    names = [change.name for change in changes]
    if len(set(names)) < len(names):
        return Refusal(ErrorCode.INVALID_REQUEST, "The request changes a config twice: name each one once.")
    after = dict(present)
    for change in changes:
        refused = _apply(after, change, rules)
        if refused is not None:
            return refused
    return after


def full(wanted: Sequence[tuple[str, str | None]], rules: ConfigRules) -> dict[str, str] | Refusal:
    """Replace all settings by `wanted` (the older AlterConfigs request); settings that are not named are reset to their defaults."""
    return incremental({}, [Change(name, ConfigOperation.SET, value) for name, value in wanted], rules)


def _apply(after: dict[str, str], change: Change, rules: ConfigRules) -> Refusal | None:
    try:
        if change.operation == ConfigOperation.DELETE:
            # Also one that is not known, as Apache Kafka does: MirrorMaker 2 deletes whatever has its default in a source that may be newer.
            after.pop(change.name, None)
            return None
        if change.value is None:
            return Refusal(ErrorCode.INVALID_REQUEST, f"{change.name} has no value: give one, or delete the config.")
        if change.operation == ConfigOperation.SET:
            after[change.name] = rules.check(change.name, change.value)
            return None
        if change.operation not in (ConfigOperation.APPEND, ConfigOperation.SUBTRACT):
            return Refusal(ErrorCode.INVALID_REQUEST, f"{change.operation} is not an operation on a config.")
        elements = rules.listed(change.name, after)
        if elements is None:
            return Refusal(ErrorCode.INVALID_CONFIG, f"{change.name} is not a list, so it can only be set or deleted.")
        after[change.name] = rules.check(change.name, ",".join(_edited(elements, change)))
    except ValueError as error:
        return Refusal(ErrorCode.INVALID_CONFIG, str(error))
    return None


def _edited(elements: Sequence[str], change: Change) -> list[str]:
    words = [word.strip() for word in (change.value or "").split(",")]
    if change.operation == ConfigOperation.SUBTRACT:
        without = set(words)
        return [element for element in elements if element not in without]
    present = set(elements)
    return [*elements, *(word for word in words if word not in present)]
