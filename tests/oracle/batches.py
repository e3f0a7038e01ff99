"""Record batches (format v2) made and read byte by byte, from Kafka's format description, not from pylog's code.

Every field can be set to what it should not be; only the length and the checksum are always made right, unless asked.
"""

import gzip
import struct
from typing import Any

_HEADER = struct.Struct(">qiibIhiqqqhii")
_BEHIND_LENGTH, _CRC_AT, _CRC_FROM = 12, 17, 21
_MAGIC = 2
_GZIP, _APPEND_TIME, _TRANSACTIONAL, _CONTROL = 1, 8, 16, 32
CODECS = {"none": 0, "gzip": 1}
NO_PRODUCER = (-1, -1)
BASE_TIME_MS = 1_700_000_000_000


def _crc_table() -> list[int]:
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


_TABLE = _crc_table()


def crc32c(data: bytes) -> int:
    """CRC-32C (Castagnoli)."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ _TABLE[(crc ^ byte) & 255]
    return crc ^ 0xFFFFFFFF


def varint(value: int) -> bytes:
    """A zigzag variable-length integer."""
    value = value << 1 ^ value >> 63
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def record(value: bytes | None, key: bytes | None = None, offset_delta: int = 0, time_delta: int = 0) -> bytes:
    """One record with its length."""
    body = b"\0" + varint(time_delta) + varint(offset_delta)
    for field in (key, value):
        body += varint(-1) if field is None else varint(len(field)) + field
    body += varint(0)
    return varint(len(body)) + body


def batch(
    *values: str | bytes | None,
    keys: tuple[str, ...] = (),
    producer: tuple[int, int] = NO_PRODUCER,
    sequence: int = -1,
    transactional: bool = False,
    control: bool = False,
    codec: str = "none",
    time_ms: int = BASE_TIME_MS,
    step_ms: int = 0,
    **wrong: Any,
) -> str:
    """A batch of `values` as hexadecimal text.

    `producer` is (id, epoch); record i has the timestamp ``time_ms + i * step_ms``. In `wrong`: magic, base_offset,
    leader_epoch, attributes, last_offset_delta, count, crc, max_time_ms, offset_deltas, body (the records' bytes).
    """
    deltas = wrong.get("offset_deltas") or range(len(values))
    parts = []
    for index, (value, delta) in enumerate(zip(values, deltas, strict=True)):
        raw = value.encode() if isinstance(value, str) else value
        key = keys[index].encode() if index < len(keys) else None
        parts.append(record(raw, key, delta, index * step_ms))
    body = wrong.get("body", b"".join(parts))
    if codec == "gzip":
        body = gzip.compress(body, mtime=0)
    attributes = CODECS[codec] | (_TRANSACTIONAL if transactional else 0) | (_CONTROL if control else 0)
    last = len(values) - 1
    header = _HEADER.pack(
        wrong.get("base_offset", 0),
        _HEADER.size - _BEHIND_LENGTH + len(body),
        wrong.get("leader_epoch", -1),
        wrong.get("magic", _MAGIC),
        0,
        wrong.get("attributes", attributes),
        wrong.get("last_offset_delta", last),
        time_ms,
        wrong.get("max_time_ms", time_ms + last * step_ms),
        *producer,
        sequence,
        wrong.get("count", len(values)),
    )
    raw = header + body
    crc = wrong.get("crc", crc32c(raw[_CRC_FROM:]))
    return (raw[:_CRC_AT] + struct.pack(">I", crc) + raw[_CRC_FROM:]).hex()


def described(records: str | None) -> list[dict[str, Any]] | None:
    """What a fetched `records` field holds: the header's fields and the records' bytes of each whole batch."""
    if records is None:
        return None
    data, found, at = bytes.fromhex(records), [], 0
    while len(data) - at >= _HEADER.size:
        base, length, epoch, magic, crc, attributes, last, first_ms, max_ms, pid, pepoch, seq, count = (
            _HEADER.unpack_from(data, at)
        )
        end = at + _BEHIND_LENGTH + length
        if end > len(data):
            break
        by_broker = bool(attributes & (_APPEND_TIME | _CONTROL))
        found.append(
            {
                "base_offset": base,
                "leader_epoch": epoch,
                "magic": magic,
                "crc_ok": crc == crc32c(data[at + _CRC_FROM : end]),
                "attributes": attributes,
                "last_offset_delta": last,
                "first_time_ms": "now" if attributes & _CONTROL else first_ms,
                "max_time_ms": "now" if by_broker else max_ms,
                "producer_id": pid,
                "producer_epoch": pepoch,
                "base_sequence": seq,
                "count": count,
                "payload": data[at + _HEADER.size : end].hex(),
            }
        )
        at = end
    if at < len(data):
        found.append({"bytes_of_a_cut_batch": "some"})
    return found
