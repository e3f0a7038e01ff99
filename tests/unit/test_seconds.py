"""`make test` stays short by arithmetic: what each file takes is recorded, and the sums are held against budgets. The parts of a long run."""

import pytest

from tests.harness import seconds

_RECORDED = seconds.recorded()
_SHORT = {file: known["seconds"] for file, known in _RECORDED.items() if "seconds" in known}
_SPEND_LESS = (
    "move whole tests to the long run (`@pytest.mark.long`), or let them need less: CONTRIBUTING.md, 'The budget'"
)


def test_what_every_file_takes_is_recorded() -> None:
    assert [file for file in seconds.files() if file not in _SHORT] == [], "make test-seconds PYTEST_ARGS=FILE"
    assert sorted(_RECORDED.keys() - seconds.files()) == [], "files that are gone: make test-seconds"


def test_all_files_together_stay_within_the_budget() -> None:
    assert sum(_SHORT.values()) <= seconds.BUDGET_S, _SPEND_LESS


def test_every_folder_stays_within_its_budget() -> None:
    over = {
        folder: (round(took), budget)
        for folder, took in seconds.by_folder(_SHORT).items()
        if took > (budget := seconds.FOLDER_BUDGETS_S.get(folder, seconds.OTHER_FOLDER_BUDGET_S))
    }
    assert over == {}, _SPEND_LESS


def test_a_folder_has_the_sum_of_its_files() -> None:
    took = {"tests/a/test_one.py": 1.0, "tests/a/b/test_two.py": 2.0, "tests/test_three.py": 4.0}
    assert seconds.by_folder(took) == {"a": 3.0, "test_three.py": 4.0}


def test_parts_have_every_file_once_and_take_about_as_long() -> None:
    took = {f"file {number}": float(number) for number in range(50)} | {"long": 200.0}
    divided = seconds.parts(took, 4)
    assert sorted(file for part in divided for file in part) == sorted(took)
    sums = [sum(took[file] for file in part) for part in divided]
    assert max(sums) - min(sums) < 50
    assert seconds.parts(dict(reversed(took.items())), 4) == divided


@pytest.mark.parametrize("text", ["", "3", "0/4", "5/4", "3/", "a/b", "-1/4", "1/4/2"])
def test_a_part_that_is_none_is_one_sentence(text: str) -> None:
    with pytest.raises(pytest.UsageError, match=r"names no part: PART=3/4 is the third of four\."):
        seconds.parse_part(text)


def test_a_part_is_a_number_of_a_number() -> None:
    assert seconds.parse_part("3/4") == (3, 4)


def test_a_run_writes_its_own_column_of_the_files_that_ran_and_leaves_the_rest() -> None:
    before = {"a.py": {"seconds": 1.0, "long": 9.0}, "b.py": {"seconds": 2.0}, "gone.py": {"seconds": 3.0}}
    there = ["a.py", "b.py", "new.py"]
    part = seconds.merged(before, {"a.py": 4.04}, "seconds", there, whole=False)
    assert part == {"a.py": {"seconds": 4.0, "long": 9.0}, "b.py": {"seconds": 2.0}}
    whole = seconds.merged(before, {"a.py": 4.04}, "seconds", there, whole=True)
    assert whole == {"a.py": {"seconds": 4.0, "long": 9.0}, "b.py": {"seconds": 0.0}, "new.py": {"seconds": 0.0}}
    long = seconds.merged(before, {"b.py": 8.0}, "long", there, whole=False)
    assert long["b.py"] == {"seconds": 2.0, "long": 8.0}
