"""`python -m benchmarks.paper`: the paper's experiment, its table, and with --save its two figures."""

import json
import os
import signal
import sys
from pathlib import Path
from statistics import median

import click
from rich.console import Console
from rich.table import Table

from benchmarks import pages
from benchmarks.paper.experiment import Experiment, Line, document
from benchmarks.paper.figures import draw
from benchmarks.paper.systems import NAMES, SYSTEMS

_ROOT = Path(__file__).parents[2]
_RESULTS = _ROOT / "benchmarks" / "paper" / "results.json"


@click.command()
@click.option("--rounds", default=3, show_default=True, help="Each has all systems, one after the other.")
@click.option(
    "--records",
    default=500_000,
    show_default=True,
    help="Messages sent in batches of 50; of those that travel alone there are 0.12 as many.",
)
@click.option("--system", "systems", multiple=True, type=click.Choice(SYSTEMS), help="Only this system (repeatable).")
@click.option(
    "--save/--no-save",
    default=False,
    help=f"Keep the figures in {_RESULTS.relative_to(_ROOT)}, and put them into the pages.",
)
@click.option(
    "--results",
    default=None,
    type=click.Path(dir_okay=False, path_type=Path),
    help="Keep the figures here instead, and draw beside it.",
)
def main(rounds: int, records: int, systems: tuple[str, ...], save: bool, results: Path | None) -> None:
    """Measure producers and consumers of pylog, Apache Kafka, ActiveMQ and RabbitMQ as section 5 of the Kafka paper does."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))  # so that the brokers end too
    log = Console(stderr=True)
    try:
        with Experiment(systems or SYSTEMS, rounds, records, lambda line: log.print(f"[dim]{line}[/]")) as experiment:
            lines = experiment.run()
    except RuntimeError as error:
        raise click.ClickException(str(error)) from error
    _print(lines)
    if save or results:
        target = results or _RESULTS
        target.write_text(json.dumps(document(lines, rounds), indent=1) + "\n")
        draw(target, target.parent if results else _ROOT / "docs")
        if not results:
            pages.main()


def _print(lines: list[Line]) -> None:
    table = Table(title="messages a second: median (least)", title_justify="left")
    for name in (
        "role",
        "system",
        "batch",
        "measured batch",
        "acknowledged",
        "messages",
        "messages/s",
    ):
        table.add_column(name, justify="left" if name in ("role", "system") else "right")
    for line in lines:
        batch = f"{median(line.mean_batches):.1f}" if line.mean_batches else ""
        table.add_row(
            line.role, NAMES[line.system], str(line.batch), batch, "yes" if line.acknowledged else "no", f"{line.messages:,}",
            f"{median(line.runs):,.0f} ({min(line.runs):,.0f})",
        )  # fmt: skip
    Console(width=max(120, Console().width)).print(table)


if __name__ == "__main__":
    main(prog_name="python -m benchmarks.paper")
