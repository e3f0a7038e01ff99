"""The small examples say what their page shows.

They run in this process, one after the other, in the Java that the files before have started; some six
seconds each, most of it Spark's.
"""

import re
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.long, pytest.mark.slow]  # in `make test`: the flights story, tests/examples

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = sorted(file.name for file in EXAMPLES.glob("*.py"))


@pytest.fixture(scope="module")
def java(spark: Any) -> None:
    """Java runs, with Spark's Kafka connector; each example makes a session of its own in it."""
    spark.stop()


def printed_by(program: str, capsys: pytest.CaptureFixture[str]) -> str:
    """What an example prints."""
    capsys.readouterr()
    exec(compile(program, "example", "exec"), {"__name__": "__main__"})
    return capsys.readouterr().out


def shown(name: str) -> str:
    """What the page says that an example prints."""
    page = (EXAMPLES / "README.md").read_text()
    found = re.search(rf"```\n\$ python examples/{re.escape(name)}\n(.*?)```", page, re.DOTALL)
    assert found, f"examples/README.md does not show what {name} prints"
    return found.group(1)


@pytest.mark.usefixtures("java")
@pytest.mark.parametrize("name", NAMES)
def test_an_example_prints_what_its_page_shows(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert printed_by((EXAMPLES / name).read_text(), capsys) == shown(name)


@pytest.mark.peers
@pytest.mark.usefixtures("java")
def test_the_job_that_moved_does_the_same_with_the_word_of_before(capsys: pytest.CaptureFixture[str]) -> None:
    program = (EXAMPLES / "from_kafka.py").read_text()
    assert program.count('WORD = "pylog"') == 1
    *did, misspelt = printed_by(program.replace('WORD = "pylog"', 'WORD = "kafka"'), capsys).splitlines()
    assert did == shown("from_kafka.py").splitlines()[:-1]
    assert misspelt == "A misspelt option is ignored."
