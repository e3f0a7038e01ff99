"""What is handed out carries its licence, and the changelog knows its version."""

import re
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# An Apache licence with another text is another licence.
_LICENCE_BYTES = 11_358


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The files at the top of the source distribution, whose metadata are the wheel's, too."""
    folder = tmp_path_factory.mktemp("sdist")
    command = [str(Path(sys.executable).with_name("maturin")), "sdist", "--out", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    with tarfile.open(next(folder.iterdir())) as archive:
        top = [member for member in archive.getmembers() if member.isfile() and member.name.count("/") == 1]
        return {member.name.partition("/")[2]: archive.extractfile(member).read().decode() for member in top}


@pytest.mark.long  # tests/packaging/test_release.py
def test_the_package_carries_the_text_of_its_licence(sdist: dict[str, str]) -> None:
    text = (ROOT / "LICENSE").read_text()
    assert len(text.encode()) == _LICENCE_BYTES
    assert text.split(maxsplit=5)[:5] == ["Apache", "License", "Version", "2.0,", "January"]
    assert sdist["LICENSE"] == text
    described = sdist["PKG-INFO"].partition("\n\n")[0].splitlines()
    assert {"License-Expression: Apache-2.0", "License-File: LICENSE"} <= set(described)


def test_archives_and_clusters_need_no_extra(sdist: dict[str, str]) -> None:
    described = sdist["PKG-INFO"].partition("\n\n")[0].splitlines()
    assert {"Requires-Dist: kazoo>=2.10", "Requires-Dist: zstandard>=0.20"} <= set(described)
    assert not {"Provides-Extra: archive", "Provides-Extra: zookeeper"} & set(described)


def test_the_package_says_who_made_it_what_it_is_and_under_which_words_it_is_found(sdist: dict[str, str]) -> None:
    described = sdist["PKG-INFO"].partition("\n\n")[0]
    assert re.search(r"^Author: \S", described, re.MULTILINE)
    assert {"pyspark", "kafka", "structured-streaming"} <= set(
        re.findall(r"^Keywords: (.+)$", described, re.MULTILINE)[0].split(",")
    )
    assert len(re.findall(r"^Classifier: ", described, re.MULTILINE)) > 10


def test_the_newest_version_of_the_changelog_is_that_of_the_package(sdist: dict[str, str]) -> None:
    (version,) = re.findall(r"^Version: (.+)$", sdist["PKG-INFO"].partition("\n\n")[0], re.MULTILINE)
    newest = re.search(
        r"^## (\S+) - (unreleased|\d{4}-\d{2}-\d{2})$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE
    )
    assert newest
    assert newest.group(1) == version
