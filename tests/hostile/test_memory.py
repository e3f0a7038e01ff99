"""All floods at once: a broker's memory stays below a ceiling that its settings give, and an honest client is answered within a second."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pylog_spark.testing import LocalBroker
from tests.hostile.batches import error_code, produce_request
from tests.hostile.floods import (
    COORDINATOR_NOT_AVAILABLE,
    FLOODS,
    GROUP_MAX_SIZE_REACHED,
    MIB,
    NONE,
    SERVED_WITHIN_S,
    answer,
    connect,
    peak_bytes,
    records_in_flight,
    until_coordinators_serve,
)
from tests.hostile.neighbour import NeighbourProcess
from tests.hostile.together import AllFloods, ceiling_bytes, swollen
from tests.interop.clients import create_topic

pytestmark = pytest.mark.long  # flood by flood: test_floods.py, test_coordinator_floods.py, test_login_floods.py

#: The bounds that the floods run into.
_LIMITS = {
    "queued_max_request_bytes": 32 * MIB,
    "queued_max_response_bytes": 64 * MIB,
    "group_coordinator_max_bytes": 16 * MIB,
    "transaction_coordinator_max_bytes": 16 * MIB,
    "fetch_wait_max_partitions": 50_000,
    "producer_id_max_count": 1_000,
    "group_share_max_share_sessions": 1_000,
    "num_io_threads": 4,
    "num_network_threads": 2,
    "socket_request_receive_timeout_ms": 5_000,
    # Records of 1970 are kept.
    "log_retention_ms": -1,
}
_CONNECTIONS = 220
_REQUESTS = 12_000


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[LocalBroker]:
    """A broker with these limits, a topic to attack, an empty one, and one for an honest client."""
    with LocalBroker(tmp_path, **_LIMITS) as broker:
        for name in ("attacked", "empty", "honest"):
            create_topic(broker.bootstrap_servers, name)
        with connect(broker) as sock:
            until_coordinators_serve(sock)
            sock.sendall(produce_request("attacked", swollen()))
            assert error_code(answer(sock), "attacked") == NONE
        yield broker


@pytest.mark.slow
@pytest.mark.alone
def test_a_brokers_memory_stays_below_its_bounds_under_all_floods_at_once_and_an_honest_client_is_served(
    broker: LocalBroker,
) -> None:
    before, ceiling = peak_bytes(broker), ceiling_bytes(_LIMITS, _CONNECTIONS)
    floods = AllFloods(broker, _REQUESTS, 4 * _LIMITS["producer_id_max_count"])
    in_flight: set[int] = set()
    floods.loads.append(lambda _host: in_flight.update(records_in_flight(broker, "attacked", 20)))
    with NeighbourProcess(broker, "honest") as neighbour:
        floods.run()
    grown = peak_bytes(broker) - before
    print(f"grown by {grown / MIB:.0f} MiB of {ceiling / MIB:.0f}, slowest answer {neighbour.slowest_s:.3f} s")
    assert grown < ceiling
    assert neighbour.slowest_s < SERVED_WITHIN_S
    # Two of them share a room: one may find it full.
    assert all(flood.refused in floods.codes[name] for name, flood in FLOODS.items())
    assert in_flight <= {NONE, GROUP_MAX_SIZE_REACHED, COORDINATOR_NOT_AVAILABLE}
