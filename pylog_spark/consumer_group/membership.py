"""What one member of a group writes into ZooKeeper: its registration, its claims, offsets and releases.

A member owns exactly the partitions that it claimed in the session in which it is registered. ZooKeeper removes its registration
and its ownerships together when that session ends. Every commit and every release checks the registration in the same transaction
(a `Guard`), so a member whose session is over can neither change an offset nor release a partition that another member owns now.
"""

import time
from collections.abc import Collection, Mapping

from pylog_spark.cluster.store import Guard, RevisionConflict, SessionLost, SharedStore, StoreError, Write
from pylog_spark.consumer_group import documents
from pylog_spark.topic_partition import TopicPartition

#: ZooKeeper is asked again when a session has less than this fraction of its time left.
_RENEW_BELOW = 0.5


class GroupMembership:
    """The membership of `consumer` in `group`. Not thread-safe.

    Parameters
    ----------
    store : SharedStore
        The shared store; `close` closes it.
    group : str
        The group's name.
    consumer : str
        The member's name.
    topics : collection of str
        The topics that the member reads.
    """

    def __init__(self, store: SharedStore, group: str, consumer: str, topics: Collection[str]) -> None:
        self._store = store
        self._group = group
        self._consumer = consumer
        self._topics = frozenset(topics)
        self._session: int | None = None
        self._until = 0.0
        self._length_s = 0.0
        self._revisions: dict[TopicPartition, int] = {}

    def register(self) -> None:
        """Register the member in the current session. Raises `StoreError`."""
        self._session, self._until, self._revisions = None, 0.0, {}
        for path in (documents.members_path(self._group), *(self._owners(topic) for topic in self._topics)):
            self._make(path)
        session = self._store.session()
        self._store.put_ephemeral(self._mine, documents.encode_member(self._topics))
        # If another session has begun meanwhile, the registration is gone.
        if session is None or self._store.session() != session:
            raise SessionLost(f"The session with ZooKeeper ended while consumer {self._consumer} registered.")
        self._session = session
        self._renew()

    @property
    def registered(self) -> bool:
        """Whether the member is registered, as far as known."""
        return self._session is not None

    def lives(self) -> bool:
        """Whether the session is known to be alive now. Asks ZooKeeper when its last answer is too old.

        False when ZooKeeper does not answer and its last answer is too old: the session may be alive or not.

        Raises
        ------
        SessionLost
            When the session in which this member registered is over.
        """
        left_s = self._until - time.monotonic()
        if self._session is not None and left_s > self._length_s * _RENEW_BELOW:
            return True
        if self._store.session() not in (None, self._session):
            raise self._lost()
        try:
            self._renew()
        except SessionLost:
            raise
        except StoreError:
            return self._until > time.monotonic()
        return True

    def members(self) -> dict[str, frozenset[str]]:
        """Give the members of the group with their topics. The next change calls the store's `notify`, once.

        Raises
        ------
        SessionLost
            When this member is no longer one of them.
        """
        names = self._store.watch_children(documents.members_path(self._group))
        if self._consumer not in names:
            self._check_registration()
        paths = [documents.member_path(self._group, name) for name in names]
        found = zip(names, paths, self._store.get_all(paths), strict=True)
        return {
            name: documents.decode_member(path, document.data) for name, path, document in found if document is not None
        }

    def claim(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int | None]:
        """Claim those of `partitions` without an owner, and give the group's offset of each, None where there is none.

        When another member releases one of the others, the store's `notify` is called, once. Raises `StoreError`.
        """
        owned = [partition for partition in sorted(partitions) if self._own(partition)]
        if not owned:
            return {}
        # Read the offsets that the last owner committed.
        self._store.sync()
        paths = [documents.offset_path(self._group, partition) for partition in owned]
        offsets: dict[TopicPartition, int | None] = {}
        for partition, path, stored in zip(owned, paths, self._store.get_all(paths), strict=True):
            self._revisions[partition] = 0 if stored is None else stored.revision
            offsets[partition] = None if stored is None else documents.decode_offset(path, stored.data)
        return offsets

    def commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Store the offsets of partitions that this member owns, all or none.

        Raises
        ------
        SessionLost
            When the session is over; nothing was stored.
        StoreError
            When ZooKeeper does not answer. Whether the offsets were stored is not known; it is safe to store them again.
        """
        if not offsets:
            return
        try:
            self._write(offsets)
        except RevisionConflict:
            self._check_registration()
            # Somebody wrote offsets by hand; the owner's offsets replace them.
            for partition in offsets:
                stored = self._store.get(documents.offset_path(self._group, partition))
                self._revisions[partition] = 0 if stored is None else stored.revision
            self._write(offsets)

    def release(self, partitions: Collection[TopicPartition]) -> None:
        """Release `partitions`, so that others can claim them. After `SessionLost` they can already; after `StoreError` call it again."""
        for partition in partitions:
            self._revisions.pop(partition, None)
        try:
            self._delete_owners(partitions)
        except RevisionConflict:
            self._check_registration()
            # An earlier call whose answer was lost released some, or an administrator did: release the others.
            self._delete_owners([partition for partition in partitions if self._is_mine(partition)])

    def close(self) -> None:
        """End the session, and with it the membership and all ownerships."""
        self._session = None
        self._store.close()

    @property
    def _mine(self) -> str:
        return documents.member_path(self._group, self._consumer)

    def _owners(self, topic: str) -> str:
        return documents.owners_path(self._group, topic)

    def _make(self, path: str) -> None:
        """Create the parent of ephemeral nodes, which cannot have children themselves."""
        try:
            if self._store.get(path) is None:
                self._store.compare_and_set(path, b"", 0)
        except RevisionConflict:
            pass  # Another member was quicker.

    def _own(self, partition: TopicPartition) -> bool:
        path = documents.owner_path(self._group, partition)
        try:
            self._store.put_ephemeral(path, documents.encode_owner(self._consumer))
        except RevisionConflict:
            # If it was released meanwhile, claim it at once instead of waiting for the watch.
            return self._store.watch(path) is None and self._own(partition)
        return True

    def _is_mine(self, partition: TopicPartition) -> bool:
        owner = self._store.get(documents.owner_path(self._group, partition))
        return owner is not None and owner.data == documents.encode_owner(self._consumer)

    def _delete_owners(self, partitions: Collection[TopicPartition]) -> None:
        writes = [Write(documents.owner_path(self._group, partition), None, 1) for partition in sorted(partitions)]
        if writes:
            self._store.write_all(writes, Guard(self._mine, 1))

    def _write(self, offsets: Mapping[TopicPartition, int]) -> None:
        partitions = sorted(offsets)
        writes = [
            Write(
                documents.offset_path(self._group, partition),
                documents.encode_offset(offsets[partition]),
                self._revisions.get(partition, 0),
            )
            for partition in partitions
        ]
        revisions = self._store.write_all(writes, Guard(self._mine, 1))
        self._revisions.update(zip(partitions, revisions, strict=True))

    def _check_registration(self) -> None:
        if self._store.session() != self._session or self._store.get(self._mine) is None:
            raise self._lost()

    def _renew(self) -> None:
        sent = time.monotonic()
        session = self._store.renew()
        if session.number != self._session:
            raise self._lost()
        self._until, self._length_s = session.until, session.until - sent

    def _lost(self) -> SessionLost:
        self._session = None
        return SessionLost(f"The session of consumer {self._consumer} with ZooKeeper is over.")
