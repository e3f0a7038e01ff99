"""A user interface of Kafka in the browser, on pylog: that of Quarkus's dev mode, over a login, as people use it.

It shows topics, records, groups with their lag, nodes and ACLs; makes a topic and a record, and deletes a topic. Long: a minute or more,
most of it Quarkus's start; further minutes when Maven has to fetch it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from playwright.sync_api import Page

from pylog_spark.client import Admin
from pylog_spark.testing import LocalBroker
from tests.harness.security import AUTHORIZER
from tests.harness.waiting import until
from tests.peers.quarkus import quarkus
from tests.web.browser import DESKTOP, browser

pytestmark = [pytest.mark.long, pytest.mark.peers, pytest.mark.timeout(900)]

USER, PASSWORD = "alice", "swordfish"  # of a broker of this test alone
TIMEOUT_S = 30
#: The first view takes long: its Java has read nothing of it yet.
WAIT_S = 180.0


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalBroker]:
    """With a listener for tests and one for who logs in; with records, a group that is behind, and an ACL."""
    with LocalBroker(
        tmp_path_factory.mktemp("data"),
        listeners={"OPEN": "PLAINTEXT", "LOGIN": "SASL_PLAINTEXT"},
        inter_broker_listener_name="OPEN",
        super_users=f"User:ANONYMOUS;User:{USER}",
        authorizer_class_name=AUTHORIZER,
    ) as running:
        kafka = AdminClient({"bootstrap.servers": running.bootstrap_servers})
        user = UserScramCredentialUpsertion(
            USER, ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096), PASSWORD.encode()
        )
        reads = AclBinding(
            ResourceType.TOPIC,
            "orders",
            ResourcePatternType.LITERAL,
            "User:bob",
            "*",
            AclOperation.READ,
            AclPermissionType.ALLOW,
        )
        for made in (kafka.alter_user_scram_credentials([user]), kafka.create_acls([reads])):
            for future in made.values():
                future.result(TIMEOUT_S)
        with Admin(running.bootstrap_servers) as admin:
            admin.create_topic("orders", 2)
        producer = Producer({"bootstrap.servers": running.bootstrap_servers})
        for number in range(10):
            producer.produce("orders", f"value {number}", f"key {number}", partition=number % 2)
        assert producer.flush(TIMEOUT_S) == 0
        yield running


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What Quarkus says, when it runs."""
    return tmp_path_factory.mktemp("quarkus") / "log"


@pytest.fixture(scope="module")
def pages(broker: LocalBroker, log: Path) -> Iterator[str]:
    """The address of the user interface."""
    module = "org.apache.kafka.common.security.scram.ScramLoginModule"
    settings = {
        "kafka.bootstrap.servers": broker.address_of("LOGIN"),
        "kafka.security.protocol": "SASL_PLAINTEXT",
        "kafka.sasl.mechanism": "SCRAM-SHA-512",
        "kafka.sasl.jaas.config": f'{module} required username="{USER}" password="{PASSWORD}";',
    }
    with quarkus(log.parent, settings) as address:
        yield f"{address}/q/dev-ui/quarkus-kafka-client"


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    """A tab."""
    with browser() as running:
        tab = running.new_page(viewport=DESKTOP)
        tab.set_default_timeout(WAIT_S * 1000)
        yield tab


def shown(page: Page) -> list[str]:
    """What the tables have, cell by cell."""
    texts = page.locator(
        "qwc-kafka-topics, qwc-kafka-messages, qwc-kafka-consumer-groups, qwc-kafka-nodes, qwc-kafka-access-control-list"
    )
    return [text for text in texts.locator("vaadin-grid-cell-content").all_inner_texts() if text]


def shows(page: Page, *cells: str) -> None:
    """Wait for these cells beside each other."""

    def there() -> bool:
        found = shown(page)
        return any(tuple(found[at : at + len(cells)]) == cells for at in range(len(found)))

    until(there, lambda: str(shown(page)), WAIT_S)


def faults(text: str) -> list[str]:
    """The lines of a log that are warnings or worse."""
    return [line for line in text.splitlines() if " ERROR " in line or " WARN " in line]


def test_it_shows_topics_and_their_records(pages: str, page: Page) -> None:
    page.goto(f"{pages}/topics")
    shows(page, "2", "10")
    page.get_by_text("orders", exact=True).click()
    shows(page, "key 0", "value 0")
    shows(page, "key 9", "value 9")


def test_it_makes_a_topic_and_a_record_and_deletes_a_topic(pages: str, page: Page, broker: LocalBroker) -> None:
    page.goto(f"{pages}/topics")
    page.get_by_title("Create topic").click()
    page.get_by_label("Topic Name").fill("fresh")
    page.get_by_label("Partitions").fill("3")
    page.get_by_label("Configurations").fill("retention.ms=1000000")
    page.get_by_role("button", name="Create").click()
    shows(page, "3", "0")
    with Admin(broker.bootstrap_servers) as admin:
        (described,) = admin.configs("topic", ["fresh"])
        assert {entry.name: entry.value for entry in described.configs}["retention.ms"] == "1000000"
        page.get_by_text("fresh", exact=True).click()
        page.get_by_title("Create message").click()
        page.get_by_label("Key").first.fill("my key")
        page.get_by_label("Value").first.fill("my value")
        page.get_by_role("button", name="Create", exact=True).click()
        shows(page, "my key", "my value")
        page.goto(f"{pages}/topics")
        page.locator("[data-topic-name=fresh]").click()
        page.get_by_role("button", name="Delete").click()
        until(lambda: "fresh" not in {topic.name for topic in admin.topics()}, lambda: str(shown(page)), WAIT_S)


def test_it_shows_a_group_with_its_member_and_its_lag(pages: str, page: Page, broker: LocalBroker) -> None:
    consumer = Consumer(
        {"bootstrap.servers": broker.bootstrap_servers, "group.id": "billing", "enable.auto.commit": False}
    )
    consumer.subscribe(["orders"])
    until(lambda: (consumer.poll(0.1), consumer.assignment())[1], "the member has its partitions")
    consumer.commit(offsets=[TopicPartition("orders", 0, 2), TopicPartition("orders", 1, 1)], asynchronous=False)
    page.goto(f"{pages}/consumer-groups")
    shows(page, "STABLE", "billing")
    shows(page, "1", "7")
    consumer.close()


def test_it_shows_brokers_and_rights(pages: str, page: Page, broker: LocalBroker) -> None:
    page.goto(f"{pages}/nodes")
    host, _, port = broker.address_of("LOGIN").partition(":")
    shows(page, "1", host, port)
    page.goto(f"{pages}/access-control-list")
    shows(page, "READ", "User:bob", "ALLOW")


def test_neither_it_nor_the_broker_has_seen_a_fault(pages: str, broker: LocalBroker, log: Path) -> None:
    # Its page also looks for Quarkus's registry of extensions, and says so when that is not to be had.
    assert [line for line in faults(log.read_text()) if "kafka" in line.lower()] == []
    assert faults(broker.logs()) == []
