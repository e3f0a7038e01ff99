"""What ``make release-check`` looks at, as far as it takes no build: it agrees with this tree, and it finds what is wrong."""

import zipfile
from pathlib import Path

import pytest

from tests.packaging import release


def test_every_file_that_names_the_version_names_the_same() -> None:
    assert release.disagreeing(release.versions()) == []


def test_a_file_with_another_version_is_named() -> None:
    (sentence,) = release.disagreeing({**release.versions(), "CHANGELOG.md": "0.0.9"})
    assert "CHANGELOG.md has 0.0.9" in sentence


@pytest.mark.parametrize(("licence", "good"), [
    ("MIT", True),
    ("MIT/Apache-2.0", True),
    ("Apache-2.0 WITH LLVM-exception", True),
    ("GPL-3.0-only OR MIT", True),
    ("ISC AND (Apache-2.0 OR ISC)", True),
    ("MIT AND GPL-3.0-only", False),
    ("none", False),
])  # fmt: skip
def test_a_licence_is_allowed_when_one_choice_of_it_is(licence: str, good: bool) -> None:
    assert release.allowed(licence) is good


def test_crates_have_licences_that_a_wheel_may_be_given_on_under() -> None:
    assert release.wrong_licences() == []


def test_a_wheel_that_lacks_a_file_or_has_one_too_many_is_named(tmp_path: Path) -> None:
    wheel = tmp_path / "pylog_spark-0.1.0-cp310-abi3-any.whl"
    with zipfile.ZipFile(wheel, "w") as packed:
        for name in release.wanted_files() - {"pylog_spark/errors.py"} | {"tests/secret.py"}:
            packed.writestr(name, "")
        about = "pylog_spark-0.1.0.dist-info"
        packed.writestr(f"{about}/METADATA", "Version: 0.0.9\n")
        packed.writestr(f"{about}/entry_points.txt", "[console_scripts]\npylog = pylog_spark.cli.main:main\n")
        packed.writestr(f"{about}/licenses/LICENSE", "")
    wrong = release.wrong_contents(wheel)
    assert f"{wheel.name} lacks pylog_spark/errors.py." in wrong
    assert f"{wheel.name} has tests/secret.py, which is none of its files." in wrong
    assert [sentence for sentence in wrong if "Version: " in sentence]
    assert [sentence for sentence in wrong if "plugin" in sentence]
    assert len(wrong) == 5


def test_a_wheel_for_musl_may_need_musl_alone(tmp_path: Path) -> None:
    (tmp_path / "empty.c").touch()
    musl, other, native = tmp_path / "libc.so", tmp_path / "libother.so", tmp_path / "native.so"
    for library, *needed in ((musl,), (other,), (native, musl)):
        _link(library, tmp_path / "empty.c", *needed)
    assert release.wrong_platform(_wheel(tmp_path, native)) == []
    _link(native, tmp_path / "empty.c", musl, other)
    (sentence,) = release.wrong_platform(_wheel(tmp_path, native))
    assert "needs libc.so, libother.so, not only libc.so" in sentence


def _link(library: Path, source: Path, *needed: Path) -> None:
    words = ("-shared", "-nostdlib", "-Wl,--no-as-needed", f"-Wl,-soname,{library.name}")
    assert release.run("cc", *words, "-o", library, source, *needed).returncode == 0


def _wheel(folder: Path, native: Path) -> Path:
    wheel = folder / "pylog_spark-0.1.0-cp310-abi3-musllinux_1_2_x86_64.whl"
    with zipfile.ZipFile(wheel, "w") as packed:
        packed.write(native, release.NATIVE)
    return wheel
