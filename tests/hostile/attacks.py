"""The attacks of a long run, by name. Each is a small function of a `Bout`: it sends until the bout is over, and counts outcomes.

What they send comes from the modules that the tests use. Attackers come from other addresses than the honest client, as the
bounds are for each address; where a case has a connection of its own, each from any of many.
"""

import contextlib
import itertools
import select
import socket
import struct
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

from tests.hostile.batches import (
    TAKES_ZSTD,
    compressed_batches,
    error_code,
    good_batch,
    keyless_batch,
    lying_batches,
    mutated_batch,
    produce_request,
    swollen_batch,
)
from tests.hostile.bout import Attack, Bout
from tests.hostile.exchange import advertised, exchange
from tests.hostile.floods import FLOODS, MIB, NONE, answer, connect, list_offsets_request
from tests.hostile.requests import (
    framed,
    hostile_requests,
    mutated_request,
    random_request,
    requests_that_are_answered,
)
from tests.hostile.together import (
    OPENED_BYTES,
    AllFloods,
    fill_requests,
    flood,
    hold_answers,
    hold_fetches,
    send_producers,
    swollen,
)

#: The first values of every length field; then come others, at random.
HOSTILE_LENGTHS = (2**31 - 16, 2**32 - 1, -2)
_CORRUPT_MESSAGE, _INVALID_RECORD = 2, 87
#: Records without keys in one request of a few kB.
_KEYLESS = 9_500_000
_HOST = "127.0.1.1"
_HALF_FRAMES = 200
_HELD_S = 5.0
_AT_ONCE = 200
_API_VERSIONS = framed(struct.pack(">hhih", 18, 0, 1, -1))


def _any_host(bout: Bout) -> str:
    return f"127.0.{bout.randomness.randint(2, 9)}.{bout.randomness.randint(1, 254)}"


def _on_connections(bout: Bout, once: Callable[[socket.socket], None]) -> None:
    """Call `once` with a connection again and again; with another when it was cut off."""
    while not bout.over:
        with bout.guarded(), connect(bout.broker, _HOST) as sock:
            while not bout.over:
                once(sock)


def _at_once(*works: Callable[[], None]) -> None:
    with ThreadPoolExecutor(len(works)) as pool:
        for running in [pool.submit(work) for work in works]:
            running.result()


def mutated_requests(bout: Bout) -> None:
    """Of all requests in all versions."""
    versions = requests_that_are_answered(advertised(bout.broker))

    def once() -> str:
        what, data = mutated_request(versions, bout.randomness)
        return exchange(bout.broker, data, what, end=True, from_host=_any_host(bout))

    bout.repeat(once)


def hostile_lengths(bout: Bout) -> None:
    """Every length field of every version of every request, again and again with other values."""
    ranges = advertised(bout.broker)

    def passes() -> Iterator[tuple[str, bytes]]:
        yield from hostile_requests(ranges, HOSTILE_LENGTHS)
        while True:
            # Any at all, and one that is near what is there.
            yield from hostile_requests(ranges, (bout.randomness.randrange(2**32), bout.randomness.randrange(300)))

    cases = passes()

    def once() -> str:
        what, data = next(cases)
        return exchange(bout.broker, data, what, end=True, from_host=_any_host(bout))

    bout.repeat(once)


def random_bytes(bout: Bout) -> None:
    """With a right size in front of them or without."""
    bout.repeat(
        lambda: exchange(
            bout.broker, random_request(bout.randomness), "random bytes", end=True, from_host=_any_host(bout)
        )
    )


def batches(bout: Bout) -> None:
    """Batches that lie about lengths and counts, which must be refused, and mutated ones of several codecs; all with a right checksum."""
    lying = itertools.cycle(lying_batches(HOSTILE_LENGTHS))
    good = (good_batch(), *compressed_batches())

    def once(sock: socket.socket) -> None:
        what, lie = next(lying)
        codes = []
        for batch in (lie, *(mutated_batch(bout.randomness, honest) for honest in good)):
            sock.sendall(produce_request("attacked", batch, TAKES_ZSTD))
            codes.append(error_code(answer(sock), "attacked"))
            bout.count("taken" if codes[-1] == NONE else "refused")
        if codes[0] not in (_CORRUPT_MESSAGE, _INVALID_RECORD):
            raise AssertionError(f"a batch with {what} got the error code {codes[0]}")

    _on_connections(bout, once)


def swollen_batches(bout: Bout) -> None:
    """Batches that open to 250 MiB, several at once on several connections; all must be taken."""
    _flood_with(
        bout, produce_request("attacked", swollen()), lambda response: error_code(response, "attacked"), (NONE,)
    )


def compacted_bombs(bout: Bout) -> None:
    """Records in zstd to a compacted topic: millions without keys must be refused, large ones with keys are compacted."""
    keyless = produce_request("compacted", keyless_batch(_KEYLESS, numbered=False), TAKES_ZSTD)
    keyed = produce_request("compacted", swollen_batch(OPENED_BYTES, codec="zstd", key=b"key"), TAKES_ZSTD)
    refused = (_CORRUPT_MESSAGE, _INVALID_RECORD)
    _at_once(
        lambda: _flood_with(bout, keyless, lambda response: error_code(response, "compacted"), refused),
        lambda: _flood_with(bout, keyed, lambda response: error_code(response, "compacted"), (NONE,)),
    )


def time_lookups(bout: Bout) -> None:
    """Lookups by time in a compressed batch, whose answer is its last record; all must be answered."""
    _flood_with(
        bout,
        list_offsets_request("attacked", 1),
        lambda response: int(struct.unpack(">h", response[-18:-16])[0]),
        (NONE,),
    )


def _flood_with(bout: Bout, request: bytes, code: Callable[[bytes], int], expected: tuple[int, ...]) -> None:
    while not bout.over:
        with bout.guarded():
            for response in flood(bout.broker, _HOST, request):
                bout.count("answered")
                if code(response) not in expected:
                    raise AssertionError(f"a request of a flood got the error code {code(response)} and not {expected}")


def half_frames(bout: Bout) -> None:
    """Two hundred connections with half a frame each, which grows by a byte now and then; a client whose connection is closed connects again."""
    half = struct.pack(">i", MIB) + bytes(1_000)
    with contextlib.ExitStack() as stack:
        socks: list[socket.socket] = []
        while not bout.over:
            with bout.guarded():
                while len(socks) < _HALF_FRAMES and not bout.over:
                    socks.append(stack.enter_context(connect(bout.broker, _HOST)))
                    socks[-1].sendall(half)
            cut = [sock for sock in socks if not _grows(sock)]
            bout.count("closed", len(cut))
            socks = [sock for sock in socks if sock not in cut]
            bout.pause(0.1)
        bout.count("held", len(socks))


def _grows(sock: socket.socket) -> bool:
    """Send one more byte; False when the broker has closed the connection."""
    try:
        sock.sendall(b"x")
    except OSError:
        sock.close()
        return False
    return True


def endless_requests(bout: Bout) -> None:
    """Requests of 20 MiB whose last part never comes, in groups of six: the room for requests is full of them."""
    while not bout.over:
        with bout.guarded(), contextlib.ExitStack() as stack:
            for sock in fill_requests(stack, bout.broker, _HOST):
                bout.count("closed" if _is_closed(bout, sock) else "held")


def _is_closed(bout: Bout, sock: socket.socket) -> bool:
    """Wait until the broker closes it; False when the bout is over before."""
    while not bout.over:
        if select.select([sock], [], [], 0.5)[0]:
            with contextlib.suppress(OSError):
                return sock.recv(1) == b""
            return True
    return False


def connections(bout: Bout) -> None:
    """Connections that come and go, some with a request, some in the middle of it, some with a reset."""

    def once() -> str:
        kind = bout.randomness.choice(("nothing", "half a request", "a request without its answer", "a request"))
        with connect(bout.broker, _any_host(bout)) as sock:
            if bout.randomness.randrange(2):
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            if kind == "half a request":
                sock.sendall(_API_VERSIONS[:7])
            elif kind != "nothing":
                sock.sendall(_API_VERSIONS)
            if kind == "a request":
                answer(sock)
        return kind

    _at_once(*[lambda: bout.repeat(once)] * 4)


def flood_of(name: str) -> Callable[[Bout], None]:
    """The flood of a coordinator with that name, always with new groups, members or ids."""
    flooding = FLOODS[name]
    outcome = {flooding.taken: "taken", flooding.refused: "refused"}

    def attack(bout: Bout) -> None:
        first = itertools.count(step=_AT_ONCE)

        def once(sock: socket.socket) -> None:
            for code, count in flooding.send(sock, _AT_ONCE, first=next(first)).items():
                bout.count(outcome.get(code, f"error {code}"), count)

        _on_connections(bout, once)

    return attack


def producer_ids(bout: Bout) -> None:
    """Idempotent producers that write once each; all must be taken."""
    first = itertools.count(step=_AT_ONCE)

    def once(sock: socket.socket) -> None:
        codes = send_producers(sock, _AT_ONCE, next(first))
        bout.count("taken", codes.pop(NONE, 0))
        for code, count in codes.items():
            bout.count(f"error {code}", count)
        if codes:
            raise AssertionError(f"the first batches of producers got the error codes {dict(codes)}")

    _on_connections(bout, once)


def _hold(bout: Bout, open_all: Callable[..., None], count: int) -> None:
    """Open connections that hold something, keep them a while, let them go, again and again."""
    while not bout.over:
        with bout.guarded(), contextlib.ExitStack() as stack:
            open_all(stack, bout.broker, _HOST, count)
            bout.pause(_HELD_S)
            bout.count("connections", count)


def long_polls(bout: Bout) -> None:
    """Connections with 64 fetches each, of ten thousand partitions, that wait for records."""
    _hold(bout, hold_fetches, 32)


def unread_answers(bout: Bout) -> None:
    """Connections with 8 fetches each of 36,000 partitions, whose responses no client reads."""
    _hold(bout, hold_answers, 24)


def together(bout: Bout) -> None:
    """All floods at once, round after round."""
    requests, producers = 12_000, 4_000
    for first in itertools.count(step=requests):
        if bout.over:
            return
        with bout.guarded():
            AllFloods(bout.broker, requests, producers, first, until_closed=False).run()
            bout.count("requests", requests * len(FLOODS) + producers)
            bout.count("rounds")


ATTACKS = {
    "mutated-requests": Attack(mutated_requests, "mutated requests of all kinds and versions"),
    "hostile-lengths": Attack(hostile_lengths, "a hostile value in every length field of every request"),
    "random-bytes": Attack(random_bytes, "random bytes"),
    "batches": Attack(batches, "lying and mutated batches with a right checksum"),
    "swollen-batches": Attack(swollen_batches, "produced batches that open to 250 MiB"),
    "compacted-bombs": Attack(compacted_bombs, "zstd bombs to a compacted topic, without keys and with"),
    "time-lookups": Attack(time_lookups, "lookups by time in a compressed batch of 250 MiB"),
    "half-frames": Attack(half_frames, "200 connections that send a byte now and then", _HALF_FRAMES),
    "endless-requests": Attack(endless_requests, "requests of 20 MiB that never end"),
    "connections": Attack(connections, "connections that come and go"),
    "groups": Attack(flood_of("offsets"), "offsets of ever new groups"),
    "members": Attack(flood_of("members"), "ever new members of groups"),
    "transactional-ids": Attack(flood_of("transactional ids"), "ever new transactional ids"),
    "share-members": Attack(flood_of("share members"), "ever new members of a share group"),
    "share-sessions": Attack(flood_of("share sessions"), "ever new sessions of a share group"),
    "producer-ids": Attack(producer_ids, "ever new idempotent producers"),
    "long-polls": Attack(long_polls, "fetches of 10,000 partitions that wait", 32),
    "unread-answers": Attack(unread_answers, "responses to fetches of 36,000 partitions that no client reads", 24),
    "together": Attack(together, "all floods at once", 220),
}
