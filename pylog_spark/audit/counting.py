"""Counts as Arrow: timestamps of records into counts of windows, and counts into the batch that a writer takes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from pylog_spark.audit.document import Audit, AuditRecord, audit_records

if TYPE_CHECKING:
    import pyarrow as pa

    from pylog_spark._native import RecordWriter


def count_windows(timestamps: Any, window_ms: int) -> list[tuple[int, int]]:
    """Count timestamps by window.

    Parameters
    ----------
    timestamps : pyarrow.Array or pyarrow.ChunkedArray
        Times of type timestamp in microseconds; nulls are not counted.
    window_ms : int
        Length of the windows.

    Returns
    -------
    list of (int, int)
        The start of each window in ms since 1970, and how many timestamps lie in it.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    micros, window_us = timestamps.cast(pa.int64()), window_ms * 1_000
    ends = pc.min_max(micros).as_py()
    first, last = ends["min"], ends["max"]
    if first is None:
        return []
    if first // window_us == last // window_us:  # as a rule: batches are short
        return [(first // window_us * window_ms, len(micros) - micros.null_count)]
    if first < 0:  # pyarrow divides towards zero
        micros = pc.if_else(pc.less(micros, 0), pc.subtract(micros, window_us - 1), micros)
    found = pc.value_counts(pc.divide(micros, window_us).drop_null())
    numbers, counts = found.field("values").to_pylist(), found.field("counts").to_pylist()
    return [(number * window_ms, count) for number, count in zip(numbers, counts, strict=True)]


def audit_batch(records: Iterable[AuditRecord]) -> pa.RecordBatch:
    """Give audit records as the native writer takes them."""
    import pyarrow as pa

    chosen = list(records)
    keys, values = [record.key for record in chosen], [record.value for record in chosen]
    return pa.record_batch({"key": pa.array(keys, pa.binary()), "value": pa.array(values, pa.binary())})


def write_counts(writer: RecordWriter, audit: Audit, producer: str) -> int:
    """Write what `writer` has counted since the last call into the audit topic, through the same writer; how many audit records."""
    counts = writer.take_counts()
    if counts:
        writer.write(audit_batch(audit_records(counts, audit.window_ms, producer)), audit.topic)
    return len(counts)
