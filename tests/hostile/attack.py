"""Long attacks on a real broker, one after the other, each on a fresh one and beside an honest client.

    python -m tests.hostile.attack [--seconds 3600] [--peer] [--json FILE] [--seed N] [NAME ...]

One line for each attack as it ends, and at the end a table in Markdown. The exit code is 1 when pylog broke a promise: it died or
panicked, lost a record that it had acknowledged, let the honest client wait for more than a second (by the clock of
`tests.hostile.neighbour`), grew over what its settings allow, or answered what it must refuse. With `--peer` the same is done to
Apache Kafka, and only reported. All settings of the brokers are the defaults; what topics have is in `tests.hostile.victims`.
"""

import json
import random
import signal
import sys
import time
from collections import Counter
from pathlib import Path

import click

from tests.harness.report import bars, markdown
from tests.hostile.attacks import ATTACKS
from tests.hostile.bout import Result, Started, judge, run
from tests.hostile.victims import TOPICS, kafka, pylog

_HEADINGS = ("attack", "seconds", "cases", "panics", "peak MiB", "worst latency ms (clock)", "on the wall", "kept")


def line(result: Result) -> str:
    """What is said of an attack when it ends."""
    outcomes = ", ".join(f"{count:,} {outcome}" for outcome, count in sorted(result.outcomes.items()))
    panics = ", ".join(f"{count:,} {what}" for what, count in result.panics.items())
    served = f"{result.slowest_ms:,.0f} ms by the clock, {result.slowest_wall_ms:,.0f} ms on the wall"
    kept = "; ".join(result.broken) or "all promises kept"
    return (
        f"{result.name}: {result.seconds:,.0f} s, {result.cases:,} cases ({outcomes}), {panics}, peak {result.peak_mib:,.0f} MiB, "
        f"the honest client's slowest of {result.acknowledged:,} records {served}; {kept}"
    )


def table(results: list[Result]) -> str:
    """All figures in Markdown."""
    rows = []
    for result in results:
        panics = " / ".join(f"{count:,}" for count in result.panics.values())
        figures = (result.seconds, result.cases, panics, result.peak_mib, result.slowest_ms, result.slowest_wall_ms)
        shown = (figure if isinstance(figure, str) else f"{figure:,.0f}" for figure in figures)
        rows.append((result.name, *shown, "; ".join(result.broken) or "yes"))
    return markdown(_HEADINGS, rows)


def _run(name: str, started: Started, seconds: float, seed: int) -> Result:
    """One attack, with a bar where there is a terminal."""
    with bars() as progress:
        task, began = progress.add_task(name, total=seconds), time.monotonic()

        def show(outcomes: Counter[str]) -> None:
            shown = f"{name}: {sum(outcomes.values()):,} cases"
            progress.update(task, completed=time.monotonic() - began, description=shown)

        return run(name, ATTACKS[name], started, seconds, seed, show)


def document(results: list[Result], skipped: dict[str, str], side: str, seconds: float, seed: int) -> dict[str, object]:
    """The run as plain data."""
    return {
        "side": side,
        "seconds": seconds,
        "seed": seed,
        "settings": "defaults",
        "topics": TOPICS,
        "attacks": [result.as_json() for result in results],
        "not run": skipped,
    }


@click.command()
@click.argument("names", nargs=-1, type=click.Choice(list(ATTACKS)))
@click.option("--seconds", default=3_600.0, show_default=True, help="How long each attack lasts.")
@click.option("--peer", is_flag=True, help="Attack Apache Kafka instead, and only report.")
@click.option("--json", "file", type=click.Path(path_type=Path), help="Write the figures here, too, after each attack.")
@click.option("--seed", type=int, help="Of what is drawn at random; without it another one in every run.")
def main(names: tuple[str, ...], seconds: float, peer: bool, file: Path | None, seed: int | None) -> None:
    """Attack a broker. Without NAMES all attacks run."""
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))  # so that brokers end too
    seed = random.SystemRandom().randrange(2**32) if seed is None else seed
    side, started = ("kafka", kafka) if peer else ("pylog", pylog)
    print(f"{side} with its default settings, {seconds:g} s for each attack, seed {seed}", flush=True)
    results: list[Result] = []
    skipped: dict[str, str] = {}
    for name in names or ATTACKS:
        attack = ATTACKS[name]
        if peer and attack.not_on_kafka is not None:
            skipped[name] = attack.not_on_kafka
            print(f"{name}: not on Apache Kafka, {attack.not_on_kafka}", flush=True)
            continue
        results.append(_run(name, started, seconds, seed))
        if not peer:
            judge(results[-1], attack)
        print(line(results[-1]), flush=True)
        if results[-1].tail and not peer:
            print(results[-1].tail, file=sys.stderr)
        if file is not None:
            file.write_text(json.dumps(document(results, skipped, side, seconds, seed), indent=1) + "\n")
    print(f"\n{table(results)}")
    sys.exit(1 if not peer and any(result.broken for result in results) else 0)


if __name__ == "__main__":
    main(prog_name="python -m tests.hostile.attack")
