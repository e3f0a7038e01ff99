"""Where a group goes on: every way, inside and outside the log."""

import pytest

from pylog_spark.offsets.reset import How, Known, ResetScenario, duration_ms, new_offset, selected

LOG = Known(start=10, end=100, current=40, at_time=55)
NOWHERE = Known(start=10, end=100)


@pytest.mark.parametrize(
    ("scenario", "known", "expected"),
    [
        (ResetScenario(How.EARLIEST), LOG, 10),
        (ResetScenario(How.LATEST), LOG, 100),
        (ResetScenario(How.CURRENT), LOG, 40),
        (ResetScenario(How.CURRENT), NOWHERE, 100),
        (ResetScenario(How.OFFSET, 50), NOWHERE, 50),
        (ResetScenario(How.OFFSET, 5), LOG, 10),
        (ResetScenario(How.OFFSET, 500), LOG, 100),
        (ResetScenario(How.SHIFT, 7), LOG, 47),
        (ResetScenario(How.SHIFT, -7), LOG, 33),
        (ResetScenario(How.SHIFT, -700), LOG, 10),
        (ResetScenario(How.SHIFT, 700), LOG, 100),
        (ResetScenario(How.SHIFT, 1), NOWHERE, None),
        (ResetScenario(How.TIME, 1), LOG, 55),
        (ResetScenario(How.TIME, 1), NOWHERE, 100),
        (ResetScenario(How.CURRENT), Known(10, 100, current=3), 10),
    ],
)
def test_a_group_goes_on_where_kafkas_tool_would_send_it(scenario, known, expected):
    assert new_offset(scenario, known) == expected


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
