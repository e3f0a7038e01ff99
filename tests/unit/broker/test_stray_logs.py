"""What becomes of partition directories that a broker finds after having been away."""

import pytest

from pylog_spark.broker.stray_logs import put_aside
from pylog_spark.cluster.model import Partition, Topic
from tests.harness.waiting import until

OURS, OTHER = "A" * 22, "B" * 22
TOPIC = Topic("t", OURS, {}, (Partition(0, (1, 2), 1, 0, (1, 2)), Partition(1, (2, 3), 2, 0, (2, 3))))


@pytest.fixture
def directory(tmp_path):
    def make(name, topic_id=OURS):
        (tmp_path / name).mkdir()
        (tmp_path / name / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}")
        return tmp_path / name

    return make


def names(tmp_path):
    return sorted(path.name for path in tmp_path.iterdir())


def test_what_this_broker_holds_stays(directory, tmp_path):
    directory("t-0")
    (tmp_path / ".pylog").mkdir()
    (tmp_path / "t-0.0123456789abcdef-stray").mkdir()
    assert put_aside(str(tmp_path), {"t": TOPIC}, 1) == ([], [])
    assert names(tmp_path) == [".pylog", "t-0", "t-0.0123456789abcdef-stray"]


def test_a_directory_without_a_readable_id_is_left_to_recovery(directory, tmp_path):
    (directory("t-0") / "partition.metadata").write_text("version: 0\ntopic_id: AA")
    assert put_aside(str(tmp_path), {"t": TOPIC}, 1) == ([], [])


@pytest.mark.parametrize(("name", "topic_id"), [("t-0", OTHER), ("t-1", OURS), ("t-7", OURS)])
def test_a_topic_made_anew_and_a_replica_moved_away_are_removed(directory, tmp_path, name, topic_id):
    directory(name, topic_id)
    assert put_aside(str(tmp_path), {"t": TOPIC}, 1) == ([name], [])

    def gone() -> bool:
        left = names(tmp_path)
        assert all(name.endswith("-delete") for name in left)
        return not left

    until(gone, "its files are removed in the background")


def test_a_topic_that_nobody_knows_is_renamed_and_keeps_its_records(directory, tmp_path):
    (directory("gone-3") / "00000000000000000000.log").write_bytes(b"records")
    assert put_aside(str(tmp_path), {"t": TOPIC}, 1) == ([], ["gone-3"])
    (stray,) = tmp_path.iterdir()
    assert stray.name.startswith("gone-3.")
    assert stray.name.endswith("-stray")
    assert (stray / "00000000000000000000.log").read_bytes() == b"records"


def test_a_very_long_name_still_fits(directory, tmp_path):
    directory("x" * 249 + "-0")
    put_aside(str(tmp_path), {}, 1)
    assert len(names(tmp_path)[0]) <= 255
