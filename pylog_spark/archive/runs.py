"""Stored record batches in memory: how many there are, and where they can be parted."""

from __future__ import annotations

from typing import NamedTuple

from pylog_spark.archive.document import PartitionTotal
from pylog_spark.client.errors import LogError, translated

#: Bytes that are handed over to a broker at once, beside one larger batch.
RUN_BYTES = 8 << 20


class Run(NamedTuple):
    """Neighbouring batches.

    Attributes
    ----------
    end : int
        Where they end among the bytes.
    first_offset, next_offset : int
        First offset of the first batch, and the one behind the last batch.
    batches, records : int
        How many there are; markers of transactions are records, too.
    max_timestamp : int
        Largest timestamp of their records, milliseconds since 1970.
    """

    end: int
    first_offset: int
    next_offset: int
    batches: int
    records: int
    max_timestamp: int


def counted(total: PartitionTotal, runs: list[Run], size: int) -> PartitionTotal:
    """`total` and a segment of these runs."""
    return total.and_segment(sum(run.batches for run in runs), sum(run.records for run in runs), size)


def cut(data: bytes, where: str) -> list[Run]:
    """Cut batches into runs of about `RUN_BYTES`, and look at each checksum. Raises `LogError` that names `where`."""
    from pylog_spark._native import survey_batches

    try:
        with translated():
            return [Run(*found) for found in survey_batches(data, RUN_BYTES)[0]]
    except LogError as error:
        raise LogError(error.kind, f"{where}: {error.sentence}") from error
