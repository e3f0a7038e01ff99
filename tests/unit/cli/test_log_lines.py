"""The forms of the log's lines."""

import json
import logging
import sys

from pylog_spark.cli.log_lines import JsonFormatter, TextFormatter


def record(message, level=logging.WARNING, name="pylog.broker.network", exc_info=None, **more):
    one = logging.LogRecord(name, level, __file__, 1, message, (), exc_info)
    one.created = 1_700_000_000.25
    for key, value in more.items():
        setattr(one, key, value)
    return one


def failed():
    try:
        raise ValueError("no\nroom")
    except ValueError:
        return sys.exc_info()


def test_a_line_of_text_has_time_level_logger_broker_and_message():
    line = TextFormatter().format(record("closed the connection of 127.0.0.1:5", broker=1))
    assert line == "2023-11-14T22:13:20.250Z WARN pylog.broker.network broker=1: closed the connection of 127.0.0.1:5"
    line = TextFormatter().format(record("100% done", logging.CRITICAL, "another.library"))
    assert line == "2023-11-14T22:13:20.250Z FATAL another.library: 100% done"


def test_nothing_in_a_message_ends_the_line_or_moves_the_cursor():
    line = TextFormatter().format(record("a\nb\r\tc\x1b[2J\u2028d\x85e é", broker=1))
    assert line.endswith("broker=1: a\\nb\\r\\tc\\x1b[2J\\u2028d\\x85e é")
    assert line.isprintable()


def test_a_traceback_is_in_the_same_line():
    line = TextFormatter().format(record("It failed.", exc_info=failed()))
    assert "It failed.\\nTraceback (most recent call last):\\n" in line
    assert line.endswith("ValueError: no\\nroom")
    assert len(line.splitlines()) == 1


def test_a_line_of_json_is_one_object():
    fields = {"client": "127.0.0.1", "left_out": "12"}
    text = JsonFormatter().format(record("a\nb \u2028", broker=2, fields=fields))
    assert len(text.splitlines()) == 1
    assert json.loads(text) == {
        "time": "2023-11-14T22:13:20.250Z",
        "level": "WARN",
        "logger": "pylog.broker.network",
        "broker": 2,
        "message": "a\nb \u2028",
        "fields": fields,
    }
    line = json.loads(JsonFormatter().format(record("It failed.", exc_info=failed())))
    assert line["exception"].startswith("Traceback")
    assert (line["broker"], line["fields"]) == (None, {})
