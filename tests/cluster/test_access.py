"""ZooKeeper behind a login and TLS: who may read and change what brokers keep there, and whom brokers believe to be ZooKeeper."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError, NodeExistsError

from pylog_spark.cluster import documents
from pylog_spark.cluster.store import StoreError
from pylog_spark.cluster.store.access import Access, Tls, read_digest
from pylog_spark.cluster.store.zookeeper import ZooKeeperStore
from pylog_spark.testing import ZooKeeper
from pylog_spark.testing.process import free_port
from tests.harness import certificates
from tests.harness.ports import nowhere
from tests.harness.zookeeper import new_chroot

SESSION_MS, CONNECTION_MS = 5_000, 15_000
OURS = Access(digest="brokers:secret", protect=True)
PATHS = ("topics/t", documents.SCRAM_USERS + "alice", "security/acls/a", documents.DECOY_KEY, "features")


@contextmanager
def opened(connect: str, access: Access, connection_ms: int = CONNECTION_MS) -> Iterator[ZooKeeperStore]:
    store = ZooKeeperStore(connect, SESSION_MS, connection_ms, lambda _: None, access=access)
    try:
        yield store
    finally:
        store.close()


@contextmanager
def stranger(connect: str, digest: str | None = None) -> Iterator[KazooClient]:
    """Somebody who can reach ZooKeeper."""
    client = KazooClient(connect, auth_data=[("digest", digest)] if digest else None)
    client.start(CONNECTION_MS / 1000)
    try:
        yield client
    finally:
        client.stop()
        client.close()


@pytest.fixture
def connect(worker_zookeeper: ZooKeeper) -> str:
    return worker_zookeeper.address + new_chroot()


def fill(store: ZooKeeperStore) -> None:
    for path in PATHS:
        store.compare_and_set(path, b"ours", 0)
    store.put_ephemeral(documents.registration_path(1), b"ours")


def check_protected(connect: str, digest: str | None) -> None:
    """A stranger reads what everybody may, and changes nothing."""
    address, _, chroot = connect.partition("/")
    with stranger(address, digest) as client:
        for path in (*PATHS, documents.registration_path(1)):
            node = f"/{chroot}/{path}"
            if path.startswith(documents.PRIVATE):
                with pytest.raises(NoAuthError):
                    client.get(node)
            else:
                assert client.get(node)[0] == b"ours"
            with pytest.raises(NoAuthError):
                client.set(node, b"theirs")
            with pytest.raises(NoAuthError):
                client.delete(node)
        for folder in ("", "/topics", "/changes", "/brokers/ids", "/security", "/security/users", "/security/acls"):
            with pytest.raises(NoAuthError):
                client.create(f"/{chroot}{folder}/theirs", b"theirs")
        with pytest.raises(NoAuthError):
            client.get_children(f"/{chroot}/security/users")


@pytest.mark.parametrize("digest", [None, "brokers:guess", "others:secret"])
def test_what_brokers_keep_is_changed_by_brokers_alone_and_users_are_read_by_them_alone(
    connect: str, digest: str | None
) -> None:
    with opened(connect, OURS) as store:
        fill(store)
        check_protected(connect, digest)
        with opened(connect, OURS) as other:
            assert other.get(documents.SCRAM_USERS + "alice") == store.get(documents.SCRAM_USERS + "alice")
            assert other.compare_and_set("topics/t", b"theirs", 1) == 2
            other.delete(documents.SCRAM_USERS + "alice", 1)


def test_what_was_there_before_is_protected_when_a_broker_with_protection_starts(connect: str) -> None:
    with opened(connect, Access()) as before:
        fill(before)
        with opened(connect, OURS) as store:
            assert store.get("topics/t") == before.get("topics/t")
            check_protected(connect, None)
            with pytest.raises(StoreError, match="refuses to write topics/t"):
                before.compare_and_set("topics/t", b"theirs", 1)


def test_nobody_adds_a_document_while_those_that_are_there_are_being_protected(
    connect: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    address, _, chroot = connect.partition("/")
    with opened(connect, Access()) as before:
        fill(before)
    listed = ZooKeeperStore._children
    folders: list[str] = []
    with stranger(address) as client:

        def children(store: ZooKeeperStore, path: str, watcher: Callable[[object], None] | None) -> list[str]:
            names: list[str] = listed(store, path, watcher)
            folders.append(f"/{chroot}/{path}".rstrip("/"))
            with suppress(NoAuthError, NodeExistsError):
                client.create(folders[-1] + "/late", b"theirs")
            return names

        monkeypatch.setattr(ZooKeeperStore, "_children", children)
        with opened(connect, OURS):
            assert {f"/{chroot}", f"/{chroot}/topics", f"/{chroot}/security/users"} <= set(folders)
            for folder in folders:
                assert client.exists(folder + "/late") is None


def test_a_protection_that_was_broken_off_is_done_by_who_starts_next(
    connect: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(connect, Access()) as before:
        fill(before)
        protect = ZooKeeperStore._protect_below

        def broken_off(store: ZooKeeperStore, path: str) -> None:
            if path.startswith("topics"):
                raise StoreError("It is killed.")
            protect(store, path)

        monkeypatch.setattr(ZooKeeperStore, "_protect_below", broken_off)
        with pytest.raises(StoreError, match="killed"), opened(connect, OURS):
            pass
        monkeypatch.undo()
        with opened(connect, OURS):
            check_protected(connect, None)


def test_a_login_without_protection_leaves_everything_open(connect: str) -> None:
    with opened(connect, Access(digest="brokers:secret")) as store, opened(connect, Access()) as other:
        fill(store)
        assert other.compare_and_set(documents.SCRAM_USERS + "alice", b"theirs", 1) == 2


def test_the_login_is_read_from_a_file_and_never_shown(tmp_path: Path) -> None:
    file = tmp_path / "digest"
    file.write_text("brokers:sec:ret\nmore\n")
    assert read_digest(str(file)) == "brokers:sec:ret"
    assert "sec" not in repr(Access(digest=read_digest(str(file))))
    for text in ("", "secret", ":secret", "secret:"):
        file.write_text(text)
        with pytest.raises(StoreError, match="must be USER:PASSWORD") as refused:
            read_digest(str(file))
        assert "secret" not in str(refused.value)
    with pytest.raises(StoreError, match="cannot be read: No such file"):
        read_digest(str(tmp_path / "none"))


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, certificates.Certificates]]:
    """A ZooKeeper that wants certificates, as ``localhost``."""
    files = certificates.make(tmp_path_factory.mktemp("certificates"))
    port = free_port()
    settings = {
        "secureClientPort": str(port),
        "secureClientPortAddress": "127.0.0.1",
        "serverCnxnFactory": "org.apache.zookeeper.server.NettyServerCnxnFactory",
        "ssl.keyStore.location": files.path("server.both.pem"),
        "ssl.trustStore.location": files.path("ca.pem"),
        "ssl.clientAuth": "need",
    }
    with ZooKeeper(tmp_path_factory.mktemp("zookeeper"), settings=settings):
        yield f"localhost:{port}", files


def test_brokers_reach_zookeeper_by_tls_with_a_certificate_of_their_own(
    tls: tuple[str, certificates.Certificates],
) -> None:
    address, files = tls
    access = Access("brokers:secret", True, Tls(files.path("ca.pem"), files.path("client.both.pem")))
    with opened(address + new_chroot(), access) as store:
        fill(store)
        large = b"".join(number.to_bytes(4, "big") for number in range(100_000))
        store.compare_and_set("topics/large", large, 0)
        found = store.get("topics/large")
        assert found is not None
        assert found.data == large


@pytest.mark.parametrize(
    ("trusted", "own", "host"),
    [
        ("stranger.pem", "client.both.pem", "localhost"),
        pytest.param(None, "client.both.pem", "localhost", marks=pytest.mark.long),
        pytest.param("ca.pem", None, "localhost", marks=pytest.mark.long),
        pytest.param("ca.pem", "client.both.pem", "127.0.0.2", marks=pytest.mark.long),
    ],
    ids=["another authority", "the system's authorities", "no certificate of its own", "another name"],
)
def test_nobody_else_is_taken_for_zookeeper_or_for_a_broker(
    tls: tuple[str, certificates.Certificates], trusted: str | None, own: str | None, host: str
) -> None:
    address, files = tls
    named = Tls(files.path(trusted) if trusted else None, files.path(own) if own else None)
    with (
        pytest.raises(StoreError, match="No ZooKeeper answers"),
        opened(address.replace("localhost", host), Access(tls=named), 3_000),
    ):
        pass


def test_a_file_that_is_no_certificate_is_named(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.pem"
    wrong.write_text("nothing")
    with pytest.raises(StoreError, match=r"wrong\.pem cannot be used for TLS to ZooKeeper"):
        ZooKeeperStore(nowhere(), SESSION_MS, CONNECTION_MS, lambda _: None, access=Access(tls=Tls(str(wrong))))
