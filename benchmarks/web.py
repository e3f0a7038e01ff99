"""A broker with everything switched on: what it costs, and how soon its page lists very many topics in a browser."""

import time
import urllib.request
from collections.abc import Callable
from functools import cache

from confluent_kafka.admin import AdminClient, NewTopic
from playwright.sync_api import Browser, sync_playwright

from benchmarks.bench import Bench, Runs
from benchmarks.brokers import PylogBroker, make_tls_broker
from benchmarks.process import rss_mib
from tests.harness import certificates
from tests.peers.chromium import chromium

#: Topics that are created by one request.
_AT_ONCE = 1_000
_CREATED_S = 120
_MS = 1_000
#: What the page draws of a list at first.
_ROWS = 200
#: The page keeps a list that it was slow to get for so long, and a visit is to be as the first one.
_FORGOTTEN_S = 6
#: A broker that has just started loads what it needs for decisions beside its first answers.
_IDLE_AFTER_S = 3
#: The side of `memory` whose metrics and page were asked for.
USED = "metrics and page asked for"


def start_time(bench: Bench) -> Runs:
    """Seconds to the first answer, with a listener for TLS, page and metrics."""
    if "pylog" not in bench.sides:
        return {}

    def once() -> float:
        broker = _all_on(bench)
        try:
            return broker.start()
        finally:
            broker.stop()

    return bench.take_turns({"pylog": once}, warm_up=0)


def memory(bench: Bench) -> Runs:
    """MiB of such a broker that is idle, and of the same one when somebody has asked for its metrics and its page."""
    runs: Runs = {"pylog": [], USED: []}
    if "pylog" not in bench.sides:
        return {}
    for _ in range(bench.rounds):
        broker = _all_on(bench)
        broker.start()
        try:
            time.sleep(_IDLE_AFTER_S)
            runs["pylog"].append(rss_mib(broker.pid))
            for path in ("/metrics", "/", "/api/cluster", "/api/topics"):
                urllib.request.urlopen(f"{broker.http_url}{path}", timeout=60).read()
            runs[USED].append(rss_mib(broker.pid))
        finally:
            broker.stop()
    return runs


def _all_on(bench: Bench) -> PylogBroker:
    made = certificates.make(bench.fresh_folder("certificates"))
    key_and_certificate = made.path("server.both.pem")
    broker, _plain, _tls = make_tls_broker("pylog", bench.fresh_folder("pylog-all"), key_and_certificate, http=True)
    assert isinstance(broker, PylogBroker)
    return broker


def page(bench: Bench, topics: int, figure: str) -> Runs:
    """From a browser's visit of the page's list to its first rows: milliseconds in the browser, or KiB of the answer (`figure`). Each visit
    is by a browser that has nothing of the page yet, and the broker has forgotten the list."""
    if "pylog" not in bench.sides:
        return {}
    return {"pylog": [visit[figure] for visit in _visits(bench, topics)]}


@cache
def _visits(bench: Bench, topics: int) -> list[dict[str, float]]:
    broker = PylogBroker(bench.fresh_folder("pylog-page"), http=True)
    broker.start()
    bench.when_closed(broker.stop)
    _create(broker.bootstrap_servers, topics)
    found = chromium()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=found.program, env=dict(found.environment), args=["--disable-gpu"]
        )
        try:
            return bench.take_turns({"pylog": _visitor(browser, broker.http_url)})["pylog"]
        finally:
            browser.close()


def _create(servers: str, topics: int) -> None:
    # The client says nothing of a broker that is stopped at the end.
    admin = AdminClient({"bootstrap.servers": servers, "log_level": 2})
    for first in range(0, topics, _AT_ONCE):
        names = [f"topic-{number}" for number in range(first, min(first + _AT_ONCE, topics))]
        made = admin.create_topics([NewTopic(name, 1, 1) for name in names], request_timeout=_CREATED_S)
        for each in made.values():
            each.result(_CREATED_S)


def _visitor(browser: Browser, url: str) -> Callable[[], dict[str, float]]:
    def once() -> dict[str, float]:
        time.sleep(_FORGOTTEN_S)
        context = browser.new_context(viewport={"width": 1280, "height": 800})
        try:
            tab = context.new_page()
            began = time.perf_counter()
            with tab.expect_response(lambda answer: "/api/topics" in answer.url) as answer:
                tab.goto(f"{url}/#/topics")
                tab.get_by_role("table", name="Topics").locator("tbody tr").nth(_ROWS - 1).wait_for()
                took = time.perf_counter() - began
            return {"ms": took * _MS, "kib": len(answer.value.body()) / 1024}
        finally:
            context.close()

    return once
