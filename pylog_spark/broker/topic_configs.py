"""Which settings of a topic go together. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from pylog_spark.broker.archived import check_archived
from pylog_spark.broker.config import BrokerConfig
from pylog_spark.broker.setting import ConfigError
from pylog_spark.cluster.topics import invalid_name

#: The topic to which another one's refused records go. Brokers write there as themselves.
DEAD_LETTERS = "schema.validation.dead.letter.topic"
# What the names of topics begin with that brokers and the schema registry keep their own records in.
_OWN_PREFIX = "_"


def check_together(broker: BrokerConfig, configs: Mapping[str, str]) -> None:
    """Check all settings of a topic. Raises `ConfigError` with a sentence."""
    check_archived(broker, configs)
    _check_dead_letters(configs.get(DEAD_LETTERS, "").strip())


def _check_dead_letters(name: str) -> None:
    """Whether the topic exists is not looked at: the client may not be allowed to know."""
    if not name:
        return
    if (why := invalid_name(name)) is not None:
        raise ConfigError(f"{DEAD_LETTERS} names no topic: {why}")
    if name.startswith(_OWN_PREFIX):
        raise ConfigError(
            f"{DEAD_LETTERS}={name} is refused: topics whose names begin with an underscore are those in which brokers and the "
            "schema registry keep their own records."
        )
