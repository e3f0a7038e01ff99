"""Which loss it is that a task meets, and what is left of its range."""

import pytest

from pylog_spark.errors import PylogError
from pylog_spark.offsets import TopicPartition
from pylog_spark.source import loss
from pylog_spark.source.loss import HeldRange, after_loss, find_loss

T0 = TopicPartition("t", 0)


@pytest.mark.parametrize(
    ("held", "condition", "left"),
    [
        (None, "PYLOG_TOPIC_DELETED", None),
        (HeldRange("another", 0, 100), "PYLOG_TOPIC_RECREATED", None),
        (HeldRange("id", 7, 100), "PYLOG_DATA_LOSS", (7, 10)),
        (HeldRange("id", 10, 100), "PYLOG_DATA_LOSS", None),
        (HeldRange("", 0, 8), "PYLOG_LOG_TRUNCATED", (5, 8)),
        (HeldRange("id", 0, 5), "PYLOG_LOG_TRUNCATED", None),
        (HeldRange("id", 0, 3), "PYLOG_LOG_TRUNCATED", None),
    ],
)
def test_what_is_lost_is_named_and_what_is_left_is_read(
    held: HeldRange | None, condition: str, left: tuple[int, int] | None
) -> None:
    found = find_loss(T0, 5, 10, "id", held)
    assert found is not None
    assert (found.condition, found.left) == (condition, left)
    assert "t" in found.sentence


def test_nothing_is_lost_while_the_log_holds_the_range() -> None:
    assert find_loss(T0, 5, 10, "id", HeldRange("id", 5, 10)) is None
    assert find_loss(T0, 5, 10, "", HeldRange("id", 0, 99)) is None


def test_a_truncation_that_a_new_leader_has_written_over_is_a_loss_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(loss, "_held", lambda *_: HeldRange("id", 0, 99))
    cause = ("LOG_TRUNCATED", "partition t-0 was read up to offset 5, but its new leader has less")
    with pytest.raises(PylogError) as caught:
        after_loss({}, True, T0, (5, 10), "id", cause)
    assert caught.value.condition == "PYLOG_LOG_TRUNCATED"
    assert after_loss({}, False, T0, (5, 10), "id", cause) == (5, 10)
