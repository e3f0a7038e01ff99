"""What the driver asks the brokers, a data directory or an archive: which partitions there are and where they begin and end.

The connection is opened by the first request and belongs to the process; a pickled `Log` holds only its options. Each method makes
one round of requests: `assigned` asks for metadata, and the client remembers the leaders; `bounds`, `earliest` and `latest` ask the
leaders for offsets, of all partitions at once. Ten thousand partitions are asked for at each trigger: what did not change since is not
made anew.

When brokers do not answer, a request is repeated as by Spark's Kafka connector: an attempt fails after `default.api.timeout.ms`, and
there are `fetchOffset.numRetries` attempts, by default 3 of 60 s.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from pylog_spark.errors import PylogError, native, translated
from pylog_spark.offsets import Offsets, TopicPartition
from pylog_spark.offsets.limits import (
    EARLIEST,
    LATEST,
    Ago,
    AtTimestamp,
    Back,
    Earliest,
    Limit,
    LimitError,
    Specific,
    check_names,
)
from pylog_spark.offsets.position import Position
from pylog_spark.offsets.ranges import OffsetRange
from pylog_spark.offsets.visible import Taken, Wish
from pylog_spark.options import ReadOptions
from pylog_spark.results.topics import ListedTopic
from pylog_spark.source.cold_parts import ColdParts
from pylog_spark.source.joined import JoinedLog
from pylog_spark.source.origin import Archive, Origin, warn
from pylog_spark.spark.contact import first_contact, topic_error

if TYPE_CHECKING:
    from pylog_spark.source.origin import Asked

_log = logging.getLogger("pylog_spark")

_UNKNOWN_TOPIC = "UNKNOWN_TOPIC_OR_PARTITION"
#: Most topics of a directory that an error names.
_NAMES_SHOWN = 10

Answer = TypeVar("Answer")


class Bounds(NamedTuple):
    """Of each partition the first offset that it holds, and the offset after the last readable record."""

    earliest: Offsets
    latest: Offsets


class Log:
    """The partitions that a query is subscribed to, at the brokers.

    Parameters
    ----------
    options : ReadOptions
        The options of the query.
    now_s : callable
        The clock from which "-10 minutes" counts, in seconds since 1970.
    sleep_s : callable
        Pauses for so many seconds before a request is repeated.
    """

    def __init__(
        self,
        options: ReadOptions,
        now_s: Callable[[], float] = time.time,
        sleep_s: Callable[[float], None] = time.sleep,
    ) -> None:
        self._options = options
        #: Where the log is.
        self.origin = Origin(options.client, options.path, options.skip_damaged, options.archive, options.cut)
        self._now_s = now_s
        self._sleep_s = sleep_s
        self._client: Asked | None = None
        self._cold: ColdParts | None = None
        #: The topics that `assigned` has found last, and their partitions, sorted.
        self._found: tuple[list[ListedTopic], list[TopicPartition]] = ([], [])

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_client": None, "_cold": None, "_found": ([], [])}

    def check(self) -> None:
        """Check at ``load()`` that a broker answers, or the directory is one, and the named topics exist. Raises `PylogError` within seconds.

        With failOnDataLoss=false one of the query's topics is enough.
        """
        subscription = self._options.subscription
        names = subscription.topics or sorted({partition.topic for partition in subscription.partitions})
        at_brokers = self._options.path is None
        found = first_contact(self._options.client, names) if at_brokers else self._list(list(names))
        missing = [topic for topic in found if topic.error is not None]
        may_miss = not self._options.fail_on_data_loss and len(missing) < len(found)
        for topic in missing:
            if not (may_miss and topic.error == _UNKNOWN_TOPIC):
                raise self._topic_error(topic)

    def assigned(self, known: Collection[TopicPartition] = ()) -> Position:
        """Give the subscribed partitions that exist now (offsets 0) with the ids of their topics.

        Parameters
        ----------
        known : collection of TopicPartition
            Partitions that the query has read. Those that are gone are left out without an error; the caller decides about them.

        Raises
        ------
        PylogError
            When a topic or partition that the user named does not exist.
        """
        subscription = self._options.subscription
        topics = self._listed({partition.topic for partition in known})
        if topics != self._found[0]:
            self._found = (
                topics,
                sorted(TopicPartition(topic.name, each) for topic in topics for each in topic.partitions),
            )
        found = self._found[1]
        if subscription.partitions:
            missing = sorted(set(subscription.partitions).difference(found, known))
            if missing:
                raise PylogError(
                    "PYLOG_UNKNOWN_TOPIC", f"{self._holder()} no partition {missing[0]}; correct the option assign."
                )
            found = sorted(set(subscription.partitions).intersection(found))
        ids = {topic.name: topic.topic_id for topic in topics}
        return Position(dict.fromkeys(found, 0), ids)

    def bounds(self, partitions: Iterable[TopicPartition]) -> Bounds:
        """Give the first offset and the end of each partition."""
        partitions = list(partitions)
        questions = [(*each, mark) for mark in (EARLIEST, LATEST) for each in partitions]
        answers = self._ask(questions)
        count = len(partitions)
        return Bounds(
            dict(zip(partitions, answers[:count], strict=True)), dict(zip(partitions, answers[count:], strict=True))
        )

    def earliest(self, partitions: Collection[TopicPartition]) -> Offsets:
        """Give the first offset that each partition holds."""
        return self._ask_all(partitions, EARLIEST)

    def latest(self, partitions: Collection[TopicPartition], isolation: str | None = None) -> Offsets:
        """Give the offset after the last readable record of each partition, under the query's isolation level or `isolation`."""
        return self._ask_all(partitions, LATEST, isolation)

    def advance(self, wishes: Sequence[Wish]) -> list[Taken]:
        """Look at the batches of each range, by their headers, and say how far its limits reach."""
        ranges = [(*wish.partition, *wish[1:]) for wish in wishes]
        return [Taken(*taken) for taken in self._asked(lambda asked: asked.advance(ranges))]

    def resolve(self, limit: Limit, option: str, partitions: Iterable[TopicPartition]) -> Offsets:
        """Turn what the user said into offsets.

        Parameters
        ----------
        limit : Limit
            Where to start or end.
        option : str
            The name of the option that says so, for error messages.
        partitions : iterable of TopicPartition
            All partitions that are read. If `limit` names partitions, it must name all of these.

        Raises
        ------
        PylogError
            When partitions are missing or too many, or a time has no record.
        """
        partitions = list(partitions)
        try:
            check_names(limit, partitions, option)
        except LimitError as error:
            raise PylogError("PYLOG_INVALID_OPTION", f"The option {error}.") from None
        if isinstance(limit, AtTimestamp):
            return self._at_timestamp(limit, option, partitions)
        if isinstance(limit, Specific):
            return self._specific(limit, option, partitions)
        if isinstance(limit, Back):
            held = self.bounds(partitions)
            return {each: max(held.earliest[each], end - limit.offsets) for each, end in held.latest.items()}
        if isinstance(limit, Ago):
            since = AtTimestamp(max(0, int(self._now_s() * 1_000) - limit.ms), {}, latest_when_missing=True)
            return self._at_timestamp(since, option, partitions)
        mark = EARLIEST if isinstance(limit, Earliest) else LATEST
        return self._ask_all(partitions, mark)

    def first_at(self, partitions: Collection[TopicPartition], timestamp_ms: int) -> Offsets:
        """Give each partition's first offset at or after a time, -1 where there is none."""
        return self._ask_all(partitions, timestamp_ms)

    def parted(self, ranges: Iterable[OffsetRange], *, all_of_it: bool) -> tuple[list[OffsetRange], list[OffsetRange]]:
        """Part ranges in what is read from the archive of the brokers' topics and what is not, see `JoinedLog.parted`."""
        asked = self._connected()
        if isinstance(asked, JoinedLog):
            return self._asked(lambda _: asked.parted(ranges, all_of_it=all_of_it))
        if not self._options.archive_reads or not isinstance(asked, native().Client):
            return [], list(ranges)
        if self._cold is None:
            self._cold = ColdParts(self._options.client["isolation.level"])
        with translated():
            return self._cold.parted(asked, ranges)

    @property
    def archive(self) -> Archive | None:
        """Where tasks read what `parted` has found to be archived."""
        if self._options.archive is not None:
            return Archive(self._options.archive, is_served=False)
        return None if self._cold is None else Archive(self._cold.url, is_served=True)

    def segments(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, list[tuple[int, int]]]:
        """Give of each segment of the logs in a directory or an archive the first offset and its bytes. Brokers do not say it."""
        asked = self._connected()
        holder = self._cold if isinstance(asked, native().Client) else asked
        assert holder is not None
        with translated():
            return {each: holder.segments(*each) for each in partitions}

    def close(self) -> None:
        """Close the connections; the next request opens them again."""
        client, self._client = self._client, None
        if client is not None:
            client.close()

    def _specific(self, limit: Specific, option: str, partitions: list[TopicPartition]) -> Offsets:
        """Replace words for topics, -1 and -2 by the offsets that they stand for now."""
        resolved = {each: limit.offsets[each] for each in partitions if each in limit.offsets}
        marks = {each: offset for each, offset in resolved.items() if offset < 0}
        resolved.update(self._ask_each(marks))
        for topic, word in limit.topics.items():
            resolved.update(self.resolve(word, option, [each for each in partitions if each.topic == topic]))
        return resolved

    def _at_timestamp(self, limit: AtTimestamp, option: str, partitions: list[TopicPartition]) -> Offsets:
        times = {
            partition: limit.by_partition[partition] if limit.timestamp_ms is None else limit.timestamp_ms
            for partition in partitions
        }
        found = self._ask_each(times)
        missing = sorted(partition for partition, offset in found.items() if offset < 0)
        if missing and not limit.latest_when_missing:
            raise PylogError(
                "PYLOG_NO_OFFSET_FOR_TIMESTAMP",
                f"{missing[0]} has no record at or after {times[missing[0]]} ms, which {option} asks for; choose an "
                "earlier time, or set startingOffsetsByTimestampStrategy to latest to begin at its end.",
            )
        return {**found, **self.latest(missing)}

    def _ask_all(self, partitions: Collection[TopicPartition], time_ms: int, isolation: str | None = None) -> Offsets:
        """Ask for the offset of a time or a mark (`LATEST`, `EARLIEST`) in all of `partitions`."""
        answers = self._ask([(topic, number, time_ms) for topic, number in partitions], isolation)
        return dict(zip(partitions, answers, strict=True))

    def _ask_each(self, times: Mapping[TopicPartition, int]) -> Offsets:
        """Ask for the offset of a time or a mark of each partition."""
        answers = self._ask([(*partition, time_ms) for partition, time_ms in times.items()])
        return dict(zip(times, answers, strict=True))

    def _ask(self, questions: list[tuple[str, int, int]], isolation: str | None = None) -> list[int]:
        """Ask for offsets of topics' partitions at times or marks; answers in the same order."""
        if not questions:
            return []
        isolation = isolation or self._options.client.get("isolation.level", "read_uncommitted")
        answers = self._asked(lambda asked: asked.list_offsets(questions, isolation))
        return [offset for _, _, offset, _ in answers]

    def _listed(self, known: Collection[str]) -> list[ListedTopic]:
        """The topics of the subscription. Topics of `known` that are gone are left out."""
        subscription = self._options.subscription
        if subscription.pattern:
            every = self._list(None)
            # By the brokers' flag: a name that begins with __ may be a user's.
            named = [topic for topic in every if not topic.is_internal and subscription.matches(topic.name)]
            # A topic that is just being created has no leader yet; the next request finds it.
            return [topic for topic in named if topic.error is None or topic.name in known]
        names = subscription.topics or sorted({partition.topic for partition in subscription.partitions})
        topics = self._list(list(names))
        # After a topic was deleted and the query went on without it, the topic is no longer in `known`.
        forgiving = bool(known) and not self._options.fail_on_data_loss
        for topic in topics:
            gone = topic.error == _UNKNOWN_TOPIC and (forgiving or topic.name in known)
            if topic.error is not None and not gone:
                raise self._topic_error(topic)
        return [topic for topic in topics if topic.error is None]

    def _list(self, names: list[str] | None) -> list[ListedTopic]:
        return self._asked(lambda asked: [ListedTopic(*topic) for topic in asked.list_partitions(names)])

    def _asked(self, question: Callable[[Asked], Answer]) -> Answer:
        """Ask, and ask again when no broker has answered in time."""
        attempt = 1
        while True:
            try:
                with translated():
                    asked = self._connected()
                    answer = question(asked)
                if self._options.path is not None or self._options.archive is not None:
                    assert not isinstance(asked, native().Client)
                    warn(asked)
                return answer
            except PylogError as error:
                if error.condition != "PYLOG_UNREACHABLE" or attempt >= self._options.offset_retries:
                    raise
                _log.warning("Attempt %d to ask the brokers failed and is repeated: %s", attempt, error.sentence)
            self._sleep_s(self._options.offset_retry_ms / 1_000)
            attempt += 1

    def _topic_error(self, topic: ListedTopic) -> PylogError:
        """The error of a topic that the user named."""
        if self._options.path is None:
            return topic_error(topic.name, str(topic.error))
        names = [each.name for each in self._list(None) if not each.is_internal]
        more = f" and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else ""
        there = f"but {', '.join(names[:_NAMES_SHOWN])}{more}" if names else "nor any other"
        return PylogError(
            "PYLOG_UNKNOWN_TOPIC", f"{self._holder()} no topic {topic.name!r}, {there}; correct the name."
        )

    def _holder(self) -> str:
        """Who has topics, as the beginning of a sentence."""
        return "The brokers have" if self._options.path is None else f"The directory {self._options.path} has"

    def _connected(self) -> Asked:
        if self._client is None:
            self._client = self.origin.open()
        return self._client
