"""Settings of topics and brokers."""

from dataclasses import dataclass

from pylog_spark.results.display import Display
from pylog_spark.results.markup import Shown


@dataclass(frozen=True, slots=True)
class ConfigSynonym:
    """One of the sources that a setting's value may come from.

    Attributes
    ----------
    name, value : str, str or None
        The setting's name in that source, and its value; None when it is not shown.
    source : str
        As in `ConfigEntry`.
    """

    name: str
    value: str | None
    source: str


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """One setting.

    Attributes
    ----------
    name, value : str, str or None
        The setting and its value; None when it has none or it is not shown.
    source : str
        Kafka's name of where the value comes from, such as ``DYNAMIC_TOPIC_CONFIG`` or ``DEFAULT_CONFIG``.
    type : str
        Kafka's name, such as ``LONG``.
    read_only, is_sensitive : bool
        Whether it cannot be changed while the broker runs; whether its value is not shown.
    documentation : str or None
        What it means.
    synonyms : tuple of ConfigSynonym
        Where its value may come from; the first one that has a value wins.
    """

    name: str
    value: str | None
    source: str
    type: str
    read_only: bool
    is_sensitive: bool
    documentation: str | None
    synonyms: tuple[ConfigSynonym, ...]


@dataclass(frozen=True, slots=True)
class ConfigDescription(Display):
    """The settings of one topic or broker.

    Attributes
    ----------
    name : str
        The topic's name, or the broker's number.
    configs : tuple of ConfigEntry
        All of them; none where there is an error.
    error, message : str or None
        Kafka's name of the error, and its sentence; None without an error.
    """

    name: str
    configs: tuple[ConfigEntry, ...]
    error: str | None
    message: str | None

    def _shown(self) -> Shown:
        rows = [(each.name, "(hidden)" if each.is_sensitive else each.value, each.source) for each in self.configs]
        return Shown(
            f"Settings of {self.name}{f': {self.error}' if self.error else ''}", ("setting", "value", "source"), rows
        )
