"""How results are shown: as a table in a notebook (``_repr_html_``) and by rich in a terminal (``__rich__``). Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pylog_spark.results.markup import ROWS_MAX, Shown, as_html, more, plain, printable, sides

if TYPE_CHECKING:
    from rich.console import Group, RenderableType


class Display:
    """What shows itself in notebooks and terminals."""

    __slots__ = ()

    def _shown(self) -> Shown:
        raise NotImplementedError

    def _repr_html_(self) -> str:
        return as_html(self._shown())

    def __rich__(self) -> Group:
        return as_rich(self._shown())


def as_rich(shown: Shown) -> Group:
    """Give the title and the table for rich."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    parts: list[RenderableType] = [Text(printable(shown.title), style="bold")]
    if shown.headings:
        table = Table(box=None, pad_edge=False)
        for each, side in zip(shown.headings, sides(shown), strict=True):
            table.add_column(Text(each), justify="right" if side == "right" else "left", overflow="fold")
        for row in shown.rows[:ROWS_MAX]:
            table.add_row(*(Text(printable(plain(cell))) for cell in row))
        parts.append(table)
    if left := more(shown):
        parts.append(Text(left))
    return Group(*parts)
