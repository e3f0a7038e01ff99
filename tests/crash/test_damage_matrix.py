"""Every file of a log x what can happen to it while the broker is stopped x how that stop was: the records are as before, or the
partition is refused by name, or the loss is logged with offset and bytes. Never other records, never aborted ones, never silence.

All cases of the files of a partition share one broker, a partition for each: the others are served whatever happens to one.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from pylog_spark.client import Admin, Producer
from pylog_spark.testing import LocalBroker, LocalBrokerError
from tests.crash import damage
from tests.crash.damage import CASES, DATA_CASES, END, FLUSHED_ROUNDS, OFFSETS, ROUNDS
from tests.harness.runs import LONG, mostly_long
from tests.harness.waiting import said, until

TOPIC = "harmed"
#: One partition stays as it is, and lends its files to others.
WHOLE = len(CASES)
STOPS = ("clean", "killed")
#: Whole segments of another partition that fit to the byte and the offset: batches do not say whose they are, and after a kill only the
#: first one is known by more than its place.
NOBODY_CAN_KNOW = {
    ("killed", "a middle .log", "of another partition"),
    ("killed", "the active .log", "of another partition"),
}
_SETTINGS = {"transaction_state_log_num_partitions": 1}


class Scene:
    """A broker that was started again on a data folder with a partition for each case."""

    def __init__(self, folder: Path, stop: str) -> None:
        self.stop = stop
        self.broker = LocalBroker(folder / "data", **_SETTINGS)
        self.broker.start()
        with Admin(self.broker.bootstrap_servers) as admin:
            admin.create_topic(TOPIC, len(CASES) + 1, config=damage.TOPIC_CONFIG)
        damage.write(self.broker, TOPIC, len(CASES) + 1, range(FLUSHED_ROUNDS))
        if stop == "killed":
            self.broker.restart()
        damage.write(self.broker, TOPIC, len(CASES) + 1, range(FLUSHED_ROUNDS, ROUNDS))
        if stop == "clean":
            assert self.broker.terminate() == 0
        else:
            self.broker.kill()
        for partition, (place, harm) in enumerate(CASES):
            lender = place.find(self.folder(WHOLE))
            harm.do(
                place.find(self.folder(partition)),
                lender if lender.exists() else damage.PLACES[0].find(self.folder(WHOLE)),
            )
        self.broker.start()
        with Admin(self.broker.bootstrap_servers) as admin:
            described = admin.topic(TOPIC).partitions
        self.offline = {partition.partition for partition in described if partition.leader == -1}

    def folder(self, partition: int) -> Path:
        return Path(self.broker.data_dir) / f"{TOPIC}-{partition}"


@pytest.fixture(scope="module", params=mostly_long(STOPS, "killed"))
def scene(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    made = Scene(tmp_path_factory.mktemp(request.param), request.param)
    yield made
    made.broker.close()


@pytest.mark.parametrize("number", range(len(CASES)), ids=[f"{place.name} is {harm.name}" for place, harm in CASES])
def test_a_damaged_file_of_a_partition_is_rebuilt_refused_or_reported(scene: Scene, number: int) -> None:
    name = f"{TOPIC}-{number}"

    def lines() -> list[str]:
        return list(damage.lines_of(scene.broker, name))

    if number in scene.offline:
        # What a broker says comes to its log a moment later.
        until(lambda: any("a partition is offline" in line for line in lines()), lambda: f"the log says so: {lines()}")
        return
    for isolation in ("read_committed", "read_uncommitted"):
        whole = damage.values(number, range(ROUNDS), committed=isolation == "read_committed")
        seen, error = damage.read(scene.broker, TOPIC, number, isolation)
        if (scene.stop, *(damage_case.name for damage_case in CASES[number])) in NOBODY_CAN_KNOW:
            assert len(seen) == len(whole)
            continue
        if seen and seen[0] != whole[0]:
            assert scene.stop == "killed"
            assert any("offsets 0 to 3 are gone" in line for line in lines()), lines()
            whole = [record for record in whole if record[0] >= seen[0][0]]
        assert seen == whole[: len(seen)], lines()
        if error is not None:
            assert f"partition {number} of" in str(error) or name in str(error), error
            continue
        if len(seen) < len(whole):
            lost_from = whole[len(seen)][0]
            assert scene.stop == "killed"
            assert any("were cut" in line or "is lost" in line for line in lines()), (lost_from, lines())
    if error is None:
        with Producer(scene.broker.bootstrap_servers, TOPIC, damage.QUICK_WRITES) as producer:
            producer.send(b"more", partition=number)
        assert damage.read(scene.broker, TOPIC, number, "read_committed", damage.PATIENT)[0][-1][1] == b"more"


def test_the_partition_that_nothing_happened_to_is_as_it_was(scene: Scene) -> None:
    seen, error = damage.read(scene.broker, TOPIC, WHOLE, "read_committed", damage.PATIENT)
    assert (seen, error) == (damage.values(WHOLE, range(ROUNDS), committed=True), None)
    assert seen[-1][0] < END


# The files with entries for all logs: one start for each case.

#: Where the log begins, as a client has asked.
BEGINS = OFFSETS
#: Each start takes some tenths of a second: the others run in `make test-long`.
_SHORT = ("missing", "truncated", "one bit flipped")


@pytest.fixture(scope="module", params=mostly_long(STOPS, "killed"))
def stopped(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with one log, whose first records were deleted, after such a stop."""
    data = tmp_path_factory.mktemp(request.param) / "data"
    with LocalBroker(data, **_SETTINGS) as broker:
        with Admin(broker.bootstrap_servers) as admin:
            admin.create_topic(TOPIC, 1, config=damage.TOPIC_CONFIG)
        damage.write(broker, TOPIC, 1, range(FLUSHED_ROUNDS))
        damage.delete_before(broker, TOPIC, BEGINS)
        if request.param == "killed":
            broker.restart()
        damage.write(broker, TOPIC, 1, range(FLUSHED_ROUNDS, ROUNDS))
        if request.param == "killed":
            broker.kill()
    return data


@pytest.mark.parametrize(
    ("place", "harm"),
    [(place, harm) for place, harm in DATA_CASES if LONG or harm.name in _SHORT or not place.there],
    ids=lambda case: case.name,
)
def test_a_harmed_file_that_tells_of_all_logs_changes_no_record_or_is_named(
    stopped: Path, tmp_path: Path, place: damage.Place, harm: damage.Harm
) -> None:
    shutil.copytree(stopped, tmp_path / "data", copy_function=shutil.copy2)
    path = place.find(tmp_path / "data")
    if harm.needs and not path.exists():
        pytest.skip("after this stop there is no such file")
    other = "meta.properties" if path.name != "meta.properties" else "recovery-point-offset-checkpoint"
    harm.do(path, tmp_path / "data" / other)
    broker = LocalBroker(tmp_path / "data", **_SETTINGS)
    try:
        broker.start()
        for isolation in ("read_committed", "read_uncommitted"):
            whole = damage.values(0, range(1, ROUNDS), committed=isolation == "read_committed")
            seen, error = damage.read(broker, TOPIC, 0, isolation)
            if error is None:
                assert seen == whole, broker.logs()
            else:
                said(broker, f"{TOPIC}-0")
    except LocalBrokerError:
        said(broker, path.name)
    finally:
        broker.close()
