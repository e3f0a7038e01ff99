"""``read``: the history of a table and the newest records of the log as one frame, each record once."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from pylog_spark.errors import PylogError
from pylog_spark.lakehouse.table import PARQUET, table_of
from pylog_spark.lakehouse.values import rows_of
from pylog_spark.offsets.position import Position
from pylog_spark.options import BATCH, read_options
from pylog_spark.source.log import Log

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_EARLIEST = -2


def read(spark: SparkSession, path: str, *, table_format: str = PARQUET, **options: object) -> DataFrame:
    """Give a table's rows and, when options of ``format("pylog")`` are given, the rows of the records that the log has besides.

    The cut is at the offsets of the table's last commit when this is called: records before it come from the table, those from it on from
    the log, up to its end.

    Parameters
    ----------
    spark : SparkSession
        A classic session.
    path : str
        The table, as in `stream`.
    table_format : str
        As in `stream`.
    **options
        Options of ``format("pylog")``, such as ``subscribe`` and ``**{"kafka.bootstrap.servers": "..."}``. Without any, only the table is read.

    Raises
    ------
    PylogError
        ``PYLOG_TABLE_STATE`` when there is no table yet.
    """
    table = table_of(spark, path, table_format)
    state = table.state()
    if state.spec is None:
        raise PylogError(
            "PYLOG_TABLE_STATE", f"There is no table in {path}; lakehouse.load or lakehouse.stream makes it."
        )
    history = table.rows(state)
    given = {name: text for name, text in options.items() if text is not None}
    if not given:
        return history
    given["startingOffsets"] = start_at(state.position, given)
    records = spark.read.format("pylog").options(**given).load()  # type: ignore[arg-type]
    return history.unionByName(rows_of(records, state.spec))


def start_at(position: Position, options: Mapping[str, object]) -> str:
    """Give ``startingOffsets`` for who has read up to `position`. Partitions that it does not know begin at their beginning."""
    texts = {name: str(text) for name, text in options.items()}
    log = Log(read_options({**texts, "startingOffsets": "earliest"}, BATCH))
    try:
        assigned = log.assigned()
    finally:
        log.close()
    recreated = sorted(position.recreated(assigned))
    if recreated:
        raise PylogError(
            "PYLOG_TOPIC_RECREATED",
            f"The topic {recreated[0]} is not the one that the table was loaded from: it was deleted and created again; load into "
            "another table.",
        )
    starts: dict[str, dict[str, int]] = {}
    for partition in assigned.offsets:
        starts.setdefault(partition.topic, {})[str(partition.partition)] = position.offsets.get(partition, _EARLIEST)
    return json.dumps(starts)
