"""`differences`: a streaming frame of the windows in which a log does not have what its producers say.

    topics: timestamps -> counts of each batch (Arrow) \\
                                                        by topic and window: sums, judged when nothing has come for a while
    audit topic: values -> counts                      /

A window is judged by the clock and not by a watermark: counts and records of whichever time add up, also those of a backfill or of
a topic that is read from its beginning, and nothing is dropped as late. So it is judged when `delay` has passed since its end and since
something of it came. That holds as long as each micro-batch reads all that is there, so limits are refused.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from pylog_spark.audit.comparing import why_not
from pylog_spark.audit.counting import count_windows
from pylog_spark.audit.document import DELAY_MS, WINDOW_MS, count_in, window_start
from pylog_spark.errors import PylogError, native, translated
from pylog_spark.offsets.texts import timeout
from pylog_spark.options.names import client_settings
from pylog_spark.results.configs import ConfigDescription
from pylog_spark.results.decoding import all_decoded

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.state import GroupState

_log = logging.getLogger("pylog_spark")

_COUNTS = "topic string, start_ms bigint, producers bigint, log bigint"
#: Sums; those that were given last; whether the window was judged since something came.
_STATE = "producers bigint, log bigint, given_producers bigint, given_log bigint, judged boolean"
_RESULT = "topic string, window_start timestamp, window_end timestamp, producers bigint, log bigint"
#: Options that are set here, or that keep a micro-batch from reading all that is there.
_SET_HERE = ("subscribe", "subscribepattern", "assign", "topic")
_LIMITS = ("maxoffsetspertrigger", "maxrecordspertrigger", "maxbytespertrigger", "minoffsetspertrigger")


def differences(
    spark: SparkSession,
    audit_topic: str,
    topics: str | Sequence[str],
    *,
    window: str = f"{WINDOW_MS}ms",
    delay: str = f"{DELAY_MS}ms",
    keep: str = "1d",
    since: datetime | None = None,
    **options: object,
) -> DataFrame:
    """Give a streaming frame with a row for each window in which the log does not have what the producers say.

    Start it with a trigger such as ``processingTime="10 seconds"``, which is how often windows are looked at, and output mode append.

    Parameters
    ----------
    spark : SparkSession
        Its workers need pandas.
    audit_topic : str
        Where the producers say what they have written.
    topics : str or sequence of str
        The topics to look at.
    window : str
        Length of the windows, such as ``10m``: that of the producers, or a multiple of it.
    delay : str
        How long after its end, and after something of it came last, a window is judged. Longer than producers take to say what they have
        written, and than a transaction is open.
    keep : str
        How long a window that was judged is remembered. What comes later is compared with itself.
    since : datetime, optional
        Compare windows that begin then or later; all that the topics have when left out.
    **options
        Options of ``format("pylog")``; those with dots in their names as ``**{"kafka.bootstrap.servers": "..."}``.

    Returns
    -------
    DataFrame
        ``topic``, ``window_start``, ``window_end``, ``producers`` (how many records they say that they have written) and ``log`` (how many
        there are). A window that changes later is given again; with equal counts it takes back what was given before. Something in
        the audit topic that is not an audit record, or counts in other windows, is a difference of the audit topic itself.

    Raises
    ------
    PylogError
        ``PYLOG_INVALID_OPTION``, ``PYLOG_UNSUPPORTED_OPTION``, ``PYLOG_UNKNOWN_TOPIC``; a topic cannot be compared, since it is compacted or has
        the brokers' timestamps.
    """
    names = (topics,) if isinstance(topics, str) else tuple(topics)
    window_ms, delay_ms = _duration_ms("window", window), _duration_ms("delay", delay)
    keep_ms = _duration_ms("keep", keep)
    given = {name: str(value) for name, value in options.items() if value is not None}
    _check(given, names)
    since_ms = None if since is None else -(-int(since.timestamp() * 1_000) // window_ms) * window_ms
    if since_ms is not None:
        given.update(startingTimestamp=str(since_ms), startingOffsetsByTimestampStrategy="latest")
    else:
        given.setdefault("startingOffsets", "earliest")

    def read(subscribe: str, schema: str) -> DataFrame:
        reader = spark.readStream.format("pylog").options(**given, subscribe=subscribe)
        return reader.schema(schema).load()

    log = read(",".join(names), "topic string, timestamp timestamp").mapInArrow(
        partial(count_log, window_ms=window_ms), _COUNTS
    )
    said = read(audit_topic, "topic string, timestamp timestamp, value binary").mapInArrow(
        partial(count_said, window_ms=window_ms, topics=frozenset(names)), _COUNTS
    )
    counts = log.unionByName(said)
    if since_ms is not None:
        counts = counts.where(f"start_ms >= {since_ms}")
    return counts.groupBy("topic", "start_ms").applyInPandasWithState(
        partial(judge, window_ms=window_ms, delay_ms=delay_ms, keep_ms=keep_ms),
        _RESULT,
        _STATE,
        "append",
        "ProcessingTimeTimeout",
    )


def count_log(batches: Iterable[pa.RecordBatch], window_ms: int) -> Iterator[pa.RecordBatch]:
    """Count records by topic and window, batch by batch. Runs in Spark's Python workers."""
    import pyarrow.compute as pc

    for batch in batches:
        topics = batch.column("topic")
        counts = []
        for topic in pc.unique(topics).to_pylist():
            times = batch.filter(pc.equal(topics, topic)).column("timestamp")
            counts += [(topic, start_ms, 0, count) for start_ms, count in count_windows(times, window_ms)]
        yield _counts(counts)


def count_said(batches: Iterable[pa.RecordBatch], window_ms: int, topics: frozenset[str]) -> Iterator[pa.RecordBatch]:
    """Read audit records of `topics`, batch by batch. Runs in Spark's Python workers."""
    for batch in batches:
        counts: Counter[tuple[str, int, bool]] = Counter()
        rows = zip(*(batch.column(name).to_pylist() for name in ("topic", "timestamp", "value")), strict=True)
        for audit_topic, stamp, value in rows:
            count = count_in(value, window_ms)
            if count is None:
                _log.warning(
                    "A record of %s is no audit record in windows of %d ms: %.200r", audit_topic, window_ms, value
                )
                counts[audit_topic, window_start(int(stamp.timestamp() * 1_000), window_ms), False] += 1
            elif count[0] in topics:
                counts[count[0], count[1], True] += count[2]
        yield _counts([(topic, start, n * said, n * (not said)) for (topic, start, said), n in counts.items()])


def _counts(rows: Sequence[tuple[str, int, int, int]]) -> pa.RecordBatch:
    import pyarrow as pa

    kinds = (pa.string(), pa.int64(), pa.int64(), pa.int64())
    columns = zip(*rows, strict=True) if rows else ((),) * len(kinds)
    arrays = [pa.array(column, kind) for column, kind in zip(columns, kinds, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, ["topic", "start_ms", "producers", "log"])


def judge(
    key: tuple[Any, ...], frames: Iterable[pd.DataFrame], state: GroupState, window_ms: int, delay_ms: int, keep_ms: int
) -> Iterator[pd.DataFrame]:
    """Add up what comes of a window; when nothing has come for a while, give it if its counts differ. Runs in Spark's Python workers."""
    import pandas as pd

    topic, start_ms = key[0], int(key[1])  # Spark gives a number of numpy
    producers, log, given_producers, given_log, judged = state.get if state.exists else (0, 0, 0, 0, False)
    if not state.hasTimedOut:
        for frame in frames:
            producers, log = producers + int(frame["producers"].sum()), log + int(frame["log"].sum())
        state.update((producers, log, given_producers, given_log, False))
        left_ms = start_ms + window_ms + delay_ms - state.getCurrentProcessingTimeMs()
        state.setTimeoutDuration(max(delay_ms, min(left_ms, keep_ms)))  # a time far ahead is not waited for
        return
    if judged:
        state.remove()
        return
    state.update((producers, log, producers, log, True))
    state.setTimeoutDuration(keep_ms)
    if (producers, log) != (given_producers, given_log) and (producers != log or given_producers != given_log):
        bounds = pd.to_datetime([start_ms, start_ms + window_ms], unit="ms", utc=True)
        row = {"topic": topic, "window_start": bounds[0], "window_end": bounds[1], "producers": producers, "log": log}
        yield pd.DataFrame([row])


def _duration_ms(name: str, text: str) -> int:
    try:
        return timeout(text)
    except ValueError as error:
        raise PylogError("PYLOG_INVALID_OPTION", f"The argument {name} of differences {error}.") from None


def _check(given: dict[str, str], topics: Sequence[str]) -> None:
    for name in given:
        if name.lower() in _SET_HERE:
            raise PylogError("PYLOG_UNSUPPORTED_OPTION", f"differences sets the option {name} itself; leave it out.")
        if name.lower() in _LIMITS:
            raise PylogError(
                "PYLOG_UNSUPPORTED_OPTION",
                f"The option {name} does not go with an audit, which compares what is in both topics at one time; leave it out.",
            )
    if not topics:
        raise PylogError("PYLOG_INVALID_OPTION", "differences needs at least one topic.")
    with translated():
        client = native().Client(client_settings(given))
        try:
            described = all_decoded(ConfigDescription, client.describe_configs("topic", list(topics)))
        finally:
            client.close()
    for topic in described:
        sentence = why_not(topic.name, {each.name: each.value for each in topic.configs})
        if sentence:
            raise PylogError("PYLOG_INVALID_OPTION", sentence)
