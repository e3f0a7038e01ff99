"""The measured figures as a picture for the README: one bar a row, pylog against Kafka, from results.json and nothing else."""

import json
from pathlib import Path
from statistics import median
from typing import Any
from xml.sax.saxutils import escape

_WIDTH = 860
_LABEL = 330
_ROW = 26
_TOP = 58
_BAR_MAX = _WIDTH - _LABEL - 170
_GOOD, _MISSED, _AXIS, _INK = "#2a7f62", "#c0762b", "#9aa5b1", "#1f2933"


def _advantage(row: dict[str, Any]) -> float | None:
    """How many times better pylog is: speed over speed, or Kafka's cost over pylog's.

    None without both, and where a time is less than nothing because the session time-out is taken off it.
    """
    runs = row["runs"]
    if not runs.get("kafka") or not runs.get("pylog"):
        return None
    kafka, pylog = median(runs["kafka"]), median(runs["pylog"])
    better, worse = (pylog, kafka) if row["is_speed"] else (kafka, pylog)
    return better / worse if min(better, worse) > 0 else None


def _bar(number: int, row: dict[str, Any], advantage: float, longest: float) -> str:
    y = _TOP + number * _ROW
    width = max(2.0, min(advantage, longest) / longest * _BAR_MAX)
    kafka, pylog = median(row["runs"]["kafka"]), median(row["runs"]["pylog"])
    figures = f"{advantage:.1f} x ({pylog:.3g} against {kafka:.3g} {row['unit']})"
    colour = _GOOD if row["met"] else _MISSED
    return (
        f'<text x="{_LABEL - 10}" y="{y + 15}" text-anchor="end">{escape(row["title"])}</text>'
        f'<rect x="{_LABEL}" y="{y + 3}" width="{width:.1f}" height="16" rx="2" fill="{colour}"/>'
        f'<text x="{_LABEL + width + 6:.1f}" y="{y + 15}" class="figure">{escape(figures)}</text>'
    )


def draw(results: Path, picture: Path) -> None:
    """Draw `results` into `picture` (SVG). A bar is as long as pylog is better; long bars are cut at 12 times."""
    document = json.loads(results.read_text())
    rows = [(row, advantage) for row in document["rows"] if (advantage := _advantage(row)) is not None]
    versions = " and ".join(sorted({row["kafka_version"] for row, _ in rows}))
    cut = 12.0
    longest = max([min(advantage, cut) for _, advantage in rows], default=1.0)
    height = _TOP + len(rows) * _ROW + 20
    width_of_one = _LABEL + _BAR_MAX / longest
    bars = "".join(_bar(number, row, advantage, longest) for number, (row, advantage) in enumerate(rows))
    picture.parent.mkdir(exist_ok=True)
    picture.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" font-family="sans-serif" font-size="12">'
        f"<style>text{{fill:{_INK}}} .figure{{font-size:11px}} .small{{font-size:11px;fill:{_AXIS}}}</style>"
        f'<rect width="{_WIDTH}" height="{height}" fill="white"/>'
        f'<text x="20" y="24" font-size="15" font-weight="bold">How many times better than Apache Kafka {versions} and '
        f"Spark's own connector</text>"
        f'<text x="20" y="42" class="small">{document["cores"]} cores, {document["rounds"]} rounds, medians, '
        f"page-cache durability on both sides; measured {document['measured_at'][:10]}</text>"
        f'<line x1="{width_of_one:.1f}" x2="{width_of_one:.1f}" y1="{_TOP - 4}" y2="{height - 12}" stroke="{_AXIS}" stroke-dasharray="3 3"/>'
        f'<text x="{width_of_one + 4:.1f}" y="{height - 4}" class="small">1 x: the same</text>{bars}</svg>\n'
    )
