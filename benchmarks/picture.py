"""The measured figures as a picture for the README: one bar a row, pylog against Kafka, from results.json and nothing else.

It shows a dozen rows, those that miss their targets among them. `docs/benchmarks.md` has all.
"""

import json
from pathlib import Path
from statistics import median
from typing import Any
from xml.sax.saxutils import escape

#: The rows that are drawn, in this order, with their titles.
ROWS = {
    "read-100b": "Spark reads 100 B, all columns",
    "read-1kb": "Spark reads 1 kB, all columns",
    "read-100b-local": "100 B, from the broker's files on its machine",
    "typed-json": "Spark reads JSON, 20 fields as columns",
    "typed-avro": "Spark reads Avro, 20 fields as columns",
    "write-100b": "Spark writes 100 B (pylog exactly once)",
    "floor-1": "a micro-batch of few records, 1 partition",
    "floor-4": "a micro-batch of few records, 4 partitions",
    "produce-50": "batches of 50 records, CPU of the broker",
    "p99": "producer to consumer, 99th percentile",
    "start-empty": "start of a broker",
    "rss-idle": "memory of an idle broker",
}
_WIDTH = 860
_LABEL = 300
_ROW = 26
_TOP = 66
_BAR_MAX = _WIDTH - _LABEL - 220
#: Bars of more are cut.
_LONGEST = 12.0
_MET, _MISSED, _AXIS, _INK, _QUIET = "#2a7f62", "#c0762b", "#9aa5b1", "#1f2933", "#5b6773"


def machine(document: dict[str, Any]) -> str:
    """Give the machine of a run in words: 2 cores, Linux 6.18, Python 3.11."""
    linux = ".".join(document["kernel"].split(".")[:2])
    python = ".".join(document["python"].split(".")[:2])
    return f"{document['cores']} cores, Linux {linux}, Python {python}"


def _advantage(row: dict[str, Any]) -> float:
    """How many times better pylog is: speed over speed, or Kafka's cost over pylog's."""
    kafka, pylog = median(row["runs"]["kafka"]), median(row["runs"]["pylog"])
    return float(pylog / kafka if row["is_speed"] else kafka / pylog)


def _bar(number: int, title: str, row: dict[str, Any]) -> str:
    y, advantage = _TOP + number * _ROW, _advantage(row)
    width = max(2.0, min(advantage, _LONGEST) / _LONGEST * _BAR_MAX)
    kafka, pylog = median(row["runs"]["kafka"]), median(row["runs"]["pylog"])
    figures = f"{advantage:.1f} x ({pylog:.3g} against {kafka:.3g} {row['unit']})"
    return (
        f'<text x="{_LABEL - 10}" y="{y + 15}" text-anchor="end">{escape(title)}</text>'
        f'<rect x="{_LABEL}" y="{y + 3}" width="{width:.1f}" height="16" rx="2" fill="{_MET if row["met"] else _MISSED}"/>'
        f'<text x="{_LABEL + width + 6:.1f}" y="{y + 15}" class="figure">{escape(figures)}</text>'
    )


def _legend(height: int) -> str:
    """What the colours and the dashed line mean."""
    parts = []
    for x, colour, said in ((20, _MET, "meets its target"), (140, _MISSED, "misses its target")):
        parts.append(f'<rect x="{x}" y="{height - 19}" width="10" height="10" rx="2" fill="{colour}"/>')
        parts.append(f'<text x="{x + 15}" y="{height - 10}" class="small">{said}</text>')
    return "".join(parts)


def draw(results: Path, picture: Path) -> None:
    """Draw `ROWS` of `results` into `picture` (SVG). A bar is as long as pylog is better; long bars are cut at 12 times."""
    document = json.loads(results.read_text())
    kept = {row["key"]: row for row in document["rows"]}
    versions = " and ".join(sorted({kept[key]["kafka_version"] for key in ROWS}))
    height = _TOP + len(ROWS) * _ROW + 34
    width_of_one = _LABEL + _BAR_MAX / _LONGEST
    bars = "".join(_bar(number, title, kept[key]) for number, (key, title) in enumerate(ROWS.items()))
    picture.parent.mkdir(exist_ok=True)
    picture.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" font-family="sans-serif" font-size="12">'
        f"<style>text{{fill:{_INK}}} .figure{{font-size:11px}} .small{{font-size:11px;fill:{_QUIET}}}</style>"
        f'<rect width="{_WIDTH}" height="{height}" fill="white"/>'
        f'<text x="20" y="24" font-size="15" font-weight="bold">How many times better than Apache Kafka {versions} and '
        f"Spark's own connector</text>"
        f'<text x="20" y="44" class="small">One machine for all: {machine(document)}. Medians; acknowledged in the page cache '
        f"on both sides; newest run of {document['measured_at'][:10]}.</text>"
        f'<line x1="{width_of_one:.1f}" x2="{width_of_one:.1f}" y1="{_TOP - 4}" y2="{height - 28}" stroke="{_AXIS}" stroke-dasharray="3 3"/>'
        f'<text x="{width_of_one + 4:.1f}" y="{height - 10}" class="small">1 x: the same</text>{bars}{_legend(height)}</svg>\n'
    )
