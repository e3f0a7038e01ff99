"""Which settings of a topic are refused together."""

import pytest

from pylog_spark.broker.config import broker_config
from pylog_spark.broker.setting import ConfigError
from pylog_spark.broker.topic_configs import DEAD_LETTERS, check_together


def why_not(name: str) -> str | None:
    """Why dead letters may not go to the topic of this name."""
    try:
        check_together(broker_config([]), {DEAD_LETTERS: name, "retention.ms": "1"})
    except ConfigError as error:
        return str(error)
    return None


@pytest.mark.parametrize(
    "name", ["_schemas", "__pylog_sink", "__consumer_offsets", "_", " _schemas ", "a/b", "..", "a" * 300]
)
def test_dead_letters_go_to_no_topic_of_the_brokers_or_the_registry_whoever_says_so(name: str) -> None:
    assert (why_not(name) or "").startswith(DEAD_LETTERS)


@pytest.mark.parametrize("name", ["orders-dead", "a_b", " ", ""])
def test_dead_letters_go_to_any_other_topic_there_or_not(name: str) -> None:
    assert why_not(name) is None
