"""Record batches of an enemy: one good batch, its length and count fields set to what they are not, the checksum made right.

A wrong checksum would be refused before anything interesting is read. Written from Kafka's format description, not from
pylog's code.
"""

import functools
import random
import struct
import zlib
from collections.abc import Iterator

import zstandard

from tests.hostile.requests import Frame, framed

#: Where the checksum lies, and from where on it covers a batch.
_CRC_AT, CHECKED_FROM = 17, 21
_HEADER = struct.Struct(">qiibIhiqqqhii")
_CODECS = {"gzip": 1, "zstd": 4}
# name -> (place in the batch, bytes)
LENGTH_FIELDS = {
    "batch_length": (8, 4),
    "last_offset_delta": (23, 4),
    "records_count": (57, 4),
    "record_length": (61, 1),
}


def _crc32c_of(byte: int) -> int:
    for _ in range(8):
        byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
    return byte


_CRC32C = [_crc32c_of(byte) for byte in range(256)]


def crc32c(data: bytes) -> int:
    """CRC-32C (Castagnoli), byte by byte."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _CRC32C[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def good_batch() -> bytes:
    """One record, no key, value "hostile"."""
    return _batch_of(b"hostile")


def numbered_batch(number: int) -> bytes:
    """One record, no key, the number as its value."""
    return _batch_of(str(number).encode())


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


def swollen_batch(
    opened_bytes: int, value_bytes: int = 16 * 1024, codec: str = "gzip", key: bytes | None = None
) -> bytes:
    """Records of zeros that the codec makes small, `opened_bytes` in all; the last one is of the millisecond 1, all others of 0.
    All have the same key, or none.
    """
    value = bytes(value_bytes)
    count = opened_bytes // value_bytes
    packer = zlib.compressobj(wbits=31) if codec == "gzip" else zstandard.ZstdCompressor().compressobj()
    keyed = bytes([1]) if key is None else _zigzag(len(key)) + key
    body = bytearray()
    for number in range(count):
        delta = bytes([2 if number == count - 1 else 0])
        fields = bytes([0]) + delta + _zigzag(number) + keyed + _zigzag(value_bytes)
        record = _zigzag(len(fields) + value_bytes + 1) + fields + value + bytes([0])
        body += packer.compress(record)
    body += packer.flush()
    attributes = _CODECS[codec]
    header = _HEADER.pack(0, _HEADER.size - 12 + len(body), 0, 2, 0, attributes, count - 1, 0, 1, -1, -1, -1, count)
    return with_crc(header + bytes(body))


def _zigzag(number: int) -> bytes:
    """A number from 0 on as a zigzag varint."""
    left, out = number * 2, bytearray()
    while left >= 0x80:
        out.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes([*out, left])


def with_crc(batch: bytes) -> bytes:
    """The batch with its checksum made right."""
    return batch[:_CRC_AT] + struct.pack(">I", crc32c(batch[CHECKED_FROM:])) + batch[CHECKED_FROM:]


def lying_batches(values: tuple[int, ...]) -> Iterator[tuple[str, bytes]]:
    """(what it is, batch) for each length field and each of `values`."""
    good = good_batch()
    for name, (place, size) in LENGTH_FIELDS.items():
        for value in values:
            new = (value % 2**32).to_bytes(4, "big") if size == 4 else b"\xff\xff\xff\xff\x0f"
            yield f"{name} = {value}", with_crc(good[:place] + new + good[place + size :])


def mutated_batch(randomness: random.Random, batch: bytes | None = None) -> bytes:
    """A good batch (a small one without compression when none is given) with some bytes changed."""
    mutated = bytearray(batch or good_batch())
    for _ in range(randomness.randint(1, 4)):
        mutated[randomness.randrange(len(mutated))] = randomness.randrange(256)
    return with_crc(bytes(mutated))


@functools.cache
def compressed_batches() -> tuple[bytes, ...]:
    """Good batches of a few records, one of each codec that is at hand here."""
    return tuple(swollen_batch(1_000, 100, codec, b"key") for codec in _CODECS)


#: The first version of Produce that takes zstd, with the fields of version 3.
TAKES_ZSTD = 7


def produce_request(topic: str, batch: bytes, version: int = 3) -> bytes:
    """Produce of `batch` to partition 0, acks=1."""
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


def fetch_from(topic: str, offset: int, max_bytes: int) -> bytes:
    """Fetch v4 of partition 0 from `offset` on; the batches are the last thing in the answer."""
    wait = struct.pack(">iiiib", -1, 10_000, 1, max_bytes, 0)
    name = struct.pack(">h", len(topic)) + topic.encode()
    partition = struct.pack(">iiqi", 1, 0, offset, max_bytes)
    return framed(struct.pack(">hhih", 1, 4, 1, -1) + wait + struct.pack(">i", 1) + name + partition)


def error_code(answer: bytes, topic: str) -> int:
    """The partition's error code in the answer to `produce_request` (without its size field)."""
    place = 4 + 4 + 2 + len(topic) + 4 + 4
    return int(struct.unpack_from(">h", answer, place)[0])


def produced_offset(answer: bytes, topic: str) -> int:
    """Where the batch lies, by the same answer."""
    return int(struct.unpack_from(">q", answer, 4 + 4 + 2 + len(topic) + 4 + 4 + 2)[0])
