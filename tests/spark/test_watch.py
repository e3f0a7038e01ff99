"""`pylog_spark.watch`: what a notebook, a terminal and a file see of a real query, and that Ctrl-C ends the display alone. Costs 8 s beside the session."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from typing import Any

import pytest

import pylog_spark
from pylog_spark.spark.query_view import QueryView
from tests.harness.waiting import until
from tests.spark.support import Topic
from tests.unit.test_display import read as read_html

NAME = "<b>orders</b>\x1b[2J"


@pytest.fixture
def behind(make_topic: Callable[..., Topic], checkpoint: str) -> Iterator[Any]:
    """A query with 40 records in two partitions, of which a batch reads ten."""
    topic = make_topic(partitions=2)
    for partition in (0, 1):
        topic.put([str(number) for number in range(20)], partition)
    frame = topic.read_stream(maxOffsetsPerTrigger="10")
    writer = frame.writeStream.format("noop").option("checkpointLocation", checkpoint).queryName(NAME)
    query = writer.trigger(processingTime="1 hour").start()
    until(lambda: query.lastProgress is not None or not query.isActive, "a batch is finished")
    yield query
    query.stop()


@pytest.fixture
def notebook() -> Iterator[Any]:
    """What a notebook was given: IPython's displays, by a shell that is no terminal's."""
    pytest.importorskip("IPython")
    from IPython.core.displaypub import CapturingDisplayPublisher
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    shell = InteractiveShell.instance(config=Config(HistoryManager={"enabled": False}))
    shell.display_pub = CapturingDisplayPublisher()
    yield shell.display_pub.outputs
    InteractiveShell.clear_instance()


def test_a_notebook_shows_rates_lag_and_parts_and_replaces_them(behind: Any, notebook: list[dict[str, Any]]) -> None:
    for timeout_s in (0.2, 2, 20):
        notebook.clear()
        pylog_spark.watch(behind, every_s=0.05, timeout_s=timeout_s)
        # A busy machine may not come to a second display in a moment.
        if len(notebook) > 1:
            break
    assert [output["update"] for output in notebook[:2]] == [False, True]
    assert len({output["transient"]["display_id"] for output in notebook}) == 1
    html = notebook[-1]["data"]["text/html"]
    texts = "\n".join(read_html(html).texts)
    assert texts.startswith("Query <b>orders</b>\\x1b[2J: running")
    assert "<b>orders" not in html
    assert re.search(r"rows of it\n10\nrows/s that came\n[-\d.,]+\nrows/s processed\n[\d.,]+\n", texts)
    topic = behind.lastProgress.sources[0].endOffset
    assert re.search(r"Lag in records\ntopic\npartitions\nlag\ntopic-[\w-]+\n2\n30\n", texts), (texts, topic)
    assert re.search(r"The [\d,]+ ms of the batch\npart\nms\n", texts)
    assert "addBatch" in texts


def test_a_terminal_shows_the_same_and_ctrl_c_ends_the_display_alone(behind: Any) -> None:
    master, slave = os.openpty()
    os.set_blocking(master, False)
    shown = bytearray()

    def interrupted() -> None:
        def is_shown() -> bool:
            with contextlib.suppress(BlockingIOError):
                shown.extend(os.read(master, 65536))
            return b"addBatch" in shown

        until(is_shown, lambda: f"the batch is shown: {bytes(shown)!r}")
        os.kill(os.getpid(), signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    pressing = threading.Thread(target=interrupted)
    with os.fdopen(slave, "w") as terminal, redirect_stdout(terminal):
        pressing.start()
        pylog_spark.watch(behind, every_s=0.1, timeout_s=60)
    pressing.join()
    os.close(master)
    text = shown.decode()
    assert "\\x1b[2J: running" in text
    assert "\x1b[2J" not in text
    assert re.search(r"topic-[\w-]+ +2 +30", text)
    assert behind.isActive
    assert signal.getsignal(signal.SIGINT) is before


def test_elsewhere_each_batch_is_a_line_until_the_query_ends(
    make_topic: Callable[..., Topic], checkpoint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    topic = make_topic()
    topic.put(["1", "2", "3", "4"])
    frame = topic.read_stream(maxOffsetsPerTrigger="2")
    writer = frame.writeStream.format("noop").option("checkpointLocation", checkpoint).queryName("orders")
    query = writer.trigger(availableNow=True).start()
    pylog_spark.watch(query, every_s=0.02)
    assert not query.isActive
    last = capsys.readouterr().out.splitlines()[-1]
    assert re.fullmatch(r"query orders: stopped, batch 1: 2 rows, [\d.,]+ rows/s, lag 0", last), last


def test_a_query_that_fails_says_why(
    make_topic: Callable[..., Topic], checkpoint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    topic = make_topic()
    topic.put(["{"])
    frame = topic.read_stream("id int", valueFormat="json", mode="FAILFAST")
    query = frame.writeStream.format("noop").option("checkpointLocation", checkpoint).start()
    pylog_spark.watch(query, every_s=0.1, timeout_s=60)
    assert re.search(rf"query {query.id}: failed: \[PYLOG_BAD_RECORD\] .*offset 0", capsys.readouterr().out)


def test_a_query_without_a_batch_is_shown_too() -> None:
    view = QueryView("orders", "running", True, None)
    assert str(view) == "query orders: running, no batch is finished yet"
    assert "no batch is finished yet" in view._repr_html_()
