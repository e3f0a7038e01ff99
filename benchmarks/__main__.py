"""`python -m benchmarks [ROW ...]`: measure, print the table, write the JSON, draw the picture, put the figures into the pages."""

import os
import signal
import sys
from pathlib import Path

import click
from rich.console import Console

from benchmarks import pages
from benchmarks.bench import Bench
from benchmarks.brokers import SIDES
from benchmarks.picture import draw
from benchmarks.report import Result, print_table, write_json
from benchmarks.rows import ROWS

_ROOT = Path(__file__).parent.parent
_RESULTS = _ROOT / "benchmarks" / "results.json"
_PICTURE = _ROOT / "docs" / "benchmark.svg"


@click.command()
@click.argument("keys", nargs=-1, type=click.Choice([row.key for row in ROWS]))
@click.option("--rounds", default=5, show_default=True, help="Measured rounds; one or two more warm up.")
@click.option("--scale", default=1.0, show_default=True, help="Factor on the record counts, to try the harness.")
@click.option("--side", "sides", multiple=True, type=click.Choice(SIDES), help="Only this side (repeatable).")
@click.option(
    "--save/--no-save",
    default=False,
    help=f"Keep the figures in {_RESULTS.relative_to(_ROOT)}, redraw the picture, rewrite the pages.",
)
def main(keys: tuple[str, ...], rounds: int, scale: float, sides: tuple[str, ...], save: bool) -> None:
    """Measure pylog beside Apache Kafka. Without KEYS all rows run."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # with it a broker would compile all its modules at every start
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))  # so that brokers and sessions end too
    log = Console(stderr=True)
    bench = Bench(rounds=rounds, scale=scale, sides=sides or SIDES)
    results = []
    try:
        for row in ROWS:
            if not keys or row.key in keys:
                log.print(f"[dim]measuring {row.key}: {row.title}[/]")
                results.append(Result(row, row.measure(bench)))
    finally:
        bench.close()
    print_table(results)
    if save:
        write_json(_RESULTS, results, rounds)
        draw(_RESULTS, _PICTURE)
        pages.main()


if __name__ == "__main__":
    main(prog_name="python -m benchmarks")
