"""What is shown of a thing, as HTML for a notebook. Pure; rich is not imported here.

Names may hold anything, so every text is escaped: in HTML, and for a terminal. Colours are those of the page around, light or dark. At most `ROWS_MAX`
rows are shown, and the last line says how many more there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import NamedTuple

#: Most rows of a table.
ROWS_MAX = 100

_LINE = "border-bottom:1px solid rgba(127,127,127,.35)"
_CELL = f"padding:.15em .8em .15em 0;{_LINE}"


class Shown(NamedTuple):
    """What is shown of a thing: a title, and a table, which may be empty. Numbers are to the right."""

    title: str
    headings: Sequence[str] = ()
    rows: Sequence[Sequence[object]] = ()


def as_html(shown: Shown) -> str:
    """Give HTML, a piece of a page."""
    title = f"<div><b>{_text(shown.title)}</b></div>"
    if not shown.headings:
        return title
    columns = sides(shown)
    head = "".join(
        f'<th style="text-align:{side};{_CELL}">{_text(each)}</th>'
        for each, side in zip(shown.headings, columns, strict=True)
    )
    body = "".join(
        "<tr>"
        + "".join(
            f'<td style="text-align:{side};{_CELL}">{_text(cell)}</td>' for cell, side in zip(row, columns, strict=True)
        )
        + "</tr>"
        for row in shown.rows[:ROWS_MAX]
    )
    left = more(shown)
    end = f"<div>{left}</div>" if left else ""
    return f'{title}<table style="border-collapse:collapse"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{end}'


def printable(text: str) -> str:
    """Give a text in which every character that is not printable is an escape, so that it does nothing to a terminal."""
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def listed(values: Iterable[object]) -> str:
    """Give values as one cell."""
    return ", ".join(map(str, values)) or "-"


def sides(shown: Shown) -> list[str]:
    """Give for each column whether it is to the left or, one of numbers, to the right."""
    columns = zip(*shown.rows[:ROWS_MAX], strict=True) if shown.rows else [[]] * len(shown.headings)
    return ["right" if column and all(map(_is_number, column)) else "left" for column in map(list, columns)]


def _is_number(cell: object) -> bool:
    return cell is None or (isinstance(cell, (int, float)) and not isinstance(cell, bool))


def plain(cell: object) -> str:
    """Give the text of a cell."""
    if cell is None or cell == "":
        return "-"
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, float):
        return f"{cell:,.1f}"
    return f"{cell:,}" if isinstance(cell, int) else str(cell)


def _text(cell: object) -> str:
    return escape(printable(plain(cell)))


def more(shown: Shown) -> str:
    """Say how many rows are not shown; nothing when all are."""
    left = len(shown.rows) - ROWS_MAX
    return f"... and {left:,} more" if left > 0 else ""
