"""Records of a partition for the page: only as many bytes of each are kept as are shown. Not thread-safe."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from pylog_spark.client.errors import translated
from pylog_spark.web.console.views import HEADER_BYTES_MAX, VIEW_BYTES_MAX

if TYPE_CHECKING:
    import pyarrow as pa

    from pylog_spark._native import RangeReader

#: Most headers of a record that are shown.
HEADERS_MAX = 50
_COLUMNS = ("key", "value", "offset", "timestamp", "timestampType", "headers")
_WAIT_MS = 200
# Small batches: who has enough stops soon.
_BATCH_BYTES, _BATCH_ROWS = 500_000, 2_000


class Part(NamedTuple):
    """The first bytes of a key, a value or a header, and how many it has."""

    data: bytes | None
    size: int


@dataclass(frozen=True, slots=True)
class Row:
    """A record as far as it is shown; times in ms since 1970, -1 without one. `headers_left_out` counts those beyond `HEADERS_MAX`."""

    partition: int
    offset: int
    timestamp_ms: int
    timestamp_type: int
    key: Part
    value: Part
    headers: tuple[tuple[str, Part], ...]
    headers_left_out: int

    @property
    def size(self) -> int:
        """Bytes of key, value and the headers that are shown."""
        return self.key.size + self.value.size + sum(len(name) + part.size for name, part in self.headers)

    @property
    def kept(self) -> int:
        """How many of them are shown."""
        parts = (self.key, self.value, *(part for _, part in self.headers))
        return sum(len(part.data or b"") for part in parts)


class Span(NamedTuple):
    """Offsets of a partition, from `start` to before `end`."""

    partition: int
    start: int
    end: int


class Reading:
    """Reads spans of a topic, one after the other; close it.

    Parameters
    ----------
    settings : mapping of str to str
        Of the user's client.
    topic, topic_id : str
        The topic.
    spans : sequence of Span
        None of them is empty.
    limit : int or None
        Most records; None: all.
    key : bytes or None
        Only records with this key.

    Attributes
    ----------
    positions : dict of int to int
        By partition, the offset before which all was looked at.

    Raises
    ------
    LogError
        Also while it reads.
    """

    def __init__(
        self,
        settings: Mapping[str, str],
        topic: str,
        topic_id: str,
        spans: Sequence[Span],
        *,
        limit: int | None = None,
        key: bytes | None = None,
    ) -> None:
        from pylog_spark._native import RangeReader

        first, *others = spans
        self._spans = spans
        self.positions = {span.partition: span.start for span in spans}
        with translated():
            self._reader: RangeReader = RangeReader(
                settings,
                topic,
                *first,
                _COLUMNS,
                topic_id=topic_id,
                batch_bytes=_BATCH_BYTES,
                max_rows=_BATCH_ROWS,
                then=[(topic, *span, topic_id) for span in others],
                keys=[] if key is None else [("in", [key])],
                limit=limit,
                keep_connections=True,
            )

    def close(self) -> None:
        """Stop reading ahead."""
        self._reader.stop()

    def batches(self, contains: bytes | None = None) -> Iterator[list[Row]]:
        """Give the records that have these bytes in key or value, as they come; an empty list now and then, when `positions` moved."""
        while not self._reader.at_end:
            with translated():
                batch = self._reader.next_batch(_WAIT_MS)
            here = self._spans[min(self._reader.range_index, len(self._spans) - 1)]
            rows = [] if batch is None else _rows(here.partition, _arrow(batch), contains)
            self._moved()
            yield rows

    def _moved(self) -> None:
        index = len(self._spans) if self._reader.at_end else self._reader.range_index
        for span in self._spans[:index]:
            self.positions[span.partition] = span.end
        if index < len(self._spans):
            span = self._spans[index]
            self.positions[span.partition] = min(max(self._reader.next_offset, span.start), span.end)


def _arrow(batch: object) -> pa.RecordBatch:
    import pyarrow as pa

    return pa.record_batch(batch)


def _rows(partition: int, batch: pa.RecordBatch, contains: bytes | None) -> list[Row]:
    import pyarrow.compute as pc

    if contains is not None:
        found = [pc.fill_null(pc.match_substring(batch.column(name), pattern=contains), False) for name in _COLUMNS[:2]]
        batch = batch.filter(pc.or_(*found))
    offsets, types, headers = (batch.column(name).to_pylist() for name in ("offset", "timestampType", "headers"))
    micros = batch.column("timestamp").cast("int64").to_pylist()
    keys, values = (_parts(batch.column(name)) for name in _COLUMNS[:2])
    return [
        Row(
            partition,
            offset,
            -1 if micros[place] is None else micros[place] // 1000,
            types[place],
            keys[place],
            values[place],
            tuple((each["key"], _part(each["value"])) for each in (headers[place] or ())[:HEADERS_MAX]),
            max(len(headers[place] or ()) - HEADERS_MAX, 0),
        )
        for place, offset in enumerate(offsets)
    ]


def _parts(column: pa.Array) -> list[Part]:
    import pyarrow.compute as pc

    sizes = pc.binary_length(column).to_pylist()
    heads = pc.binary_slice(column, 0, VIEW_BYTES_MAX).to_pylist()
    return [Part(head, size or 0) for head, size in zip(heads, sizes, strict=True)]


def _part(data: bytes | None) -> Part:
    return Part(None if data is None else data[:HEADER_BYTES_MAX], len(data or b""))
