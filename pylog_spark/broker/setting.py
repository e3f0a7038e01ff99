"""What one setting is: name, type, default, valid range, importance, doc. They are declared in `broker_native/settings`, each once.

A value is text on the command line, in properties files, on the wire and in stored documents, and a Python value in the code;
only `parse` and `show` convert between them. Types, importance and the way values are written are Apache Kafka's
(org.apache.kafka.common.config.ConfigDef), so that Kafka's tools show them as usual.
"""

import enum
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from pylog_spark._native import settings
from pylog_spark.offsets.reset import duration_ms

if TYPE_CHECKING:
    from pylog_spark._native import SettingRow

Value = bool | int | float | str | tuple[str, ...] | None

#: Begins the value of share.auto.offset.reset that is a duration.
BY_DURATION = "by_duration:"

INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1


class ConfigError(ValueError):
    """A setting is unknown or its value is refused. `args[0]` is one sentence that says what to do."""


class Type(enum.IntEnum):
    """Type of a setting; the number is its code in a DescribeConfigs response (KIP-569)."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    PASSWORD = 9


_BOUNDS = {Type.SHORT: 2**15 - 1, Type.INT: INT_MAX, Type.LONG: LONG_MAX}


@dataclass(frozen=True, slots=True)
class Range:
    """A number from `low` to `high`, both included; None leaves that side open."""

    low: int | None = None
    high: int | None = None

    def accepts(self, value: Value) -> bool:
        if not isinstance(value, (int, float)):
            return False
        return (self.low is None or value >= self.low) and (self.high is None or value <= self.high)

    def __str__(self) -> str:
        if self.high is None:
            return f"at least {self.low}"
        return f"exactly {self.low}" if self.low == self.high else f"between {self.low} and {self.high}"


@dataclass(frozen=True, slots=True)
class OneOf:
    """One of a few words (for a LIST: each element is one of them). `why` explains what is left out on purpose."""

    words: tuple[str, ...]
    why: str = ""

    def spelled(self, given: tuple[str, ...]) -> tuple[str, ...]:
        """The words that are meant, whatever their case; one that is none stays as it is."""
        words = {word.lower(): word for word in self.words}
        return tuple(words.get(word.lower(), word) for word in given)

    def accepts(self, value: Value) -> bool:
        if isinstance(value, tuple):
            return bool(value) and all(word in self.words for word in value)
        return value in self.words

    def __str__(self) -> str:
        words = [word for word in self.words if word]
        text = f"one of {', '.join(words)}" if len(words) > 1 else words[0]
        if len(words) < len(self.words):
            text += ", or empty"
        return f"{text} ({self.why})" if self.why else text


@dataclass(frozen=True, slots=True)
class OffsetReset:
    """Where a share group begins with a partition: the values of share.auto.offset.reset."""

    def accepts(self, value: Value) -> bool:
        if not isinstance(value, str) or not value.startswith(BY_DURATION):
            return value in ("earliest", "latest")
        try:
            duration_ms(value.removeprefix(BY_DURATION))
        except ValueError:
            return False
        return True

    def __str__(self) -> str:
        return "earliest, latest or by_duration: followed by an ISO 8601 duration, such as by_duration:PT1H"


#: Forms of text, by the names that declarations use.
_FORMS = {"offset-reset": OffsetReset()}


@dataclass(frozen=True, slots=True)
class Synonym:
    """A broker setting that gives a topic setting its default; `factor` converts its unit (hours to ms: 3600000)."""

    name: str
    factor: int = 1


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting of a broker, a topic or a group.

    Attributes
    ----------
    name : str
        Kafka's name, or ours where Kafka has none (``durability``).
    default : Value
        Used when neither this setting nor a synonym is given. None means "not set".
    dynamic : bool
        True when it can be changed while the broker runs (AlterConfigs).
    native : str
        Field of the native half that has the value; empty when only Python uses it.
    per_listener : bool
        True when each listener of a broker may have a value of its own.
    synonyms : tuple of Synonym
        For a topic setting, the broker settings that it falls back to; the first one that is set wins.
    aliases : tuple of str
        Other names accepted for the same setting.
    """

    name: str
    type: Type
    default: Value
    doc: str
    importance: str = "medium"
    valid: Range | OneOf | OffsetReset | None = None
    dynamic: bool = False
    native: str = ""
    synonyms: tuple[Synonym, ...] = field(default=())
    aliases: tuple[str, ...] = field(default=())
    per_listener: bool = False

    def parse(self, text: str) -> Value:
        """Turn `text` into this setting's value.

        Raises
        ------
        ConfigError
            It is not of this type, or outside the valid range.
        """
        text = text.strip()
        try:
            value = _convert(self.type, text)
        except ValueError:
            raise ConfigError(f"{self.name}={text} is refused: it must be {_an(self.type)}{self._range()}.") from None
        if isinstance(value, tuple) and isinstance(self.valid, OneOf):
            value = self.valid.spelled(value)
        bound = _BOUNDS.get(self.type)
        if bound is not None and isinstance(value, int) and not -bound - 1 <= value <= bound:
            raise ConfigError(f"{self.name}={text} is refused: it does not fit {_an(self.type)}.")
        if self.valid is not None and not self.valid.accepts(value):
            raise ConfigError(f"{self.name}={text} is refused: it must be {self.valid}.")
        return value

    def _range(self) -> str:
        return f", {self.valid}" if self.valid is not None else ""


def declared(owner: Literal["broker", "topic", "group"]) -> tuple[Setting, ...]:
    """Every setting of a broker, a topic or a group, in the order of their names."""
    return tuple(_setting(row) for row in settings(owner))


def _setting(row: "SettingRow") -> Setting:
    kind = Type[row.kind]
    return Setting(
        row.name,
        kind,
        _convert(kind, row.default) if isinstance(row.default, str) else row.default,
        row.doc,
        row.importance,
        _valid(row),
        row.dynamic,
        row.field or "",
        tuple(Synonym(name, factor) for name, factor in row.synonyms),
        row.aliases,
        row.per_listener,
    )


def _valid(row: "SettingRow") -> Range | OneOf | OffsetReset | None:
    if row.form:
        return _FORMS[row.form]
    if row.words:
        return OneOf(row.words, row.why)
    return None if row.low is None and row.high is None else Range(row.low, row.high)


def _an(kind: Type) -> str:
    words = {
        Type.BOOLEAN: "true or false",
        Type.STRING: "text",
        Type.INT: "a whole number of 32 bits",
        Type.SHORT: "a whole number of 16 bits",
        Type.LONG: "a whole number of 64 bits",
        Type.DOUBLE: "a number",
        Type.LIST: "a list separated by commas",
        Type.PASSWORD: "text",
    }
    return words[kind]


def _convert(kind: Type, text: str) -> Value:
    if kind is Type.BOOLEAN:
        if text.lower() not in ("true", "false"):
            raise ValueError(text)
        return text.lower() == "true"
    if kind is Type.DOUBLE:
        return float(text)
    if kind in _BOUNDS:
        if not text.lstrip("+-").isascii() or "_" in text:
            raise ValueError(text)
        return int(text)
    if kind is Type.LIST:
        return tuple(word.strip() for word in text.split(",") if word.strip())
    return text


def show(value: Value) -> str | None:
    """Write `value` as Kafka does: ``true``, ``1,2``; None stays None (a null on the wire)."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ",".join(value)
    return str(value)
