"""How results show themselves in a notebook and in a terminal: what they say, in bounds, whatever names hold."""

import io
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from pylog_spark.client import (
    ClusterDescription,
    ConfigDescription,
    ConfigEntry,
    FlushResult,
    GroupDescription,
    MemberDescription,
    Node,
    OffsetSpan,
    PartitionDescription,
    TopicDescription,
    TransactionDescription,
)
from pylog_spark.results.display import Display
from pylog_spark.results.markup import ROWS_MAX, Shown, as_html
from pylog_spark.testing import LocalBroker
from pylog_spark.topic_partition import TopicPartition

HOSTILE = "<script>alert(1)</script>\x1b[2J&\u202e"


class Reader(HTMLParser):
    """The text of HTML, and its tags, each of which must be closed."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def read(html: str) -> Reader:
    reader = Reader()
    reader.feed(html)
    reader.close()
    assert reader.open == []
    assert set(reader.tags) <= {"div", "b", "table", "thead", "tbody", "tr", "th", "td"}
    return reader


def in_a_terminal(shown: Display) -> str:
    file = io.StringIO()
    Console(file=file, width=120, force_terminal=True, color_system=None).print(shown)
    return file.getvalue()


def results(name: str) -> list[Display]:
    """One of each kind, with a name."""
    place = TopicPartition(name, 0)
    return [
        TopicDescription(
            name, "id", False, None, (PartitionDescription(0, -1, 0, (1, 2), (1,), "LEADER_NOT_AVAILABLE"),)
        ),
        ClusterDescription(name, 1, (Node(1, name, 9092, None), Node(2, "b", 9092, name))),
        GroupDescription(
            name,
            "classic",
            "Stable",
            "consumer",
            "range",
            1,
            (MemberDescription("m", None, name, "h", (place,)),),
            None,
            None,
        ),
        ConfigDescription(
            name, (ConfigEntry("a", name, "DEFAULT_CONFIG", "STRING", False, False, None, ()),), None, None
        ),
        TransactionDescription(name, "Ongoing", 7, 0, 60000, 0, (place,), 1, None, None),
        FlushResult(1, 10, {place: OffsetSpan(3, 3)}),
    ]


@pytest.mark.parametrize("number", range(6))
def test_a_name_that_holds_markup_and_escapes_is_text(number: int) -> None:
    shown = results(HOSTILE)[number]
    page = read(shown._repr_html_())
    assert "<script>alert(1)</script>\\x1b[2J&\\u202e" in "".join(page.texts)
    assert "\x1b" not in in_a_terminal(shown)


def test_a_topic_shows_its_partitions() -> None:
    (topic, *_) = results("events")
    page = read(topic._repr_html_())
    assert page.texts == [
        "Topic events: 1 partitions", "partition", "leader", "replicas", "in sync", "error",
        "0", "-", "1, 2", "1", "LEADER_NOT_AVAILABLE",
    ]  # fmt: skip
    assert "LEADER_NOT_AVAILABLE" in in_a_terminal(topic)


def test_secrets_and_more_rows_than_fit_are_not_shown() -> None:
    secret = ConfigEntry("password", "xyzzy", "DYNAMIC_TOPIC_CONFIG", "PASSWORD", False, True, None, ())
    others = tuple(
        ConfigEntry(f"s{n}", "1", "DEFAULT_CONFIG", "INT", False, False, None, ()) for n in range(ROWS_MAX + 4)
    )
    shown = ConfigDescription("events", (secret, *others), None, None)
    for text in ("".join(read(shown._repr_html_()).texts), in_a_terminal(shown)):
        assert "xyzzy" not in text
        assert f"s{ROWS_MAX - 2}" in text
        assert f"s{ROWS_MAX - 1}" not in text
        assert "... and 5 more" in text


@given(st.text(), st.lists(st.tuples(st.text(), st.integers() | st.none(), st.floats() | st.booleans())))
def test_any_text_is_well_formed(title: str, rows: list[tuple[object, ...]]) -> None:
    read(as_html(Shown(title, ("a", "b", "c"), rows)))


def test_brokers_show_where_they_are(tmp_path: Path) -> None:
    with LocalBroker(tmp_path / "<data>", http=True) as broker:
        page = "".join(read(broker._repr_html_()).texts)
        assert page.startswith("Broker 1: running")
        for what in (broker.bootstrap_servers, broker.http_url, broker.data_dir):
            assert what in page
        assert broker.bootstrap_servers in in_a_terminal(broker)
    assert "not running" in broker._repr_html_()
    assert repr(broker) == f"<pylog broker {broker.bootstrap_servers} not running, data in {broker.data_dir}>"


def test_a_broker_in_this_process_shows_where_it_is(tmp_path: Path) -> None:
    from pylog_spark import start_broker

    with start_broker(tmp_path) as broker:
        assert broker.bootstrap_servers in "".join(read(broker._repr_html_()).texts)
    assert "closed" in broker._repr_html_()
