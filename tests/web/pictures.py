"""The pictures of docs/console.md, taken anew of a cluster at work: ``python -m tests.web.pictures docs/images``. No test; takes minutes."""

import json
import math
import random
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

import confluent_kafka
from playwright.sync_api import expect

from pylog_spark.client import Admin, Producer
from pylog_spark.testing import LocalCluster
from tests.harness.waiting import during
from tests.web.browser import PHONE, Console, browser

SECONDS = 240
SIZE = {"width": 1180, "height": 660}
_TOPICS = {
    "clicks": 12,
    "invoices": 3,
    "orders": 6,
    "payments": 6,
    "shipments": 3,
    "stock-levels": 3,
    "user-profiles": 1,
}


def main(folder: Path) -> None:
    """Start the cluster, let it work, take the pictures."""
    draw = random.Random(7)
    with tempfile.TemporaryDirectory() as data, LocalCluster(data, 3, racks="abc", http=True) as cluster:
        servers = cluster.bootstrap_servers
        with Admin(servers) as admin:
            for name, partitions in _TOPICS.items():
                admin.create_topic(name, partitions=partitions)
            admin.alter_group_offsets("orders-to-delta", {("orders", each): 0 for each in range(6)})
        consumer = _consumer(servers)
        with Producer(servers, "orders", {"linger.ms": "20"}) as orders, Producer(servers, "clicks") as clicks:
            _work(orders, clicks, consumer, draw)
            with browser() as chromium:
                url = next(each.http_url for each in cluster.brokers if _has_history(each.http_url))
                _pictures(lambda **options: Console(chromium, url, folder, **options))
        consumer.close()


def _has_history(url: str) -> bool:
    """Whether the broker is the coordinator of the group, which records its lag."""
    with urllib.request.urlopen(f"{url}/api/groups/billing/history", timeout=60) as answer:
        return bool(json.load(answer)["points"])


def _consumer(servers: str) -> confluent_kafka.Consumer:
    settings = {
        "bootstrap.servers": servers, "group.id": "billing", "client.id": "billing-1", "auto.offset.reset": "earliest",
        "auto.commit.interval.ms": 500,
    }  # fmt: skip
    consumer = confluent_kafka.Consumer(settings)
    consumer.subscribe(["orders"])
    return consumer


def _work(orders: Producer, clicks: Producer, consumer: confluent_kafka.Consumer, draw: random.Random) -> None:
    """Write in waves, and read as evenly as somebody who falls behind at each wave."""
    number = 0
    for passed in during(SECONDS, pause_s=0.05):
        for _ in range(int(12 + 10 * math.sin(passed / 17) + draw.random() * 3)):
            number += 1
            customer = f"customer-{draw.randrange(4000)}"
            order = {
                "order": number, "customer": customer, "total": round(draw.uniform(4, 300), 2), "paid": draw.random() < 0.8,
                "items": [{"article": f"article-{draw.randrange(900)}", "count": draw.randrange(1, 5)} for _ in range(2)],
            }  # fmt: skip
            now_ms = int(time.time() * 1000) - draw.randrange(50)
            orders.send(
                json.dumps(order).encode(),
                customer.encode(),
                timestamp_ms=now_ms,
                headers=[("source", b"web"), ("version", b"3")],
            )
            clicks.send(json.dumps({"user": customer, "page": "/cart"}).encode(), customer.encode())
        orders.flush()
        clicks.flush()
        consumer.consume(13, 0.05)


def _pictures(opened: Callable[..., Console]) -> None:
    desk = opened(viewport=SIZE)
    desk.open()
    expect(desk.table("Brokers").locator("tbody tr")).to_have_count(3)
    expect(desk.page.get_by_role("img").first).to_be_visible()
    desk.picture("console-overview")
    desk.open("groups/billing")
    expect(desk.table("Offsets").locator("tbody tr")).to_have_count(6)
    expect(desk.page.get_by_role("img").first).to_be_visible()
    desk.picture("console-group")
    for options, name, row in (
        ({"viewport": SIZE, "color_scheme": "dark"}, "console-messages-dark", 4),
        ({"viewport": PHONE, "is_mobile": True, "has_touch": True}, "console-phone", None),
    ):
        console = opened(**options)
        console.open("topics/orders")
        rows = console.table("Messages").locator("tbody tr")
        expect(rows).to_have_count(50)
        if row is not None:
            rows.nth(row).click()
            expect(console.page.get_by_label("Value as JSON")).to_be_visible()
        console.picture(name)
        console.close()
    desk.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
