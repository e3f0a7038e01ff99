"""What a broker's page does with more than fits into an answer: each bound leaves a way to go on, and says what it left out."""

import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from pylog_spark.broker.process import open_broker
from pylog_spark.client import Admin, Producer
from pylog_spark.web.beside import HttpOptions
from pylog_spark.web.console import groups, records, topics
from pylog_spark.web.console.reading import HEADERS_MAX
from pylog_spark.web.console.service import SCANS_MAX
from pylog_spark.web.console.views import HEADER_BYTES_MAX, VIEW_BYTES_MAX
from pylog_spark.web.pages import open_pages
from tests.harness.waiting import until
from tests.web.asking import Page, path


class Here:
    """A broker in this process, whose bounds a test may make small."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        broker = stack.enter_context(
            closing(open_broker(str(folder), [("listeners", "PLAINTEXT://127.0.0.1:0")], False))
        )
        options = HttpOptions("127.0.0.1:0", {}, without_login=False, allow_plaintext=False)
        self.broker = broker
        self.page = Page(stack.enter_context(closing(open_pages(broker, options))).url)
        self.servers = broker.bootstrap_servers
        self.admin = stack.enter_context(Admin(self.servers))

    def requests(self, api: str) -> int:
        """How many requests of this kind the broker has answered."""
        counts = {each["api"]: each["buckets"] for each in json.loads(self.broker.request_times())}
        return sum(count for _, count in counts.get(api, []))

    def write(self, topic: str, values: list[bytes], partition: int = 0) -> None:
        """Write records to one partition."""
        with Producer(self.servers, topic) as producer:
            for value in values:
                producer.send(value, partition=partition)


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Here]:
    """One for all tests of this file."""
    with ExitStack() as stack:
        yield Here(tmp_path_factory.mktemp("broker"), stack)


@pytest.fixture
def topic(here: Here, new_topic: str) -> str:
    """A topic with two partitions."""
    here.admin.create_topic(new_topic, 2, 1)
    return new_topic


def test_a_search_that_looked_at_enough_gives_a_token_and_finds_what_is_behind_it(
    here: Here, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "SEARCH_RECORDS_MAX", 100)
    for partition in range(2):
        here.write(topic, [b"%d-%d" % (partition, number) for number in range(250)], partition)
    answers = [here.page.get("topics", topic, "records", contains="1-240", from_="earliest").said]
    while not answers[-1]["records"] and not answers[-1]["end"]:
        answers.append(here.page.get("topics", topic, "records", contains="1-240", after=answers[-1]["next"]).said)
    assert [each["searched"] for each in answers] == [100, 100, 100, 100, 100]
    assert [(each["partition"], each["offset"]) for each in answers[-1]["records"]] == [(1, 240)]
    assert [len(each["records"]) for each in answers[:-1]] == [0, 0, 0, 0]


def test_a_search_whose_time_is_over_goes_on_where_it_was(
    here: Here, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "SEARCH_S", 0.0)
    here.write(topic, [b"x" * 1000 + b"%d" % number for number in range(5_000)])
    found = here.page.get("topics", topic, "records", contains="x4999", from_="earliest").said
    rounds = 1
    while not found["records"] and not found["end"]:
        found = here.page.get("topics", topic, "records", contains="x4999", after=found["next"]).said
        rounds += 1
    assert (found["records"][0]["offset"], rounds > 1) == (4999, True)


def test_an_answer_has_as_many_large_records_as_it_carries_and_goes_on_behind_them(
    here: Here, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "ANSWER_BYTES_MAX", 50_000)
    here.write(topic, [bytes([65 + number]) * 20_000 for number in range(8)])
    said = here.page.get("topics", topic, "records", from_="earliest").said
    assert [each["offset"] for each in said["records"]] == [0, 1, 2]
    assert said["cut"] == "3 records are shown, since they are large; 5 more were found."
    said = here.page.get("topics", topic, "records", after=said["next"]).said
    assert [each["offset"] for each in said["records"]] == [3, 4, 5]
    newest = here.page.get("topics", topic, "records").said
    assert [each["offset"] for each in newest["records"]] == [5, 6, 7]
    older = here.page.get("topics", topic, "records", before=newest["previous"]).said
    assert [each["offset"] for each in older["records"]] == [2, 3, 4]
    found = here.page.get("topics", topic, "records", contains="A", from_="earliest").said
    assert [each["offset"] for each in found["records"]] == [0]


def test_of_a_large_record_the_beginning_is_shown(here: Here, topic: str) -> None:
    headers = [(f"name-{number}", b"h" * 2000) for number in range(HEADERS_MAX + 7)]
    with Producer(here.servers, topic) as producer:
        # The bound is inside a letter of two bytes.
        producer.send(b"a" + "ä".encode() * VIEW_BYTES_MAX, b"[" * 100, partition=0, headers=headers)
    said = here.page.get("topics", topic, "records").said
    (record,) = said["records"]
    value = record["value"]
    assert (value["size"], value["cut"], value["json"]) == (1 + 2 * VIEW_BYTES_MAX, True, None)
    assert value["text"] == "a" + "ä" * (VIEW_BYTES_MAX // 2 - 1)
    assert len(value["hex"]) == 2 * VIEW_BYTES_MAX
    assert (record["key"]["text"], record["key"]["json"]) == ("[" * 100, None)
    assert len(record["headers"]) == HEADERS_MAX
    assert [len(view["text"]) for _, view in record["headers"]] == [HEADER_BYTES_MAX] * HEADERS_MAX
    assert said["cut"] == "Of the record at offset 0 of partition 0 7 headers are left out."


def test_lists_are_cut_with_a_sentence(here: Here, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topics, "TOPICS_MAX", 3)
    monkeypatch.setattr(groups, "GROUPS_MAX", 2)
    for number in range(5):
        here.admin.create_topic(f"many-{number}", 1, 1)
        here.admin.alter_group_offsets(f"many-{number}", {(topic, 0): 0})
    said = here.page.get("topics", search="many-").said
    assert ([each["name"] for each in said["topics"]], said["total"]) == (["many-0", "many-1", "many-2"], 5)
    assert said["cut"] == "3 topics are listed, 2 more have such names: search for more of the name."
    last = here.page.get("topics", search="many-", skip=3).said
    assert ([each["name"] for each in last["topics"]], last["cut"]) == (["many-3", "many-4"], None)
    said = here.page.get("groups").said
    assert (len(said["groups"]), said["cut"]) == (2, "2 groups are listed; 3 more are not.")


def test_of_many_topics_no_more_are_described_than_the_page_has(here: Here, new_topic: str) -> None:
    for number in range(20):
        here.admin.create_topic(f"{new_topic}-{number}", 10, 1)
    here.page.get("user")
    before = here.requests("Metadata")
    answer = here.page.get("topics", search=new_topic, skip=10, limit=5)
    # One for the names of all, one for what is shown of five.
    assert here.requests("Metadata") == before + 2
    assert [each["name"] for each in answer.said["topics"]] == [f"{new_topic}-{number}" for number in range(10, 15)]
    assert (answer.said["total"], len(answer.body) < 1_000) == (20, True)
    by_state = here.page.get("topics", search=new_topic, skip=10, limit=5, sort="state")
    assert by_state.said["topics"] == answer.said["topics"]


def test_of_a_topic_with_many_partitions_one_is_to_be_named(
    here: Here, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "PARTITIONS_MAX", 1)
    refused = here.page.get("topics", topic, "records")
    assert refused.error == (400, "INVALID_REQUEST")
    assert "name one" in refused.said["message"]
    assert here.page.get("topics", topic, "records", partition=1).status == 200
    missing = here.page.get("topics", topic, "records", partition=2)
    assert missing.error == (404, "UNKNOWN_TOPIC_OR_PARTITION")


def test_answers_that_nobody_reads_leave_room_for_others_but_not_for_more_searches(here: Here, topic: str) -> None:
    here.write(topic, [b"v" * VIEW_BYTES_MAX] * 500)
    request = f"GET {path('topics', topic, 'records')}?limit=500 HTTP/1.1\r\nHost: {here.page.place}\r\n\r\n".encode()
    place = urlsplit(f"//{here.page.place}")
    assert place.hostname is not None
    with ExitStack() as stack:
        for _ in range(SCANS_MAX):
            connection = stack.enter_context(socket.socket())
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.connect((place.hostname, place.port))
            connection.sendall(request)
            # Its answer begins, so it has its place: a later search cannot take that.
            assert connection.recv(12, socket.MSG_WAITALL) == b"HTTP/1.1 200"
        refused = until(
            lambda: (answer := here.page.get("topics", topic, "records", limit=1)).status == 503 and answer,
            "all places for searches are taken",
        )
        assert refused.error == (503, "BUSY")
        assert here.page.get("topics", topic).status == 200
    until(lambda: here.page.get("topics", topic, "records", limit=1).status == 200, "there is room again")


def test_records_of_offsets_without_records_are_passed_over(here: Here, topic: str) -> None:
    from confluent_kafka import Producer as ConfluentProducer

    producer = ConfluentProducer({"bootstrap.servers": here.servers, "transactional.id": topic})
    producer.init_transactions()
    for number in range(30):
        producer.begin_transaction()
        producer.produce(topic, b"%d" % number, partition=0)
        producer.commit_transaction() if number % 3 else producer.abort_transaction()
    committed = [f"{number}" for number in range(30) if number % 3]
    said = here.page.get("topics", topic, "records", isolation="read_committed", limit=15).said
    assert [each["value"]["text"] for each in said["records"]] == committed[-15:]
    older = here.page.get("topics", topic, "records", isolation="read_committed", before=said["previous"]).said
    assert ([each["value"]["text"] for each in older["records"]], older["begin"]) == (committed[:-15], True)
    first = here.page.get("topics", topic, "records", from_="earliest", isolation="read_committed", limit=15).said
    then = here.page.get("topics", topic, "records", after=first["next"], isolation="read_committed").said
    assert [each["value"]["text"] for each in first["records"] + then["records"]] == committed
    assert then["end"] is True
