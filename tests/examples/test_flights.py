"""The flights story runs to its end, and a difference would fail it."""

import os
import pty
import re
import subprocess
import sys
from datetime import date
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FLIGHTS = ROOT / "examples" / "flights"


def story_of(months: int) -> subprocess.CompletedProcess[str]:
    """The story, run."""
    command = [sys.executable, str(FLIGHTS / "story.py"), "--months", str(months)]
    return subprocess.run(command, capture_output=True, text=True, timeout=580, check=False)


@pytest.fixture(scope="module")
def finished() -> subprocess.CompletedProcess[str]:
    """The story of a month, run once."""
    return story_of(1)


def check_numbers(finished: subprocess.CompletedProcess[str], events: str, windows: str) -> None:
    assert finished.returncode == 0, f"{finished.stdout}\n{finished.stderr[-4000:]}"
    assert f"{events} events" in finished.stdout
    assert "0 dropped as late" in finished.stdout
    assert f"{windows} windows, all the same" in finished.stdout
    assert "\nEvery number is the same.\n" in finished.stdout


@pytest.mark.timeout(600)
def test_the_story_ends_with_every_number_the_same(finished: subprocess.CompletedProcess[str]) -> None:
    check_numbers(finished, "27,004", "96")


@pytest.mark.long
@pytest.mark.timeout(600)
def test_the_story_of_a_whole_year_ends_with_every_number_the_same() -> None:
    check_numbers(story_of(12), "336,776", "1,098")


@pytest.mark.timeout(600)
def test_a_newcomer_sees_a_line_for_each_step_and_no_noise(finished: subprocess.CompletedProcess[str]) -> None:
    shown = finished.stdout + finished.stderr
    assert len(shown.splitlines()) <= 40, shown[:4000]
    noise = re.compile(r"ERROR|WARN|Traceback|Exception|^\s*at (org|java|scala)\.", re.MULTILINE | re.IGNORECASE)
    assert noise.search(shown) is None, shown[:4000]
    steps = [line for line in finished.stdout.splitlines() if re.search(r" \d+\.\d s( |$)", line)]
    assert len(steps) == 8


@pytest.mark.timeout(600)
def test_the_end_of_the_story_says_what_to_try_next(finished: subprocess.CompletedProcess[str]) -> None:
    _, _, after = finished.stdout.partition("\nEvery number is the same.\n")
    first, *ways = after.strip().splitlines()
    assert first == "What to try next:"
    assert len(ways) == 4
    named = re.findall(r"\b[\w/]+\.(?:md|py)\b", after)
    assert named == ["README.md", "docs/spark.md", "docs/migration.md", "examples/flights/story.py"]
    assert [name for name in named if not (ROOT / name).exists()] == []


@pytest.fixture
def story(monkeypatch: pytest.MonkeyPatch) -> object:
    """The story as a module."""
    monkeypatch.syspath_prepend(str(FLIGHTS))
    import story

    return story


def test_a_difference_ends_the_story_with_exit_code_1(
    story: object, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def tell(folder: Path, months: int) -> None:
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


def program(code: str, terminal: bool = False) -> str:
    """What a program that uses the story's screen shows, on its standard output and error."""
    command = [sys.executable, "-c", "from screen import *\nimport os, subprocess\n" + code]
    environment = {**os.environ, "PYTHONPATH": str(FLIGHTS), "TERM": "xterm"}
    if not terminal:
        done = subprocess.run(
            command,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
            check=False,
        )
        return done.stdout
    ours, its = pty.openpty()
    with subprocess.Popen(command, env=environment, stdout=its, stderr=its):
        os.close(its)
        shown = b""
        try:
            while block := os.read(ours, 4096):
                shown += block
        except OSError:  # the other end is closed
            pass
    os.close(ours)
    return shown.decode()


def test_a_step_is_one_line_and_on_a_terminal_shows_how_far_it_is() -> None:
    code = "with step('Counting') as shown:\n    shown.reached(1, 4)\n    shown.outcome = 'all'\n"
    plain = program(code)
    assert re.fullmatch(r"Counting +0\.\d s  all\n", plain)
    moving = program(code, terminal=True)
    assert "25%" in moving
    assert re.search(r"Counting +0\.\d s  all\r?\n$", moving)


@pytest.mark.parametrize(
    ("end", "shown"), [("pass", ["later"]), ("raise SystemExit('no start')", ["early", "no start"])]
)
def test_what_is_printed_at_the_start_is_shown_when_it_fails_and_what_comes_later_always(
    end: str, shown: list[str]
) -> None:
    # The child is what Spark's Java process is: it keeps the standard error that it was started with.
    code = (
        "with quiet_start():\n"
        "    child = subprocess.Popen(['sh', '-c', 'echo early >&2; echo; read x; echo later >&2'],\n"
        "                             stdin=subprocess.PIPE, stdout=subprocess.PIPE)\n"
        "    child.stdout.readline()\n"
        f"    {end}\n"
        "child.communicate(b'go')\n"
        "for one in threading.enumerate()[1:]: one.join(20)\n"
    )
    assert program(code).split("\n")[:-1] == shown


def test_a_stage_of_the_build_is_one_line_and_shows_what_was_printed_when_it_fails() -> None:
    stage = [str(ROOT / ".ci" / "stage"), "Building"]
    quiet = subprocess.run([*stage, "echo", "noise"], capture_output=True, text=True, check=False)
    assert (quiet.returncode, quiet.stdout, quiet.stderr) == (0, "Building ...\n", "")
    failed = subprocess.run([*stage, "sh", "-c", "echo why; exit 3"], capture_output=True, text=True, check=False)
    assert failed.returncode == 3
    assert failed.stderr == "why\nBuilding: failed with exit code 3\n"
