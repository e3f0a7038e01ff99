"""One request on a connection of its own: what becomes of it, and which requests a broker says that it takes."""

import socket
import struct

from pylog_spark.testing import LocalBroker
from tests.harness.waiting import brief
from tests.hostile.neighbour import Address
from tests.hostile.requests import Ranges, framed
from tests.peers.probe import read_exactly

_ANSWER_DEADLINE_S = 30
#: After which a request that may wait is taken for one that does.
_WAITS_S = 10
#: Fetch, JoinGroup, SyncGroup and ShareFetch say themselves how long they may wait: days, when that was changed.
_MAY_WAIT = (1, 11, 14, 78)


class Unanswered(AssertionError):
    """A request was neither answered nor its connection closed in time."""


def exchange(
    broker: LocalBroker | Address, data: bytes, what: str, end: bool = False, from_host: str = "127.0.0.1"
) -> str:
    """Send `data` on a fresh connection: "answered", "closed", or "waits" where it may have asked for that.

    Parameters
    ----------
    broker : LocalBroker or Address
        To whom.
    data : bytes
        As sent on the wire.
    what : str
        Its name for the error.
    end : bool
        Tell the broker that nothing more will come: for bytes that may claim to be longer than they are, or want no answer.
    from_host : str
        The client's address.

    Raises
    ------
    Unanswered
        When neither happens.
    """
    address = (broker.host, broker.port)
    may_wait = len(data) >= 6 and struct.unpack_from(">h", data, 4)[0] in _MAY_WAIT
    with socket.create_connection(address, timeout=_ANSWER_DEADLINE_S, source_address=(from_host, 0)) as sock:
        try:
            sock.sendall(data)
            if end:
                sock.shutdown(socket.SHUT_WR)
            with brief(sock, _WAITS_S if may_wait else _ANSWER_DEADLINE_S):
                read_exactly(sock, 4)
        except TimeoutError:
            if may_wait:
                return "waits"
            raise Unanswered(f"{what}: neither answered nor closed within {_ANSWER_DEADLINE_S} s") from None
        except OSError:
            return "closed"
    return "answered"


def advertised(broker: LocalBroker | Address) -> Ranges:
    """API key -> (lowest, highest version), as ApiVersions v0 says."""
    with socket.create_connection((broker.host, broker.port), timeout=_ANSWER_DEADLINE_S) as sock:
        sock.sendall(framed(struct.pack(">hhih", 18, 0, 1, -1)))
        (size,) = struct.unpack(">i", read_exactly(sock, 4))
        answer = read_exactly(sock, size)
    (count,) = struct.unpack_from(">i", answer, 6)
    rows = (struct.unpack_from(">hhh", answer, 10 + 6 * number) for number in range(count))
    return {key: (low, high) for key, low, high in rows}
