"""``pylog checkpoint`` on a checkpoint in S3. The query runs with a copy of it in a local folder, since Spark's jars for S3 are not here. Costs 8 s."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyarrow import fs

from tests.archive.s3_store import Store, running_store
from tests.spark.support import Collector, Topic
from tests.spark.test_checkpoint import numbered, pylog, rewind, shown

pytestmark = pytest.mark.long  # in a folder: test_checkpoint.py

Topics = Callable[..., Topic]


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    """An S3 server; its credentials are in the environment."""
    with running_store() as running:
        yield running


def copy(source: str, target: str) -> None:
    """Copy all files of a folder."""
    fs.copy_files(source, target)


def rows_of_next_batch(frame: Any, url: str, folder: Path) -> tuple[list[int], list[str]]:
    """The numbers and the values of the batches that a query runs from here on, as long as there is something to read."""
    copy(url, str(folder))
    query = Collector(str(folder))
    query.run(frame)
    return sorted(query.batches), query.values


def test_a_checkpoint_in_s3_is_shown_moved_and_copied_and_queries_go_on_from_it(
    make_topic: Topics, store: Store, tmp_path: Path
) -> None:
    topic = make_topic()
    topic.put(numbered(6))
    frame = topic.read_stream(maxOffsetsPerTrigger=2)
    first = Collector(str(tmp_path / "first")).run(frame)
    url, forked = store.url("query"), store.url("forked")
    copy(str(tmp_path / "first"), url)

    found = shown(topic, "show", url)
    assert (found["query_id"], found["finished_batch"]) == (first.id, 2)
    topic.put(numbered(1, 6))
    (late,) = shown(topic, "lag", url)["partitions"]
    assert (late["offset"], late["lag"]) == (6, 1)

    refused = pylog(topic, "rewind", url, "--to-earliest", "--execute")
    assert "may be running: stop it" in refused.stderr, "a store has times of its objects, too"
    assert shown(topic, "fork", url, forked, "--stopped")["forked_from"] == first.id
    assert rewind(topic, url, "--to-offset", "4") == {0: (6, 4)}
    assert rows_of_next_batch(frame, url, tmp_path / "moved") == ([3, 4], numbered(3, 4))
    assert rewind(topic, url, "--to-batch", "0") == {0: (4, 2)}
    assert rows_of_next_batch(frame, url, tmp_path / "back") == ([1, 2, 3], numbered(5, 2))
    assert rows_of_next_batch(frame, forked, tmp_path / "forked") == ([3], numbered(1, 6))


def test_a_folder_that_cannot_be_read_is_one_sentence(make_topic: Topics, store: Store, tmp_path: Path) -> None:
    topic = make_topic()
    none = pylog(topic, "show", store.url("nothing"))
    assert none.returncode == 1
    assert "is not the checkpoint of a streaming query" in none.stderr
    file = tmp_path / "file"
    file.touch()
    refused = pylog(topic, "show", str(file))
    assert refused.returncode == 1
    (line,) = refused.stderr.splitlines()
    assert line.startswith(f"Error: The checkpoint {file} cannot be read: ")
