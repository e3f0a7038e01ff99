"""The tests' own tools: waiting says what did not happen, and a seed is the commit's."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness import order, runs
from tests.harness.seconds import ROOT
from tests.harness.waiting import seconds_until, until


def test_what_comes_true_is_given() -> None:
    answers = iter(["", [], {"a": 1}])
    assert until(lambda: next(answers), "an answer", pause_s=0) == {"a": 1}


def test_what_does_not_come_true_is_named() -> None:
    with pytest.raises(AssertionError, match=r"not within 0 s: a leader"):
        until(lambda: False, "a leader", deadline_s=0, pause_s=0)
    with pytest.raises(AssertionError, match=r"not within 0 s: seen late"):
        until(lambda: False, lambda: "seen late", deadline_s=0, pause_s=0)


def test_the_last_question_is_asked_after_the_deadline() -> None:
    asked: list[int] = []
    assert until(lambda: asked.append(1) or len(asked) == 2, "two questions", deadline_s=0.05, pause_s=0.1)
    assert seconds_until(lambda: True, "at once") >= 0


def test_rounds_are_few_unless_the_run_is_long_or_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYLOG_SOME_ROUNDS", raising=False)
    monkeypatch.setattr(runs, "LONG", False)
    assert runs.rounds("PYLOG_SOME_ROUNDS", 2, 6) == 2
    monkeypatch.setattr(runs, "LONG", True)
    assert runs.rounds("PYLOG_SOME_ROUNDS", 2, 6) == 6
    monkeypatch.setenv("PYLOG_SOME_ROUNDS", "9")
    assert runs.rounds("PYLOG_SOME_ROUNDS", 2, 6) == 9


def test_a_seed_is_one_of_the_runs_for_each_test_unless_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYLOG_SOME_SEED", raising=False)
    assert runs.seed("PYLOG_SOME_SEED") == runs.seed("PYLOG_SOME_SEED") != runs.seed("PYLOG_OTHER_SEED")
    before = runs.seed("PYLOG_SOME_SEED")
    monkeypatch.setattr(runs, "SEED", runs.SEED + 1)
    assert runs.seed("PYLOG_SOME_SEED") != before
    monkeypatch.setenv("PYLOG_SOME_SEED", "7")
    assert runs.seed("PYLOG_SOME_SEED") == 7


def test_the_seed_of_a_run_is_that_of_the_environment_the_commits_own_or_random_in_a_long_run() -> None:
    def drawn(**environment: str) -> int:
        program = "from tests.harness import runs; print(runs.SEED)"
        inherited = {
            name: text for name, text in os.environ.items() if name not in ("PYLOG_TEST_SEED", "PYLOG_TEST_LONG")
        }
        return int(subprocess.check_output([sys.executable, "-c", program], env={**inherited, **environment}, cwd=ROOT))

    assert drawn(PYLOG_TEST_SEED="7", PYLOG_TEST_LONG="1") == 7
    assert drawn() == drawn()
    assert drawn(PYLOG_TEST_LONG="1") != drawn(PYLOG_TEST_LONG="1")


def test_files_stand_by_the_servers_they_need_and_the_long_ones_first() -> None:
    seconds = {
        "tests/oracle/test_short.py": 1.0,
        "tests/oracle/test_long.py": 39.0,
        "tests/spark/test_a.py": 50.0,
        "tests/unit/test_a.py": 0.1,
        "tests/cluster/test_short.py": 2.0,
        "tests/cluster/test_long.py": 80.0,
    }
    new = "tests/oracle/test_new.py"
    assert sorted([*reversed(seconds), new], key=lambda file: order.rank(file, seconds)) == [
        "tests/spark/test_a.py",
        "tests/cluster/test_long.py",
        "tests/cluster/test_short.py",
        "tests/oracle/test_long.py",
        new,
        "tests/oracle/test_short.py",
        "tests/unit/test_a.py",
    ]


def test_a_process_takes_its_own_stack_then_the_rest_then_the_longest_stack() -> None:
    seconds = {
        "tests/spark/test_long.py": 60.0,
        "tests/spark/test_short.py": 10.0,
        "tests/cluster/test_a.py": 30.0,
        "tests/cluster/test_b.py": 25.0,
        "tests/oracle/test_a.py": 5.0,
        "tests/broker/test_a.py": 90.0,
        "tests/unit/test_a.py": 0.1,
    }
    queue = sorted(seconds, key=lambda file: order.rank(file, seconds))
    taken = []
    for process in (0, 1, 2, 3, 2, 2, 0):
        taken.append(order.next_file(queue, process, seconds))
        queue.remove(taken[-1])
    assert taken == [
        "tests/spark/test_long.py",
        "tests/cluster/test_a.py",
        "tests/oracle/test_a.py",
        "tests/broker/test_a.py",
        "tests/unit/test_a.py",
        "tests/cluster/test_b.py",
        "tests/spark/test_short.py",
    ]
    assert queue == []


def test_a_folder_whose_files_share_much_is_handed_out_as_a_whole() -> None:
    folder = "tests/directories"
    assert order.unit(f"{folder}/test_damage.py") == order.unit(f"{folder}/test_states.py") == folder
    assert order.unit("tests/spark/test_a.py") == "tests/spark/test_a.py"
    assert order.stack(folder) == order.stack(f"{folder}/test_damage.py") == 2


@pytest.mark.parametrize(
    ("text", "marks", "left_out"),
    [
        ("pytestmark = pytest.mark.long  # why\n", "not long and not alone", True),
        ("pytestmark = [pytest.mark.peers, pytest.mark.long]\n", "not long", True),
        ("pytestmark = pytest.mark.longer\n", "not long", False),
        ("@pytest.mark.long\ndef test_one() -> None: ...\n", "not long", False),
        ("pytestmark = pytest.mark.long\n", "", False),
        ("pytestmark = pytest.mark.long\n", "long", False),
    ],
)
def test_a_file_is_not_imported_where_no_test_of_it_runs(tmp_path: Path, text: str, marks: str, left_out: bool) -> None:
    file = tmp_path / "test_some.py"
    file.write_text(text)
    assert order.is_left_out(file, marks) is left_out
