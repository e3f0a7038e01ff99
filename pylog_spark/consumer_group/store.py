"""Opening the store of a group, and finding the brokers in it."""

from collections.abc import Callable

from pylog_spark.client.errors import LogError
from pylog_spark.cluster import documents
from pylog_spark.cluster.store import SharedStore, StoreError


def open_store(
    zookeeper: str, session_timeout_ms: int, connection_timeout_ms: int, notify: Callable[[str], None]
) -> SharedStore:
    """Connect to ZooKeeper. Raises `LogError` when it does not answer."""
    from pylog_spark.cluster.store.zookeeper import ZooKeeperStore

    try:
        return ZooKeeperStore(zookeeper, session_timeout_ms, connection_timeout_ms, notify, session_timeout_ms)
    except StoreError as error:
        raise LogError("UNREACHABLE", str(error)) from error


def brokers_of(store: SharedStore, zookeeper: str) -> str:
    """The addresses of the brokers that are registered in `store`. Raises `LogError` when there are none."""
    paths = store.paths(documents.REGISTRATIONS)
    found = zip(paths, store.get_all(paths), strict=True)
    brokers = [
        documents.decode_registration(path, document.data, document.created)[0]
        for path, document in found
        if document is not None
    ]
    if not brokers:
        sentence = f"No broker is registered in ZooKeeper at {zookeeper}: start one, or give bootstrap_servers."
        raise LogError("UNREACHABLE", sentence)
    return ",".join(f"{broker.host}:{broker.port}" for broker in brokers)
