"""What was found about schemas, kept: reading and comparing them takes long and needs nothing of the registry's state, so it happens while
nobody waits for that.

A question about the state asks `judged` for what it needs to know. What is not known yet raises `Later`; `answered` does the work without
the lock of the state and asks again. Thread-safe.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from contextvars import ContextVar
from typing import Any, TypeVar

from pylog_spark.registry.model import Schema
from pylog_spark.registry.refusals import too_much
from pylog_spark.registry.schemas import ParsedSchema, Referred, SchemaError, joined, not_comparable
from pylog_spark.registry.schemas.parsing import parsed

#: How many schemas and comparisons are kept, and how many characters of schemas they may have come from.
KEPT_MAX = 10_000
KEPT_CHARS_MAX = 4 << 20
#: How much of each reason is kept and said: names in schemas may be long.
REASON_CHARS_MAX = 500
#: How many requests read and compare at the same time, and how long one may.
AT_ONCE_MAX = 2
WORK_S_MAX = 20.0

_Found = TypeVar("_Found")
#: A schema with the texts that it refers to.
Whole = tuple[Schema, Referred]


class Later(Exception):
    """Something must be found out first. Not an error: `answered` does it and asks again."""

    def __init__(self, work: Sequence[Work]) -> None:
        super().__init__()
        self.work = work


class Work:
    """A function and what it is called with; `size` says how many characters it reads."""

    __slots__ = ("act", "key", "size")

    def __init__(self, key: Hashable, act: Callable[[], Any], size: int) -> None:
        self.key, self.act, self.size = key, act, size

    def done(self) -> Any:
        """What comes out, or why it cannot."""
        try:
            return self.act()
        except SchemaError as error:
            return SchemaError(*error.args)
        except RecursionError:
            return SchemaError("it is nested too deep.")


class _Kept:
    """What is known, the least recently used forgotten first."""

    def __init__(self) -> None:
        self._found: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._chars = 0
        self._lock = threading.Lock()

    def get(self, key: Hashable) -> Any:
        with self._lock:
            if key not in self._found:
                return None
            self._found.move_to_end(key)
            return self._found[key][0]

    def put(self, work: Work, found: Any) -> None:
        with self._lock:
            self._chars += work.size - self._found.pop(work.key, (None, 0))[1]
            self._found[work.key] = (found, work.size)
            while len(self._found) > KEPT_MAX or (self._chars > KEPT_CHARS_MAX and len(self._found) > 1):
                self._chars -= self._found.popitem(last=False)[1][1]


_kept = _Kept()
# What the question that is asked now found out: it needs all of it at once, even when that is more than is kept.
_own: ContextVar[dict[Hashable, Any] | None] = ContextVar("_own", default=None)
_at_once = threading.BoundedSemaphore(AT_ONCE_MAX)


def answered(ask: Callable[[], _Found]) -> _Found:
    """Give what `ask` gives, which may raise `Later`, once all is known that it needs.

    Raises
    ------
    Refusal
        That of `ask`; or the work takes longer than `WORK_S_MAX`.
    """
    own: dict[Hashable, Any] = {}
    token = _own.set(own)
    left_s = WORK_S_MAX
    try:
        while True:
            found: list[_Found] = []
            work = _asked(ask, found)
            if not work:
                return found[0]
            left_s = _done(work, own, left_s)
    finally:
        _own.reset(token)


def _asked(ask: Callable[[], _Found], found: list[_Found]) -> Sequence[Work]:
    """Put what comes out into `found`, or give the work that is needed first."""
    try:
        found.append(ask())
    except Later as later:
        return later.work
    return ()


def _done(work: Sequence[Work], own: dict[Hashable, Any], left_s: float) -> float:
    """Do the work, and give how much time is left."""
    with _at_once:
        started = time.monotonic()
        for each in work:
            own[each.key] = found = each.done()
            _kept.put(each, found)
            if time.monotonic() - started > left_s:
                raise too_much(WORK_S_MAX)
        return left_s - (time.monotonic() - started)


def read(schema: Schema, referred: Referred) -> ParsedSchema:
    """Give a schema in its read form. Raises `SchemaError` and `Later`."""
    size = len(schema.text) + sum(len(text) for _, text in referred)
    found = _known(Work((schema, referred), lambda: parsed(schema, referred), size))
    if isinstance(found, SchemaError):
        raise found
    assert not isinstance(found, list)
    schema_read: ParsedSchema = found
    return schema_read


def texts(schema: Schema, referred: Referred) -> tuple[str, str]:
    """Give the text that is stored, and the normalized one. Raises `SchemaError` and `Later`."""
    found = read(schema, referred)
    made: tuple[str, str] = _known(
        Work((schema, referred, "texts"), lambda: (found.text(False), found.text(True)), len(schema.text))
    )
    if isinstance(made, SchemaError):
        raise made
    return made


def why_not(reader: Whole, writer: Whole) -> list[str]:
    """Give why records of one schema cannot all be read with another; empty when they can. Raises `SchemaError` and `Later`."""
    reading, writing = read(*reader), read(*writer)
    if (why := not_comparable(reading, writing)) is not None:
        return [why]
    # The texts themselves belong to what is kept for `read`.
    found = _known(
        Work((reader, writer), lambda: [each[:REASON_CHARS_MAX] for each in joined(reading.reads(writing))], 0)
    )
    if isinstance(found, SchemaError):
        return [found.args[0]]
    messages: list[str] = found
    return messages


def _known(work: Work) -> Any:
    own = _own.get()
    found = None if own is None else own.get(work.key)
    if found is None:
        found = _kept.get(work.key)
        if found is None:
            raise Later([work])
        if own is not None:
            own[work.key] = found
    return found
