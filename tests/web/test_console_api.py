"""The API of a broker's page: what it shows of topics and records, and what it changes."""

import time
from collections.abc import Iterator
from datetime import datetime, timezone
from typing import Any

import pytest

from pylog_spark.client import Admin, Producer
from pylog_spark.testing import LocalBroker
from tests.web.asking import Page


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalBroker]:
    """A broker with a page, without logins."""
    with LocalBroker(tmp_path_factory.mktemp("broker") / "data", http=True) as running:
        yield running


@pytest.fixture(scope="module")
def page(broker: LocalBroker) -> Page:
    """Its page."""
    return Page(broker.http_url)


@pytest.fixture(scope="module")
def admin(broker: LocalBroker) -> Iterator[Admin]:
    """A client of it."""
    with Admin(broker.bootstrap_servers) as admin:
        yield admin


@pytest.fixture
def topic(admin: Admin, new_topic: str) -> str:
    """A topic with two partitions."""
    admin.create_topic(new_topic, 2, 1)
    return new_topic


def fill(broker: LocalBroker, topic: str, count: int, stamp_ms: int | None = None) -> None:
    """Write ``value-0``, ``value-1``... with keys ``key-0``..., to both partitions in turn."""
    with Producer(broker.bootstrap_servers, topic) as producer:
        for number in range(count):
            stamp = None if stamp_ms is None else stamp_ms + number * 1000
            producer.send(b"value-%d" % number, b"key-%d" % number, partition=number % 2, timestamp_ms=stamp)


def values(said: Any) -> list[str]:
    """The values of the records in an answer."""
    return [record["value"]["text"] for record in said["records"]]


def test_the_cluster_names_its_brokers_and_what_each_leads(broker: LocalBroker, page: Page, topic: str) -> None:
    said = page.get("cluster").said
    assert (said["user"], said["controller"], [each["id"] for each in said["brokers"]]) == (None, 1, [1])
    assert said["brokers"][0]["port"] == broker.port
    assert said["brokers"][0]["leads"] == said["brokers"][0]["replicas"] == said["partitions"] >= 2
    assert (said["topics"] >= 1, said["under_replicated"], said["offline"]) == (True, 0, 0)
    assert page.get("user").said == {"user": None}


def test_topics_are_found_by_a_part_of_their_names_and_internal_ones_when_asked_for(page: Page, admin: Admin) -> None:
    admin.create_topic("Orders.eu", 3, 1)
    admin.create_topic("orders-us", 1, 1)
    admin.alter_group_offsets("makes-the-internal-topic", {("orders-us", 0): 0})
    assert page.get("topics", search="orders").said == {
        "topics": [
            {
                "name": name,
                "partitions": partitions,
                "replication": 1,
                "internal": False,
                "under_replicated": 0,
                "offline": 0,
            }
            for name, partitions in (("orders-us", 1), ("Orders.eu", 3))
        ],
        "total": 2,
        "all": page.get("topics").said["total"],
        "cut": None,
    }
    assert page.get("topics", search="__consumer").said["total"] == 0
    assert page.get("topics", search="__consumer", internal=1).said["topics"][0]["internal"] is True


def test_topics_are_given_by_pages_in_the_order_that_is_asked_for(page: Page, admin: Admin) -> None:
    for name, partitions in (("Paged-10", 1), ("paged-9", 3), ("paged-010", 2), ("paged-x", 2)):
        admin.create_topic(name, partitions, 1)

    def names(**asked: object) -> list[str]:
        return [each["name"] for each in page.get("topics", search="paged", **asked).said["topics"]]

    assert names() == ["paged-9", "Paged-10", "paged-010", "paged-x"], "numbers in names count as numbers"
    assert names(descending=1) == names()[::-1]
    assert names(sort="partitions", descending=1) == ["paged-9", "paged-010", "paged-x", "Paged-10"]
    assert names(skip=1, limit=2) == ["Paged-10", "paged-010"]
    assert page.get("topics", search="paged", limit=1).said["total"] == 4
    assert names(sort="state") == names()
    refused = page.get("topics", sort="size")
    assert refused.error == (400, "INVALID_REQUEST")
    assert "sort is name, partitions" in refused.said["message"]


def test_a_topic_has_offsets_sizes_and_settings(broker: LocalBroker, page: Page, topic: str) -> None:
    fill(broker, topic, 10)
    said = page.get("topics", topic).said
    assert [(each["start"], each["end"], each["stable"]) for each in said["partitions"]] == [(0, 5, 5)] * 2
    assert all(each["leader"] == 1 and each["replicas"] == [1] and each["bytes"] > 0 for each in said["partitions"])
    settings = {each["name"]: each for each in said["configs"]}
    assert settings["cleanup.policy"]["value"] == "delete"
    assert settings["cleanup.policy"]["documentation"]
    assert said["configs_refused"] is None


def test_a_topic_is_created_altered_grown_and_deleted(page: Page, new_topic: str) -> None:
    config = {"retention.ms": "60000"}
    made = page.change("topics", name=new_topic, partitions=1, replication_factor=1, config=config)
    assert made.said == {"name": new_topic}
    assert page.change("topics", name=new_topic).error == (409, "TOPIC_ALREADY_EXISTS")
    assert (
        page.change("topics", new_topic, "configs", changes={"cleanup.policy": "compact", "retention.ms": None}).said
        == {}
    )
    assert page.change("topics", new_topic, "partitions", count=3).said == {}
    said = page.get("topics", new_topic).said
    sources = {each["name"]: (each["value"], each["source"]) for each in said["configs"]}
    assert len(said["partitions"]) == 3
    assert sources["cleanup.policy"] == ("compact", "DYNAMIC_TOPIC_CONFIG")
    assert sources["retention.ms"][1] == "DEFAULT_CONFIG"
    assert page.change("topics", new_topic, method="DELETE", name="another").status == 400
    assert page.get("topics", new_topic).status == 200
    assert page.change("topics", new_topic, method="DELETE", name=new_topic).said == {}
    assert page.get("topics", new_topic).error == (404, "UNKNOWN_TOPIC_OR_PARTITION")
    assert page.change("topics", new_topic, method="DELETE", name=new_topic).status == 404


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"name": 5},
        {"name": "t", "partitions": "3"},
        {"name": "t", "partitions": 2**40},
        {"name": "t", "config": {"retention.ms": 5}},
        {"name": "t", "config": {"retention.ms": None}},
        {"name": "t", "config": {"no.such.setting": "5"}},
        {"name": "two words"},
        {"name": "t", "partitions": True},
    ],
)
def test_a_topic_that_cannot_be_created_is_refused_with_a_sentence(page: Page, body: dict[str, object]) -> None:
    assert page.change("topics", **body).error[0] == 400


def test_records_are_read_by_offset_in_each_partition(broker: LocalBroker, page: Page, topic: str) -> None:
    fill(broker, topic, 10)
    said = page.get("topics", topic, "records", from_="offset:3", partition=1).said
    assert values(said) == ["value-7", "value-9"]
    assert [(each["partition"], each["offset"]) for each in said["records"]] == [(1, 3), (1, 4)]
    assert (said["end"], said["cut"], said["searched"]) == (True, None, 2)


def test_records_of_all_partitions_come_by_time_and_the_token_goes_on(
    broker: LocalBroker, page: Page, topic: str
) -> None:
    fill(broker, topic, 10, stamp_ms=1_700_000_000_000)
    found, said = list[str](), page.get("topics", topic, "records", from_="earliest", limit=3).said
    while not said["end"]:
        found += values(said)
        said = page.get("topics", topic, "records", after=said["next"], limit=3).said
    assert found + values(said) == [f"value-{number}" for number in range(10)]
    assert values(page.get("topics", topic, "records", after=said["next"]).said) == []
    fill(broker, topic, 1)
    assert values(page.get("topics", topic, "records", after=said["next"]).said) == ["value-0"]


def test_records_are_read_backwards_page_by_page_in_the_order_of_their_times(
    broker: LocalBroker, page: Page, topic: str
) -> None:
    fill(broker, topic, 40, 1_700_000_000_000)
    said = page.get("topics", topic, "records", limit=7).said
    found, pages = values(said), 1
    while not said["begin"]:
        said = page.get("topics", topic, "records", before=said["previous"], limit=7).said
        found, pages = values(said) + found, pages + 1
    assert (found, pages) == ([f"value-{number}" for number in range(40)], 6)
    assert values(page.get("topics", topic, "records", before=said["previous"]).said) == []


def test_what_is_before_an_offset_is_read_too_but_not_in_a_search(broker: LocalBroker, page: Page, topic: str) -> None:
    fill(broker, topic, 20)
    said = page.get("topics", topic, "records", from_="offset:6", partition=1, limit=2).said
    assert ([each["offset"] for each in said["records"]], said["begin"]) == ([6, 7], False)
    said = page.get("topics", topic, "records", partition=1, before=said["previous"], limit=4).said
    assert ([each["offset"] for each in said["records"]], said["begin"]) == ([2, 3, 4, 5], False)
    assert page.get("topics", topic, "records", from_="earliest").said["begin"] is True
    found = page.get("topics", topic, "records", key="key-3").said
    assert (found["previous"], found["begin"]) == (None, False)
    for more in ({"key": "key-3"}, {"contains": "value"}, {"after": said["next"]}):
        refused = page.get("topics", topic, "records", before="0-3", **more)
        assert refused.error == (400, "INVALID_REQUEST")
        assert "without after, key and contains" in refused.said["message"]
    assert "gave as previous" in page.get("topics", topic, "records", before="x").said["message"]


def test_the_latest_records_are_the_newest_of_all_partitions(broker: LocalBroker, page: Page, topic: str) -> None:
    fill(broker, topic, 10, stamp_ms=1_700_000_000_000)
    said = page.get("topics", topic, "records", limit=3).said
    assert values(said) == ["value-7", "value-8", "value-9"]
    assert said["end"] is True


def test_records_are_read_from_a_time_on(broker: LocalBroker, page: Page, topic: str) -> None:
    fill(broker, topic, 10, stamp_ms=1_700_000_000_000)
    at = datetime.fromtimestamp(1_700_000_006, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    for place in (f"time:{at}", "time:1700000006000", f"time:{at.replace('Z', '+00:00')}"):
        assert values(page.get("topics", topic, "records", from_=place).said) == [
            f"value-{each}" for each in range(6, 10)
        ]
    assert values(page.get("topics", topic, "records", from_=f"time:{int(time.time() * 1000) + 60_000}").said) == []


def test_a_search_finds_a_key_and_a_text_in_keys_and_values(broker: LocalBroker, page: Page, topic: str) -> None:
    fill(broker, topic, 50)
    by_key = page.get("topics", topic, "records", from_="earliest", key="key-31").said
    assert (values(by_key), by_key["searched"], by_key["end"]) == (["value-31"], 50, True)
    assert sorted(values(page.get("topics", topic, "records", contains="ey-4").said)) == sorted(
        f"value-{each}" for each in (4, *range(40, 50))
    )
    assert values(page.get("topics", topic, "records", contains="lue-17").said) == ["value-17"]
    assert values(page.get("topics", topic, "records", contains="nowhere").said) == []


def test_a_search_goes_on_behind_the_last_record_of_an_answer(broker: LocalBroker, page: Page, topic: str) -> None:
    fill(broker, topic, 30)
    found, said = list[str](), page.get("topics", topic, "records", contains="value", from_="earliest", limit=7).said
    while not said["end"]:
        found += values(said)
        said = page.get("topics", topic, "records", contains="value", after=said["next"], limit=7).said
    assert sorted(found + values(said)) == sorted(f"value-{each}" for each in range(30))


def test_an_offset_that_is_deleted_is_said_to_be(broker: LocalBroker, page: Page, admin: Admin, topic: str) -> None:
    fill(broker, topic, 10)
    admin.delete_records([(topic, 0, 2)])
    said = page.get("topics", topic, "records", from_="offset:0", partition=0).said
    assert values(said) == ["value-4", "value-6", "value-8"]
    assert said["cut"] == "Partition 0 begins at offset 2: what was before it is deleted."


def test_records_of_an_open_transaction_are_left_out_when_only_committed_ones_are_asked_for(
    broker: LocalBroker, page: Page, topic: str
) -> None:
    from confluent_kafka import Producer as ConfluentProducer

    producer = ConfluentProducer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": topic})
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce(topic, b"open", partition=0)
    producer.flush()
    assert values(page.get("topics", topic, "records").said) == ["open"]
    assert values(page.get("topics", topic, "records", isolation="read_committed").said) == []
    partitions = page.get("topics", topic).said["partitions"]
    assert (partitions[0]["stable"], partitions[0]["end"]) == (0, 1)
    (shown,) = (each for each in page.get("transactions").said["transactions"] if each["id"] == topic)
    assert (shown["state"], shown["stalled"], shown["partitions"]) == ("Ongoing", False, [[topic, 0]])
    assert 0 <= shown["age_s"] < 600
    producer.commit_transaction()
    # The last record has a marker behind it.
    assert values(page.get("topics", topic, "records", isolation="read_committed", limit=1).said) == ["open"]


def test_a_record_is_written_as_text_or_as_bytes(page: Page, topic: str) -> None:
    headers = [["trace", "7"], ["empty", None]]
    written = page.change("topics", topic, "records", key="k", value="v", headers=headers, encoding="text")
    read = page.get("topics", topic, "records", from_="earliest").said["records"][0]
    assert written.said == {"partition": read["partition"], "offset": 0}
    assert (read["key"]["text"], read["value"]["text"]) == ("k", "v")
    assert [(name, view and view["text"]) for name, view in read["headers"]] == [("trace", "7"), ("empty", None)]
    bytes_ = {"key": None, "value": "00ff", "encoding": "hex", "partition": 1}
    offset = page.change("topics", topic, "records", **bytes_).said["offset"]
    read = page.get("topics", topic, "records", from_=f"offset:{offset}", partition=1).said["records"][0]
    assert (read["key"], read["value"]["hex"], read["value"]["text"]) == (None, "00ff", None)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"key": None}, 400),
        ({"key": None, "value": 5}, 400),
        ({"key": None, "value": "xx", "encoding": "hex"}, 400),
        ({"key": None, "value": "x", "encoding": "base64"}, 400),
        ({"key": None, "value": "x", "headers": [["a"]]}, 400),
        ({"key": None, "value": "x", "headers": [["a", "b"]] * 101}, 400),
        ({"key": None, "value": "x", "partition": 7}, 400),
        ({"key": None, "value": "x", "partition": "0"}, 400),
    ],
)
def test_a_record_that_cannot_be_written_is_refused(
    page: Page, topic: str, body: dict[str, object], status: int
) -> None:
    assert page.change("topics", topic, "records", **body).error[0] == status
    assert page.get("topics", topic, "records").said["records"] == []


def test_a_record_for_a_topic_that_is_not_there_does_not_create_it(page: Page, new_topic: str) -> None:
    refused = page.change("topics", new_topic, "records", key=None, value="x")
    assert refused.error == (404, "UNKNOWN_TOPIC_OR_PARTITION")
    assert page.get("topics", search=new_topic).said["total"] == 0


@pytest.mark.parametrize(
    "parameters",
    [
        {"from_": "never"},
        {"from_": "offset:x"},
        {"from_": "time:2026-01-01T00:00:00"},
        {"from_": "time:yesterday"},
        {"limit": "0"},
        {"limit": "501"},
        {"partition": "x"},
        {"after": "0"},
        {"after": "0-1.x"},
        {"isolation": "serializable"},
    ],
)
def test_a_parameter_that_means_nothing_is_refused(page: Page, topic: str, parameters: dict[str, object]) -> None:
    assert page.get("topics", topic, "records", **parameters).error == (400, "INVALID_REQUEST")


def test_what_looks_like_markup_comes_back_as_json_alone(
    broker: LocalBroker, page: Page, admin: Admin, topic: str
) -> None:
    bad = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>"
    page.change("topics", topic, "records", key=bad, value=bad, headers=[[bad, bad]])
    admin.alter_group_offsets(bad, {(topic, 0): 0})
    answers = [
        page.get("topics", topic, "records"),
        page.get("groups"),
        page.get("groups", bad),
        page.get("topics", bad),
        page.get("topics", search=bad),
        page.get(bad),
    ]
    for answer in answers:
        assert answer.headers["content-type"] == "application/json; charset=utf-8"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert isinstance(answer.said, dict)
    (record,) = answers[0].said["records"]
    assert (record["key"]["text"], record["value"]["text"], record["headers"][0][0]) == (bad, bad, bad)
    assert bad in [each["name"] for each in answers[1].said["groups"]]
    assert answers[2].said["name"] == bad
