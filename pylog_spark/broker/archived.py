"""Which settings of a topic that is archived go together (KIP-405, KIP-950). Pure."""

from collections.abc import Mapping

from pylog_spark.broker import config
from pylog_spark.broker.config import BrokerConfig
from pylog_spark.broker.setting import ConfigError, Value, show

#: Of local.retention.ms and .bytes: as those of the whole log.
_AS_RETENTION = -2


def check_archived(broker: BrokerConfig, configs: Mapping[str, str]) -> None:
    """Raise `ConfigError` when a topic with such settings is to be archived and cannot be."""
    given = config.parse(config.TOPIC, configs.items())
    if not given.get("remote.storage.enable"):
        return
    if broker.text("archive.url") is None:
        raise ConfigError(
            "remote.storage.enable=true is refused: the broker has no archive. Start all brokers with archive.url=URL."
        )
    if "compact" in (show(config.topic_value(broker, config.TOPIC["cleanup.policy"], given)) or ""):
        sentence = "remote.storage.enable=true is refused: a compacted topic cannot be archived, because its records change places."
        raise ConfigError(sentence)
    if given.get("remote.log.copy.disable"):
        for unit in ("ms", "bytes"):
            _check_not_copied(broker, given, unit)


def _check_not_copied(broker: BrokerConfig, given: Mapping[str, Value], unit: str) -> None:
    local, whole = (
        config.topic_value(broker, config.TOPIC[f"{scope}retention.{unit}"], given) for scope in ("local.", "")
    )
    if local not in (_AS_RETENTION, whole):
        raise ConfigError(
            f"remote.log.copy.disable=true is refused: nothing is copied any more, so local.retention.{unit} ({local}) must be -2 or as "
            f"retention.{unit} ({whole})."
        )
