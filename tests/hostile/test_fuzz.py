"""The runner of fuzz targets: which tests are targets, that rounds have seeds of their own, and that a failure is kept."""

from pathlib import Path

from tests.harness.report import bars
from tests.hostile.fuzz import Run, Target, fuzz, properties


def _target(folder: Path, script: str) -> Target:
    """A target whose program is this script of a shell."""
    program = folder / "program"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return Target("tried", program, None, ["a::tried", "b::tried"])


def _fuzz(target: Target, seconds: float, kept: Path) -> None:
    with bars() as progress:
        fuzz(target, Run(seconds, 1, kept, progress))


def test_tests_of_properties_are_known_with_their_fixed_numbers_of_cases_and_others_are_not() -> None:
    known = properties()
    assert known["mutated_messages_never_panic"] is None
    assert known["fuzz_every_file_that_recovery_reads"] is None
    assert known["any_damage_behind_a_valid_crc_gives_an_error_or_few_rows"] is None
    assert known["a_transaction_ends_one_way_everywhere_and_nothing_late_gets_into_a_later_one"] == 512
    assert "power_cuts_at_random_leave_a_clean_prefix_of_a_page_cache_log" not in known


def test_a_target_runs_in_rounds_with_other_seeds_until_its_time_is_over(tmp_path: Path) -> None:
    target = _target(tmp_path, f'echo "$PROPTEST_RNG_SEED $PROPTEST_CASES" >> {tmp_path}/rounds')
    _fuzz(target, 0.5, tmp_path)
    rounds = [line.split() for line in (tmp_path / "rounds").read_text().splitlines()]
    assert target.rounds == len(rounds) > 1
    assert len({seed for seed, _ in rounds}) == len(rounds)
    assert target.cases == sum(2 * int(cases) for _, cases in rounds)
    assert target.failure == ""
    assert list(tmp_path.glob("*.txt")) == []


def test_a_round_that_fails_ends_its_target_and_leaves_its_seed_and_what_it_printed(tmp_path: Path) -> None:
    target = _target(tmp_path, "echo a decoder panicked; exit 101")
    _fuzz(target, 60.0, tmp_path)
    (printed,) = tmp_path.glob("tried-*.txt")
    seed = printed.stem.partition("-")[2]
    assert target.rounds == 1
    assert target.failure.startswith(f"fails with exit code 101 with PROPTEST_RNG_SEED={seed} PROPTEST_CASES=64")
    assert printed.read_text() == "a decoder panicked\n"
