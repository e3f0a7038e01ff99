"""Pieces of the command line that need no broker."""

import json
import re

import pytest
from click import BadParameter

from pylog_spark.cli.common import echo_json, echo_table, milliseconds, refuse_failed
from pylog_spark.client.errors import LogError
from pylog_spark.offsets import TopicPartition
from pylog_spark.results.groups import MemberDescription
from pylog_spark.results.topics import NamedResult


def test_a_table_aligns_words_left_and_numbers_right(capsys):
    echo_table(["NAME", "COUNT"], [("a", 5), ("longer", 1000)])
    assert capsys.readouterr().out == "NAME    COUNT\na           5\nlonger   1000\n"


def test_a_row_is_one_line_where_a_program_reads_it_and_its_cells_are_as_they_are(capsys):
    name = "[bold]" + "a" * 300
    echo_table(["NAME", "NOTE"], [(name, "")])
    assert capsys.readouterr().out.splitlines()[1] == name


def test_an_empty_table_is_its_heading(capsys):
    echo_table(["NAME"], [])
    assert capsys.readouterr().out == "NAME\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1700000000000", 1_700_000_000_000),
        ("1970-01-01", 0),
        ("1970-01-01T01:00:00+01:00", 0),
        ("2026-01-31T12:00", 1_769_860_800_000),
    ],
)
def test_a_time_is_milliseconds_or_iso_and_utc_unless_it_says_otherwise(text, expected):
    assert milliseconds(text) == expected


def test_a_time_that_is_none_is_refused():
    with pytest.raises(BadParameter, match="yesterday"):
        milliseconds("yesterday")


def test_a_result_is_printed_as_json_with_its_fields_in_alphabetical_order(capsys):
    partitions = (TopicPartition("t", 0), TopicPartition("t", 1))
    member = MemberDescription("m", None, "c", "h", partitions)
    echo_json([{"group_id": "g", "members": (member,)}])
    shown = capsys.readouterr().out
    assert json.loads(shown) == [
        {
            "group_id": "g",
            "members": [
                {
                    "client_id": "c",
                    "host": "h",
                    "instance_id": None,
                    "member_id": "m",
                    "partitions": [["t", 0], ["t", 1]],
                }
            ],
        }
    ]
    names = re.findall(r'"(\w+)":', shown)
    assert names == ["group_id", "members", "client_id", "host", "instance_id", "member_id", "partitions"]


def test_a_failure_without_a_sentence_says_whose_it_is():
    results = [NamedResult("kept", None, None), NamedResult("lost", "UNKNOWN_SERVER_ERROR", None)]
    with pytest.raises(LogError, match=r"lost: UNKNOWN_SERVER_ERROR\.$"):
        refuse_failed(results)
