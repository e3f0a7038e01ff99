"""When a reader looks for transactions that hold it back, and what it says of them."""

import logging
from collections.abc import Callable, Collection, Iterable, Mapping

import pytest

from pylog_spark.errors import PylogError
from pylog_spark.offsets import Offsets, TopicPartition
from pylog_spark.options import STREAM, read_options
from pylog_spark.source.held_back import LOOK_S, REPEAT_S, HeldBack

A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)
HOLDER = {"q 7": "the undecided write q"}


class Scene:
    """A log of which a test sets the ends, writers that are still there or not, and the time."""

    def __init__(self, caplog: pytest.LogCaptureFixture, **options: str) -> None:
        self.stable: Offsets = {A0: 5, A1: 9}
        self.high: Offsets = {A0: 5, A1: 9}
        self.ended = 0
        self.holders: Mapping[str, str] = {}
        self.asked: list[Collection[TopicPartition]] = []
        self.now_s = 0.0
        self.reachable = True
        self._caplog = caplog
        given = {"bootstrap.servers": "b:1", "subscribe": "a", **options}
        make: Callable[..., HeldBack] = HeldBack
        self.held_back = make(read_options(given, STREAM), self, self.release, lambda: self.now_s)

    def latest(self, partitions: Iterable[TopicPartition], isolation: str | None = None) -> Offsets:
        if not self.reachable:
            raise PylogError("PYLOG_UNREACHABLE", "no broker")
        ends = self.high if isolation == "read_uncommitted" else self.stable
        return {each: ends[each] for each in partitions}

    def release(
        self, client: Mapping[str, str], partitions: Collection[TopicPartition]
    ) -> tuple[int, Mapping[str, str]]:
        self.asked.append(partitions)
        return self.ended, self.holders

    def look(self, after_s: float = LOOK_S) -> bool:
        self.now_s += after_s
        return self.held_back.look([A0, A1])

    def warnings(self) -> list[str]:
        lines = [record.getMessage() for record in self._caplog.records if record.levelno >= logging.WARNING]
        self._caplog.clear()
        return lines


@pytest.fixture
def scene(caplog: pytest.LogCaptureFixture) -> Scene:
    return Scene(caplog)


def test_nobody_is_asked_while_all_that_is_there_can_be_read(scene: Scene) -> None:
    assert not scene.look()
    assert (scene.asked, scene.warnings()) == ([], [])


def test_only_partitions_that_end_before_their_log_are_asked_for_and_at_most_once_a_minute(scene: Scene) -> None:
    scene.high[A1] = 12
    for after_s in (0, LOOK_S - 1, 0.5, 1):
        scene.look(after_s)
    assert scene.asked == [[A1], [A1]]


def test_what_was_ended_is_worth_another_look_at_the_log_and_no_warning(scene: Scene) -> None:
    scene.high[A1], scene.ended = 12, 1
    assert scene.look()
    assert scene.look()
    assert scene.warnings() == []


def test_who_holds_a_query_back_is_said_with_both_ends_and_again_only_after_some_time(scene: Scene) -> None:
    scene.high[A1], scene.holders = 12, HOLDER
    assert not scene.look()
    (warning,) = scene.warnings()
    for part in ("a-1 only up to the last stable offset 9", "goes on to 12", HOLDER["q 7"]):
        assert part in warning
    scene.look()
    assert scene.warnings() == []
    scene.look(REPEAT_S)
    assert len(scene.warnings()) == 1
    scene.holders = {"r 1": "another"}
    scene.look()
    assert len(scene.warnings()) == 1


def test_a_transaction_that_nobody_knows_is_said_when_the_stable_offset_has_stood_still(scene: Scene) -> None:
    scene.high[A1] = 12
    scene.look()
    assert scene.warnings() == [], "it may have just begun"
    scene.stable[A1] = 10
    scene.look()
    assert scene.warnings() == [], "it has moved"
    scene.look()
    (warning,) = scene.warnings()
    assert "pylog transaction producers a:1" in warning


def test_brokers_that_do_not_answer_are_no_failure_of_the_look(scene: Scene) -> None:
    scene.reachable = False
    assert not scene.look()
    assert scene.warnings() == []


def test_a_reader_of_uncommitted_data_is_never_held_back(caplog: pytest.LogCaptureFixture) -> None:
    scene = Scene(caplog, isolationLevel="read_uncommitted")
    scene.high[A1] = 12
    assert not scene.look()
    assert scene.asked == []
