"""A broker with a little of everything that the console shows: topics, records of all kinds, groups, transactions, hostile names."""

import json
import struct
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

import confluent_kafka
import fastavro
from confluent_kafka.admin import AdminClient, NewTopic
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient

from pylog_spark.client import Admin, Producer
from pylog_spark.testing import LocalBroker
from tests.harness.waiting import until

#: Records of the topic ``orders``, one a minute, the last one half an hour ago.
ORDERS = 90
#: What the group of ``invoices`` has read of each partition, and what it has not.
READ = 10
UNREAD = (20, 19, 18)
#: All topics but internal ones: those that the rest of this file makes, and some to search among.
TOPICS = 260 + 9
#: Markup that would show itself, if it were taken for any.
HOSTILE = "<img src=x onerror=\"window.owned='yes'\"><script>window.owned='yes'</script>"
#: How long the transaction may be open that stands still.
OVERDUE_MS = 1_500
_AVRO = {
    "type": "record",
    "name": "Payment",
    "fields": [{"name": "card", "type": "string"}, {"name": "cents", "type": "long"}],
}
_FIRST_MS = (int(time.time()) // 60 - ORDERS - 30) * 60_000


def order_ms(number: int) -> int:
    """When an order was made, in ms since 1970."""
    return _FIRST_MS + number * 60_000


@contextmanager
def stand(folder: Path) -> Iterator[LocalBroker]:
    """The broker, for the tests of a file."""
    settings = {
        "group_initial_rebalance_delay_ms": 0,
        # One that was overdue when the broker was started stays open.
        "transaction_abort_timed_out_transaction_cleanup_interval_ms": 3_600_000,
    }
    with ExitStack() as open_, LocalBroker(folder, http=True, schema_registry=True, **settings) as broker:
        with Admin(broker.bootstrap_servers) as admin:
            _topics(admin)
        _many_topics(broker, TOPICS - 9)
        _orders(broker)
        _payments(broker)
        _invoices(broker, (READ,) * 3)
        _hostile(broker)
        began_ms = time.time() * 1000
        overdue = open_transaction(broker, "stalled-sink", OVERDUE_MS)
        broker.kill()
        # Its time runs out while no broker is there that would end it.
        until(lambda: time.time() * 1000 > began_ms + OVERDUE_MS + 100, "the transaction is overdue")
        broker.start()
        _groups(open_, broker)
        # The broker has seen where the group was at the end: from then on it knows for how many seconds records wait.
        until(lambda: _answer(broker, "/api/groups/billing/history")["points"], "the group's lag is recorded")
        _invoices(broker, UNREAD)
        yield broker
        del overdue


def _topics(admin: Admin) -> None:
    admin.create_topic("orders", partitions=3, config={"retention.ms": "1209600000"})
    admin.create_topic("invoices", partitions=3)
    for name in ("payments", "raw", "to-be-written", "to-be-altered", "x-onerror.alert_1"):
        admin.create_topic(name)


def _many_topics(broker: LocalBroker, count: int) -> None:
    """With one request, which is much faster than one for each."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    made = admin.create_topics([NewTopic(f"metrics-{number:04}") for number in range(count)])
    for each in made.values():
        each.result(30)


def _orders(broker: LocalBroker) -> None:
    with Producer(broker.bootstrap_servers, "orders") as producer:
        for number in range(ORDERS):
            order = {
                "order": number, "customer": f"customer-{number % 7}", "total": number * 1.25, "paid": number % 2 == 0,
                "items": [{"article": f"article-{number % 11}", "count": number % 5 + 1}],
            }  # fmt: skip
            producer.send(
                json.dumps(order).encode(), f"order-{number}".encode(), partition=number % 3,
                timestamp_ms=order_ms(number), headers=[("source", b"web"), ("trace", f"{number:032x}".encode())],
            )  # fmt: skip


def _payments(broker: LocalBroker) -> None:
    registry = SchemaRegistryClient({"url": broker.schema_registry_url})
    number = registry.register_schema("payments-value", Schema(json.dumps(_AVRO), "AVRO"))
    encoded = BytesIO()
    fastavro.schemaless_writer(encoded, fastavro.parse_schema(_AVRO), {"card": "visa", "cents": 1999})
    with Producer(broker.bootstrap_servers, "payments") as producer:
        producer.send(struct.pack(">bi", 0, number) + encoded.getvalue(), b"payment-1")
    with Producer(broker.bootstrap_servers, "raw") as producer:
        producer.send(bytes(range(256)), b"\xff\xfe")
        producer.send(None, b"deleted")


def _hostile(broker: LocalBroker) -> None:
    text = HOSTILE.encode()
    with Producer(broker.bootstrap_servers, "x-onerror.alert_1") as producer:
        producer.send(json.dumps({HOSTILE: HOSTILE}).encode(), text, headers=[(HOSTILE, text)])
        producer.send(text, text)


def _invoices(broker: LocalBroker, counts: tuple[int, ...]) -> None:
    with Producer(broker.bootstrap_servers, "invoices") as producer:
        for partition, count in enumerate(counts):
            for _ in range(count):
                producer.send(b"invoice", partition=partition, timestamp_ms=int(time.time() * 1000))


def _answer(broker: LocalBroker, path: str) -> Any:
    with urllib.request.urlopen(f"{broker.http_url}{path}", timeout=60) as answer:
        return json.load(answer)


def _groups(open_: ExitStack, broker: LocalBroker) -> None:
    """A group with a member; one with a hostile name and member."""
    for group, client, topic in (("billing", "billing-1", "invoices"), (HOSTILE, HOSTILE, "x-onerror.alert_1")):
        consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": broker.bootstrap_servers, "group.id": group, "client.id": client,
                "auto.offset.reset": "earliest", "enable.auto.commit": False,
            }
        )  # fmt: skip
        open_.callback(consumer.close)
        consumer.subscribe([topic])
        until(lambda consumer=consumer: consumer.poll(0.1), "the member reads")
        ends = (READ,) * 3 if topic == "invoices" else (1,)
        places = [confluent_kafka.TopicPartition(topic, each, end) for each, end in enumerate(ends)]
        consumer.commit(offsets=places, asynchronous=False)


def open_transaction(broker: LocalBroker, name: str, timeout_ms: int) -> confluent_kafka.Producer:
    """Begin a transaction, which stays open for as long as its producer lives."""
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": broker.bootstrap_servers, "transactional.id": name, "transaction.timeout.ms": timeout_ms}
    )
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce("of-transactions", name.encode())
    assert producer.flush(30) == 0
    return producer
