"""What the long runs show: bars on a terminal while they go on, a table in Markdown at their end."""

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn


def bars() -> Progress:
    """For a ``with``: bars on the standard error where that is a terminal, nothing elsewhere, and nothing is left of them."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)


def markdown(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table whose first and last columns are words and whose others are figures."""
    rule = ("---", *["---:"] * (len(headings) - 2), "---")
    return "\n".join(f"| {' | '.join(row)} |" for row in (headings, rule, *rows))
