"""DescribeConfigs and IncrementalAlterConfigs of resources of type BROKER_LOGGER (KIP-412): the levels of this broker's loggers.

A level holds until it is changed again or the broker stops; nothing is stored. Which changes are refused, and with which error, is as in Kafka
(org.apache.kafka.server.logger.RuntimeLoggerManager).
"""

from collections import Counter
from collections.abc import Sequence

from pylog_spark.broker import loggers, messages, native_log
from pylog_spark.cluster.errors import ErrorCode, Refusal

RESOURCE_BROKER_LOGGER = 8
_SET, _DELETE = 0, 1
#: The ConfigSource of these entries, by its number.
_DYNAMIC_BROKER_LOGGER_CONFIG = 6
_UNKNOWN_TYPE = 0


def entries(node_id: int, name: str, docs: bool) -> list[messages.DescribeConfigsEntry] | Refusal:
    """One entry for each logger of the broker `node_id`; refused when `name` is another broker's number."""
    return _other_broker(node_id, name) or [
        {
            "name": logger,
            "value": level,
            "read_only": False,
            "config_source": _DYNAMIC_BROKER_LOGGER_CONFIG,
            "is_sensitive": False,
            "synonyms": [],
            "config_type": _UNKNOWN_TYPE,
            "documentation": loggers.LOGGERS.get(logger, "The logger above all others.") if docs else None,
        }
        for logger, level in loggers.levels().items()
    ]


def alter(node_id: int, resource: messages.AlterConfigsResource, validate_only: bool) -> Refusal | None:
    """Change the levels that a resource of the request names: all of them, or none when one is refused."""
    configs = resource["configs"]
    refused = (
        _malformed(configs)
        or _other_broker(node_id, resource["resource_name"])
        or next(filter(None, map(_refused, configs)), None)
    )
    if refused is not None or validate_only:
        return refused
    for config in configs:
        name, word = config["name"], config["value"] if config["config_operation"] == _SET else None
        loggers.set_level(name, word)
        what = "is not set any more" if word is None else f"is {word} now"
        loggers.named("pylog.broker").warning("The level of logger %s %s, as a client asked.", name, what)
    native_log.take_levels()
    return None


def _malformed(configs: Sequence[messages.AlterableConfig]) -> Refusal | None:
    twice = [name for name, times in Counter(config["name"] for config in configs).items() if times > 1]
    if twice:
        return Refusal(ErrorCode.INVALID_REQUEST, f"Logger {twice[0]} is in the request more than once.")
    without = [c["name"] for c in configs if c["config_operation"] != _DELETE and c["value"] is None]
    if without:
        return Refusal(ErrorCode.INVALID_REQUEST, f"Logger {without[0]} is given no level.")
    return None


def _other_broker(node_id: int, name: str) -> Refusal | None:
    if name == str(node_id):
        return None
    return Refusal(
        ErrorCode.INVALID_REQUEST, f"This is broker {node_id}, not {name!r}: ask that broker about its loggers."
    )


def _refused(config: messages.AlterableConfig) -> Refusal | None:
    name, operation, word = config["name"], config["config_operation"], config["value"]
    if operation not in (_SET, _DELETE):
        return Refusal(ErrorCode.INVALID_REQUEST, "The level of a logger can only be set or deleted.")
    if not loggers.exists(name):
        return Refusal(
            ErrorCode.INVALID_CONFIG,
            f"There is no logger {name}: the loggers are {', '.join((loggers.ROOT, *loggers.LOGGERS))}.",
        )
    if operation == _SET and word not in loggers.LEVELS:
        return Refusal(
            ErrorCode.INVALID_CONFIG,
            f"{word} is no level for logger {name}: the levels are {', '.join(reversed(loggers.LEVELS))}.",
        )
    if operation == _DELETE and name == loggers.ROOT:
        return Refusal(ErrorCode.INVALID_REQUEST, "The level of the logger root can be set, not deleted.")
    return None
