"""How results are shown: as a table in a notebook (``_repr_html_``) and by rich in a terminal (``__rich__``). Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pylog_spark.results.markup import ROWS_MAX, Shown, as_html, more, plain, printable, sides

if TYPE_CHECKING:
    from rich.table import Table


class Display:
    """What shows itself in notebooks and terminals."""

    __slots__ = ()

    def _shown(self) -> Shown:
        raise NotImplementedError

    def _repr_html_(self) -> str:
        return as_html(self._shown())

    def __rich__(self) -> Table:
        return as_rich(self._shown())


def as_rich(shown: Shown) -> Table:
    """Give a table of rich."""
    from rich.table import Table
    from rich.text import Text

    table = Table(
        title=Text(printable(shown.title), style="bold"),
        title_justify="left",
        box=None,
        pad_edge=False,
        caption=Text(more(shown)),
        caption_justify="left",
    )
    for each, side in zip(shown.headings, sides(shown), strict=True):
        table.add_column(Text(each), justify="right" if side == "right" else "left", overflow="fold")
    for row in shown.rows[:ROWS_MAX]:
        table.add_row(*(Text(printable(plain(cell))) for cell in row))
    return table
