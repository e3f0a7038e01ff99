"""Conditions on the columns of a typed read, with ``pushdown``: the decoder takes exactly the rows that Spark finds by itself. 20 s."""

import functools
import json
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from tests.harness.runs import rounds
from tests.spark.support import Topic

CONDITIONS = rounds("PYLOG_TYPED_CONDITIONS", 30, 150)
COLUMNS = (
    "flag boolean, tiny tinyint, small smallint, number int, id bigint, f float, d double, amount decimal(9, 2), "
    "day date, at timestamp, local timestamp_ntz, what string, raw binary, tags array<int>, _corrupt_record string, "
    "partition int, offset bigint, key bigint"
)

#: Column -> values in records, and literals of SQL to compare with.
_VALUES: dict[str, tuple[list[Any], list[str]]] = {
    "flag": ([True, False, None], ["true", "false"]),
    "tiny": ([-128, 0, 5, 127, None], ["tinyint(0)", "tinyint(5)", "tinyint(-128)"]),
    "small": ([-3, 0, 300, None], ["smallint(0)", "smallint(300)"]),
    "number": ([-5, 0, 7, 2**31 - 1, None], ["0", "7", "2147483647", "-5"]),
    "id": ([-(2**63), -1, 0, 2**40, 2**63 - 1, None], ["0L", "-1L", "9223372036854775807L", "1099511627776L"]),
    "f": ([-1.5, 0.1, "NaN", -0.0, 0.0, "Infinity", None], ["float(0.1)", "float('NaN')", "float(0)", "float(-1.5)"]),
    "d": ([-1.5, 0.1, "NaN", -0.0, 0.0, "-Infinity", None], ["0.1d", "double('NaN')", "0d", "-0.0d", "-1.5d"]),
    "amount": ([1.25, -3, None], ["cast(1.25 as decimal(9,2))"]),
    "day": (["1969-12-31", "2026-01-01", None], ["date'2026-01-01'", "date'1970-01-01'"]),
    "at": (
        ["1969-12-31T23:59:59.999999Z", "2026-01-01T00:00:00.000001Z", None],
        ["timestamp'2026-01-01 00:00:00.000001+00:00'", "timestamp'1970-01-01 00:00:00+00:00'"],
    ),
    "local": (
        ["2026-01-01T00:00:00", None],
        ["timestamp_ntz'2026-01-01 00:00:00'", "timestamp_ntz'2025-01-01 00:00:00'"],
    ),
    "what": (["", "a", "aé", "b", "z\u0000", None], ["''", "'a'", "'aé'", "'b'"]),
    "raw": (["", "YQ==", "/w==", None], ["X''", "X'61'", "X'FF'"]),
    "key": ([1, 5], ["1L", "4L"]),
    "_corrupt_record": ([], ["'{'", "'x'"]),
    "tags": ([[1], [], None], []),
}


@pytest.fixture
def mixed(spark: Any, make_topic: Callable[..., Topic]) -> Topic:
    """Two partitions of 40 records of JSON, some of which do not parse or lack a value, with keys of eight bytes."""
    topic, chance = make_topic(partitions=2), random.Random(3)
    for partition in range(2):
        values: list[Any] = []
        for number in range(40):
            record = {name: chance.choice(found) for name, (found, _) in _VALUES.items() if found and name != "key"}
            values.append({7: "{", 8: None, 9: '{"number":"x"}'}.get(number % 20, json.dumps(record)))
        keys = [chance.choice([1, 5]).to_bytes(8, "big") for _ in values]
        topic.put(values, partition, key=pa.array(keys, pa.binary()))
    return topic


def _condition(chance: random.Random) -> str:
    column = chance.choice([name for name in _VALUES if name != "tags"])
    literals = _VALUES[column][1]
    kind = chance.choice(["=", "<=>", "<", "<=", ">", ">=", "in", "in null", "null", "not null", "or", "not", "prefix"])
    first, second = chance.choice(literals), chance.choice(literals)
    return {
        "in": f"{column} in ({first}, {second})",
        "in null": f"{column} in ({first}, null)",
        "null": f"{chance.choice([column, 'tags'])} is null",
        "not null": f"{chance.choice([column, 'tags'])} is not null",
        "or": f"({column} = {first} or number = 0)",
        "not": f"not {column} <= {first}",
        "prefix": f"startswith(what, {chance.choice(_VALUES['what'][1])})",
    }.get(kind, f"{column} {kind} {first}")


@pytest.mark.slow
def test_random_conditions_give_the_rows_that_spark_finds_by_itself(mixed: Topic, pushdown: None) -> None:
    chance = random.Random(20)
    said = [" and ".join(_condition(chance) for _ in range(chance.choice([1, 1, 2]))) for _ in range(CONDITIONS)]
    options = {"valueFormat": "json", "keyFormat": "long", "minRecordsPerPartition": "1000"}
    # All in one query, each with a read of its own.
    asked = [
        mixed.read(COLUMNS, pushdown="true", **options).where(text).selectExpr(str(number), "partition", "offset")
        for number, text in enumerate(said)
    ]
    found = Counter(tuple(row) for row in functools.reduce(lambda frame, other: frame.union(other), asked).collect())
    whole = mixed.read(COLUMNS, **options)
    rows = whole.selectExpr("partition", "offset", *(f"({text}) AS c{number}" for number, text in enumerate(said)))
    expected = Counter(
        (number, row.partition, row.offset) for row in rows.collect() for number in range(CONDITIONS) if row[2 + number]
    )
    for number, text in enumerate(said):
        mine, theirs = ({row for row in rows if row[0] == number} for rows in (found, expected))
        assert mine == theirs, text
    assert found == expected
    counts = Counter(number for number, *_ in expected)
    assert sum(0 < count < 80 for count in counts.values()) >= CONDITIONS / 4


@pytest.mark.slow
def test_conditions_on_columns_that_are_decoded_are_not_looked_at_by_spark_again(mixed: Topic, pushdown: None) -> None:
    def plan(said: str, **options: str) -> str:
        frame = mixed.read(COLUMNS, pushdown="true", valueFormat="json", keyFormat="long", **options).where(said)
        return str(frame._jdf.queryExecution().executedPlan().toString())

    taken = "flag = true and number > 3 and d < 1d and day = date'2026-01-01' and startswith(what, 'a') and key = 5L"
    assert " Filter " not in plan(taken)
    assert " Filter " not in plan("_corrupt_record is not null and raw = X'61' and at > timestamp'2020-01-01 00:00:00'")
    assert " Filter " in plan("amount = 1.25")
    assert " Filter " in plan("tags is null")
    # The limit is of records, before conditions on what is in them.
    assert " Filter " in plan("number > 3", maxRecordsPerPartition="1", limit="5")


@pytest.mark.slow
def test_a_record_that_does_not_parse_ends_the_query_also_where_no_condition_wants_it(
    mixed: Topic, pushdown: None
) -> None:
    frame = mixed.read("number int", pushdown="true", valueFormat="json", mode="FAILFAST")
    with pytest.raises(Exception, match=r"\[PYLOG_BAD_RECORD\]"):
        frame.where("number = 7").count()
    dropped = mixed.read("number int", pushdown="true", valueFormat="json", mode="DROPMALFORMED")
    assert (
        dropped.where("number is null").count()
        < mixed.read("number int", valueFormat="json").where("number is null").count()
    )
