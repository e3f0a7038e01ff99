"""``pylog produce`` and ``pylog consume``: bytes in, the same bytes out."""

import json
import os
import signal
import uuid

import pytest
from confluent_kafka import Producer

from tests.harness.children import PipedChild
from tests.harness.runs import mostly_long


@pytest.fixture
def topic(make_topic):
    return make_topic(f"topic-{uuid.uuid4()}")


def test_lines_come_out_as_they_went_in(pylog, topic):
    lines = b"hello\n\n\xff\xfe not utf-8\nlast without an end"
    done = pylog("produce", topic, stdin=lines, text=False)
    assert (done.returncode, done.stderr) == (0, f"Wrote 4 records to {topic} (partition 0).\n".encode())
    assert pylog("consume", topic, "--exit-at-end", text=False, stdin=b"").stdout == lines + b"\n"


@pytest.mark.parametrize("codec", mostly_long(["gzip", "snappy", "lz4", "zstd"], "zstd"))
def test_a_file_is_written_with_each_compression(pylog, make_topic, codec, tmp_path):
    make_topic(f"file-{codec}")
    file = tmp_path / "lines"
    file.write_text("".join(f"line {i} {'x' * 100}\n" for i in range(5000)))
    done = pylog("produce", f"file-{codec}", str(file), "--compression", codec, "--json")
    written = json.loads(done.stdout)
    assert written["records"] == 5000
    assert written["offsets"] == [{"topic": f"file-{codec}", "partition": 0, "first_offset": 0, "last_offset": 4999}]
    assert pylog("consume", f"file-{codec}", "-e").stdout == file.read_text()


def test_keys_headers_nulls_and_partitions_show_in_json(pylog, topic):
    pylog("topic", "alter", topic, "--partitions", "3")
    done = pylog("produce", topic, "-k", ":", "--null-value", "NULL", "-H", "a=b", "-p", "2", stdin="k:v:w\nk:NULL\n")
    assert done.returncode == 0, done.stderr
    records = [json.loads(line) for line in pylog("consume", topic, "-e", "-f", "json").stdout.splitlines()]
    assert [(record["key"], record["value"], record["partition"], record["offset"]) for record in records] == [
        ("k", "v:w", 2, 0),
        ("k", None, 2, 1),
    ]
    assert records[0]["headers"] == [["a", "b"]]
    assert records[0]["timestampType"] == 0
    assert records[0]["timestamp"] > 1_600_000_000_000
    assert pylog("consume", topic, "-e", "-f", "key-value", "-k", "=").stdout == "k=v:w\nk=\n"


def test_bytes_that_are_no_text_are_base64_in_json(pylog, topic):
    pylog("produce", topic, stdin=b"\xff\n", text=False)
    shown = pylog("consume", topic, "-e", "-f", "json").stdout
    assert json.loads(shown)["value"] == {"base64": "/w=="}
    assert pylog("consume", topic, "-e", "--json").stdout == shown


def test_a_line_without_the_separator_is_refused_before_anything_of_it_is_written(pylog, topic):
    done = pylog("produce", topic, "-k", ":", stdin="no separator here\n")
    assert done.returncode == 1
    assert done.stderr == "Error: A line has no ':' between key and value: b'no separator here'.\n"


def test_reading_begins_where_the_options_say_and_stops_after_so_many(pylog, topic):
    pylog("produce", topic, stdin="".join(f"{i}\n" for i in range(10)))
    assert pylog("consume", topic, "--offset", "7", "-e").stdout == "7\n8\n9\n"
    assert pylog("consume", topic, "--from-beginning", "-n", "2").stdout == "0\n1\n"
    assert pylog("consume", topic, "--timestamp", "2000-01-01", "-n", "1").stdout == "0\n"
    assert pylog("consume", topic, "--timestamp", "2100-01-01T00:00", "-e").stdout == ""


def test_records_of_open_and_aborted_transactions_are_shown_only_on_request(pylog, topic, broker):
    def begin(name, *values):
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": f"{topic}-{name}"})
        producer.init_transactions(60)
        producer.begin_transaction()
        for value in values:
            producer.produce(topic, value)
        assert producer.flush(60) == 0
        return producer

    begin("a", "committed").commit_transaction(60)
    begin("b", "aborted").abort_transaction(60)
    begin("c", "committed too").commit_transaction(60)
    still_open = begin("d", "open")
    assert pylog("consume", topic, "-e").stdout == "committed\ncommitted too\n"
    every = pylog("consume", topic, "-e", "--isolation", "read_uncommitted", "--json").stdout.splitlines()
    assert [json.loads(line)["value"] for line in every] == ["committed", "aborted", "committed too", "open"]
    still_open.abort_transaction(60)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--offset", "99", "-e"], "has no offset 99: it has 0 to 0."),
        (["--partition", "5"], "has no partition 5: it has 0 to 0."),
    ],
)
def test_a_place_that_is_not_there_is_one_sentence(pylog, topic, words, sentence):
    done = pylog("consume", topic, *words)
    assert done.returncode == 1
    assert done.stderr.startswith("Error: ")
    assert done.stderr.endswith(sentence + "\n")


def test_a_wrong_start_is_a_usage_error(pylog, topic):
    assert pylog("consume", topic, "--from-beginning", "--offset", "1").returncode == 2
    assert "2026-01-31T12:00" in pylog("consume", topic, "--timestamp", "yesterday").stderr


def test_following_prints_each_record_as_it_comes_and_ends_politely_at_ctrl_c(pylog, topic, environment, command):
    pylog("produce", topic, stdin="first\n")
    words = [*command, "consume", topic, "--from-beginning"]
    with PipedChild(words, env=environment, errors=True) as following:
        assert following.line() == "first"
        pylog("produce", topic, stdin="second\n")
        assert following.line() == "second"
        following.signal(signal.SIGINT)
        assert (following.wait(), following.errors) == (130, "\n")


def test_a_reader_that_goes_away_ends_it_quietly(pylog, topic, environment, command):
    pylog("produce", topic, stdin="".join(f"{i} {'x' * 1000}\n" for i in range(5000)))
    words = [*command, "consume", topic, "--exit-at-end"]
    with PipedChild(words, env=environment, errors=True, lines_max=1) as following:
        assert following.line().startswith("0 ")
        assert (following.wait(), following.errors) == (141, "")


def test_a_slow_pipe_is_written_line_by_line(pylog, topic, environment, command):
    reader, writer = os.pipe()
    with PipedChild([*command, "produce", topic], env=environment, stdin=reader, errors=True) as writing:
        os.close(reader)
        try:
            os.write(writer, b"early\n")
            # Standard input stays open: the record must be there without any end of input.
            assert pylog("consume", topic, "--from-beginning", "-n", "1").stdout == "early\n"
        finally:
            os.close(writer)
        assert writing.wait() == 0, writing.errors
