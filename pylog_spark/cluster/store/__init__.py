"""Where the documents of a cluster are kept: one small interface, two stores.

`file` is the store of a single broker, `zookeeper` the one that several brokers share. Both promise: a write is atomic and,
once it returns, survives a kill of the process and power loss; it happens only when the stored revision is the expected one.
`SharedStore` adds what brokers need that share a store: ephemeral documents, change notifications, sessions.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


class StoreError(Exception):
    """The store cannot be read or written. `args[0]` is one sentence with the file or node and what to do."""


class RevisionConflict(StoreError):
    """Another process changed the document first: read it again and decide again."""


class SessionLost(StoreError):
    """The session with the store is over, and with it every ephemeral document of this broker."""


class OutcomeUnknown(StoreError):
    """The store stopped answering during a write: whether the write happened can only be found out by reading later."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A document.

    Attributes
    ----------
    revision : int
        1 when created; grows by one with each change.
    created : int
        In a shared store, when it was created, as a number that is larger for what was created later; else 0.
    """

    data: bytes
    revision: int
    created: int = 0


@dataclass(frozen=True, slots=True)
class Write:
    """One write of a document: `data` None deletes it. It happens only at `revision` (0: there must be none)."""

    path: str
    data: bytes | None
    revision: int


@dataclass(frozen=True, slots=True)
class Guard:
    """A document that must still have this revision for a write to happen; it is not changed."""

    path: str
    revision: int


@dataclass(frozen=True, slots=True)
class Session:
    """A session that surely lives until `until`, by `time.monotonic()`."""

    number: int
    until: float


class Store(Protocol):
    """A store of documents by path (segments separated by ``/``)."""

    def get(self, path: str) -> Stored | None:
        """Give the document at `path`, None when there is none."""

    def get_all(self, paths: Sequence[str]) -> list[Stored | None]:
        """Give the documents at several paths, read together."""

    def paths(self, prefix: str) -> list[str]:
        """Give the paths that begin with `prefix`, sorted. `prefix` ends with ``/``."""

    def compare_and_set(self, path: str, data: bytes, revision: int) -> int:
        """Write `data` when the stored revision is `revision` (0: there must be none); return the new revision.

        Raises
        ------
        RevisionConflict
            When the stored revision is another one.
        """

    def write_all(
        self, writes: Sequence[Write], guard: Guard | None = None, notification: bytes | None = None
    ) -> list[int]:
        """Carry out all writes or none, when `guard` holds; return the new revisions (0 of what was deleted).

        A shared store also leaves `notification` for the other brokers. It must differ from every other one: after a lost
        connection it shows whether the writes happened.

        Raises
        ------
        RevisionConflict
            Nothing was written.
        OutcomeUnknown
            The connection was lost for too long.
        """

    def delete(self, path: str, revision: int) -> None:
        """Remove the document when its revision is `revision`. Raises `RevisionConflict`."""

    def close(self) -> None:
        """Close the store; ephemeral documents of this session are removed."""


class SharedStore(Store, Protocol):
    """A store that several brokers share. It calls `notify` (see the implementation) in other threads."""

    def session(self) -> int | None:
        """Give the number of the session that is connected now; None while there is none."""

    def renew(self) -> Session:
        """Make a request, and give the time until which its answer proves that the session lives. Raises `StoreError`."""

    def sync(self) -> None:
        """Make sure that later reads see everything that is stored now."""

    def put_ephemeral(self, path: str, data: bytes) -> int:
        """Create `data` at `path`, for as long as the session lives; returns its `Stored.created`.

        Raises
        ------
        RevisionConflict
            When it exists already, from another session.
        """

    def claim(self, path: str, data: bytes, *writes: Write) -> int:
        """Do `put_ephemeral` and all `writes`, or none of them; returns the `Stored.created` of the ephemeral document.

        Raises
        ------
        RevisionConflict
            When the ephemeral document exists already, or one of the others was changed.
        """

    def release(self, path: str) -> None:
        """Remove the ephemeral document at `path` if it belongs to this session."""

    def watch_children(self, path: str) -> list[str]:
        """Give the names of the documents directly under `path`, sorted. Their next change calls `notify`, once."""

    def watch(self, path: str) -> Stored | None:
        """Give the document at `path`. Its next change calls `notify`, once."""
