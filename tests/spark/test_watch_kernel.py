"""`pylog_spark.watch` in a notebook: a kernel of Jupyter with a Spark session of its own. Costs half a minute."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.spark.support import Topic
from tests.unit.test_display import read as read_html

#: Starting Java and the first query take most of a minute on a machine that is busy otherwise.
_DEADLINE_S = 200
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
    make_topic: Callable[..., Topic], checkpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What a kernel keeps is not to be the user's.
    for name in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name))
    manager = pytest.importorskip("jupyter_client.manager")
    topic = make_topic(partitions=2)
    for partition in (0, 1):
        topic.put([str(number) for number in range(20)], partition)
    shown: list[dict[str, Any]] = []

    def keep(message: dict[str, Any]) -> None:
        if message["msg_type"] in ("display_data", "update_display_data"):
            shown.append(message)

    kernel, client = manager.start_new_kernel(startup_timeout=_DEADLINE_S, kernel_name="python3", cwd=str(tmp_path))
    try:
        for cell in _CELLS:
            code = cell.format(servers=topic.servers, topic=topic.name, checkpoint=checkpoint)
            reply = client.execute_interactive(code, timeout=_DEADLINE_S, output_hook=keep)
            assert reply["content"]["status"] == "ok", reply["content"]
    finally:
        client.stop_channels()
        kernel.shutdown_kernel(now=True)
    kinds = [message["msg_type"] for message in shown]
    assert kinds[0] == "display_data"
    assert set(kinds[1:]) == {"update_display_data"}, "all else takes the place of the first"
    assert len({message["content"]["transient"]["display_id"] for message in shown}) == 1
    pages = ["\n".join(read_html(message["content"]["data"]["text/html"]).texts) for message in shown]
    assert pages[0].startswith("Query orders: running")
    assert pages[-1].startswith("Query orders: stopped")
    assert re.search(r"Lag in records\ntopic\npartitions\nlag\ntopic-[\w-]+\n2\n0\n", pages[-1]), pages[-1]
