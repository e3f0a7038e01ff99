"""The figures of the pages are those of the kept results: ``python -m benchmarks.pages`` would change no page."""

import json
import re
from pathlib import Path

import pytest

from benchmarks.pages import FigureError, Kept, number, pages, ratio, table, target, written
from benchmarks.picture import draw
from tests.docs.test_snippets import ROOT


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_the_figures_of_a_page_are_those_that_are_kept(page: Path) -> None:
    assert page.read_text() == written(page.read_text(), Kept()), "python -m benchmarks.pages writes them anew"


def test_the_picture_of_the_readme_is_drawn_from_the_kept_figures_with_the_machine(tmp_path: Path) -> None:
    draw(ROOT / "benchmarks" / "results.json", tmp_path / "benchmark.svg")
    assert (tmp_path / "benchmark.svg").read_text() == (ROOT / "docs" / "benchmark.svg").read_text()
    assert f"{Kept().figure('machine')}." in (tmp_path / "benchmark.svg").read_text()


def test_the_page_of_benchmarks_has_every_kept_row_and_names_each_that_misses_its_target() -> None:
    text = (ROOT / "docs" / "benchmarks.md").read_text()
    missed, all_of_them = (
        re.search(rf"<!-- figures: {kind}\n-->(.*?)<!-- end -->", text, re.DOTALL) for kind in ("missed", "all")
    )
    assert missed is not None
    assert all_of_them is not None
    for key, row in Kept().rows.items():
        if not key.startswith("backlog."):
            assert f"| `{key}` |" in all_of_them[1]
            assert (f"| `{key}` |" in missed[1]) is (row["met"] is False)


def test_tables_of_figures_say_reference_target_and_sparks_own_limit() -> None:
    rows = Kept().rows
    heads = table([("a title", rows["read-100b-local"])]).splitlines()[0]
    assert heads == "| row | unit | Apache Kafka 4.4 | pylog | reference | ratio | target |"
    assert target("read-100b-local", ">= 0.95 x ceiling") == ">= 0.95 x Spark's own limit"
    assert target("archive-copy", ">= 0.5 x ceiling") == ">= 0.5 x zstandard alone"
    for page in pages():
        cells = [re.sub("<!--.*?-->", "", line) for line in page.read_text().splitlines() if line.startswith("|")]
        assert [line for line in cells if re.search(r"\b(ceiling|aim)s?\b|\| beside \|", line)] == [], page.name


def test_no_kept_figure_is_copied_by_hand() -> None:
    by_hand, kept = [], Kept()
    known = {
        kept.figure(f"{key}.{side}.pair") for key, row in kept.rows.items() for side in row["runs"] if row["runs"][side]
    }
    for page in pages():
        outside = re.sub(r"<!-- figures?: .*?<!-- end -->", "", page.read_text(), flags=re.DOTALL)
        for figure in re.findall(r"(?<![\d.,-])-?[\d,.]+ \(-?[\d,.]+\)", outside):
            middle, best = (float(part.strip("()").replace(",", "")) for part in figure.split(" "))
            if middle != best and f"{number(middle)} ({number(best)})" in known:
                by_hand.append(f"{page.name}: {figure}")
    assert by_hand == [], "put a mark around it, as benchmarks/pages.py says"


def test_a_figure_that_differs_is_put_right_in_a_sentence_and_in_a_table() -> None:
    page = (ROOT / "docs" / "benchmarks.md").read_text()
    for place in (r"<!-- figure: cold-scan\.pylog\.pair -->\d+ \(\d+\)<!--", r"\| `cold-p50` \|.*\|"):
        right = re.findall(place, page)[0]
        wrong = re.sub(r"\d\b", lambda digit: str((int(digit[0]) + 1) % 10), right)
        assert written(page.replace(right, wrong), Kept()) == page != page.replace(right, wrong)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("It is <!-- figure: no-row -->1<!-- end -->.", "'no-row'"),
        ("It is <!-- figure: p99.beside -->1<!-- end -->.", "has no side 'beside', but kafka, pylog"),
        ("It is <!-- figure: paper.producer.pylog.7 -->1<!-- end -->.", "'paper.producer.pylog.7'"),
        ("<!-- figure: p99 -->1<!-- end --> is it.", "must not begin"),
        ("It is <!-- figure: p99 -->1.", "needs its '<!-- end -->'"),
        ("<!-- figures: some\n-->\n<!-- end -->", "'all', or 'missed'"),
        ("<!-- figures: rows\nno-row\n-->\n<!-- end -->", "'no-row'"),
    ],
)
def test_a_mark_that_asks_for_what_is_not_kept_is_refused(text: str, said: str) -> None:
    with pytest.raises(FigureError, match=re.escape(said)):
        written(text, Kept())


def test_figures_are_medians_the_best_of_the_rounds_and_ratios(tmp_path: Path) -> None:
    folder = tmp_path / "benchmarks"
    (folder / "paper").mkdir(parents=True)
    rows = [
        {"key": "speed", "is_speed": True, "runs": {"pylog": [1.0, 3.0, 2.0], "only writes": [4.0]}, "ratio": 0.5},
        {"key": "cost", "is_speed": False, "runs": {"pylog": [1204.6, 1999.0, 1000.4]}, "ratio": 0.0001},
    ]
    line = {"role": "producer", "system": "pylog", "batch": 50, "acknowledged": True, "runs": [248_885.7]}
    for name, document in (("results", {"rows": rows}), ("paper/backlog", {"claims": []}), ("paper/results", {"lines": [line]})):  # fmt: skip
        (folder / f"{name}.json").write_text(json.dumps(document))
    kept = Kept(tmp_path)
    wanted = {
        "speed": "2.00",
        "speed.pylog.pair": "2.00 (3.00)",
        "speed.only writes@1": "4",
        "speed.pylog.best / speed.only writes": "0.75",
        "speed.ratio": "0.50",
        "cost.pylog.pair": "1,205 (1,000)",
        "cost.ratio": "0.0001",
        "paper.producer.pylog.50.acknowledged": "249,000",
    }
    assert {asked: kept.figure(asked) for asked in wanted} == wanted
    assert [number(value) for value in (0, 0.0802, 9.996, 99.96, 100.4)] == ["0.00", "0.0802", "10.0", "100", "100"]
    assert [ratio(value) for value in (3.849, 0.0437, 0.005)] == ["3.85", "0.04", "0.0050"]
