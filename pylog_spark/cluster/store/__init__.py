"""Where the documents of a cluster are kept: one small interface, several stores.

All stores promise the same: `compare_and_set` is atomic and, once it returns, survives a kill of the process and power
loss; it writes only when the stored revision is the expected one; a watcher hears of each change after it is stored.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol


class StoreError(Exception):
    """The store cannot be read or written. `args[0]` is one sentence with the file or node and what to do."""


class RevisionConflict(StoreError):
    """Somebody else changed the document first: read it again and decide again."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A document and its revision: 1 when created, one more with each change."""

    data: bytes
    revision: int


Watcher = Callable[[str], None]


class Store(Protocol):
    """Documents by path (segments separated by ``/``)."""

    def get(self, path: str) -> Stored | None:
        """The document at `path`, None when there is none."""

    def compare_and_set(self, path: str, data: bytes, revision: int) -> int:
        """Write `data` when the stored revision is `revision` (0: there must be none); return the new revision.

        Raises
        ------
        RevisionConflict
            When the stored revision is another one.
        """

    def delete(self, path: str, revision: int) -> None:
        """Remove the document when its revision is `revision`. Raises `RevisionConflict`."""

    def list(self, prefix: str) -> list[str]:
        """Paths that begin with `prefix`, sorted."""

    def watch(self, prefix: str, watcher: Watcher) -> None:
        """Call `watcher(path)` after each change of a document whose path begins with `prefix`."""

    def put_ephemeral(self, path: str, data: bytes) -> None:
        """Keep `data` at `path` until this store is closed or its process is gone. Raises `RevisionConflict`."""

    def close(self) -> None:
        """Give up the store; ephemeral documents go."""
