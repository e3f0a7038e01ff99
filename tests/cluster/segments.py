"""Record batches in a segment file, as far as the checker needs them: where they begin and end, and which are control batches."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass

_HEADER = struct.Struct(">qiibIhiqqqhii")
_BEFORE_LENGTH = 12
_CONTROL = 0x20


@dataclass(frozen=True, slots=True)
class Batch:
    """One record batch, as it stands in the file."""

    base_offset: int
    last_offset: int
    leader_epoch: int
    control: bool
    data: bytes


def batches(segment: bytes) -> Iterator[Batch]:
    """Every whole batch of a segment, or of several one after another; what is cut at the end is left out."""
    at = 0
    while at + _HEADER.size <= len(segment):
        base, length, epoch, _, _, attributes, last, *_ = _HEADER.unpack_from(segment, at)
        end = at + _BEFORE_LENGTH + length
        if length < _HEADER.size - _BEFORE_LENGTH or end > len(segment):
            return
        yield Batch(base, base + last, epoch, bool(attributes & _CONTROL), segment[at:end])
        at = end


def batch(base_offset: int, records: int, leader_epoch: int = 0, control: bool = False, body: bytes = b"") -> bytes:
    """A batch with that header, for histories made by hand; its checksum and its records are not real."""
    length = _HEADER.size - _BEFORE_LENGTH + len(body)
    attributes = _CONTROL if control else 0
    return (
        _HEADER.pack(base_offset, length, leader_epoch, 2, 0, attributes, records - 1, 0, 0, -1, -1, -1, records) + body
    )
