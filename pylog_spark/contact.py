"""The first contact with the brokers, shared by source and sink: it fails in seconds, with a sentence.

Later requests of the same query are tried again for as long as the client's settings say (a broker may be restarting);
only the first one, which finds a wrong address or a broker that was never started, should not keep a user waiting.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pylog_spark.errors import PylogError, native, translated

#: Longest wait in ms of a first contact, and of one connection in it.
FIRST_CONTACT_MS = 5_000
FIRST_CONNECTION_MS = 3_000


def first_contact(config: Mapping[str, str], topics: Sequence[str]) -> list[dict[str, Any]]:
    """Ask for `topics` and give their descriptions (see ``Client.describe_topics``); unknown ones carry their error.

    Raises
    ------
    PylogError
        ``PYLOG_UNREACHABLE`` within `FIRST_CONTACT_MS`; ``PYLOG_INVALID_OPTION`` for a client setting that does not exist.
    """
    with translated():
        client = native().Client(_hurried(config))
        try:
            return list(client.describe_topics(list(topics)))
        finally:
            client.close()


def require_topic(config: Mapping[str, str], topic: str) -> None:
    """Check that `topic` can be written to: it exists, or the brokers would create it.

    Raises
    ------
    PylogError
        When it does not exist and ``auto.create.topics.enable`` is off, and as `first_contact` does.
    """
    (found,) = first_contact(config, [topic])
    if found["error"] is None:
        return
    if found["error"] != "UNKNOWN_TOPIC_OR_PARTITION" or not _creates_topics(config):
        raise topic_error(topic, found["error"])


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
        client = native().Client(_hurried(config))
        try:
            nodes = [str(broker["node_id"]) for broker in client.describe_cluster()["brokers"]]
            (answer,) = client.describe_configs("broker", nodes[:1])
        finally:
            client.close()
    values = {entry["name"]: entry["value"] for entry in answer["configs"]}
    return str(values.get("auto.create.topics.enable", "true")).lower() == "true"


def _hurried(config: Mapping[str, str]) -> dict[str, str]:
    hurried = dict(config)
    for name, most in (
        ("default.api.timeout.ms", FIRST_CONTACT_MS),
        ("request.timeout.ms", FIRST_CONTACT_MS),
        ("socket.connection.setup.timeout.ms", FIRST_CONNECTION_MS),
    ):
        given = hurried.get(name, "")
        # A text that is no number is left for the client to refuse.
        if given == "" or (given.isdecimal() and int(given) > most):
            hurried[name] = str(most)
    return hurried
