"""SQL statements about pylog's data source: which work, and how the others are refused."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.harness.ports import nowhere
from tests.spark.support import Topic, error_of

pytestmark = pytest.mark.cluster

Topics = Callable[..., Topic]


@pytest.fixture
def table(spark: Any, tmp_path: Path) -> Iterator[str]:
    """The name of a table of Spark's catalog that has columns and no options."""
    spark.sql(f"CREATE TABLE log_lines (value BINARY) USING pylog LOCATION '{tmp_path}'")
    yield "log_lines"
    spark.sql("DROP TABLE log_lines")


def options(topic: Topic, role: str) -> str:
    return f"`kafka.bootstrap.servers` = '{topic.servers}', {role} = '{topic.name}'"


def test_a_table_is_written_and_read_with_the_options_of_each_statement(
    make_topic: Topics, spark: Any, table: str
) -> None:
    topic = make_topic()
    spark.sql(f"INSERT INTO {table} WITH ({options(topic, 'topic')}) SELECT CAST('a' AS BINARY)")
    rows = spark.sql(f"SELECT value FROM {table} WITH ({options(topic, 'subscribe')})").collect()
    assert [bytes(row.value) for row in rows] == [b"a"]


def test_a_table_without_options_in_the_statement_is_refused_with_where_to_name_them(spark: Any, table: str) -> None:
    for statement in (f"SELECT * FROM {table}", f"INSERT INTO {table} SELECT CAST('a' AS BINARY)"):
        condition, sentence = error_of(lambda statement=statement: spark.sql(statement).collect())
        assert condition == "PYLOG_INVALID_OPTION"
        assert "INSERT INTO t WITH (...)" in sentence


def test_options_of_a_table_are_refused_when_it_is_made(make_topic: Topics, spark: Any) -> None:
    topic = make_topic()
    given = options(topic, "subscribe").replace(" = ", " ")
    condition, sentence = error_of(lambda: spark.sql(f"CREATE TABLE refused USING pylog OPTIONS ({given})"))
    assert condition == "PYLOG_UNSUPPORTED_OPTION"
    assert "CREATE TEMPORARY VIEW" in sentence


def test_the_options_of_a_statement_run_no_function_and_send_no_file_or_variable(spark: Any, tmp_path: Path) -> None:
    """Whoever may write SQL is not whoever started Spark."""
    ran = tmp_path / "ran"
    login = "`kafka.security.protocol` 'SASL_PLAINTEXT', `kafka.sasl.mechanism` 'OAUTHBEARER'"
    for number, bad in enumerate(
        (
            f"`kafka.sasl.oauthbearer.token.provider` 'os:system', `kafka.sasl.oauthbearer.token.provider.config` 'touch {ran}'",
            "`kafka.sasl.oauthbearer.token.endpoint.url` 'file:/etc/hostname'",
            "clientRack 'env:HOME'",
        )
    ):
        given = f"`kafka.bootstrap.servers` '{nowhere()}', subscribe 'a', {login}, {bad}"
        condition, sentence = error_of(
            lambda number=number, given=given: spark.sql(
                f"CREATE TEMPORARY VIEW v{number} USING pylog OPTIONS ({given})"
            )
        )
        assert (condition, "PYLOG_ALLOWED_" in sentence) == ("PYLOG_NOT_ALLOWED", True)
    assert not ran.exists()


def test_a_view_is_read_with_its_own_options(make_topic: Topics, spark: Any) -> None:
    topic = make_topic()
    topic.put(["a", "b"])
    given = options(topic, "subscribe").replace(" = ", " ")
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW lines_of_log USING pylog OPTIONS ({given})")
    assert spark.sql("SELECT count(*) FROM lines_of_log").first()[0] == 2
    spark.sql("DROP VIEW lines_of_log")


def test_a_view_with_a_topic_is_written_to(make_topic: Topics, spark: Any) -> None:
    topic = make_topic()
    given = options(topic, "topic").replace(" = ", " ")
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW written_lines (value STRING) USING pylog OPTIONS ({given})")
    spark.sql("INSERT INTO written_lines VALUES ('a'), ('b')")
    assert sorted(topic.values()) == ["a", "b"]
    spark.sql("DROP VIEW written_lines")


def test_insert_overwrite_is_refused(make_topic: Topics, spark: Any, table: str) -> None:
    topic = make_topic()
    statement = f"INSERT OVERWRITE {table} WITH ({options(topic, 'topic')}) SELECT CAST('a' AS BINARY)"
    condition, sentence = error_of(lambda: spark.sql(statement))
    assert condition == "PYLOG_UNSUPPORTED_MODE"
    assert "can only be appended to" in sentence
