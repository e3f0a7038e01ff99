"""Every error that a user of pylog can get, and the one place where a native error becomes one of them.

An error is a condition name (stable: programs and tests look for it) and one sentence that says what is wrong and what
to do. Spark shows it in its own exception before and after the Python traceback (see `pylog_spark.spark.raising`), as
``pylog_spark.errors.PylogError: [PYLOG_...] sentence``.

No pyspark and no native module is imported here: the broker, the command line and the data source all use this file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from pylog_spark._native import (
        Client,
        LogDirectory,
        RangeReader,
        RecordWriter,
        SettingRow,
        TypedRead,
        _ArrowArray,
        _Batch,
    )

#: Conditions, each with what it means. The names may not change: users search for them.
CONDITIONS: dict[str, str] = {
    "PYLOG_UNKNOWN_OPTION": "an option that pylog does not know",
    "PYLOG_INVALID_OPTION": "an option whose value cannot be used, or that contradicts another",
    "PYLOG_UNSUPPORTED_OPTION": "an option that is known but refused, with the reason",
    "PYLOG_NOT_ALLOWED": "an option that names a function, file or variable that the environment of Spark's driver does not list",
    "PYLOG_INVALID_SCHEMA": "a column with a wrong name or type",
    "PYLOG_UNKNOWN_TOPIC": "a topic or partition that the brokers do not have",
    "PYLOG_UNREACHABLE": "no broker answered, or nothing gave a token for the login",
    "PYLOG_AUTHENTICATION": "a login that the brokers refused, or certificates that one side does not trust",
    "PYLOG_OFFSET_OUT_OF_RANGE": "an offset asked for that the log does not hold",
    "PYLOG_NO_OFFSET_FOR_TIMESTAMP": "no record at or after a starting timestamp",
    "PYLOG_START_AFTER_END": "a batch read whose start lies after its end",
    "PYLOG_DATA_LOSS": "records that a query still needed were removed from the beginning of the log, by retention or by DeleteRecords",
    "PYLOG_LOG_TRUNCATED": "a log ends before an offset that a query has read or planned to read",
    "PYLOG_TOPIC_RECREATED": "a topic was deleted and created again while a query was reading it or writing to it",
    "PYLOG_TOPIC_DELETED": "a topic that a query was reading or writing to does not exist any more",
    "PYLOG_PARTITION_GONE": "a partition that a query was reading does not exist any more, or the query no longer subscribes to its topic",
    "PYLOG_AVAILABLE_NOW_PARTITIONS": "with Trigger.AvailableNow, a batch whose partitions are not those seen at the start (Spark's MISMATCHED_TOPIC_PARTITIONS_BETWEEN_END_OFFSET_AND_PREFETCHED)",
    "PYLOG_AVAILABLE_NOW_BEYOND": "with Trigger.AvailableNow, a batch that ends after the end seen at the start (Spark's END_OFFSET_HAS_GREATER_OFFSET_FOR_TOPIC_PARTITION_THAN_PREFETCHED)",
    "PYLOG_AVAILABLE_NOW_LOST": "with Trigger.AvailableNow, partitions that disappeared during the query (Spark's LOST_TOPIC_PARTITIONS_IN_END_OFFSET_WITH_TRIGGER_AVAILABLENOW)",
    "PYLOG_AVAILABLE_NOW_TRUNCATED": "with Trigger.AvailableNow, a log that ends before the end of a batch (Spark's END_OFFSET_HAS_GREATER_OFFSET_FOR_TOPIC_PARTITION_THAN_LATEST_WITH_TRIGGER_AVAILABLENOW)",
    "PYLOG_INVALID_CHECKPOINT": "an offset in Spark's checkpoint that neither pylog nor Spark's Kafka connector wrote",
    "PYLOG_UNSUPPORTED_MODE": "a save or output mode that a log cannot offer",
    "PYLOG_UNSUPPORTED_SPARK": "a feature that this version of Spark cannot offer",
    "PYLOG_BAD_RECORD": "a key or value that does not parse as `keyFormat` or `valueFormat` says, with mode FAILFAST",
    "PYLOG_CORRUPT_BATCH": "stored bytes whose checksum is wrong",
    "PYLOG_DELIVERY": "a record that the brokers refused or did not acknowledge",
    "PYLOG_NO_TRANSACTIONS": "brokers that cannot do what exactly-once writing needs",
    "PYLOG_ALREADY_WRITTEN": "a batch whose `txnVersion`, or a later one, was written before, with `whenWritten=error`",
    "PYLOG_SINK_FENCED": "a write that was started a second time and goes on there, or that was aborted as abandoned (`abandonedAfter`)",
    "PYLOG_SINK_STATE": "the topic with the decisions of exactly-once writes cannot be created or read, or its records contradict each other",
    "PYLOG_TRANSACTION_LOST": "a transaction that the brokers ended before the write was committed",
    "PYLOG_TABLE_STATE": "a table of `pylog_spark.lakehouse` that is not there, or whose commits do not fit what is to be done",
    "PYLOG_QUERY_STOPPED": "no failure: a micro-batch of `foreach_batch` ended because its query was stopped; only Spark looks at it",
    "PYLOG_NATIVE_MISSING": "the compiled part of pylog is not installed",
    "PYLOG_REGISTRY_UNREACHABLE": "no schema registry answered as one",
    "PYLOG_REGISTRY_REFUSED": "a schema registry refused a request: an unknown id or subject, a schema that is none or not compatible, a login",
    "PYLOG_BROKER": "any other error answered by a broker or by the native client",
}


class PylogError(Exception):
    """An error with a stable condition name and one sentence that says what to do.

    Parameters
    ----------
    condition : str
        A key of `CONDITIONS`.
    sentence : str
        What is wrong and what to do about it, naming option, topic, partition or offset.
    """

    def __init__(self, condition: str, sentence: str) -> None:
        super().__init__(condition, sentence)
        self.condition = condition
        self.sentence = sentence

    def __str__(self) -> str:
        return f"[{self.condition}] {self.sentence}"


#: Native kinds (Kafka's error names and the client's own) -> (condition, advice appended to the native sentence).
_NATIVE_KINDS: dict[str, tuple[str, str]] = {
    "MISMATCHED_BUILDS": ("PYLOG_NATIVE_MISSING", ""),
    "UNREACHABLE": ("PYLOG_UNREACHABLE", "check kafka.bootstrap.servers and that a broker runs there"),
    "TIMED_OUT": ("PYLOG_UNREACHABLE", "check that the brokers run and answer"),
    "REQUEST_TIMED_OUT": ("PYLOG_UNREACHABLE", "check that the brokers run and answer"),
    "TOKEN_UNAVAILABLE": ("PYLOG_UNREACHABLE", "see kafka.sasl.oauthbearer.*"),
    "SSL_AUTHENTICATION_FAILED": ("PYLOG_AUTHENTICATION", "see kafka.security.protocol and kafka.ssl.*"),
    "SASL_AUTHENTICATION_FAILED": ("PYLOG_AUTHENTICATION", "see kafka.sasl.*"),
    "UNSUPPORTED_SASL_MECHANISM": ("PYLOG_AUTHENTICATION", "see kafka.sasl.mechanism"),
    "ILLEGAL_SASL_STATE": ("PYLOG_AUTHENTICATION", "see kafka.security.protocol"),
    "UNKNOWN_TOPIC_OR_PARTITION": ("PYLOG_UNKNOWN_TOPIC", "create it (pylog topic create) or correct the name"),
    "INVALID_TOPIC_EXCEPTION": ("PYLOG_UNKNOWN_TOPIC", "a topic name has 1-249 of the characters a-z A-Z 0-9 . _ -"),
    "UNKNOWN_TOPIC_ID": ("PYLOG_TOPIC_RECREATED", "see failOnDataLoss"),
    "INCONSISTENT_TOPIC_ID": ("PYLOG_TOPIC_RECREATED", "see failOnDataLoss"),
    "OFFSET_OUT_OF_RANGE": ("PYLOG_DATA_LOSS", "set failOnDataLoss to false to go on with what is left"),
    "LOG_TRUNCATED": ("PYLOG_LOG_TRUNCATED", "set failOnDataLoss to false to go on with what is left"),
    "CORRUPT_BATCH": ("PYLOG_CORRUPT_BATCH", "restore the segment from a replica or a backup"),
    "BAD_RECORD": (
        "PYLOG_BAD_RECORD",
        "set mode to PERMISSIVE to get such records with nulls, or to DROPMALFORMED to leave them out",
    ),
    "INVALID_ARGUMENT": ("PYLOG_INVALID_OPTION", "correct the option"),
    "INVALID_CONFIG": ("PYLOG_INVALID_OPTION", "correct the option"),
    "MESSAGE_TOO_LARGE": ("PYLOG_DELIVERY", "raise message.max.bytes of the broker or max.message.bytes of the topic"),
    "RECORD_LIST_TOO_LARGE": ("PYLOG_DELIVERY", "lower kafka.batch.size or raise message.max.bytes"),
    "INVALID_TRANSACTION_TIMEOUT": (
        "PYLOG_INVALID_OPTION",
        "lower kafka.transaction.timeout.ms to what transaction.max.timeout.ms of the brokers allows",
    ),
    "INVALID_TIMESTAMP": ("PYLOG_DELIVERY", "see message.timestamp.before.max.ms of the topic"),
    "NOT_ENOUGH_REPLICAS": ("PYLOG_DELIVERY", "bring the missing brokers back or lower min.insync.replicas"),
}

#: Native kinds that may mean that records of a range are gone, with which a query goes on under failOnDataLoss=false. A reader
#: also times out when the log ends before its range does.
LOSS_KINDS = frozenset(
    {
        "OFFSET_OUT_OF_RANGE",
        "LOG_TRUNCATED",
        "UNKNOWN_TOPIC_ID",
        "INCONSISTENT_TOPIC_ID",
        "UNKNOWN_TOPIC_OR_PARTITION",
        "TIMED_OUT",
    }
)


def from_native(kind: str, message: str) -> PylogError:
    """Give the user's error for a native one.

    Parameters
    ----------
    kind, message : str
        The two arguments of ``NativeError``.
    """
    condition, advice = _NATIVE_KINDS.get(kind, ("PYLOG_BROKER", ""))
    sentence = message.rstrip(". ")
    if condition == "PYLOG_BROKER":
        sentence = f"{sentence} ({kind})"
    if sentence.endswith("?"):  # it suggests another name
        return PylogError(condition, sentence)
    if advice and ";" not in sentence:  # else the native sentence gives its own advice
        sentence = f"{sentence}; {advice}"
    return PylogError(condition, f"{sentence}.")


class NativeModule(Protocol):
    """The module that `native` returns: what source and sink use of `_native.pyi`."""

    @property
    def Client(self) -> type[Client]:  # noqa: N802 - the module's names
        """Requests to one cluster."""

    @property
    def LogDirectory(self) -> type[LogDirectory]:  # noqa: N802
        """A data directory read without its broker."""

    @property
    def RangeReader(self) -> type[RangeReader]:  # noqa: N802
        """Reads ranges of partitions."""

    @property
    def RecordWriter(self) -> type[RecordWriter]:  # noqa: N802
        """Appends batches."""

    @property
    def TypedRead(self) -> type[TypedRead]:  # noqa: N802
        """What a typed read gives."""

    def encode(
        self,
        batch: _ArrowArray,
        *,
        key: str | None = None,
        value: str | None = None,
        key_schema: tuple[str, Sequence[str]] | None = None,
        value_schema: tuple[str, Sequence[str]] | None = None,
        key_id: int | None = None,
        value_id: int | None = None,
        key_message: tuple[bytes, str, bool] | None = None,
        value_message: tuple[bytes, str, bool] | None = None,
    ) -> _Batch:
        """A batch with its columns `key` and `value` in their formats."""

    def protobuf_fields(self, descriptors: bytes, name: str) -> str:
        """The fields of a message of Protobuf as DDL."""

    def protobuf_file(self, descriptors: bytes, name: str) -> tuple[bytes, list[str]]:
        """The file of a message of Protobuf, encoded, and the names of its imports."""

    def murmur2(self, data: bytes) -> int:
        """Kafka's hash of a key."""

    def settings(self, owner: Literal["client", "broker", "topic", "group"]) -> tuple[SettingRow, ...]:
        """Every setting of a client, a broker, a topic or a group."""

    def nearest(self, name: str, known: Sequence[str]) -> str | None:
        """The name of `known` that is written most like `name`, if one is."""


def native() -> NativeModule:
    """Import the native module when it is first needed, or say in one sentence that it is missing."""
    try:
        from pylog_spark import _native
    except ImportError as error:
        raise PylogError(
            "PYLOG_NATIVE_MISSING",
            f"The compiled module pylog_spark._native cannot be loaded ({error}); install the wheel of pylog-spark for "
            "this platform, or run 'make develop' in a clone.",
        ) from None
    return _native


@contextmanager
def translated(to: Callable[[str, str], PylogError] = from_native) -> Iterator[None]:
    """Turn a ``NativeError`` raised inside the block into the `PylogError` that `to` gives, without a chain of causes.

    Spark would print the whole chain of exceptions, and the native error says nothing that the translated one does not.
    """
    try:
        yield
    except Exception as error:
        kind_and_message = native_kind(error)
        if kind_and_message is None:
            raise
        raise to(*kind_and_message) from None


def native_kind(error: BaseException) -> tuple[str, str] | None:
    """Give ``(kind, message)`` when `error` came from the native module, from a document of it that could not be read, or from an archive; else None."""
    names = {each.__name__ for each in type(error).__mro__}
    if names & {"NativeError", "DocumentError", "LogError"} and len(error.args) == 2:
        return str(error.args[0]), str(error.args[1])
    return None
