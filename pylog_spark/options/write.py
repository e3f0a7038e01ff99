"""The options of a query that writes, as one value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pylog_spark.audit.document import WINDOW_MS, Audit
from pylog_spark.errors import PylogError
from pylog_spark.offsets.texts import AT_LEAST_ONCE, ERROR, EXACTLY_ONCE
from pylog_spark.options.names import client_settings, option_values, registry
from pylog_spark.options.table import WRITE
from pylog_spark.typed.formats import Formats, formats

#: Kafka's default of `delivery.timeout.ms`.
DELIVERY_TIMEOUT_MS = 120_000
#: Kafka's default `transaction.max.timeout.ms`: no broker allows more unless it is configured so.
TRANSACTION_TIMEOUT_MS = 900_000
#: A write that is not decided is left to its driver for this much longer than a transaction of a task may be open.
_GRACE_MS = 300_000
#: Default of `abandonedAfter`.
ABANDONED_AFTER_MS = TRANSACTION_TIMEOUT_MS + _GRACE_MS
_TO_GIVE_IT_UP = f"leave it out, or set delivery to {AT_LEAST_ONCE}"


@dataclass(frozen=True)
class WriteOptions:
    """The options of a writing query, checked and typed; plain values, so it can be pickled.

    Attributes
    ----------
    topic : str or None
        Topic of all rows.
    delivery : str
        `EXACTLY_ONCE` or `AT_LEAST_ONCE`.
    named : tuple of str and int, or None
        `txnAppId` and `txnVersion`.
    ledger : str or None
        Where its decisions are; None: in the topic that is everybody's.
    fails_when_written : bool
        Whether a batch that was written before is an error.
    abandoned_after_ms : int
        After how long others may abort a write that is not decided.
    client : mapping
        Settings of the native client.
    formats : Formats
        The formats of keys and values.
    audit : Audit or None
        `auditTopic` and `auditWindow`.
    """

    topic: str | None
    delivery: str
    named: tuple[str, int] | None
    ledger: str | None
    fails_when_written: bool
    abandoned_after_ms: int
    client: Mapping[str, str]
    formats: Formats
    audit: Audit | None = None


def write_options(given: Mapping[str, str], *, streaming: bool = False) -> WriteOptions:
    """Read the options of a query that writes. Raises `PylogError` as `read_options` does."""
    values = option_values(given, WRITE)
    client = client_settings(given)
    # Every part of a write that waits for brokers, also its commit on the driver, waits as long as its records do.
    client.setdefault("default.api.timeout.ms", client.get("delivery.timeout.ms", str(DELIVERY_TIMEOUT_MS)))
    codec = values["compression"]
    if codec is not None and client.setdefault("compression.type", codec) != codec:
        raise PylogError(
            "PYLOG_INVALID_OPTION",
            f"The options compression ({codec}) and kafka.compression.type ({client['compression.type']}) say "
            "different things; leave one out.",
        )
    delivery = values["delivery"]
    if delivery == EXACTLY_ONCE:
        _check_client(client)
    named = _named(values["txnAppId"], values["txnVersion"], delivery, streaming=streaming)
    fails_when_written = values["whenWritten"] == ERROR
    if fails_when_written and named is None:
        raise PylogError(
            "PYLOG_INVALID_OPTION", "The option whenWritten=error needs txnAppId and txnVersion beside it."
        )
    ledger: str | None = values["ledger"]
    if ledger is not None and delivery != EXACTLY_ONCE:
        raise PylogError(
            "PYLOG_INVALID_OPTION",
            f"The option ledger has no meaning with delivery={delivery}, which decides nothing; leave it out, or leave delivery out.",
        )
    abandoned_after_ms = _abandoned_after_ms(values["abandonedAfter"], delivery, client)
    audit = _audit(values["auditTopic"], values["auditWindow"], values["topic"])
    forms = formats(values, registry(given))
    return WriteOptions(
        values["topic"], delivery, named, ledger, fails_when_written, abandoned_after_ms, client, forms, audit
    )


def _check_client(client: Mapping[str, str]) -> None:
    """Refuse settings with which transactions are not possible."""
    if (acks := client.get("acks", "all").strip().lower()) not in ("all", "-1"):
        raise PylogError(
            "PYLOG_INVALID_OPTION",
            f"The option kafka.acks={acks} does not go with exactly-once delivery, which waits for all in-sync replicas; "
            f"{_TO_GIVE_IT_UP}.",
        )
    if client.get("enable.idempotence", "true").strip().lower() == "false":
        raise PylogError(
            "PYLOG_INVALID_OPTION",
            f"The option kafka.enable.idempotence=false does not go with exactly-once delivery; {_TO_GIVE_IT_UP}.",
        )


def _abandoned_after_ms(given: int | None, delivery: str, client: Mapping[str, str]) -> int:
    if given is None:
        timeout = client.get("transaction.timeout.ms", "").strip()
        # The client refuses a text that is not a number.
        return int(timeout) + _GRACE_MS if timeout.isdecimal() else ABANDONED_AFTER_MS
    if delivery != EXACTLY_ONCE:
        raise PylogError(
            "PYLOG_INVALID_OPTION",
            f"The option abandonedAfter has no meaning with delivery={delivery}, which leaves nothing undecided; leave it out, or "
            "leave delivery out.",
        )
    return given


def _audit(audit_topic: str | None, window_ms: int | None, topic: str | None) -> Audit | None:
    if audit_topic is None:
        if window_ms is not None:
            raise PylogError(
                "PYLOG_INVALID_OPTION", "The option auditWindow needs auditTopic beside it; give both or none."
            )
        return None
    if audit_topic == topic:
        raise PylogError(
            "PYLOG_INVALID_OPTION",
            f"The options topic and auditTopic both say {topic!r}; counts are kept in a topic of their own.",
        )
    return Audit(audit_topic, window_ms or WINDOW_MS)


def _named(app_id: str | None, version: int | None, delivery: str, *, streaming: bool) -> tuple[str, int] | None:
    if app_id is None and version is None:
        return None
    if streaming:
        raise PylogError(
            "PYLOG_INVALID_OPTION",
            "The options txnAppId and txnVersion name a batch write; a stream is known by its query's id and the number of its "
            "batch, so leave them out.",
        )
    if app_id is None or version is None:
        given, missing = ("txnVersion", "txnAppId") if app_id is None else ("txnAppId", "txnVersion")
        raise PylogError("PYLOG_INVALID_OPTION", f"The option {given} needs {missing} beside it; give both or none.")
    if delivery != EXACTLY_ONCE:
        raise PylogError(
            "PYLOG_INVALID_OPTION",
            f"The options txnAppId and txnVersion have no meaning with delivery={delivery}; leave them out, or leave delivery out.",
        )
    return app_id, version
