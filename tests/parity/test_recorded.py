"""Recorded answers are read as they were written, and what differs from them, or is not among them, fails."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path
from typing import Any, cast

import pytest

from tests.parity.compare import Mode, Ways
from tests.parity.recorded import Recording, decoded, encoded, layout
from tests.parity.ways import Batch, Way

NOON = datetime(2023, 11, 14, 12, 0, 0, 123_000, timezone.utc)
VALUES = [
    None,
    [True, 1, 0, -(2**63), 1.5, "é\n", ""],
    [b"", b"\x00\xff", b"text", "text"],
    (1, ("a", [b"b"], None), ()),
    [NOON],
    {"": [], "t": {"0": 1}},
    {1: "a", b"k": (2,)},
    {"bytes": "no bytes"},
    [Batch(3, [("t", 0, 1, b"v")], 1, {"t": {"0": 2}})],
]


class Fake:
    """As much of a way as a comparison needs; a scenario only asks which one it is."""

    label = "a way"
    plain = Way.plain
    prefix = "pp-1-0-"

    def __init__(self, is_connector: bool) -> None:
        self.is_connector = is_connector


def ways(file: Path, mode: Mode) -> Ways:
    """Ways of a test named ``test``; without the connector when it is not to be asked."""
    made = {"pylog": Fake(False)}
    if mode is not Mode.RECORDED:
        made |= {"connector": Fake(True), "pylog on Apache Kafka": Fake(False)}
    return Ways(cast(Any, made), "test", Recording(file), mode)


def record(file: Path, *answers: Any) -> None:
    """Let the connector, and pylog, give these answers, and keep them."""
    recording = ways(file, Mode.RECORD)
    for answer in answers:
        recording.same(lambda way, answer=answer: answer)
    recording.finish()


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_an_answer_is_read_as_it_was_written(tmp_path: Path, value: Any) -> None:
    file = tmp_path / "recorded.json"
    record(file, value)
    read = Recording(file).answer("test", 0)
    assert read == value
    assert repr(read) == repr(value)  # 1 equals True, and a named tuple one without names


@pytest.mark.parametrize("value", [bytearray(b"a"), {1, 2}, datetime(2023, 11, 14), Path(".")], ids=repr)
def test_what_would_not_be_read_as_it_was_is_not_recorded(value: Any) -> None:
    with pytest.raises(TypeError, match="cannot be recorded"):
        encoded(value)


def test_the_same_answers_in_another_order_give_the_same_file(tmp_path: Path) -> None:
    first, second = Recording(tmp_path / "first.json"), Recording(tmp_path / "second.json")
    first.replace("a", [{"x": 1, "y": 2, 3: 4, 5: 6}])
    first.replace("b", [VALUES])
    second.replace("b", [VALUES])
    second.replace("a", [0])
    second.replace("a", [{5: 6, "y": 2, 3: 4, "x": 1}])
    assert first.file.read_bytes() == second.file.read_bytes()


def test_lines_are_short_and_say_the_same() -> None:
    import json

    text = layout({"long": [*range(1_000)], "nested": {"rows": encoded([("t", n, b"value") for n in range(20)])}})
    assert max(map(len, text.splitlines())) <= 132
    assert len(text.splitlines()) < 60
    read = decoded(json.loads(text))
    assert read == {"long": [*range(1_000)], "nested": {"rows": [("t", n, b"value") for n in range(20)]}}


def test_pylog_is_compared_with_the_recorded_answer(tmp_path: Path) -> None:
    file = tmp_path / "recorded.json"
    record(file, [1, 2], "second")
    asked = ways(file, Mode.RECORDED)
    assert asked.same(lambda way: [1, 2]) == [1, 2]
    with pytest.raises(AssertionError, match=r"a way differs:\n: 'second' \| 'other'"):
        asked.same(lambda way: "other")


def test_an_answer_that_is_not_recorded_says_what_to_run(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=r"No answer .* is recorded for question 1 of test: run `make parity`"):
        ways(tmp_path / "none.json", Mode.RECORDED).same(lambda way: 1)


def test_an_answer_that_is_not_asked_for_fails(tmp_path: Path) -> None:
    file = tmp_path / "recorded.json"
    record(file, 1, 2)
    asked = ways(file, Mode.RECORDED)
    asked.same(lambda way: 1)
    with pytest.raises(AssertionError, match="asked 1 times, 2 answers are recorded: run `make parity`"):
        asked.finish()


def test_a_connector_that_answers_otherwise_than_recorded_is_seen(tmp_path: Path) -> None:
    file = tmp_path / "recorded.json"
    record(file, 1)
    with pytest.raises(AssertionError, match="answers otherwise than it is recorded"):
        ways(file, Mode.LIVE).same(lambda way: 2)


@pytest.mark.parametrize("mode", [Mode.LIVE, Mode.RECORD])
def test_live_ways_are_compared_with_each_other(tmp_path: Path, mode: Mode) -> None:
    with pytest.raises(AssertionError, match="a way differs"):
        ways(tmp_path / "recorded.json", mode).same(lambda way: way.is_connector)


def test_a_listed_difference_is_compared_with_the_recorded_side(tmp_path: Path) -> None:
    file = tmp_path / "recorded.json"
    recording = ways(file, Mode.RECORD)
    assert recording.differ("acks", lambda way: 1 if way.is_connector else 2) == (1, 2)
    recording.finish()
    assert ways(file, Mode.RECORDED).differ("acks", lambda way: 2) == (1, 2)
    with pytest.raises(AssertionError, match="is no difference any more"):
        ways(file, Mode.RECORDED).differ("acks", lambda way: 1)


def refusal(way: Way) -> None:
    """What both say when a stream is given an end, with words around."""
    if way.is_connector:
        raise ValueError(
            "Query [id = 7] failed: ending offset not\nvalid, Ending offset not valid in streaming queries"
        )
    raise ValueError("PylogError: [PYLOG_INVALID_OPTION] no end")


def test_a_refusal_is_recorded_by_the_words_that_tell_it(tmp_path: Path) -> None:
    file = tmp_path / "recorded.json"
    recording = ways(file, Mode.RECORD)
    recording.refused("a stream with an end", refusal)
    recording.finish()
    assert Recording(file).answer("test", 0) == "Ending offset not valid in streaming"
    ways(file, Mode.RECORDED).refused("a stream with an end", refusal)
    with pytest.raises(AssertionError, match="a way says otherwise"):
        ways(file, Mode.RECORDED).refused("a stream with an end", lambda way: int("x"))
    with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"):
        ways(file, Mode.RECORDED).refused("a stream with an end", lambda way: None)
    with pytest.raises(AssertionError, match="as recorded, says otherwise"):
        ways(file, Mode.RECORDED).refused("fewest above most", refusal)
