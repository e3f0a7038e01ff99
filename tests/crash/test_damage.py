"""Files of a broker that are lost while it is stopped: said by name at the start, and everything else is served."""

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from pylog_spark.client import Admin, Consumer, Producer
from pylog_spark.client.errors import LogError
from pylog_spark.testing import LocalBroker
from tests.harness.waiting import until

#: A client that gives up soon what is not there.
QUICK = {"default.api.timeout.ms": "2000"}
VALUES = [b"%d" % number for number in range(100)]


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[LocalBroker]:
    """A broker with the topics `lost` and `kept`, of one partition each, that was stopped cleanly."""
    with LocalBroker(tmp_path / "data") as broker:
        with Admin(broker.bootstrap_servers) as admin:
            for topic in ("lost", "kept"):
                admin.create_topic(topic, 1)
                write(broker, topic)
        assert broker.terminate() == 0
        yield broker


def write(broker: LocalBroker, topic: str) -> None:
    with Producer(broker.bootstrap_servers, topic) as producer:
        for value in VALUES:
            producer.send(value)


def read(broker: LocalBroker, topic: str, config: Mapping[str, str] | None = None) -> list[bytes | None]:
    with Consumer(broker.bootstrap_servers, topic, start="earliest", follow=False, config=config) as consumer:
        return [record.value for record in consumer]


def test_a_lost_folder_takes_its_partition_offline_at_every_start_until_it_is_put_back(
    broker: LocalBroker, tmp_path: Path
) -> None:
    folder = Path(broker.data_dir) / "lost-0"
    folder.rename(tmp_path / "elsewhere")
    for stop in (broker.kill, broker.terminate):
        broker.start()
        with pytest.raises(LogError, match="lost-0"):
            read(broker, "lost", QUICK)
        assert read(broker, "kept") == VALUES
        until(
            lambda: f"lost-0: since the broker stopped, {folder} is gone; the log ended at offset 100" in broker.logs(),
            "the log says so",
        )
        assert not folder.exists()
        stop()
    (tmp_path / "elsewhere").rename(folder)
    broker.start()
    assert read(broker, "lost") == VALUES


def test_a_loss_that_is_accepted_lets_the_partition_begin_anew(broker: LocalBroker) -> None:
    shutil.rmtree(Path(broker.data_dir) / "lost-0")
    (Path(broker.data_dir) / "clean-stop-inventory").unlink()
    broker.start()
    assert read(broker, "lost") == []
    write(broker, "lost")
    assert read(broker, "lost") == VALUES
