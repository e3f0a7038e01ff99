"""What a broker's numbers were: rates of the broker, and how far behind groups were, in rings of `POINTS_MAX` points.

One thread asks the broker every `EVERY_S` seconds, and more seldom where asking takes long. It reads no records: that a group is so many seconds
behind is known from when the log's end was where the group is now, to `EVERY_S` seconds, and not for what was there before the first
look. Where a partition ends that the broker has no replica of, other brokers are asked, and of a group without that there is no point. At most `GROUPS_MAX` groups and the ends of `PARTITIONS_MAX` partitions are kept, the first that come; one line in the log says when there are
more. Loaded with the server, so it imports nothing that is large. Thread-safe.
"""

from __future__ import annotations

import contextvars
import json
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from pylog_spark.broker.process import Broker

log = logging.getLogger("pylog.http")

EVERY_S = 5.0
POINTS_MAX = 600
GROUPS_MAX = 100
PARTITIONS_MAX = 500
#: Of each partition so many ends are kept; when there are more, every second one is dropped.
ENDS_MAX = 120
# A look that takes long is not repeated before so many times as long, or so many seconds.
_REST, _REST_S = 50, 60.0
_RATES = ("records_in", "bytes_in", "bytes_out", "requests")

#: When, in seconds of a clock that never goes back, and where the log ended then.
_End = tuple[float, int]
_Place = tuple[str, int]


class _Lag(NamedTuple):
    """How far a group is behind in a partition."""

    group: str
    place: _Place
    offset: int
    lag: int


class History:
    """Records from `start` to `close`.

    Parameters
    ----------
    broker : Broker
        Whose numbers they are.
    each_time : callable
        Called after each look, in the thread.
    ends_of : callable
        Gives where partitions end of which the broker has no replica; None where nobody says, and nothing of those that are gone.
    """

    def __init__(
        self,
        broker: Broker,
        each_time: Callable[[], None] = lambda: None,
        ends_of: Callable[[Sequence[_Place]], Mapping[_Place, int | None]] = dict.fromkeys,
    ) -> None:
        self._broker, self._each_time, self._ends_of = broker, each_time, ends_of
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._rates: deque[list[float]] = deque(maxlen=POINTS_MAX)
        self._groups: dict[str, deque[list[Any]]] = {}
        self._ends: dict[_Place, list[_End]] = {}
        self._before: tuple[float, Mapping[str, int]] | None = None
        self._left_out = False
        context = contextvars.copy_context()
        self._thread = threading.Thread(target=context.run, args=(self._record,), name="pylog-history", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def close(self) -> None:
        """Stop."""
        self._closing.set()
        if self._thread.ident is not None:
            self._thread.join()

    def rates(self) -> dict[str, Any]:
        """The rates a second: time in ms since 1970, records appended, bytes read from sockets, bytes written to them, requests."""
        with self._lock:
            return {"every_s": EVERY_S, "points": list(self._rates)}

    def of_group(self, name: str) -> dict[str, Any]:
        """How far behind a group was: time in ms since 1970, records, seconds or None; no points of a group that is not recorded."""
        with self._lock:
            return {"every_s": EVERY_S, "points": list(self._groups.get(name, ()))}

    def _record(self) -> None:
        while not self._closing.is_set():
            began = time.monotonic()
            try:
                self._look(began)
                self._each_time()
            except Exception:
                if not self._closing.is_set():
                    log.exception("The broker's numbers are not recorded now; it is tried again.")
            took = time.monotonic() - began
            self._closing.wait(max(EVERY_S - took, min(took * _REST, _REST_S)))

    def _look(self, now: float) -> None:
        stats, groups = self._broker.stats(), json.loads(self._broker.group_numbers())["offsets"]
        offsets = [(each["group"], (each["topic"], each["partition"]), each["offset"], each["lag"]) for each in groups]
        lags = self._whole(offsets)
        now_ms = int(time.time() * 1000)
        with self._lock:
            if self._before is not None:
                then, old = self._before
                self._rates.append([now_ms, *(round((stats[each] - old[each]) / (now - then), 3) for each in _RATES)])
            self._before = now, stats
            self._take_groups(now, now_ms, lags)

    def _whole(self, offsets: Sequence[tuple[str, _Place, int, int | None]]) -> list[_Lag]:
        """The offsets of groups of which all lags are known; other brokers are asked for the ends of what is not here."""
        on_others = sorted({place for _, place, _, lag in offsets if lag is None})[:PARTITIONS_MAX]
        ends = self._ends_of(on_others) if on_others else {}
        found, partly = [], set[str]()
        for group, place, offset, lag in offsets:
            end = ends.get(place)
            if lag is not None:
                found.append(_Lag(group, place, offset, lag))
            elif end is not None:
                found.append(_Lag(group, place, offset, max(end - offset, 0)))
            elif place in ends or place not in on_others:
                partly.add(group)
        return [each for each in found if each.group not in partly]

    def _take_groups(self, now: float, now_ms: int, offsets: Iterable[_Lag]) -> None:
        lags: dict[str, int] = {}
        ages: dict[str, float | None] = {}
        followed: dict[_Place, int] = {}
        for group, place, offset, lag in offsets:
            if not self._has_room(group):
                continue
            lags[group] = lags.get(group, 0) + lag
            self._note_end(place, now, offset + lag)
            followed[place] = min(followed.get(place, offset), offset)
            age = self._age(place, offset, now) if lag else 0.0
            known = ages.get(group, 0.0)
            ages[group] = None if age is None or known is None else max(age, known)
        for group, lag in lags.items():
            age = ages[group]
            point = [now_ms, lag, None if age is None else round(age, 1)]
            self._groups.setdefault(group, deque(maxlen=POINTS_MAX)).append(point)
        self._forget(set(lags), followed)

    def _has_room(self, group: str) -> bool:
        if group in self._groups or len(self._groups) < GROUPS_MAX:
            return True
        if not self._left_out:
            self._left_out = True
            log.warning("The lag of %d groups is recorded for the page, and that of others is not.", GROUPS_MAX)
        return False

    def _note_end(self, place: _Place, now: float, end: int) -> None:
        ends = self._ends.get(place)
        if ends is None:
            if len(self._ends) < PARTITIONS_MAX:
                self._ends[place] = [(now, end)]
            return
        if ends[-1][1] > end:
            # The topic was made anew.
            ends.clear()
        if not ends or ends[-1][1] < end:
            ends.append((now, end))
        if len(ends) > ENDS_MAX:
            del ends[1:-1:2]

    def _age(self, place: _Place, offset: int, now: float) -> float | None:
        """Seconds since the record at an offset was first there; None where it was there before the first look."""
        ends = self._ends.get(place, [])
        if not ends or ends[0][1] > offset:
            return None
        return next((now - at for at, end in ends if end > offset), 0.0)

    def _forget(self, groups: set[str], followed: Mapping[_Place, int]) -> None:
        """Drop groups that are gone, and ends that no group will be at again."""
        for name in self._groups.keys() - groups:
            del self._groups[name]
        for place in self._ends.keys() - followed.keys():
            del self._ends[place]
        for place, offset in followed.items():
            ends = self._ends.get(place, [])
            passed = sum(end <= offset for _, end in ends)
            del ends[: max(passed - 1, 0)]
