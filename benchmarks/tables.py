"""How fresh tables of the lakehouse are, in pylog's Spark session; there is no other side."""

from functools import partial

from benchmarks.bench import Bench, Runs

_RATE, _SECONDS, _WARM_S = 1000, 25, 10
_measured: dict[str, list[dict[str, float]]] = {}


def freshness(bench: Bench, table_format: str, figure: str) -> Runs:
    """Milliseconds (`figure`: ``p50`` or ``p95``) from produce to a committed row, at 1,000 records of 200 B a second. Measured once for
    each format."""

    def once() -> dict[str, float]:
        job: dict[str, object] = {"do": "fresh", "rate": _RATE, "seconds": _SECONDS, "warm": _WARM_S}
        servers, topic = bench.broker("pylog").bootstrap_servers, bench.new_topic("pylog")
        where = {"folder": str(bench.folder), "format": table_format}
        return bench.spark("pylog").figures(**job, **where, bootstrap=servers, topic=topic)

    if "pylog" not in bench.sides:
        return {}
    if table_format not in _measured:
        _measured[table_format] = bench.take_turns({"pylog": partial(once)}, rounds_max=3)["pylog"]
    return {"pylog": [run[figure] for run in _measured[table_format]]}
