"""The shared store against a real ZooKeeper: writes happen once or not at all, whatever becomes of the connection."""

import queue
import socket
import struct
import threading
import time
from contextlib import suppress

import pytest
from kazoo.client import KazooClient

from pylog_spark.cluster import documents
from pylog_spark.cluster.store import Guard, RevisionConflict, Session, StoreError, Write
from pylog_spark.cluster.store import zookeeper as shared
from pylog_spark.cluster.store.zookeeper import SESSION, ZooKeeperStore
from tests.harness.waiting import until
from tests.harness.watch import steal_session

SESSION_MS = 2_000


class ChangeQueue(queue.SimpleQueue):
    """The notifications of a store, to wait for."""

    def __call__(self, what):
        self.put(what)

    def wait_for(self, what):
        while self.get(timeout=60) != what:
            pass


@pytest.fixture
def open_store(zookeeper, request):
    """Opens stores of one chroot; they are closed after the test."""
    opened = []

    def opening(session_ms=SESSION_MS):
        heard = ChangeQueue()
        store = ZooKeeperStore(f"{zookeeper.address}/{request.node.name}", session_ms, 10_000, heard)
        store.heard = heard
        opened.append(store)
        return store

    yield opening
    for store in opened:
        store.close()


def expire(zookeeper, store):
    """End the session of `store` from outside, and wait for its next one."""
    session = store.session()
    assert steal_session(zookeeper.address, session)
    until(lambda: store.session() not in (None, session), "another session")


class HangsUp(threading.Thread):
    """Leads to ZooKeeper; the first connection is closed as soon as ZooKeeper has granted it a session."""

    def __init__(self, zookeeper):
        super().__init__(daemon=True)
        self._port = zookeeper.port
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]

    def run(self):
        with suppress(OSError):
            while not self._granted(self._listening.accept()[0]):
                pass
            while True:
                pair = self._listening.accept()[0], socket.create_connection(("127.0.0.1", self._port))
                for source, target in (pair, pair[::-1]):
                    threading.Thread(target=self._lead, args=(source, target), daemon=True).start()

    def _granted(self, accepted):
        """Whether ZooKeeper, which closes some connections just after its own start, gave this one a session; it is closed."""
        with accepted, socket.create_connection(("127.0.0.1", self._port)) as answering:
            for source, target in ((accepted, answering), (answering, accepted)):
                size = source.recv(4, socket.MSG_WAITALL)
                if len(size) < 4:
                    return False
                target.sendall(size + source.recv(*struct.unpack(">i", size), socket.MSG_WAITALL))
        return True

    def _lead(self, source, target):
        with suppress(OSError), source, target:
            while piece := source.recv(65_536):
                target.sendall(piece)

    def close(self):
        self._listening.close()


def test_a_connection_that_is_lost_as_soon_as_it_has_a_session_is_no_reason_not_to_start(zookeeper, new_topic):
    # The moment is short: one start in a few meets it.
    for number in range(10):
        between = HangsUp(zookeeper)
        between.start()
        store = ZooKeeperStore(f"127.0.0.1:{between.port}/{new_topic}-{number}", SESSION_MS, 10_000, ChangeQueue())
        try:
            assert store.compare_and_set("topics/a", b"1", 0) == 1
        finally:
            store.close()
            between.close()


def test_a_document_is_created_changed_and_deleted_at_its_revision(open_store):
    store, other = open_store(), open_store()
    assert store.get("topics/a") is None
    assert store.compare_and_set("topics/a", b"1", 0) == 1
    assert other.compare_and_set("topics/a", b"2", 1) == 2
    for revision in (0, 1, 3):
        with pytest.raises(RevisionConflict):
            store.compare_and_set("topics/a", b"x", revision)
    with pytest.raises(RevisionConflict):
        store.delete("topics/a", 1)
    assert store.get("topics/a").data == b"2"
    store.delete("topics/a", 2)
    assert other.get("topics/a") is None
    with pytest.raises(RevisionConflict):
        store.compare_and_set("topics/a", b"x", 2)


def test_all_writes_happen_or_none_and_only_under_the_guard(open_store):
    store = open_store()
    store.write_all([Write("topics/a", b"1", 0), Write("controller_epoch", b"1", 0)])
    for writes, guard in [
        ([Write("topics/a", b"2", 1), Write("topics/b", b"2", 1)], None),
        ([Write("topics/a", b"2", 1)], Guard("controller_epoch", 2)),
        ([Write("topics/a", b"2", 1)], Guard("controller", 1)),
    ]:
        with pytest.raises(RevisionConflict):
            store.write_all(writes, guard, b"none")
    assert [document and document.data for document in store.get_all(["topics/a", "topics/b"])] == [b"1", None]
    assert store.paths(documents.CHANGES) == []
    writes = [Write("topics/a", None, 1), Write("brokers/7/config", b"2", 0)]
    assert store.write_all(writes, Guard("controller_epoch", 1), b"n") == [0, 1]
    assert [store.get(path).data for path in store.paths(documents.CHANGES)] == [b"n"]


def test_two_writers_of_one_document_lose_no_update(open_store):
    stores = [open_store(), open_store()]
    stores[0].compare_and_set("producer_ids", b"0", 0)

    def count(store):
        for _ in range(50):
            while True:
                stored = store.get("producer_ids")
                try:
                    store.compare_and_set("producer_ids", b"%d" % (int(stored.data) + 1), stored.revision)
                    break
                except RevisionConflict:
                    continue

    threads = [threading.Thread(target=count, args=(store,)) for store in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert stores[0].get("producer_ids").data == b"100"


def test_a_document_larger_than_a_node_is_stored_compressed_and_one_that_cannot_be_is_refused(open_store):
    store = open_store()
    large = b'{"partition":0,"replicas":[1,2,3]}' * 100_000
    store.compare_and_set("topics/a", large, 0)
    assert store.get("topics/a").data == large
    import random

    with pytest.raises(StoreError, match="more than ZooKeeper stores"):
        store.compare_and_set("topics/b", random.Random(1).randbytes(2_000_000), 0)


def test_watches_tell_once_and_are_set_again_by_reading(open_store):
    watching, writing = open_store(), open_store()
    assert watching.watch_children(documents.CHANGES) == []
    assert watching.watch("controller") is None
    writing.write_all([Write("topics/a", b"1", 0)], None, b"n1")
    watching.heard.wait_for(documents.CHANGES)
    assert len(watching.watch_children(documents.CHANGES)) == 1
    writing.put_ephemeral("controller", b"me")
    watching.heard.wait_for("controller")
    assert watching.watch("controller").data == b"me"
    writing.close()
    watching.heard.wait_for("controller")
    assert watching.watch("controller") is None


def test_an_ephemeral_document_is_taken_once_and_goes_with_its_session(open_store, zookeeper):
    store, other = open_store(), open_store()
    created = store.put_ephemeral("brokers/ids/1", b"one")
    assert store.put_ephemeral("brokers/ids/1", b"again, after a lost answer") == created
    with pytest.raises(RevisionConflict):
        other.put_ephemeral("brokers/ids/1", b"other")
    expire(zookeeper, store)
    assert other.put_ephemeral("brokers/ids/1", b"other") > created


def test_a_claim_also_writes_and_a_late_one_writes_nothing(open_store):
    store, other = open_store(), open_store()
    created = store.claim("controller", b"1", Write("controller_epoch", b"1", 0))
    with pytest.raises(RevisionConflict):
        other.claim("controller", b"2", Write("controller_epoch", b"2", 1))
    assert store.get("controller_epoch").data == b"1"
    store.close()
    with pytest.raises(RevisionConflict):
        other.claim("controller", b"2", Write("controller_epoch", b"2", 2))
    assert other.get("controller") is None
    assert other.claim("controller", b"2", Write("controller_epoch", b"2", 1)) > created
    assert other.get("controller_epoch").data == b"2"


def test_an_expired_session_is_reported_and_its_renewal_never_counts_for_the_next(open_store, zookeeper):
    store = open_store()
    first = store.renew()
    store.heard.wait_for(SESSION)
    expire(zookeeper, store)
    store.heard.wait_for(SESSION)
    second = store.renew()
    assert isinstance(first, Session)
    assert second.number != first.number
    assert second.number == store.session()


def test_a_renewal_counts_from_sending_and_for_what_zookeeper_granted(open_store):
    store = open_store(session_ms=500_000)
    before = time.monotonic()
    lives_until = store.renew().until
    # maxSessionTimeout of `ZooKeeper` is 120 s.
    assert before + 119 < lives_until <= time.monotonic() + 120.001


class TestLostConnections:
    """The connection is lost at the worst moment: after ZooKeeper got the write, before its answer."""

    @pytest.fixture
    def store(self, open_store):
        return open_store()

    @staticmethod
    def lose_the_next_answer(store, monkeypatch, *, carried_out):
        real = KazooClient.transaction

        def transaction(client):
            monkeypatch.setattr(KazooClient, "transaction", real)
            made = real(client)
            commit = made.commit_async

            def lost():
                if carried_out:
                    commit().get(timeout=60)
                result = client.handler.async_result()
                result.set_exception(shared.zk.ConnectionLoss())
                return result

            made.commit_async = lost
            return made

        monkeypatch.setattr(KazooClient, "transaction", transaction)

    @pytest.mark.parametrize("carried_out", [True, False])
    @pytest.mark.parametrize("notification", [b"notification of this write", None])
    def test_a_write_happens_once(self, store, monkeypatch, carried_out, notification):
        store.compare_and_set("topics/a", b"1", 0)
        self.lose_the_next_answer(store, monkeypatch, carried_out=carried_out)
        assert store.write_all([Write("topics/a", b"2", 1)], None, notification) == [2]
        stored = store.get("topics/a")
        assert (stored.data, stored.revision) == (b"2", 2)
        assert len(store.paths(documents.CHANGES)) == (notification is not None)

    def test_a_write_that_others_overwrote_meanwhile_is_known_by_its_notification(self, store, open_store, monkeypatch):
        store.compare_and_set("topics/a", b"1", 0)
        self.lose_the_next_answer(store, monkeypatch, carried_out=True)
        real = store.sync
        other = open_store()
        monkeypatch.setattr(store, "sync", lambda: (other.compare_and_set("topics/a", b"3", 2), real()))
        assert store.write_all([Write("topics/a", b"2", 1)], None, b"mine") == [2]
        assert store.get("topics/a").data == b"3"

    @pytest.mark.parametrize("carried_out", [True, False])
    def test_a_claim_is_known_by_its_owner(self, store, monkeypatch, carried_out):
        self.lose_the_next_answer(store, monkeypatch, carried_out=carried_out)
        assert store.claim("controller", b"1", Write("controller_epoch", b"1", 0)) == store.get("controller").created
        stored = store.get("controller_epoch")
        assert (stored.data, stored.revision) == (b"1", 1)

    def test_reads_and_writes_wait_for_a_zookeeper_that_is_killed_and_comes_back(self, store, zookeeper):
        store.compare_and_set("topics/a", b"1", 0)
        zookeeper.kill()
        answers = queue.SimpleQueue()
        thread = threading.Thread(target=lambda: answers.put(store.compare_and_set("topics/a", b"2", 1)))
        thread.start()
        zookeeper.start()
        assert answers.get(timeout=30) == 2
        thread.join()
        assert store.get("topics/a").data == b"2"


def test_a_renewal_without_zookeeper_fails_with_a_sentence(open_store, zookeeper):
    store = open_store(session_ms=1_000)
    zookeeper.pause()
    try:
        with pytest.raises(StoreError, match=r"does not answer"):
            store.renew()
    finally:
        zookeeper.resume()
