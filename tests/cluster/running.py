"""A steady load on some partitions while something is done to the cluster, and what is wrong afterwards."""

from collections.abc import Sequence

from tests.cluster.bench import Bench
from tests.cluster.checker import check
from tests.cluster.final import ends_of, read_everything
from tests.cluster.history import History, Place
from tests.cluster.load import Client, Reader, Sender


def judge(bench: Bench, history: History, places: Sequence[Place]) -> list[str]:
    """Read everything of some places, and what the checker says about it."""
    bench.await_whole({topic for topic, _ in places})
    read_everything(bench.servers, history, places)
    bench.collect_replicas(history, ends_of(bench.servers, places, committed_only=False))
    history.states = [state for state in bench.history.states if state.place in places]
    return [f"{one.kind}: {one.sentence}" for one in check(history)]


class Running:
    """Idempotent senders and (unless told otherwise) a reader of every record, as a context manager."""

    def __init__(self, bench: Bench, places: Sequence[Place], *, read: bool = True) -> None:
        self.history = History()
        own = (bench.servers, self.history, 0, places)
        self._clients: list[Client] = [
            Sender(f"{places[0][0]}-{number}", *own, idempotent=True, period_s=0.01) for number in range(2)
        ]
        if read:
            self._clients.append(Reader(f"{places[0][0]}-reader", *own, committed_only=False))

    def __enter__(self) -> History:
        for client in self._clients:
            client.start()
        return self.history

    def __exit__(self, *error: object) -> None:
        for client in self._clients:
            client.ask_to_stop()
        for client in self._clients:
            client.join()
