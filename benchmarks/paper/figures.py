"""The paper's two figures as pictures: one bar a system, from results.json and nothing else.

The paper draws messages a second over megabytes sent. Those lines are flat, so each becomes a bar: its median, and a stroke
from the slowest to the quickest round.
"""

import json
from pathlib import Path
from statistics import median
from typing import Any
from xml.sax.saxutils import escape

from benchmarks.paper.systems import NAMES

_WIDTH = 860
_LABEL = 250
_ROW = 24
_TOP = 72
_HEADING = 28
_BAR_MAX = _WIDTH - _LABEL - 190
_PYLOG, _OTHER, _AXIS, _INK = "#2a7f62", "#7b8794", "#9aa5b1", "#1f2933"

_TITLES = {"producer": "Producer performance", "consumer": "Consumer performance"}
_HEADINGS = {
    "producer": {False: "Sent without waiting for acknowledgements, as in the paper", True: "Acknowledged by the broker"},
    "consumer": {False: "Acknowledged by the client library by itself, as in the paper"},
}  # fmt: skip


def draw(results: Path, folder: Path) -> None:
    """Draw `results` into ``paper-producer.svg`` and ``paper-consumer.svg`` of `folder`."""
    document = json.loads(results.read_text())
    for role in _TITLES:
        lines = [line for line in document["lines"] if line["role"] == role]
        (folder / f"paper-{role}.svg").write_text(_picture(role, lines, document))


def _picture(role: str, lines: list[dict[str, Any]], document: dict[str, Any]) -> str:
    longest = max(max(line["runs"]) for line in lines)
    parts, y = [], _TOP
    for acknowledged, heading in _HEADINGS[role].items():
        parts.append(f'<text x="20" y="{y + 18}" font-weight="bold">{escape(heading)}</text>')
        y += _HEADING
        shown = [line for line in lines if line["acknowledged"] is acknowledged]
        for line in sorted(shown, key=lambda line: -median(line["runs"])):
            parts.append(_bar(y, line, role, longest))
            y += _ROW
        y += 8
    versions = ", ".join(f"{NAMES[system]} {version}" for system, version in document["versions"].items())
    about = (
        f"{document['message_bytes']} B, one {role}, {document['cores']} cores; median of {document['rounds']} rounds (stroke: all of them); "
        f"measured {document['measured_at'][:10]}"
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {y + 8}" font-family="sans-serif" font-size="12">'
        f"<style>text{{fill:{_INK}}} .figure{{font-size:11px}} .small{{font-size:11px;fill:{_AXIS}}}</style>"
        f'<rect width="{_WIDTH}" height="{y + 8}" fill="white"/>'
        f'<text x="20" y="24" font-size="15" font-weight="bold">{_TITLES[role]}, messages a second</text>'
        f'<text x="20" y="42" class="small">{escape(about)}</text>'
        f'<text x="20" y="58" class="small">{escape(versions)}</text>'
        f"{''.join(parts)}</svg>\n"
    )


def _bar(y: int, line: dict[str, Any], role: str, longest: float) -> str:
    speed = median(line["runs"])
    width = max(1.0, speed / longest * _BAR_MAX)
    least, most = (_LABEL + run / longest * _BAR_MAX for run in (min(line["runs"]), max(line["runs"])))
    name = NAMES[line["system"]] + (f", batch size {line['batch']}" if role == "producer" else "")
    colour = _PYLOG if line["system"] == "pylog" else _OTHER
    return (
        f'<text x="{_LABEL - 10}" y="{y + 15}" text-anchor="end">{escape(name)}</text>'
        f'<rect x="{_LABEL}" y="{y + 3}" width="{width:.1f}" height="16" rx="2" fill="{colour}"/>'
        f'<line x1="{least:.1f}" x2="{most:.1f}" y1="{y + 11}" y2="{y + 11}" stroke="{_INK}"/>'
        f'<text x="{max(_LABEL + width, most) + 6:.1f}" y="{y + 15}" class="figure">{speed:,.0f}</text>'
    )
