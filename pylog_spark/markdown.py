"""Tables of the generated pages, in Markdown."""

from collections.abc import Iterable, Sequence


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Render a table; every line of it ends with a line break."""
    rule = "---|" * len(headings)
    return "".join(f"{line}\n" for line in (_line(headings), f"|{rule}", *map(_line, rows)))


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
