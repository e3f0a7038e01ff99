"""Settings of one group (configs of resource GROUP, KIP-1043): declared here, kept by the topic registry. Only share groups have some."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pylog_spark.broker import config
from pylog_spark.broker.config import BrokerConfig
from pylog_spark.broker.setting import INT_MAX, ConfigError, OneOf, Range, Setting, Synonym, Type, Value, at_least, show
from pylog_spark.cluster.changes import ConfigRules
from pylog_spark.offsets.reset import duration_ms

#: Groups that may have settings of their own: each is written again with every change of one.
GROUPS_MAX = 10_000

_BY_DURATION = "by_duration:"


@dataclass(frozen=True, slots=True)
class _Reset:
    """Where a share group begins."""

    def accepts(self, value: Value) -> bool:
        if not isinstance(value, str) or not value.startswith(_BY_DURATION):
            return value in ("earliest", "latest")
        try:
            duration_ms(value.removeprefix(_BY_DURATION))
        except ValueError:
            return False
        return True

    def __str__(self) -> str:
        return "earliest, latest or by_duration: with an ISO 8601 duration, as by_duration:PT1H"


def _group(name: str, kind: Type, default: Value, doc: str, valid: Any = None, *, broker: bool = True) -> Setting:
    synonyms = (Synonym(f"group.{name}"),) if broker else ()
    return Setting(
        name, kind, default, doc, valid=valid, dynamic=True, native=name.replace(".", "_"), synonyms=synonyms
    )


GROUP_SETTINGS: tuple[Setting, ...] = (
    _group("share.auto.offset.reset", Type.STRING, "latest",
           "Where a share group begins with a partition that it has not read yet. by_duration: at the first record that is not older.",
           _Reset(), broker=False),
    _group("share.delivery.count.limit", Type.INT, 5,
           "A record that was delivered this often and not accepted is not delivered again.", Range(2, 25)),
    _group("share.heartbeat.interval.ms", Type.INT, 5_000, "How often a member is asked to report.", at_least(1)),
    _group("share.isolation.level", Type.STRING, "read_uncommitted",
           "Whether records of transactions are delivered before they are committed, and those that were aborted.",
           OneOf(("read_committed", "read_uncommitted")), broker=False),
    _group("share.partition.max.record.locks", Type.INT, 2_000,
           "Most records of a partition that are delivered and not done with.", Range(100, 10_000)),
    _group("share.record.lock.duration.ms", Type.INT, 30_000,
           "How long a member may keep a record before it is delivered to another one.", Range(1_000, 3_600_000)),
    _group("share.renew.acknowledge.enable", Type.BOOLEAN, True,
           "Whether a member may prolong the time it keeps a record.", broker=False),
    _group("share.session.timeout.ms", Type.INT, 45_000, "A member that does not report for this long is removed.", at_least(1)),
)  # fmt: skip
GROUP: Mapping[str, Setting] = {setting.name: setting for setting in GROUP_SETTINGS}


def rules(broker: BrokerConfig) -> ConfigRules:
    """How the settings of a group may change: within what `broker` allows groups."""

    def check(name: str, text: str) -> str:
        setting = config.find(GROUP, name)
        value = setting.parse(text)
        if setting.type is Type.INT:
            _check_bounds(broker, name, value)
        return show(value) or ""

    def listed(name: str, _present: Mapping[str, str]) -> None:
        config.find(GROUP, name)

    return ConfigRules(check, listed)


def _check_bounds(broker: BrokerConfig, name: str, value: Value) -> None:
    low, high = (f"group.share.{side}.{name.removeprefix('share.')}" for side in ("min", "max"))
    if not Range(broker.number(low), broker.number(high)).accepts(value):
        sentence = f"{name}={value} is refused: it must be between {broker.number(low)} ({low}) and {broker.number(high)} ({high})."
        raise ConfigError(sentence)


def native(own: Mapping[str, str]) -> dict[str, Any]:
    """A group's settings for the native server: those that it set, under their names with underscores."""
    parsed = config.parse(GROUP, own.items())
    return {GROUP[name].native: _native(name, value) for name, value in parsed.items()}


def _native(name: str, value: Value) -> Any:
    if name == "share.auto.offset.reset" and isinstance(value, str) and value.startswith(_BY_DURATION):
        return {"by_duration_ms": min(duration_ms(value.removeprefix(_BY_DURATION)), INT_MAX * 1_000)}
    return value
