"""The figures in the pages, drawn from the kept results and nothing else: `python -m benchmarks.pages` writes them anew.

A page says between marks which figures it wants; what stands there is replaced, and a test holds the pages against it:

    <!-- figure: cold-scan.pylog.pair -->402 (421)<!-- end -->     in a sentence, never at the beginning of a line
    <!-- figures: rows                                             a table, on lines of its own
    read-100b
    read-1kb = 1 kB, all columns
    -->
    ...
    <!-- end -->

A figure is `KEY[.SIDE[.WHAT]]`: of a row, `backlog.KEY` or `paper.ROLE.SYSTEM.BATCH[.acknowledged]`; SIDE is pylog where none is given, WHAT is
``median`` (also where none is given), ``best``, ``pair``, both. `KEY.ratio` is the row's ratio, `A / B` that of two figures, and `@N` behind it says N
significant digits, otherwise 3, of ratios 2; `machine` is the machine of the newest run. A table is ``rows`` of these keys, a key may have another title, ``all`` or
``missed``; its column "reference" has what a row is measured against besides Apache Kafka, under names that a reader knows (`reference`).
Figures of other runs stand outside of marks, and their sentences say of which. Not thread-safe.
"""

import json
import re
from functools import cached_property
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.brokers import SIDES
from benchmarks.picture import machine

_ROOT = Path(__file__).parent.parent
_FIGURE = re.compile(r"<!-- figure: ([^>]*?) -->(.*?)<!-- end -->", re.DOTALL)
_TABLE = re.compile(r"<!-- figures: ([^>]*?)\s*-->\n.*?<!-- end -->", re.DOTALL)
_BEGINS_A_LINE = re.compile(r"^[\s>*-]*<!-- figure:.*", re.MULTILINE)
_DIGITS, _RATIO_DIGITS = 3, 2
#: What a table calls a side that is neither pylog nor Apache Kafka, where it is not the side's own name.
_REFERENCES = {"ceiling": "Spark's own limit", "beside the broker's own": "with a reader of the broker's own records"}
#: The same for rows in which that side is something else; by the beginning of their keys.
_REFERENCES_OF_ROWS = {
    ("archive-copy", "ceiling"): "zstandard alone",
    ("cold-scan", "beside the broker's own"): "the broker's own records",
    ("floor-", "ceiling"): "a Python source that does nothing",
    ("stream-", "ceiling"): "a Python source that does nothing",
}


class FigureError(ValueError):
    """A mark asks for a figure that the kept results do not have, or cannot be read."""


def number(value: float, digits: int = _DIGITS) -> str:
    """Give `value` with so many significant digits, whole from 100 on: 1.10, 0.0437, 1,210, 279,000."""
    rounded = float(f"{value:.{digits}g}")
    if abs(rounded) >= 100:
        return f"{rounded if digits != _DIGITS or abs(value) >= 1e5 else value:,.0f}"
    return f"{value:#.{digits}g}".rstrip(".")


def ratio(value: float, digits: int | None = None) -> str:
    """Give how many times one is the other: 3.85, 0.50, 0.07, 0.0001; with `digits`, significant ones."""
    if digits is not None:
        return number(value, digits)
    return f"{value:.2f}" if abs(value) >= 0.01 else f"{value:.4f}"


class Kept:
    """The kept results of the three programs that measure.

    Parameters
    ----------
    root : Path
        The folder of the repository.
    """

    def __init__(self, root: Path = _ROOT) -> None:
        self._folder = root / "benchmarks"

    @cached_property
    def rows(self) -> dict[str, dict[str, Any]]:
        """The rows by their keys, in the order in which they are kept; the claims about a backlog are ``backlog.KEY``."""
        rows = {row["key"]: row for row in self._read("results.json")["rows"]}
        for claim in self._read("paper/backlog.json")["claims"]:
            runs = {"pylog": claim["pylog"], "beside": claim["beside"]}
            rows[f"backlog.{claim['key']}"] = {
                **claim,
                "runs": runs,
                "kafka_version": None,
                "is_speed": claim["unit"].endswith("/s"),
            }
        return rows

    @cached_property
    def _paper(self) -> dict[str, dict[str, Any]]:
        """The lines of the paper's experiment."""
        named = {}
        for line in self._read("paper/results.json")["lines"]:
            words = ["paper", line["role"], line["system"], str(line["batch"])]
            named[".".join([*words, "acknowledged"] if line["acknowledged"] else words)] = line
        return named

    def _read(self, name: str) -> dict[str, Any]:
        document: dict[str, Any] = json.loads((self._folder / name).read_text())
        return document

    def figure(self, asked: str) -> str:
        """Give the text of one figure.

        Raises
        ------
        FigureError
            When there is no such figure.
        """
        if asked == "machine":
            return machine(self._read("results.json"))
        expression, _, said = asked.partition("@")
        digits = int(said) if said else None
        if " / " in expression:
            above, below = (self._value(part.strip()) for part in expression.split(" / "))
            return ratio(above / below, digits)
        if expression.endswith(".ratio"):
            return ratio(self.row(expression.removesuffix(".ratio"))["ratio"], digits)
        if expression.endswith(".pair"):
            place = expression.removesuffix(".pair")
            return f"{number(self._value(place), digits or _DIGITS)} ({number(self._value(f'{place}.best'), digits or _DIGITS)})"
        return number(self._value(expression), digits or _DIGITS)

    def row(self, key: str) -> dict[str, Any]:
        """Give the row of this key; raises `FigureError` when none is kept."""
        if key not in self.rows:
            raise FigureError(f"No row '{key}' is kept: name one of benchmarks/results.json, or backlog.KEY.")
        return self.rows[key]

    def _value(self, place: str) -> float:
        if place.startswith("paper."):
            if place not in self._paper:
                raise FigureError(f"No line '{place}' is kept in benchmarks/paper/results.json.")
            return float(median(self._paper[place]["runs"]))
        what = place.rpartition(".")[2]
        rest = place.removesuffix(f".{what}") if what in ("median", "best") else place
        key = next((key for key in (rest, rest.rpartition(".")[0]) if key in self.rows), rest)
        side = rest.removeprefix(key).removeprefix(".") or "pylog"
        row = self.row(key)
        if not row["runs"].get(side):
            raise FigureError(f"Row '{key}' has no side '{side}', but {', '.join(row['runs'])}.")
        return best(row, side) if what == "best" else float(median(row["runs"][side]))


def best(row: dict[str, Any], side: str) -> float:
    """Give the best run of a side: the largest speed, the smallest cost."""
    return float((max if row["is_speed"] else min)(row["runs"][side]))


def _pair(row: dict[str, Any], side: str) -> str:
    runs = row["runs"].get(side)
    if not runs:
        return ""
    middle, most = number(median(runs)), number(best(row, side))
    return middle if middle == most else f"{middle} ({most})"


def reference(key: str, side: str) -> str:
    """Give the name under which a table shows a side of the row of this key."""
    for (beginning, named), name in _REFERENCES_OF_ROWS.items():
        if side == named and key.startswith(beginning):
            return name
    return _REFERENCES.get(side, side)


def target(key: str, said: str) -> str:
    """Give the text of a target with the names of `reference`."""
    compared, times, against = said.partition(" x ")
    return compared + times + reference(key, against)


def table(rows: list[tuple[str, dict[str, Any]]], keys: bool = False) -> str:
    """Give rows, each with its title, as a table: medians and in brackets the best, ratio and target; `keys` shows the rows' keys, too."""
    versions = {row["kafka_version"] for _, row in rows if row["runs"].get("kafka")}
    of_one = f" {next(iter(versions))}" if len(versions) == 1 else ""
    heads = [
        *(["key"] if keys else []),
        "row",
        "unit",
        f"Apache Kafka{of_one}",
        "pylog",
        "reference",
        "ratio",
        "target",
    ]
    lines = []
    for title, row in rows:
        third = [f"{reference(row['key'], side)}: {_pair(row, side)}" for side in row["runs"] if side not in SIDES]
        version = f", {row['kafka_version']}" if len(versions) > 1 and row["runs"].get("kafka") else ""
        lines.append([
            *([f"`{row['key']}`"] if keys else []), title.strip(), row["unit"], _pair(row, "kafka") + version, _pair(row, "pylog"), "; ".join(third),
            "" if row["ratio"] is None else ratio(row["ratio"]), target(row["key"], row["target"]) + (", missed" if row["met"] is False else ""),
        ])  # fmt: skip
    filled = [place for place, _ in enumerate(heads) if any(line[place] for line in lines)]
    written = [heads, ["---"] * len(heads), *lines]
    return "\n".join("| " + " | ".join(line[place] for place in filled) + " |" for line in written)


def block(asked: str, kept: Kept) -> str:
    """Give the text of a table that a mark asks for.

    Raises
    ------
    FigureError
        When it asks for something else, or for a row that is not kept.
    """
    kind, *lines = asked.splitlines()
    rows = {key: row for key, row in kept.rows.items() if not key.startswith("backlog.")}
    if kind == "all" and not lines:
        return table([(row["title"], row) for row in rows.values()], keys=True)
    if kind == "missed" and not lines:
        return table([(row["title"], row) for row in rows.values() if row["met"] is False], keys=True)
    if kind != "rows" or not lines:
        raise FigureError(
            f"'<!-- figures: {kind}' is not known: it is 'rows' and a key on each line, 'all', or 'missed'."
        )
    chosen = []
    for line in lines:
        key, _, title = (part.strip() for part in line.partition("="))
        row = kept.row(key)
        chosen.append((title or row["title"], row))
    return table(chosen)


def written(text: str, kept: Kept) -> str:
    """Give the text of a page with its figures as they are kept.

    Raises
    ------
    FigureError
        When a mark asks for what is not kept, stands at the beginning of a line, or has no end.
    """
    if found := _BEGINS_A_LINE.search(text):
        raise FigureError(f"A line must not begin with the mark of a figure, which would end the paragraph: {found[0]}")
    if len(re.findall("<!-- figures?: ", text)) != text.count("<!-- end -->"):
        raise FigureError("Each '<!-- figure: ... -->' and '<!-- figures: ... -->' needs its '<!-- end -->'.")
    text = _TABLE.sub(lambda mark: f"<!-- figures: {mark[1]}\n-->\n\n{block(mark[1], kept)}\n\n<!-- end -->", text)
    return _FIGURE.sub(lambda mark: f"<!-- figure: {mark[1]} -->{kept.figure(mark[1])}<!-- end -->", text)


def pages(root: Path = _ROOT) -> list[Path]:
    """Give the pages that may have figures."""
    return [root / "README.md", *sorted((root / "docs").glob("*.md"))]


def main() -> None:
    """Write the figures of all pages anew, and name the pages that changed."""
    kept = Kept()
    for page in pages():
        before = page.read_text()
        after = written(before, kept)
        if after != before:
            page.write_text(after)
            print(page.relative_to(_ROOT))


if __name__ == "__main__":
    main()
