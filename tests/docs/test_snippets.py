"""Every snippet of the documentation runs as it stands. The snippets of a page share one program, in their order.

The programs run one after the other in one process (`driver.py`), each with names and a working directory of its own. A page that uses
Spark's own Kafka connector gets its jars, and Apache Kafka at the address that it names. It takes more than a minute of two
cores, and more where others use them: each page has a session of its own, as its reader has, and starts brokers of its own.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from pylog_spark.client import Admin
from pylog_spark.testing import LocalBroker
from tests.harness.runs import mostly_long

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
#: Those whose commands and programs are not run from their text.
MORE_PAGES = [
    *(ROOT / name for name in ("ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")),
    *sorted((ROOT / "examples").rglob("README.md")),
]
#: The page whose program runs a second time in its folder, and what that is called among the outcomes.
TWICE, _AGAIN = ROOT / "README.md", "README.md again"
_DOCUMENTED_ADDRESS = "127.0.0.1:9092"
#: As long as the READMEs of comparable projects.
README_LINES_MAX = 110


def snippets(page: Path, language: str) -> str:
    """All code blocks of `language` on the page, one after the other; blank lines keep the page's line numbers."""
    lines: list[str] = []
    inside = False
    for line in page.read_text().splitlines():
        if line.startswith("```"):
            inside = not inside and line == f"```{language}"
            lines.append("")
        else:
            lines.append(line if inside else "")
    return "\n".join(lines).rstrip() + "\n"


def anchors(page: Path) -> set[str]:
    """The names by which links reach the headings of the page, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def pages_with(language: str) -> list[Path]:
    """The pages that have code of `language`."""
    return [page for page in PAGES if snippets(page, language).strip()]


def compares(page: Path) -> bool:
    """Whether the page's program reads or writes with Spark's own connector."""
    return 'format("kafka")' in snippets(page, "python")


def written_by_the_connector(page: Path) -> list[str]:
    """The topics that the page's program writes with Spark's own connector."""
    return re.findall(r'write\.format\("kafka"\)\.options\(topic="([^"]+)"', snippets(page, "python"))


def make_topics(address: str, names: set[str]) -> None:
    """Make topics with two partitions, as Kafka would when they are written.

    When it makes them itself it may refuse a producer's first batch, since it does not lead the partition yet, and take the second,
    in which it sees a producer that it knows no more; the first is out of order then, however often it comes (seen once, on a busy
    machine).
    """
    with Admin(address) as admin:
        for name in names:
            admin.create_topic(name, 2, 1)


def run(
    command: list[str], folder: Path, deadline_s: float = 280, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run in `folder` with this environment's commands on the PATH."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, **variables}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=deadline_s, check=False
    )


#: The pages that a newcomer reads first; those of all others run in `make test-long`.
OFTEN = [page for page in PAGES if page.name in ("README.md", "directories.md")]
ALONE = [page for page in pages_with("python") if not compares(page)]
BESIDE_KAFKA = [page for page in pages_with("python") if compares(page)]


class Outcomes:
    """What came of the pages' programs, which ran one after the other in one process.

    That of `TWICE` ran a second time at the end, in the folder of the first.
    """

    def __init__(self, pages: list[Path], folder: Path, address: str | None) -> None:
        variables = {"PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))}
        programs = {str(page): snippets(page, "python") for page in pages}
        if address is not None:
            from tests.peers.jars import jars

            variables["PYSPARK_SUBMIT_ARGS"] = f"--jars {','.join(map(str, jars('spark')))} pyspark-shell"
            for page in filter(compares, pages):
                programs[str(page)] = programs[str(page)].replace(_DOCUMENTED_ADDRESS, address)
        work = [(page, program, str(folder / Path(page).stem)) for page, program in programs.items()]
        for _, _, place in work:
            os.mkdir(place)
        work += [(_AGAIN, program, place) for page, program, place in work if page == str(TWICE)]
        wanted, outcomes = folder / "pages.json", folder / "outcomes"
        wanted.write_text(json.dumps(work))
        outcomes.touch()
        words = [sys.executable, "-m", "tests.docs.driver", str(wanted), str(outcomes)]
        self._done = run(words, folder, 600, **variables)
        outcomes_by_page = map(json.loads, outcomes.read_text().splitlines())
        self._outcomes = {page: (printed, error) for page, printed, error in outcomes_by_page}

    def check(self, page: Path | str) -> str:
        """The page's program came to its end; what it printed."""
        nothing = (
            "",
            f"It did not come to its turn, or ended the process, whose exit code is {self._done.returncode}.",
        )
        printed, error = self._outcomes.get(str(page), nothing)
        assert error is None, f"{page}, line numbers are the page's:\n{printed}\n{error}\n{self._done.stderr[-4000:]}"
        return printed


@pytest.fixture(scope="module")
def outcomes(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    """What came of the pages that this run asks about."""
    asked = [item for item in request.session.items if "outcomes" in getattr(item, "fixturenames", ())]
    pages = [item.callspec.params["page"] if hasattr(item, "callspec") else TWICE for item in asked]
    pages = list(dict.fromkeys(pages))
    address = request.getfixturevalue("kafka") if any(map(compares, pages)) else None
    if address is not None:
        make_topics(address, {name for page in pages for name in written_by_the_connector(page)})
    return Outcomes(pages, tmp_path_factory.mktemp("pages"), address)


@pytest.mark.slow
@pytest.mark.timeout(700)  # the first of them waits for all pages
@pytest.mark.parametrize("page", mostly_long(ALONE, *OFTEN), ids=lambda page: page.name)
def test_the_python_of_a_page_runs(page: Path, outcomes: Outcomes) -> None:
    outcomes.check(page)


@pytest.mark.slow
@pytest.mark.timeout(700)
def test_the_ten_lines_of_the_readme_run_twice_in_one_folder(outcomes: Outcomes) -> None:
    for page, each in ((TWICE, "100"), (_AGAIN, "200")):
        printed = outcomes.check(page)
        counts = re.findall(r"^\|\s*(\d)\|\s*(\d+)\|$", printed, re.MULTILINE)
        assert sorted(counts) == [(str(key), each) for key in range(10)], printed


@pytest.mark.long
@pytest.mark.peers
@pytest.mark.slow
@pytest.mark.timeout(700)
@pytest.mark.parametrize("page", BESIDE_KAFKA, ids=lambda page: page.name)
def test_the_python_of_a_page_runs_beside_sparks_connector_over_apache_kafka(page: Path, outcomes: Outcomes) -> None:
    outcomes.check(page)


@pytest.mark.parametrize("page", mostly_long(pages_with("bash"), *OFTEN), ids=lambda page: page.name)
def test_the_commands_of_a_page_run(page: Path, tmp_path: Path) -> None:
    commands = [line for line in snippets(page, "bash").splitlines() if not line.startswith("pylog broker")]
    with LocalBroker(tmp_path / "data") as broker:
        script = "\n".join([f"export PYLOG_BOOTSTRAP_SERVERS={broker.bootstrap_servers}", *commands])
        done = run(
            ["bash", "-euo", "pipefail", "-c", script.replace(_DOCUMENTED_ADDRESS, broker.bootstrap_servers)], tmp_path
        )
    assert done.returncode == 0, f"{page.name}:\n{done.stdout}\n{done.stderr[-4000:]}"


@pytest.mark.parametrize("page", [*PAGES, *MORE_PAGES], ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    missing = []
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        path, _, anchor = target.partition("#")
        file = page.parent / path if path else page
        if "://" not in target and not (file.exists() and (not anchor or anchor in anchors(file))):
            missing.append(target)
    assert missing == []


def test_the_snippets_are_really_there() -> None:
    assert {page.name for page in pages_with("python")} >= {"README.md", "spark.md", "broker.md", "migration.md"}
    assert {page.name for page in BESIDE_KAFKA} == {"migration.md"}
    assert {page.name for page in pages_with("bash")} >= {"broker.md"}


def test_every_make_target_that_the_documentation_names_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = {
        name
        for page in [*PAGES, *MORE_PAGES]
        for name in re.findall(r"\bmake ([a-z]+(?:-[a-z]+)*)\b", page.read_text())
    }
    assert named & targets
    assert named - targets <= {"it", "a"}


def led_to(page: Path) -> set[Path]:
    """The files to which the links of a page lead."""
    targets = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text())
    return {(page.parent / target).resolve() for target in targets if "://" not in target}


def test_the_readme_leads_to_the_page_of_all_pages_and_that_to_every_page_and_to_the_examples() -> None:
    first, all_pages = led_to(ROOT / "README.md"), ROOT / "docs" / "pages.md"
    assert {all_pages, ROOT / "examples" / "README.md", ROOT / "LICENSE", ROOT / "SECURITY.md"} - first == set()
    wanted = {*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), ROOT / "examples" / "README.md"}
    assert wanted - {all_pages} - led_to(all_pages) == set()


def test_the_readme_begins_with_pip_and_ten_lines_and_is_short() -> None:
    text = (ROOT / "README.md").read_text()
    fences = re.findall(r"^```(\w*)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert fences[0] == ("", 'pip install "pylog-spark[spark]"\n')
    assert fences[1][0] == "python"
    assert len([line for line in fences[1][1].splitlines() if line.strip()]) == 10
    assert len(text.splitlines()) <= README_LINES_MAX


def test_the_page_of_examples_leads_to_each_of_them() -> None:
    folder = ROOT / "examples"
    targets = set(re.findall(r"\]\(([^)#]+)\)", (folder / "README.md").read_text()))
    wanted = {file.name for file in folder.glob("*.py")} | {
        f"{page.parent.name}/README.md" for page in folder.glob("*/*.md")
    }
    wanted |= {f"notebooks/{file.name}" for file in folder.glob("notebooks/*.ipynb")}
    assert wanted - targets == set()


def test_files_and_variables_that_the_page_for_contributors_names_are_there() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text()
    files = set(re.findall(r"\b((?:tests|broker_native|pylog_spark|benchmarks)/[\w/.-]*\w)", page))
    assert "tests/broker/test_life.py" in files
    assert sorted(name for name in files if not (ROOT / name).exists()) == []
    code = [*(ROOT / "tests").rglob("*.py"), *(ROOT / "broker_native").glob("*/tests/**/*.rs")]
    known = set(re.findall(r"\bPYLOG_[A-Z_]+\b", "".join(file.read_text() for file in code)))
    assert set(re.findall(r"\bPYLOG_[A-Z_]+\b", page)) - known == set()


def test_the_tests_that_the_page_for_contributors_picks_are_there() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text()
    picked = re.findall(r"pytest (tests/[\w/]+(?:\.py)?) -k (\w+)", page)
    assert len(picked) > 5
    for place, word in picked:
        files = [ROOT / place] if place.endswith(".py") else sorted((ROOT / place).rglob("test_*.py"))
        tests = [name for file in files for name in re.findall(r"^def (test_\w+)", file.read_text(), re.MULTILINE)]
        assert any(word in name for name in tests), f"-k {word} picks nothing in {place}"
