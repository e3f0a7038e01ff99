"""Record batches of an enemy: one good batch, its length and count fields set to what they are not, the checksum made right.

A wrong checksum would be refused before anything interesting is read. Written from Kafka's format description, not from
pylog's code.
"""

import random
import struct
import zlib
from collections.abc import Iterator

from tests.hostile.requests import Frame, framed

_CRC_AT, _CRC_FROM = 17, 21
_HEADER = struct.Struct(">qiibIhiqqqhii")
_GZIP, _ZSTD = 1, 4
# name -> (place in the batch, bytes)
LENGTH_FIELDS = {
    "batch_length": (8, 4),
    "last_offset_delta": (23, 4),
    "records_count": (57, 4),
    "record_length": (61, 1),
}


def crc32c(data: bytes) -> int:
    """CRC-32C (Castagnoli), bit by bit."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def good_batch() -> bytes:
    """One record, no key, value "hostile"."""
    return _batch_of(b"hostile")


def plain_batch(value_bytes: int) -> bytes:
    """One record, no key, a value of zeros."""
    return _batch_of(bytes(value_bytes))


def batch_of_producer(producer_id: int) -> bytes:
    """The first batch of an idempotent producer."""
    return _batch_of(b"hostile", producer_id)


def _batch_of(value: bytes, producer_id: int = -1) -> bytes:
    record = bytes([0, 0, 0, 1]) + _zigzag(len(value)) + value + bytes([0])
    body = _zigzag(len(record)) + record
    # Epoch and sequence.
    producer = (-1, -1, -1) if producer_id < 0 else (producer_id, 0, 0)
    header = _HEADER.pack(0, _HEADER.size - 12 + len(body), 0, 2, 0, 0, 0, 0, 0, *producer, 1)
    return with_crc(header + body)


def swollen_batch(opened_bytes: int, value_bytes: int = 16 * 1024) -> bytes:
    """Records of zeros that gzip makes small, `opened_bytes` in all; the last one is of the millisecond 1, all others of 0."""
    value = bytes(value_bytes)
    count = opened_bytes // value_bytes
    packer = zlib.compressobj(wbits=31)
    body = bytearray()
    for number in range(count):
        delta = bytes([2 if number == count - 1 else 0])
        fields = bytes([0]) + delta + _zigzag(number) + bytes([1]) + _zigzag(value_bytes)
        record = _zigzag(len(fields) + value_bytes + 1) + fields + value + bytes([0])
        body += packer.compress(record)
    body += packer.flush()
    header = _HEADER.pack(0, _HEADER.size - 12 + len(body), 0, 2, 0, _GZIP, count - 1, 0, 1, -1, -1, -1, count)
    return with_crc(header + bytes(body))


def keyless_batch(count: int, numbered: bool = True) -> bytes:
    """As many of the shortest records as said, without keys, in zstd; all the same one when they are not `numbered`, which makes
    millions of them a few kB."""
    import pyarrow as pa

    same = _keyless_record(0) * (0 if numbered else count)
    body = pa.compress(same or b"".join(map(_keyless_record, range(count))), codec="zstd", asbytes=True)
    header = _HEADER.pack(0, _HEADER.size - 12 + len(body), 0, 2, 0, _ZSTD, count - 1, 0, 0, -1, -1, -1, count)
    return with_crc(header + body)


def _keyless_record(number: int) -> bytes:
    fields = bytes([0, 0]) + _zigzag(number) + bytes([1, 1, 0])
    return _zigzag(len(fields)) + fields


def _zigzag(number: int) -> bytes:
    """A number from 0 on as a zigzag varint."""
    left, out = number * 2, bytearray()
    while left >= 0x80:
        out.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes([*out, left])


def with_crc(batch: bytes) -> bytes:
    """The batch with its checksum made right."""
    return batch[:_CRC_AT] + struct.pack(">I", crc32c(batch[_CRC_FROM:])) + batch[_CRC_FROM:]


def lying_batches(values: tuple[int, ...]) -> Iterator[tuple[str, bytes]]:
    """(what it is, batch) for each length field and each of `values`."""
    good = good_batch()
    for name, (place, size) in LENGTH_FIELDS.items():
        for value in values:
            new = (value % 2**32).to_bytes(4, "big") if size == 4 else b"\xff\xff\xff\xff\x0f"
            yield f"{name} = {value}", with_crc(good[:place] + new + good[place + size :])


def mutated_batch(randomness: random.Random) -> bytes:
    """A good batch with some bytes changed."""
    batch = bytearray(good_batch())
    for _ in range(randomness.randint(1, 4)):
        batch[randomness.randrange(len(batch))] = randomness.randrange(256)
    return with_crc(bytes(batch))


def produce_request(topic: str, batch: bytes, version: int = 3) -> bytes:
    """Produce (v3 to v8) of `batch` to partition 0, acks=1."""
    frame = Frame()
    for layout, value in (
        (">h", 0),
        (">h", version),
        (">i", 1),
        (">h", -1),
        (">h", -1),
        (">h", 1),
        (">i", 1_000),
        (">i", 1),
    ):
        frame.number(layout, value)
    frame.length(len(topic), "int16")
    frame.data += topic.encode()
    for layout, value in ((">i", 1), (">i", 0), (">i", len(batch))):
        frame.number(layout, value)
    return framed(bytes(frame.data) + batch)


def error_code(answer: bytes, topic: str) -> int:
    """The partition's error code in the answer to `produce_request` (without its size field)."""
    place = 4 + 4 + 2 + len(topic) + 4 + 4
    return int(struct.unpack_from(">h", answer, place)[0])
