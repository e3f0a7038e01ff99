"""The flights story runs to its end, and a difference would fail it."""

import subprocess
import sys
from datetime import date
from pathlib import Path

import pytest

FLIGHTS = Path(__file__).parents[2] / "examples" / "flights"


@pytest.mark.timeout(600)
def test_the_story_ends_with_every_number_the_same() -> None:
    done = subprocess.run(
        [sys.executable, str(FLIGHTS / "story.py")], capture_output=True, text=True, timeout=580, check=False
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr[-4000:]}"
    assert "336,776 events" in done.stdout
    assert "0 dropped as late" in done.stdout
    assert "1,098 windows, all the same" in done.stdout
    assert done.stdout.endswith("Every number is the same.\n")


@pytest.fixture
def story(monkeypatch: pytest.MonkeyPatch) -> object:
    """The story as a module."""
    monkeypatch.syspath_prepend(str(FLIGHTS))
    import story

    return story


def test_a_difference_ends_the_story_with_exit_code_1(
    story: object, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def tell(folder: Path) -> None:
        raise story.Different("1 window differs")  # type: ignore[attr-defined]

    monkeypatch.setattr(story, "tell", tell)
    monkeypatch.setattr(sys, "argv", ["story.py"])
    assert story.main() == 1  # type: ignore[attr-defined]
    assert "DIFFERENT: 1 window differs" in capsys.readouterr().err


def test_a_missing_an_extra_and_a_changed_window_are_each_a_difference(story: object) -> None:
    from flights import Count, Day, differences

    monday, tuesday = Day(date(2013, 1, 7), "JFK"), Day(date(2013, 1, 8), "JFK")
    right = {monday: Count(2, 1, 3.0)}
    assert differences(right, dict(right)) == []
    assert len(differences(right, {})) == 1
    assert len(differences(right, {**right, tuesday: Count(1, 1, 0.0)})) == 1
    assert len(differences(right, {monday: Count(2, 1, 3.0000001)})) == 1
