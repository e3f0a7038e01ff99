"""The console in a real browser: what people come for, step by step, and what must not happen to them."""

import re
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, expect

from pylog_spark.client import Admin, Producer
from pylog_spark.results.security import AclBinding
from pylog_spark.testing import LocalBroker
from tests.harness.security import AUTHORIZER
from tests.peers.javascript import axe
from tests.web.browser import PHONE, Console, browser
from tests.web.stand import HOSTILE, ORDERS, READ, TOPICS, UNREAD, open_transaction, order_ms, stand

#: Each view, and the table in it.
VIEWS = {
    "": "Brokers",
    "topics": "Topics",
    "topics/orders": "Messages",
    "topics/orders/partitions": "Partitions",
    "topics/orders/settings": "Settings",
    "groups": "Groups",
    "groups/billing": "Offsets",
    "transactions": "Transactions",
}
OPEN = Callable[..., Console]


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """One browser for all."""
    with browser() as running:
        yield running


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalBroker]:
    """One broker for all."""
    with stand(tmp_path_factory.mktemp("console") / "data") as running:
        yield running


@pytest.fixture
def opened(chromium: Browser, broker: LocalBroker, tmp_path: Path) -> Iterator[OPEN]:
    """Opens the console in a new tab, with options as `Console` has them."""
    tabs: list[Console] = []

    def opens(**options: Any) -> Console:
        tabs.append(Console(chromium, broker.http_url, tmp_path, **options))
        return tabs[-1]

    yield opens
    for tab in tabs:
        tab.close()


@pytest.fixture
def console(opened: OPEN) -> Console:
    """The console on a desk."""
    return opened()


def row(console: Console, table: str, text: str) -> Locator:
    """The row of a table that has this text."""
    return console.table(table).locator("tbody tr").filter(has_text=text)


def test_the_overview_shows_the_cluster_its_brokers_and_what_this_broker_does(
    console: Console, broker: LocalBroker
) -> None:
    page = console.open()
    with Admin(broker.bootstrap_servers) as admin:
        cluster = admin.cluster()
    expect(page.get_by_text(cluster.cluster_id)).to_be_visible()
    expect(row(console, "Brokers", broker.bootstrap_servers)).to_contain_text("controller")
    expect(page.get_by_role("img", name=re.compile("Requests: now"))).to_be_visible()
    expect(page.get_by_role("definition").filter(has_text="none")).to_have_count(2)
    console.picture("overview")


def test_a_topic_is_found_among_many_while_one_types(console: Console) -> None:
    page = console.open("topics")
    expect(page.get_by_role("status").filter(has_text="topics")).to_have_text(f"{TOPICS} topics")
    page.keyboard.press("/")
    page.keyboard.type("metrics-017")
    expect(console.table("Topics").locator("tbody tr")).to_have_count(10)
    page.keyboard.type("3")
    expect(console.table("Topics").locator("tbody tr")).to_have_count(1)
    console.picture("topics-search")
    page.get_by_role("link", name="metrics-0173").click()
    expect(page).to_have_title("metrics-0173 · pylog")
    expect(page.get_by_text("There is no record yet.")).to_be_visible()


def test_all_of_many_topics_are_reached_by_scrolling_and_each_is_asked_for_once(console: Console) -> None:
    page, asked = console.page, list[str]()
    page.on("request", lambda request: asked.append(request.url) if "/api/" in request.url else None)
    console.open("topics")
    rows = console.table("Topics").locator("tbody tr")
    expect(rows).to_have_count(200)
    assert console.column("Topics", "Topic")[:3] == ["_schemas", "invoices", "metrics-0000"]
    rows.last.scroll_into_view_if_needed()
    page.mouse.wheel(0, 4000)
    expect(rows).to_have_count(TOPICS)
    assert len(set(console.column("Topics", "Topic"))) == TOPICS
    wanted = [re.sub(".*/api/", "", url) for url in asked if "user" not in url]
    assert wanted[0] == "topics?limit=200"
    # On a busy machine what is shown may be asked for again meanwhile.
    assert [each for each in wanted if "skip" in each] == ["topics?skip=200&limit=200"], wanted


@pytest.mark.long  # test_console_api.py
def test_topics_are_ordered_by_what_all_of_them_are(console: Console) -> None:
    console.open("topics")
    heads, first = console.table("Topics").locator("thead"), console.table("Topics").locator("tbody tr").first
    heads.get_by_role("button", name="Partitions").click()
    expect(first).to_contain_text("invoices")
    assert console.column("Topics", "Partitions")[:4] == ["3", "3", "1", "1"]
    for _ in range(2):
        heads.get_by_role("button", name="Topic").click()
    expect(first).to_contain_text("x-onerror.alert_1")


def test_a_topics_partitions_are_read(console: Console) -> None:
    page = console.open("topics/orders")
    page.get_by_role("link", name="Partitions", exact=True).click()
    expect(console.table("Partitions").locator("tbody tr")).to_have_count(3)
    assert console.column("Partitions", "Partition") == ["0", "1", "2"]
    assert console.column("Partitions", "End") == ["30", "30", "30"]
    assert all(text.endswith("KiB") for text in console.column("Partitions", "Size"))
    console.picture("partitions")


@pytest.mark.long  # test_console_api.py
def test_a_message_is_found_by_its_key(console: Console) -> None:
    page = console.open("topics/orders")
    expect(console.table("Messages").locator("tbody tr")).to_have_count(50)
    assert console.column("Messages", "Key")[0] == f"order-{ORDERS - 1}", "the newest one comes first"
    page.get_by_role("searchbox", name="Key", exact=True).fill("order-42")
    page.keyboard.press("Enter")
    expect(page.get_by_text(f"1 record found, {ORDERS} searched")).to_be_visible()
    assert console.column("Messages", "Offset") == ["14"]
    console.picture("message-by-key")
    page.get_by_role("searchbox", name="Key", exact=True).fill("")
    page.get_by_role("searchbox", name="Text in key or value").fill("customer-6")
    page.keyboard.press("Enter")
    expect(page.get_by_text("12 records found")).to_be_visible()


@pytest.mark.long  # test_console_api.py
def test_a_message_is_found_by_its_offset(console: Console) -> None:
    page = console.open("topics/orders")
    page.get_by_label("From").select_option("Offset")
    page.get_by_label("Offset", exact=True).fill("28")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("Choose a partition")
    page.get_by_label("Partition", exact=True).select_option("1")
    expect(page.get_by_text("2 records, to the end")).to_be_visible()
    assert console.column("Messages", "Offset") == ["28", "29"]
    assert console.column("Messages", "Key") == ["order-85", "order-88"]
    page.reload()
    expect(page.get_by_text("2 records, to the end")).to_be_visible()
    console.picture("message-by-offset")


@pytest.mark.long  # test_console_api.py
def test_a_message_is_found_by_its_time(console: Console) -> None:
    page = console.open("topics/orders")
    page.get_by_label("From").select_option("Time")
    page.get_by_label("Local time").fill(datetime.fromtimestamp(order_ms(80) / 1000).isoformat())
    page.keyboard.press("Enter")
    expect(page.get_by_text(f"{ORDERS - 80} records, to the end")).to_be_visible()
    assert console.column("Messages", "Key") == [f"order-{number}" for number in range(80, ORDERS)]
    shown = console.column("Messages", "Time")[0]
    assert shown == datetime.fromtimestamp(order_ms(80) / 1000).strftime("%Y-%m-%d %H:%M:%S.000")
    console.picture("message-by-time")


@pytest.mark.long  # test_console_api.py
def test_all_messages_are_reached_from_the_oldest_on(console: Console) -> None:
    page = console.open("topics/orders/messages?from=earliest")
    expect(console.table("Messages").locator("tbody tr")).to_have_count(50)
    page.get_by_role("button", name="Load more").click()
    expect(page.get_by_text(f"{ORDERS} records, to the end")).to_be_visible()
    assert console.column("Messages", "Key") == [f"order-{number}" for number in range(ORDERS)]


@pytest.mark.long  # test_console_api.py
def test_older_messages_are_reached_from_the_newest_and_from_an_offset(console: Console) -> None:
    page = console.open("topics/orders")
    expect(console.table("Messages").locator("tbody tr")).to_have_count(50)
    page.get_by_role("button", name="Load older").click()
    expect(page.get_by_text(f"{ORDERS} records, to the beginning")).to_be_visible()
    assert console.column("Messages", "Key") == [f"order-{number}" for number in reversed(range(ORDERS))]
    expect(page.get_by_role("button", name="Load older")).to_have_count(0)
    console.open("topics/orders/messages?from=offset:28&partition=1")
    expect(page.get_by_text("2 records, to the end")).to_be_visible()
    page.get_by_role("button", name="Load older").click()
    expect(page.get_by_text("30 records, to the end")).to_be_visible()
    assert console.column("Messages", "Offset") == [str(offset) for offset in range(30)]
    console.picture("messages-older")


@pytest.mark.long  # test_console_views.py
def test_a_value_is_shown_as_json_avro_text_and_bytes(console: Console) -> None:
    page = console.open("topics/orders/messages?key=order-42")
    row(console, "Messages", "order-42").click()
    value = page.get_by_role("region", name="Value", exact=True)
    expect(value.get_by_label("Value as JSON")).to_contain_text('"customer": "customer-0"')
    expect(page.get_by_role("table", name="Headers")).to_contain_text("source")
    console.picture("value-as-json")
    value.get_by_role("button", name="Text", exact=True).click()
    expect(value.get_by_label("Value as Text")).to_have_text(re.compile(r'^\{"order": 42, .*\}$'))
    value.get_by_role("button", name="Hex", exact=True).click()
    expect(value.get_by_label("Value as Hex")).to_contain_text(
        '7b 22 6f 72 64 65 72 22  3a 20 34 32 2c 20 22 63  {"order": 42, "c'
    )
    page.keyboard.press("Escape")
    expect(value).to_be_hidden()

    console.open("topics/payments")
    row(console, "Messages", "payment-1").click()
    expect(value.get_by_label("Value as Avro")).to_contain_text('"cents": 1999')
    expect(value).to_contain_text("schema 1")
    console.picture("value-as-avro")

    console.open("topics/raw")
    row(console, "Messages", "256 B").click()
    expect(value.get_by_label("Value as Hex")).to_contain_text("000000  00 01 02 03 04 05 06 07  08 09 0a 0b")
    console.picture("value-as-hex")
    row(console, "Messages", "deleted").click()
    expect(value).to_contain_text("null")


@pytest.mark.long  # test_console_api.py
def test_a_record_is_produced(console: Console) -> None:
    page = console.open("topics/to-be-written")
    expect(page.get_by_text("There is no record yet.")).to_be_visible()
    page.get_by_role("button", name="Produce").click()
    dialog = page.get_by_role("dialog", name="Produce to to-be-written")
    dialog.get_by_label("Key", exact=True).fill("the key")
    dialog.get_by_label("Value", exact=True).fill('{"written": "by hand"}')
    dialog.get_by_role("button", name="Add").click()
    dialog.get_by_label("Header's name").fill("by")
    dialog.get_by_label("Header's value").fill("hand")
    console.picture("produce")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_text("Written to partition 0 at offset 0.")).to_be_visible()
    row(console, "Messages", "the key").click()
    expect(page.get_by_label("Value as JSON")).to_contain_text('"written": "by hand"')
    expect(page.get_by_role("table", name="Headers")).to_contain_text("hand")


def test_a_topic_is_created_widened_and_deleted(console: Console, broker: LocalBroker) -> None:
    page = console.open("topics")
    page.get_by_role("button", name="Create topic").click()
    dialog = page.get_by_role("dialog", name="Create topic")
    dialog.get_by_role("button", name="Create").click()
    expect(dialog.get_by_role("alert")).to_contain_text("Give the topic a name.")
    dialog.get_by_label("Name").fill("not a name")
    dialog.get_by_role("button", name="Create").click()
    expect(dialog.get_by_role("alert")).to_contain_text("INVALID_TOPIC_EXCEPTION")
    console.wrong.clear()
    dialog.get_by_label("Name").fill("by-hand")
    dialog.get_by_label("Partitions").fill("4")
    dialog.get_by_role("button", name="Add").click()
    dialog.get_by_label("Setting", exact=True).fill("cleanup.policy")
    dialog.get_by_label("Value", exact=True).fill("compact")
    console.picture("create-topic")
    dialog.get_by_role("button", name="Create").click()
    expect(page).to_have_title("by-hand · pylog")
    with Admin(broker.bootstrap_servers) as admin:
        assert len(admin.topic("by-hand").partitions) == 4
        (described,) = admin.configs("topic", ["by-hand"])
    assert {each.name: each.value for each in described.configs}["cleanup.policy"] == "compact"

    page.get_by_role("button", name="Add partitions").click()
    page.get_by_role("dialog").get_by_label("Partitions in all").fill("6")
    page.keyboard.press("Enter")
    expect(console.table("Partitions").locator("tbody tr")).to_have_count(6)

    page.get_by_role("button", name="Delete").click()
    dialog = page.get_by_role("dialog", name="Delete by-hand")
    dialog.get_by_role("button", name="Delete the topic").click()
    expect(dialog.get_by_role("alert")).to_contain_text("type by-hand")
    dialog.get_by_label("Type the topic's name").fill("by-hand")
    dialog.get_by_role("button", name="Delete the topic").click()
    expect(page.get_by_text("by-hand is deleted.")).to_be_visible()
    with Admin(broker.bootstrap_servers) as admin:
        assert "by-hand" not in {each.name for each in admin.topics()}


def test_a_setting_is_altered(console: Console, broker: LocalBroker) -> None:
    page = console.open("topics/to-be-altered/settings")
    expect(page.get_by_role("row", name=re.compile("^segment.bytes "))).to_be_visible()
    page.keyboard.press("/")
    page.keyboard.type("retention.ms")
    expect(page.get_by_role("row", name=re.compile("^segment.bytes "))).to_have_count(0)
    page.get_by_role("button", name="Alter retention.ms").click()
    dialog = page.get_by_role("dialog", name="Alter retention.ms")
    dialog.get_by_label("Value").fill("soon")
    dialog.get_by_role("button", name="Alter").click()
    expect(dialog.get_by_role("alert")).to_contain_text("INVALID_CONFIG")
    console.wrong.clear()
    dialog.get_by_label("Value").fill("86400000")
    console.picture("alter-setting")
    dialog.get_by_role("button", name="Alter").click()
    expect(page.get_by_role("row", name=re.compile(r"^retention\.ms "))).to_contain_text(
        re.compile("86400000.*this topic")
    )
    with Admin(broker.bootstrap_servers) as admin:
        (described,) = admin.configs("topic", ["to-be-altered"])
    assert {each.name: each.value for each in described.configs}["retention.ms"] == "86400000"


def test_a_group_shows_its_lag_in_records_and_seconds_over_time(console: Console) -> None:
    page = console.open("groups")
    expect(row(console, "Groups", "billing")).to_contain_text(str(sum(UNREAD)))
    page.get_by_role("link", name="billing").click()
    expect(console.table("Offsets").locator("tbody tr")).to_have_count(3)
    assert console.column("Offsets", "Offset") == [str(READ)] * 3
    assert console.column("Offsets", "Lag") == [str(count) for count in UNREAD]
    assert all(re.fullmatch(r"\d+(\.\d)? s|\d+ min \d+ s", text) for text in console.column("Offsets", "Behind"))
    expect(page.get_by_role("img", name=re.compile(f"Lag: now {sum(UNREAD)} records"))).to_be_visible()
    expect(page.get_by_role("img", name=re.compile("Behind: now [0-9.]+ s"))).to_be_visible()
    expect(row(console, "Members", "billing-1")).to_contain_text("invoices 0, 1, 2")
    console.picture("group")


@pytest.mark.long  # test_console_api.py
def test_an_open_and_a_stalled_transaction_are_shown(console: Console, broker: LocalBroker) -> None:
    producer = open_transaction(broker, "open-sink", 600_000)
    page = console.open("transactions")
    expect(row(console, "Transactions", "open-sink")).to_contain_text("Ongoing")
    expect(row(console, "Transactions", "open-sink").get_by_title("open for longer")).to_have_count(0)
    expect(row(console, "Transactions", "stalled-sink").get_by_title("open for longer")).to_have_text("stalled")
    console.picture("transactions")
    page.get_by_label("Only stalled").check()
    expect(console.table("Transactions").locator("tbody tr")).to_have_count(1)
    page.get_by_role("link", name="of-transactions-0").click()
    expect(page.get_by_text("There is no record yet.")).to_be_visible()
    page.get_by_label("Transactions", exact=True).select_option("read_uncommitted")
    expect(console.table("Messages").locator("tbody tr")).to_have_count(2)
    producer.abort_transaction(30)


def test_what_stands_in_keys_values_headers_and_names_is_never_taken_for_markup(console: Console) -> None:
    page = console.open("topics/x-onerror.alert_1")
    rows = console.table("Messages").locator("tbody tr")
    expect(rows).to_have_count(2)
    for place in range(2):
        rows.nth(place).click()
        for part in ("Key", "Value"):
            region = page.get_by_role("region", name=part, exact=True)
            for kind in region.get_by_role("group").get_by_role("button").all():
                kind.click()
        assert_harmless(console)
    expect(page.get_by_role("table", name="Headers")).to_contain_text(HOSTILE)
    console.picture("hostile-record")
    console.open("groups")
    page.get_by_role("link", name=HOSTILE).click()
    expect(page.get_by_role("heading", level=1)).to_contain_text(HOSTILE)
    expect(console.table("Members")).to_contain_text(HOSTILE)
    assert_harmless(console)
    console.picture("hostile-group")
    console.open(f"topics/{HOSTILE}")
    expect(page.get_by_role("alert").first).not_to_be_empty()
    assert_harmless(console)
    console.wrong.clear()
    console.open("topics")
    page.get_by_label("Search topics").fill(HOSTILE)
    expect(page.get_by_text("No topic's name has")).to_contain_text(HOSTILE)
    assert_harmless(console)


def assert_harmless(console: Console) -> None:
    """No script ran, and no element came of a text."""
    assert console.page.evaluate("window.owned ?? null") is None
    expect(console.page.locator("body script, img[src=x]")).to_have_count(0)


@pytest.mark.long
def test_dark_colours_are_the_systems_or_those_that_are_chosen(opened: OPEN) -> None:
    dark = opened(color_scheme="dark")
    page = dark.open("topics/orders/messages?key=order-42")
    row(dark, "Messages", "order-42").click()
    expect(page.get_by_label("Value as JSON")).to_be_visible()
    assert brightness(dark) < 60
    assert dark.faults(axe(), "color-contrast") == []
    dark.picture("dark-messages")
    page.get_by_role("button", name="Colours: as the system has them").click()
    assert brightness(dark) > 200
    page.reload()
    expect(page.get_by_role("button", name="Colours: light")).to_be_visible()
    assert brightness(dark) > 200, "the choice is kept"


def brightness(console: Console) -> int:
    """Of the page's ground, 0 to 255."""
    colour = console.page.evaluate("getComputedStyle(document.body).backgroundColor")
    return max(map(int, re.findall(r"\d+", colour)[:3]))


@pytest.mark.long
def test_no_view_is_wider_than_a_phone(opened: OPEN) -> None:
    phone = opened(viewport=PHONE, has_touch=True, is_mobile=True)
    for place, table in VIEWS.items():
        phone.open(place)
        expect(phone.table(table).locator("tbody tr").first).to_be_visible()
        assert not phone.is_wider_than_the_screen(), place
        phone.picture(f"phone-{place.replace('/', '-') or 'overview'}")
    phone.open("topics/orders")
    row(phone, "Messages", "order-89").click()
    expect(phone.page.get_by_label("Value as JSON")).to_be_visible()
    assert not phone.is_wider_than_the_screen()
    phone.picture("phone-record")


@pytest.mark.long  # the keyboard: below
def test_no_view_has_a_fault_that_axe_finds(console: Console) -> None:
    script = axe()
    for place, table in VIEWS.items():
        page = console.open(place)
        expect(console.table(table).locator("tbody tr").first).to_be_visible()
        if place == "topics/orders":
            row(console, "Messages", "order-89").click()
            expect(page.get_by_label("Value as JSON")).to_be_visible()
        assert console.faults(script) == [], place
    page.keyboard.press("?")
    assert console.faults(script) == [], "the dialog of keys"
    console.open("topics")
    page.get_by_role("button", name="Create topic").click()
    page.get_by_role("dialog").get_by_role("button", name="Create", exact=True).click()
    assert console.faults(script) == [], "the dialog that creates a topic"


def test_everything_is_reached_with_the_keyboard_alone(console: Console) -> None:
    page = console.open()
    expect(console.table("Brokers")).to_be_visible()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    console.picture("keys")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog", name="Keys")).to_be_hidden()
    page.keyboard.type("gt")
    expect(console.table("Topics").locator("tbody tr").first).to_be_visible()
    page.keyboard.press("/")
    page.keyboard.type("orders")
    expect(console.table("Topics").locator("tbody tr")).to_have_count(1)
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("link", name="orders")).to_be_focused()
    page.keyboard.press("Enter")
    expect(console.table("Messages").locator("tbody tr")).to_have_count(50)
    page.keyboard.type("jjj")
    page.keyboard.press("Enter")
    heading = page.get_by_role("complementary", name="Record").get_by_role("heading", level=2)
    expect(heading).to_have_text("Partition 0, offset 29")
    page.keyboard.press("j")
    expect(heading).to_have_text("Partition 2, offset 28")
    page.keyboard.press("Escape")
    expect(heading).to_be_hidden()
    page.keyboard.press("k")
    expect(page.locator(":focus")).to_have_text("29")
    page.keyboard.press("n")
    expect(page.get_by_role("dialog", name="Produce to orders").get_by_label("Key", exact=True)).to_be_focused()
    page.keyboard.press("Escape")
    page.keyboard.type("gg")
    expect(console.table("Groups")).to_be_visible()
    page.keyboard.type("gx")
    expect(console.table("Transactions")).to_be_visible()


@pytest.mark.long
def test_a_page_whose_broker_stops_says_so_and_goes_on_when_it_is_back(chromium: Browser, tmp_path: Path) -> None:
    # One of its own: what others have seen of theirs ends with a stop.
    with LocalBroker(tmp_path / "data", http=True) as broker:
        with Admin(broker.bootstrap_servers) as admin, Producer(broker.bootstrap_servers, "read") as producer:
            admin.create_topic("read", 1, 1)
            producer.send(b"value", partition=0)
            producer.flush()
            admin.alter_group_offsets("behind", {("read", 0): 0})
        console = Console(chromium, broker.http_url, tmp_path)
        page = console.open("topics")
        expect(console.table("Topics")).to_be_visible()
        broker.terminate()
        page.get_by_label("Internal topics").check()
        expect(page.get_by_role("alert")).to_contain_text("The broker does not answer.")
        broker.start()
        page.get_by_role("button", name="Try again").click()
        expect(page.get_by_role("link", name="__consumer_offsets")).to_be_visible()
        expect(page.get_by_role("alert")).to_be_empty()
        console.wrong.clear()
        # The group was behind before the broker's first look; a picture without numbers has a name, too.
        console.open("groups/behind")
        expect(page.get_by_role("img", name="Lag: now 1 record")).to_be_visible()
        expect(page.get_by_role("img", name="Behind: no numbers yet")).to_be_visible()
        assert console.faults(axe()) == []
        console.close()


def test_a_user_sees_and_does_what_acls_allow_and_is_told_what_they_do_not(chromium: Browser, tmp_path: Path) -> None:
    settings = {"sasl": "SCRAM-SHA-256", "http": True, "authorizer_class_name": AUTHORIZER}
    with LocalBroker(tmp_path / "data", **settings) as broker:
        with Admin(broker.bootstrap_servers, broker.security_settings) as admin:
            admin.set_user_scram_credential("reader", "secret", "SCRAM-SHA-256")
            admin.create_topic("hers")
            admin.create_topic("not-hers")
            admin.create_acls([AclBinding("TOPIC", "hers", "LITERAL", "User:reader", "*", "READ", "ALLOW")])
        login = {"username": "reader", "password": "secret"}
        console = Console(chromium, broker.http_url, tmp_path, http_credentials=login)
        page = console.open()
        expect(page.get_by_text("reader", exact=True)).to_be_visible()
        expect(page.get_by_text("DESCRIBE on the cluster")).to_be_visible()
        console.open("topics")
        expect(console.table("Topics").locator("tbody tr")).to_have_count(1)
        page.get_by_role("link", name="hers").click()
        expect(page.get_by_text("There is no record yet.")).to_be_visible()
        page.get_by_role("button", name="Produce").click()
        page.get_by_label("Value", exact=True).fill("no")
        page.keyboard.press("Control+Enter")
        expect(page.get_by_role("dialog").get_by_role("alert")).to_contain_text("AUTHORIZATION_FAILED")
        console.picture("refused")
        console.wrong.clear()
        console.close()
