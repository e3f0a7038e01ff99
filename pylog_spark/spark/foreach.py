"""A function for ``foreachBatch`` that writes each micro-batch exactly once, in any output mode.

Spark offers the output mode update to no sink written in Python; ``foreachBatch`` takes every mode, and runs a batch again
after a crash. The batch's number as version makes the second run a no-op.

A query that is stopped in the middle of such a write ends quietly. Spark searches the text of the function's exception to find out
whether the stop caused it, in classic PySpark with a regular expression that recurses for each character
(``StreamExecution.PROXY_ERROR``). The text of a cancelled write is its Java stack: long enough to overflow the stack of the query's
thread, which then prints more than a thousand lines. So the exceptions of this function are short, and say in the words that Spark
searches for (4.0 to 4.3) that the job was cancelled.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from pylog_spark.errors import PylogError
from pylog_spark.offsets import texts
from pylog_spark.options.write import DELIVERY_TIMEOUT_MS


def foreach_batch(app_id: str, **options: object) -> Callable[[Any, int], None]:
    """Give a function for ``DataStreamWriter.foreachBatch`` that appends every micro-batch to the log exactly once.

    Parameters
    ----------
    app_id : str
        Name of this write: the same after each restart from the same checkpoint, and a different one for another checkpoint (whose
        batches are counted from 0 again) and for another query.
    **options
        Options of ``format("pylog")``; those with dots in their names as ``**{"kafka.bootstrap.servers": "..."}``.

    Raises
    ------
    PylogError
        ``PYLOG_INVALID_OPTION`` when `app_id` cannot be a name, or `options` has an option that this function sets itself.

    Notes
    -----
    Your own function may call it, with a frame made from the micro-batch. When the query is being stopped it raises
    at once, or as soon as Spark has cancelled the write; do not catch that error. The next start of the query writes the batch, once.

    When brokers that it has written to do not answer, the write is begun again for up to `kafka.delivery.timeout.ms`.

    Examples
    --------
    >>> servers = {"kafka.bootstrap.servers": "localhost:9092"}
    >>> write = foreach_batch("counts-by-airport", topic="counts", **servers)
    >>> counts.writeStream.outputMode("update").foreachBatch(write).start()  # doctest: +SKIP
    """
    try:
        texts.app_id(app_id)
    except ValueError as error:
        raise PylogError("PYLOG_INVALID_OPTION", f"The app_id of foreach_batch {error}.") from None
    taken = sorted(name for name in options if name.lower() in ("txnappid", "txnversion"))
    if taken:
        raise PylogError("PYLOG_INVALID_OPTION", f"foreach_batch sets the option {taken[0]} itself; leave it out.")
    given = {name: value for name, value in options.items() if value is not None}
    wait_s = _wait_s(given)
    has_written = False

    def write(frame: Any, batch_id: int) -> None:
        nonlocal has_written
        until_s = time.monotonic() + (wait_s if has_written else 0)
        while True:
            if group := _cancelled(frame):
                raise _stop(batch_id, group)
            try:
                writer = frame.write.format("pylog").options(**given)
                writer.option("txnAppId", app_id).option("txnVersion", batch_id).mode("append").save()
                has_written = True
                return
            except Exception as error:
                group = _cancelled(frame)
                if group is not None or _AWAY not in str(error) or time.monotonic() + _PAUSE_S > until_s:
                    shown = _shown(error, batch_id, group)
                    if shown is error:
                        raise
                    raise shown from None
            time.sleep(_PAUSE_S)

    return write


def _wait_s(given: Mapping[str, object]) -> float:
    """How many seconds to wait for brokers that do not answer: as long as a record's delivery may take."""
    said = next((value for name, value in given.items() if name.lower() == "kafka.delivery.timeout.ms"), None)
    # A text that is no number is refused when the first batch is written.
    return (int(str(said)) if str(said).isdecimal() else DELIVERY_TIMEOUT_MS) / 1_000


#: Appears in the text of the error that Spark makes of ours.
_AWAY = "[PYLOG_UNREACHABLE]"
#: Seconds between two attempts at a write while brokers do not answer.
_PAUSE_S = 1.0


#: From Spark's own list (``StreamExecution.IO_EXCEPTION_NAMES``).
_INTERRUPTIONS = ("InterruptedException", "InterruptedIOException", "ClosedByInterruptException")


def _cancelled(frame: Any) -> str | None:
    """The job group of the query that is being stopped while it runs this micro-batch. None when it is not being stopped, or when
    that cannot be known: with Spark Connect, whose server does not have this problem, or with a frame that belongs to no query."""
    java = getattr(frame, "_jdf", None)
    if java is None:
        return None
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]

    try:
        context = java.sparkSession().sparkContext()
        query_id = context.getLocalProperty("sql.streaming.queryId")
        group = context.getLocalProperty("spark.jobGroup.id")
        if query_id is None or group is None:
            return None
        key = frame.sparkSession.sparkContext._jvm.java.util.UUID.fromString(query_id)
        query = java.sparkSession().sharedState().activeStreamingQueries().get(key)
        return None if query is None or query.isActive() else str(group)
    except (Py4JError, AttributeError, TypeError):
        # Another version of Spark with other internals: as if the query were not being stopped.
        return None


def _shown(error: Exception, batch_id: int, group: str | None) -> Exception:
    """Give the error that Spark sees: `error` itself, unless the query's job `group` is being cancelled."""
    if group is None:
        return error
    text = str(error)
    if any(interruption in text for interruption in _INTERRUPTIONS) or ("cancelled" in text and group in text):
        return _stop(batch_id, group)
    # Another failure, which Spark will show. As a RuntimeError its text does not begin as Spark's expression expects.
    return RuntimeError(text)


def _stop(batch_id: int, group: str) -> PylogError:
    return PylogError(
        "PYLOG_QUERY_STOPPED",
        f"The query was stopped in micro-batch {batch_id}; its next start writes that batch, once "
        f"(org.apache.spark.SparkException: job group {group} was cancelled).",
    )
