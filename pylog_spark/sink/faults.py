"""Errors of transactions as sentences for the user, which depend on what was tried; `pylog_spark.errors` has the others."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import partial

from pylog_spark.errors import PylogError, from_native, translated
from pylog_spark.sink.identity import Write

#: Errors when another producer has the transactional id now.
_FENCED = frozenset({"PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH", "FENCED_INSTANCE_ID"})
#: Errors of brokers without the requests that transactions need.
_WITHOUT_TRANSACTIONS = frozenset({"UNSUPPORTED_VERSION", "UNSUPPORTED_FOR_MESSAGE_FORMAT"})


def translating(write: Write) -> AbstractContextManager[None]:
    """Turn a native error inside the block, about a transaction of `write`, into a `PylogError`."""
    return translated(partial(transactional, write))


def transactional(write: Write, kind: str, message: str) -> PylogError:
    """Give the user's error for a native one."""
    if kind in _FENCED:
        return PylogError(
            "PYLOG_SINK_FENCED",
            f"Another driver took over {write.name}: it runs twice, from one checkpoint or with one txnAppId (stop one of the two), or "
            "it was ended from outside, as when it is open for longer than its option abandonedAfter says.",
        )
    return requested(kind, message)


def requested(kind: str, message: str) -> PylogError:
    """Give the user's error for a native one about a request that brokers without transactions lack."""
    if kind not in _WITHOUT_TRANSACTIONS:
        return from_native(kind, message)
    return PylogError(
        "PYLOG_NO_TRANSACTIONS",
        f"The brokers lack what exactly-once writing needs ({message.rstrip('. ')}); set the option delivery to at-least-once.",
    )
