"""A steady load on some partitions while something is done to the cluster, and what is wrong afterwards."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from tests.cluster.checker import check
from tests.cluster.final import ends_of, read_everything
from tests.harness.bench import Bench
from tests.harness.history import History, Place
from tests.harness.load import Client, Load, Reader, Sender


def _nothing(_place: Place, _offset: int) -> bytes:
    return b""


def judge(
    bench: Bench,
    history: History,
    places: Sequence[Place],
    before: Callable[[Place, int], bytes] = _nothing,
) -> list[str]:
    """Read everything of some places, and what the checker says about it; `before` gives the batches that replicas have no more."""
    bench.await_whole({topic for topic, _ in places})
    read_everything(bench.way, history, places)
    bench.collect_replicas(history, ends_of(bench.way, places, committed_only=False), before)
    history.states = [state for state in bench.history.states if state.place in places]
    return [f"{anomaly.kind}: {anomaly.sentence}" for anomaly in check(history)]


@contextmanager
def running(bench: Bench, places: Sequence[Place], *, read: bool = True) -> Iterator[History]:
    """Idempotent senders and (by default) a reader of every record meanwhile; what happens to them."""
    history = History()
    own = (bench.way, history, 0, places)
    clients: list[Client] = [
        Sender(f"{places[0][0]}-{number}", *own, idempotent=True, period_s=0.01) for number in range(2)
    ]
    if read:
        clients.append(Reader(f"{places[0][0]}-reader", *own, committed_only=False))
    with Load(clients):
        yield history
