"""The SCRAM users, ACLs and client quotas that one broker knows: stored, handed to the native server, the same on all brokers.

Not thread-safe: the control loop is the only caller.

In a store that several brokers share, every change also writes the document `security/sequence`, so changes happen one after the other:
a decision that did not know of another broker's change is not stored but made again. The change notification has the change's number;
a broker that misses one reads everything again.
"""

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from pylog_spark.broker.config import BrokerConfig
from pylog_spark.cluster import documents as cluster_documents
from pylog_spark.cluster.errors import ErrorCode, Refusal
from pylog_spark.cluster.features import FEATURE
from pylog_spark.cluster.security import documents
from pylog_spark.cluster.security.model import Entity, Limits, Pattern, Quotas, ResourceAcls, Unit, User
from pylog_spark.cluster.store import OutcomeUnknown, RevisionConflict, SessionLost, Store, Stored, StoreError, Write

log = logging.getLogger("pylog.broker")

# One request to ZooKeeper takes 1 MiB; each write needs its path twice, and some more.
_BATCH_BYTES = 900_000
_WRITE_BYTES = 400

#: Another broker changed something first, which has been read by now: decide again.
CONFLICT = Refusal(ErrorCode.KAFKA_STORAGE_ERROR, "Other brokers keep changing users, ACLs and quotas: try again.")


class NativeSecurity(Protocol):
    """The method of `NativeBroker` that is called here."""

    def apply_security(self, security_json: str) -> None: ...


class SecurityRegistry:
    """Users, ACLs and quotas of one broker.

    Attributes
    ----------
    users : dict of str to User
    acls : dict of Pattern to ResourceAcls
    quotas : dict of Entity to Quotas
        What is stored.
    """

    def __init__(
        self,
        store: Store,
        native: NativeSecurity,
        notification: Callable[[int, Sequence[str]], bytes],
        *,
        shared: bool = False,
    ) -> None:
        self.users: dict[str, User] = {}
        self.acls: dict[Pattern, ResourceAcls] = {}
        self.quotas: dict[Entity, Quotas] = {}
        self._store = store
        self._native = native
        self._notification = notification
        self._shared = shared
        self._sequence = 0
        self._units: dict[str, Unit] = {}
        self._revisions: dict[str, int] = {}
        self._decoy_key: str | None = None
        self._applied: str | None = None

    def read_all(self) -> None:
        """Read everything, and apply it if it is not what was applied before. Raises `StoreError`, `DocumentError`, `NativeError`."""
        # Before the others: they are as new as this number, or newer.
        sequence = self._store.get(documents.SEQUENCE)
        paths = [path for folder in documents.FOLDERS for path in self._store.paths(folder)]
        paths.append(cluster_documents.DECOY_KEY)
        for path in self._units.keys() - set(paths):
            self._take(path, None)
        for path, stored in zip(paths, self._store.get_all(paths), strict=True):
            self._take(path, stored)
        self._sequence = 0 if sequence is None else sequence.revision
        self._apply()

    def follow(self, changes: Sequence[tuple[int, Sequence[str]]]) -> None:
        """Read and apply what other brokers changed: numbers of changes, in order, and the paths of the documents."""
        new = [(sequence, paths) for sequence, paths in changes if sequence > self._sequence]
        if new and [sequence for sequence, _ in new] != list(range(self._sequence + 1, new[-1][0] + 1)):
            self.read_all()
        elif new:
            paths = sorted({path for _, paths in new for path in paths})
            for path, stored in zip(paths, self._store.get_all(paths), strict=True):
                self._take(path, stored)
            self._sequence = new[-1][0]
        # Also when a change of this broker could not be applied before.
        self._apply()

    def commit(self, units: Sequence[Unit], level: int) -> Refusal | None:
        """Store and apply the changed `units`; empty ones are deleted. Returns why not.

        Raises
        ------
        OutcomeUnknown
            When the shared store stopped answering: whether the units are stored is found out by reading later.
        """
        if self._shared and level < cluster_documents.LEVEL_OF_SECURITY:
            return Refusal(
                ErrorCode.UNSUPPORTED_VERSION,
                f"Users, ACLs and quotas need level {cluster_documents.LEVEL_OF_SECURITY} of {FEATURE}, because older brokers would ignore "
                "them: raise it when all brokers understand it.",
            )
        changed = [unit for unit in units if self._units.get(documents.path_of(unit)) != unit]
        refused = None
        for batch in self._batches([unit for unit in changed if not self._is_gone(unit)]):
            refused = self._write(batch)
            if refused is not None:
                break
        if refused is not None:
            self.read_all()
        else:
            self._apply()
        return refused

    def _is_gone(self, unit: Unit) -> bool:
        return unit.is_empty and documents.path_of(unit) not in self._units

    def _batches(self, units: Sequence[Unit]) -> Iterator[list[Write]]:
        batch: list[Write] = []
        room = _BATCH_BYTES
        if self._decoy_key is None and any(isinstance(unit, User) for unit in units):
            batch.append(Write(cluster_documents.DECOY_KEY, documents.encode_decoy_key(os.urandom(32).hex()), 0))
        for unit in units:
            path = documents.path_of(unit)
            write = Write(path, None if unit.is_empty else documents.encode(unit), self._revisions.get(path, 0))
            size = len(write.data or b"") + _WRITE_BYTES
            if batch and size > room:
                yield batch
                batch, room = [], _BATCH_BYTES
            batch.append(write)
            room -= size
        if batch:
            yield batch

    def _write(self, writes: Sequence[Write]) -> Refusal | None:
        sequence = self._sequence + 1
        number = Write(documents.SEQUENCE, cluster_documents.encode_number("sequence", sequence), self._sequence)
        notification = self._notification(sequence, [write.path for write in writes]) if self._shared else None
        try:
            revisions = self._store.write_all([*writes, *([number] if self._shared else [])], None, notification)
        except (OutcomeUnknown, SessionLost):
            raise
        except RevisionConflict:
            return CONFLICT
        except StoreError as error:
            log.error("Users, ACLs or quotas are not stored: %s", error)
            return Refusal(ErrorCode.KAFKA_STORAGE_ERROR, str(error))
        if self._shared:
            self._sequence = sequence
        for write, revision in zip(writes, revisions, strict=False):
            self._take(write.path, None if write.data is None else Stored(write.data, revision))
        return None

    def _take(self, path: str, stored: Stored | None) -> None:
        if path == cluster_documents.DECOY_KEY:
            self._decoy_key = None if stored is None else documents.decode_decoy_key(stored.data)
            return
        # First: what is known stays where the document is damaged.
        unit = None if stored is None else documents.decode(path, stored.data)
        before = self._units.pop(path, None)
        self._revisions.pop(path, None)
        if before is not None:
            self._forget(before)
        if unit is not None and stored is not None:
            self._units[path], self._revisions[path] = unit, stored.revision
            self._remember(unit)

    def _remember(self, unit: Unit) -> None:
        if isinstance(unit, User):
            self.users[unit.name] = unit
        elif isinstance(unit, ResourceAcls):
            self.acls[unit.pattern] = unit
        else:
            self.quotas[unit.entity] = unit

    def _forget(self, unit: Unit) -> None:
        if isinstance(unit, User):
            del self.users[unit.name]
        elif isinstance(unit, ResourceAcls):
            del self.acls[unit.pattern]
        else:
            del self.quotas[unit.entity]

    def _apply(self) -> None:
        wanted = documents.native((unit for _, unit in sorted(self._units.items())), self._decoy_key)
        if wanted != self._applied:
            self._native.apply_security(wanted)
            self._applied = wanted


def limits(broker: BrokerConfig) -> Limits:
    """How much may be stored, by the broker's settings."""
    return Limits(
        broker.number("security.users.max"),
        broker.number("security.acls.max"),
        broker.number("security.quota.entities.max"),
        broker.number("security.name.max.bytes"),
    )
