"""Contact with the brokers, shared by source and sink: the first contact fails within seconds, later ones wait.

Requests of a running query are repeated for as long as its settings say, since a broker may be restarting. Only the first
contact, which finds a wrong address or a broker that was never started, should not keep a user waiting. A native
client that has reached no broker yet gives up at once, too. Tasks and commits of a running query make new clients, so they
use `until_reachable`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from pylog_spark.errors import PylogError, native, translated
from pylog_spark.results.configs import ConfigDescription
from pylog_spark.results.decoding import all_decoded, decoded
from pylog_spark.results.topics import ClusterDescription, ListedTopic

#: Longest wait in ms for a first contact, and for one connection in it.
FIRST_CONTACT_MS = 5_000
FIRST_CONNECTION_MS = 3_000
#: The same for a server of tokens: to connect to it, and to its whole answer. It is asked again where that fits in both together.
FIRST_TOKEN_CONNECTION_MS = 1_500
FIRST_TOKEN_MS = 3_000
#: Pauses in seconds of `until_reachable`: the first, which doubles up to the longest.
_PAUSE_S = 0.05
_PAUSE_MAX_S = 1.0

Answer = TypeVar("Answer")


def first_contact(config: Mapping[str, str], topics: Sequence[str]) -> list[ListedTopic]:
    """Ask for `topics`; unknown ones carry their error.

    Raises
    ------
    PylogError
        ``PYLOG_UNREACHABLE`` within `FIRST_CONTACT_MS`; ``PYLOG_INVALID_OPTION`` for a client setting that does not exist.
    """
    with translated():
        client = native().Client(_with_short_timeouts(config))
        try:
            return [ListedTopic(*topic) for topic in client.list_partitions(list(topics))]
        finally:
            client.close()


def require_topic(config: Mapping[str, str], topic: str) -> None:
    """Check that `topic` can be written to: it exists, or the brokers would create it.

    Raises
    ------
    PylogError
        ``PYLOG_UNKNOWN_TOPIC`` when it does not exist and ``auto.create.topics.enable`` is off; and the errors of `first_contact`.
    """
    (found,) = first_contact(config, [topic])
    if found.error is None:
        return
    if found.error != "UNKNOWN_TOPIC_OR_PARTITION" or not _creates_topics(config):
        raise topic_error(topic, found.error)


def until_reachable(question: Callable[[], Answer], limit_s: float) -> Answer:
    """Call `question`, again for up to `limit_s` seconds while no broker answers, and give its answer.

    Raises
    ------
    PylogError
        ``PYLOG_UNREACHABLE`` after that time; any other error of `question` at once.
    """
    deadline_s, pause_s = time.monotonic() + limit_s, _PAUSE_S
    while True:
        try:
            return question()
        except PylogError as error:
            if error.condition != "PYLOG_UNREACHABLE" or time.monotonic() + pause_s > deadline_s:
                raise
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, _PAUSE_MAX_S)


def topic_error(topic: str, kind: str) -> PylogError:
    """Give the error for a topic whose metadata came with the Kafka error `kind`."""
    if kind in ("UNKNOWN_TOPIC_OR_PARTITION", "INVALID_TOPIC_EXCEPTION"):
        return PylogError(
            "PYLOG_UNKNOWN_TOPIC",
            f"The brokers have no topic {topic!r}; create it (pylog topic create {topic} --partitions 4) or correct the name.",
        )
    return PylogError(
        "PYLOG_BROKER", f"The brokers cannot serve the topic {topic!r} now: {kind}; try again or look at their logs."
    )


def _creates_topics(config: Mapping[str, str]) -> bool:
    if config.get("allow.auto.create.topics", "true").lower() == "false":
        return False
    with translated():
        client = native().Client(_with_short_timeouts(config))
        try:
            cluster = decoded(ClusterDescription, client.describe_cluster())
            nodes = [str(broker.node_id) for broker in cluster.brokers]
            (answer,) = all_decoded(ConfigDescription, client.describe_configs("broker", nodes[:1]))
        finally:
            client.close()
    values = {entry.name: entry.value for entry in answer.configs}
    return str(values.get("auto.create.topics.enable", "true")).lower() == "true"


def _with_short_timeouts(config: Mapping[str, str]) -> dict[str, str]:
    settings = dict(config)
    for name, most in (
        ("default.api.timeout.ms", FIRST_CONTACT_MS),
        ("request.timeout.ms", FIRST_CONTACT_MS),
        ("socket.connection.setup.timeout.ms", FIRST_CONNECTION_MS),
        ("sasl.login.connect.timeout.ms", FIRST_TOKEN_CONNECTION_MS),
        ("sasl.login.read.timeout.ms", FIRST_TOKEN_MS),
        ("sasl.login.retry.backoff.max.ms", FIRST_TOKEN_CONNECTION_MS + FIRST_TOKEN_MS),
    ):
        given = settings.get(name, "")
        # The client refuses a text that is no number.
        if given == "" or (given.isdecimal() and int(given) > most):
            settings[name] = str(most)
    return settings
