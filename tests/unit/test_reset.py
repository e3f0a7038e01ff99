"""Where a group goes on: every way, inside and outside the log."""

import pytest

from pylog_spark.offsets.reset import How, Known, Target, duration_ms, new_offset, selected

LOG = Known(start=10, end=100, current=40, at_time=55)
NOWHERE = Known(start=10, end=100)


@pytest.mark.parametrize(
    ("target", "known", "expected"),
    [
        (Target(How.EARLIEST), LOG, 10),
        (Target(How.LATEST), LOG, 100),
        (Target(How.CURRENT), LOG, 40),
        (Target(How.CURRENT), NOWHERE, 100),
        (Target(How.OFFSET, 50), NOWHERE, 50),
        (Target(How.OFFSET, 5), LOG, 10),
        (Target(How.OFFSET, 500), LOG, 100),
        (Target(How.SHIFT, 7), LOG, 47),
        (Target(How.SHIFT, -7), LOG, 33),
        (Target(How.SHIFT, -700), LOG, 10),
        (Target(How.SHIFT, 700), LOG, 100),
        (Target(How.SHIFT, 1), NOWHERE, None),
        (Target(How.TIME, 1), LOG, 55),
        (Target(How.TIME, 1), NOWHERE, 100),
        (Target(How.CURRENT), Known(10, 100, current=3), 10),
    ],
)
def test_a_group_goes_on_where_kafkas_tool_would_send_it(target, known, expected):
    assert new_offset(target, known) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [("P1D", 86_400_000), ("PT30M", 1_800_000), ("p1dt2h", 93_600_000), ("PT0.5S", 500), ("PT1H1M1S", 3_661_000)],
)
def test_durations_are_read(text, expected):
    assert duration_ms(text) == expected


@pytest.mark.parametrize("text", ["", "P", "PT", "1h", "P1H", "PT-1S", "P1W"])
def test_what_is_no_duration_is_refused(text):
    with pytest.raises(ValueError, match="is not a duration"):
        duration_ms(text)


def test_topics_are_selected_whole_or_by_partition():
    assert list(selected(["a", "b:2,0,2", "c:1"])) == [("a", None), ("b", [0, 2]), ("c", [1])]


@pytest.mark.parametrize("text", ["", ":1", "a:", "a:x", "a:1,", "a:-1"])
def test_what_selects_nothing_is_refused(text):
    with pytest.raises(ValueError, match="is not TOPIC"):
        list(selected([text]))
