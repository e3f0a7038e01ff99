"""`pylog_spark.watch` in a notebook: a kernel of Jupyter with a Spark session of its own. Costs half a minute."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.harness.kernel import kernel
from tests.spark.support import Topic
from tests.unit.test_display import read as read_html

#: The cells of the notebook, with the broker, the topic and the checkpoint in place of the names in braces.
_CELLS = (
    """
import pylog_spark
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
""",
    """
frame = (
    spark.readStream.format("pylog").option("kafka.bootstrap.servers", "{servers}").option("subscribe", "{topic}")
    .option("startingOffsets", "earliest").option("maxOffsetsPerTrigger", "10").load()
)
writer = frame.writeStream.format("noop").queryName("orders").option("checkpointLocation", "{checkpoint}")
query = writer.trigger(availableNow=True).start()
pylog_spark.watch(query, every_s=0.05)
""",
    "spark.stop()",
)


@pytest.mark.long
def test_a_cell_of_a_notebook_shows_the_query_and_replaces_what_it_showed_until_the_end(
    make_topic: Callable[..., Topic], checkpoint: str, tmp_path: Path
) -> None:
    topic = make_topic(partitions=2)
    for partition in (0, 1):
        topic.put([str(number) for number in range(20)], partition)
    shown: list[dict[str, Any]] = []

    def keep(message: dict[str, Any]) -> None:
        if message["msg_type"] in ("display_data", "update_display_data"):
            shown.append(message)

    with kernel(tmp_path) as run:
        for cell in _CELLS:
            run(cell.format(servers=topic.servers, topic=topic.name, checkpoint=checkpoint), keep)
    kinds = [message["msg_type"] for message in shown]
    assert kinds[0] == "display_data"
    assert set(kinds[1:]) == {"update_display_data"}, "all else takes the place of the first"
    assert len({message["content"]["transient"]["display_id"] for message in shown}) == 1
    pages = ["\n".join(read_html(message["content"]["data"]["text/html"]).texts) for message in shown]
    assert pages[0].startswith("Query orders: running")
    assert pages[-1].startswith("Query orders: stopped")
    assert re.search(r"Lag in records\ntopic\npartitions\nlag\ntopic-[\w-]+\n2\n0\n", pages[-1]), pages[-1]
