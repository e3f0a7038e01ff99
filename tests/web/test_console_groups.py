"""Groups on a broker's page: how far behind they are, and were; and a cluster whose partitions are on several brokers."""

import time
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer

from pylog_spark.broker.process import open_broker
from pylog_spark.client import Admin, Producer
from pylog_spark.testing import LocalCluster
from pylog_spark.web.beside import HttpOptions
from pylog_spark.web.console import history
from pylog_spark.web.pages import open_pages
from tests.harness.waiting import until
from tests.web.asking import Page


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Servers and page of a broker in this process, whose history has a point in a twentieth of a second."""
    with pytest.MonkeyPatch.context() as patched, ExitStack() as stack:
        patched.setattr(history, "EVERY_S", 0.05)
        folder = str(tmp_path_factory.mktemp("broker"))
        settings = [("listeners", "PLAINTEXT://127.0.0.1:0"), ("group.initial.rebalance.delay.ms", "0")]
        broker = stack.enter_context(closing(open_broker(folder, settings, False)))
        options = HttpOptions("127.0.0.1:0", {}, without_login=False, allow_plaintext=False)
        yield broker.bootstrap_servers, Page(stack.enter_context(closing(open_pages(broker, options))).url)


def send(servers: str, topic: str, count: int, age_s: float = 0.0) -> None:
    """Write records of this age to partition 0."""
    with Producer(servers, topic) as producer:
        for _ in range(count):
            producer.send(b"value", partition=0, timestamp_ms=int((time.time() - age_s) * 1000))


def test_a_group_is_behind_in_records_and_in_the_age_of_the_first_one_that_it_has_not_read(
    started: tuple[str, Page], new_topic: str
) -> None:
    servers, page = started
    with Admin(servers) as admin:
        admin.create_topic(new_topic, 2, 1)
        send(servers, new_topic, 2, age_s=500)
        send(servers, new_topic, 3, age_s=100)
        admin.alter_group_offsets(new_topic, {(new_topic, 0): 2, (new_topic, 1): 0})
    said = page.get("groups", new_topic).said
    assert (said["type"], said["state"], said["query"], said["members"]) == ("classic", "Empty", True, [])
    first, second = said["offsets"]
    assert {name: first[name] for name in ("topic", "partition", "offset", "end", "lag")} == {
        "topic": new_topic,
        "partition": 0,
        "offset": 2,
        "end": 5,
        "lag": 3,
    }
    # Less than the age of those that it has read.
    assert 100 <= first["seconds"] < 500
    assert (second["lag"], second["seconds"]) == (0, 0.0)
    (listed,) = (each for each in page.get("groups").said["groups"] if each["name"] == new_topic)
    assert (listed["lag"], listed["members"], listed["query"]) == (3, 0, True)
    assert page.get("groups", "nobody").error == (404, "GROUP_ID_NOT_FOUND")


def test_members_of_a_group_are_shown_with_what_they_read(started: tuple[str, Page], new_topic: str) -> None:
    servers, page = started
    with Admin(servers) as admin:
        admin.create_topic(new_topic, 2, 1)
    settings = {"bootstrap.servers": servers, "group.id": new_topic, "client.id": "the client"}
    with closing(Consumer(settings)) as consumer:
        consumer.subscribe([new_topic])
        until(lambda: consumer.poll(0.05) or consumer.assignment(), "the consumer has its partitions")
        said = page.get("groups", new_topic).said
        (listed,) = (each for each in page.get("groups").said["groups"] if each["name"] == new_topic)
    (member,) = said["members"]
    assert (said["state"], said["query"], member["client"]) == ("Stable", False, "the client")
    assert sorted(member["partitions"]) == [[new_topic, 0], [new_topic, 1]]
    assert (listed["members"], listed["state"], listed["protocol"]) == (1, "Stable", "consumer")


def test_the_history_of_a_group_shows_it_falling_behind_and_catching_up(
    started: tuple[str, Page], new_topic: str
) -> None:
    servers, page = started

    def last() -> tuple[int, float | None]:
        points = page.get("groups", new_topic, "history").said["points"]
        return (points[-1][1], points[-1][2]) if points else (-1, None)

    def since() -> float:
        """When it fell behind, in seconds since 1970: that stays, however late it is looked at."""
        at_ms, _, seconds = page.get("groups", new_topic, "history").said["points"][-1]
        return float(at_ms / 1000 - (seconds or 0.0))

    with Admin(servers) as admin:
        admin.create_topic(new_topic, 1, 1)
        admin.alter_group_offsets(new_topic, {(new_topic, 0): 0})
        until(lambda: last() == (0, 0.0), "it has read everything")
        send(servers, new_topic, 3)
        seconds = until(lambda: last()[0] == 3 and last()[1], "it is behind for some time")
        until(lambda: (last()[1] or 0.0) > seconds, "it is behind for longer")
        send(servers, new_topic, 2)
        until(lambda: last()[0] == 5, "it is behind more records")
        old = since()
        admin.alter_group_offsets(new_topic, {(new_topic, 0): 3})
        # The later records came two looks behind the others, at least.
        until(lambda: last()[0] == 2 and since() > old + history.EVERY_S / 2, "it is behind since the later records")
        admin.alter_group_offsets(new_topic, {(new_topic, 0): 5})
        until(lambda: last() == (0, 0.0), "it has caught up")
        points = page.get("groups", new_topic, "history").said["points"]
        assert [point[0] for point in points] == sorted(point[0] for point in points)
        admin.delete_groups([new_topic])
    until(lambda: page.get("groups", new_topic, "history").status == 404, "it is gone")


def test_rates_show_what_is_written(started: tuple[str, Page], new_topic: str) -> None:
    servers, page = started
    with Admin(servers) as admin:
        admin.create_topic(new_topic, 1, 1)
    before = len(page.get("rates").said["points"])
    send(servers, new_topic, 100)
    found = until(
        lambda: [point for point in page.get("rates").said["points"][before:] if point[1] > 0],
        "the records are among the rates",
    )
    assert len(found[0]) == 5
    assert all(each > 0 for each in found[0][1:3])


def test_a_group_that_was_behind_before_the_first_look_has_no_seconds(tmp_path: Path) -> None:
    with closing(open_broker(str(tmp_path), [("listeners", "PLAINTEXT://127.0.0.1:0")], False)) as broker:
        with Admin(broker.bootstrap_servers) as admin:
            admin.create_topic("t", 1, 1)
            send(broker.bootstrap_servers, "t", 3)
            admin.alter_group_offsets("g", {("t", 0): 0})
        recorded = history.History(broker)
        recorded.start()
        points = until(lambda: recorded.of_group("g")["points"], "it was looked at")
        recorded.close()
    assert points[0][1:] == [3, None]


@pytest.mark.long  # of one broker: test_console_api.py
def test_the_page_of_one_broker_shows_the_partitions_of_all(tmp_path: Path) -> None:
    with (
        LocalCluster(tmp_path, brokers=2, http=True, offsets_topic_replication_factor=1) as cluster,
        Admin(cluster.bootstrap_servers) as admin,
    ):
        admin.create_topic("divided", partitions=4, replication_factor=1)
        with Producer(cluster.bootstrap_servers, "divided") as producer:
            for number in range(8):
                producer.send(b"value", partition=number % 4)
        admin.alter_group_offsets("group", {("divided", number): 1 for number in range(4)})
        for broker in cluster.brokers:
            page = Page(broker.http_url)
            partitions = page.get("topics", "divided").said["partitions"]
            assert {each["leader"] for each in partitions} == {1, 2}
            assert [each["end"] for each in partitions] == [2] * 4
            here = [each["bytes"] is not None for each in partitions]
            assert here == [each["leader"] == broker.broker_id for each in partitions]
            assert len(page.get("topics", "divided", "records", from_="earliest").said["records"]) == 8
            assert [each["lag"] for each in page.get("groups").said["groups"]] == [4]
            assert [each["lag"] for each in page.get("groups", "group").said["offsets"]] == [1] * 4
            brokers = page.get("cluster").said["brokers"]
            assert {each["id"] for each in brokers if each["leads"] >= 2} == {1, 2}
        coordinator = admin.group("group").coordinator
        page = next(Page(each.http_url) for each in cluster.brokers if each.broker_id == coordinator)
        points = until(
            lambda: page.get("groups", "group", "history").said["points"], "its coordinator has looked at it"
        )
        assert points[0][1] == 4
        on_another = next(each["partition"] for each in partitions if each["leader"] == 1)
        written = page.change("topics", "divided", "records", key=None, value="x", partition=on_another)
        assert written.said == {"partition": on_another, "offset": 2}
