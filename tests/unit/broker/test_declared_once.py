"""Each setting has one declaration, in `broker_native/settings`: nowhere else stands a second one, or its default."""

import ast
import re
from pathlib import Path

from pylog_spark._native import settings
from pylog_spark.options.write import DELIVERY_TIMEOUT_MS, TRANSACTION_TIMEOUT_MS
from tests.test_tidy import RUST, block_end, code_of, tracked, without_tests

PACKAGE = Path(__file__).parents[3] / "pylog_spark"
OWNERS = ("client", "broker", "topic", "group")
_DEFAULT = re.compile(r"^impl Default for \w+", re.MULTILINE)


def test_no_default_of_a_table_stands_in_another_implementation_of_default():
    fields = {row.field for owner in OWNERS for row in settings(owner) if row.field}
    assert len(fields) > 100
    again = []
    for file in tracked(".rs"):
        if file.is_relative_to(RUST / "settings"):
            continue
        code = without_tests(code_of(file.read_text()))
        for found in _DEFAULT.finditer(code):
            block = code[found.start() : block_end(code, found.end())]
            again += [
                f"{file}: {name}" for name in re.findall(r"^\s+(\w+): [^\n]*\d", block, re.MULTILINE) if name in fields
            ]
    assert again == []


def test_python_declares_no_setting():
    made = []
    for file in sorted(PACKAGE.rglob("*.py")):
        calls = (node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Call))
        made += [file.name for call in calls if isinstance(call.func, ast.Name) and call.func.id == "Setting"]
    assert made == ["setting.py"]


def test_no_two_settings_are_read_into_the_same_field():
    for owner in OWNERS:
        fields = [row.field for row in settings(owner) if row.field]
        assert len(set(fields)) == len(fields)


def test_the_defaults_that_python_has_at_hand_where_the_native_half_may_be_missing_are_those_of_the_table():
    client = {row.name: row.default for row in settings("client")}
    broker = {row.name: row.default for row in settings("broker")}
    assert client["delivery.timeout.ms"] == DELIVERY_TIMEOUT_MS
    assert client["transaction.timeout.ms"] == broker["transaction.max.timeout.ms"] == TRANSACTION_TIMEOUT_MS
