"""What a user changes by the page: topics, their settings, records. Each change is a line in the broker's log, with who made it."""

from __future__ import annotations

import logging
from typing import Any

from pylog_spark.client.errors import LogError
from pylog_spark.client.producer import Producer
from pylog_spark.web.console.call import Call, number
from pylog_spark.web.console.refusals import ConsoleRefusal, bad_request

log = logging.getLogger("pylog.http")

#: Most headers of a record that is written.
HEADERS_MAX = 100
_NUMBERS_MAX = 2**31 - 1
# How brokers refuse a producer to a user who may write to no topic at all.
_NO_WRITER = "CLUSTER_AUTHORIZATION_FAILED"
# A record is acknowledged within so many milliseconds, or the answer is that nobody knows.
_DELIVERY = {"delivery.timeout.ms": "15000", "max.block.ms": "10000", "linger.ms": "0", "acks": "all"}


def create_topic(call: Call) -> dict[str, Any]:
    """Create a topic; what is left out or -1 is as the brokers have it."""
    name: str = call.given("name", str)
    partitions, replicas = (_whole(call, each, -1) for each in ("partitions", "replication_factor"))
    config = _texts(call.body.get("config") or {}, "config")
    if None in config.values():
        raise bad_request("A setting of a new topic has a value: leave out those that are as the brokers have them.")
    texts = {setting: text for setting, text in config.items() if text is not None}
    call.session.admin.create_topic(name, partitions, replicas, texts)
    _changed(call, "created topic %r", name)
    return {"name": name}


def alter_topic(call: Call) -> dict[str, Any]:
    """Set settings of a topic; null resets one."""
    (name,) = call.named
    changes = _texts(call.given("changes", dict), "changes")
    call.session.admin.alter_configs("topic", name, changes)
    _changed(call, "changed settings of topic %r: %s", name, ", ".join(sorted(changes)))
    return {}


def grow_topic(call: Call) -> dict[str, Any]:
    """Give a topic more partitions."""
    (name,), count = call.named, _whole(call, "count")
    call.session.admin.create_partitions(name, count)
    _changed(call, "gave topic %r %d partitions", name, count)
    return {}


def delete_topic(call: Call) -> dict[str, Any]:
    """Delete a topic, whose name is said twice."""
    (name,) = call.named
    if call.given("name", str) != name:
        raise bad_request("The body names another topic than the path: nothing is deleted.")
    (result,) = call.session.admin.delete_topics([name])
    if result.error:
        status = 403 if result.error.endswith("AUTHORIZATION_FAILED") else 400
        status = 404 if result.error == "UNKNOWN_TOPIC_OR_PARTITION" else status
        raise ConsoleRefusal(status, result.error, result.message or f"The topic is not deleted: {result.error}.")
    _changed(call, "deleted topic %r", name)
    return {}


def produce(call: Call) -> dict[str, Any]:
    """Write one record."""
    (name,), encoding = call.named, call.body.get("encoding", "text")
    if encoding not in ("text", "hex"):
        raise bad_request("encoding is text or hex.")
    if "value" not in call.body:
        raise bad_request("The body says what the value is; null deletes a key of a compacted topic.")
    key, value = (_bytes(call.given(each, str, type(None)), encoding, each) for each in ("key", "value"))
    headers = [_header(each, encoding) for each in call.body.get("headers") or []]
    if len(headers) > HEADERS_MAX:
        raise bad_request(f"A record that is written here has at most {HEADERS_MAX} headers.")
    partition = None if call.body.get("partition") is None else _whole(call, "partition")
    # Never creates the topic by a slip of the pen.
    call.session.admin.topic(name)
    settings = {**call.session.settings, **_DELIVERY}
    producer = Producer(settings["bootstrap.servers"], name, settings)
    try:
        producer.send(value, key, partition=partition, headers=headers)
        written = producer.flush()
    except LogError as error:
        if error.kind == _NO_WRITER:
            sentence = f"The user may not write to topic '{name}': that takes the right WRITE on it."
            raise ConsoleRefusal(403, "TOPIC_AUTHORIZATION_FAILED", sentence) from error
        raise
    finally:
        producer.close()
    ((place, span),) = written.offsets.items()
    _changed(call, "wrote a record to topic %r, partition %d, offset %d", name, place.partition, span.last)
    return {"partition": place.partition, "offset": number(span.last)}


def _whole(call: Call, name: str, default: int | None = None) -> int:
    """A number of the body that Kafka's protocol can carry."""
    found: int = call.given(name, int) if default is None or call.body.get(name) is not None else default
    if not -1 <= found <= _NUMBERS_MAX:
        raise bad_request(f"{name} is no number from 0 to {_NUMBERS_MAX}.")
    return found


def _texts(given: object, name: str) -> dict[str, str | None]:
    if not isinstance(given, dict) or any(not isinstance(each, (str, type(None))) for each in given.values()):
        raise bad_request(f"{name} is an object of settings and their values, each a text.")
    return given


def _bytes(given: str | None, encoding: str, name: str) -> bytes | None:
    if given is None:
        return None
    try:
        return bytes.fromhex(given) if encoding == "hex" else given.encode()
    except ValueError:
        raise bad_request(f"{name} is not {'hexadecimal digits' if encoding == 'hex' else 'text'}.") from None


def _header(given: object, encoding: str) -> tuple[str, bytes | None]:
    match given:
        case [str(name), str(value) | (None as value)]:
            return name, _bytes(value, encoding, f"header {name[:40]!r}")
    raise bad_request("A header is a list of its name and its value, which is a text or null.")


def _changed(call: Call, what: str, *words: object) -> None:
    call.session.forget()
    who = "A visitor of the page" if call.session.user is None else f"User {call.session.user!r}"
    log.info(f"%s {what}.", who, *words)
