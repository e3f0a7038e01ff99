"""A decision as a record."""

import subprocess
import sys

import pytest

from pylog_spark.sink.ledger import _binary


@pytest.mark.parametrize("value", [b"a decision", b"", None])
def test_a_value_is_an_array_of_one(value: bytes | None) -> None:
    array = _binary(value)
    array.validate(full=True)
    assert array.to_pylist() == [value]
    assert array.null_count == (value is None)


def test_a_value_is_made_without_pandas() -> None:
    code = "import sys; from pylog_spark.sink.ledger import _binary; _binary(b'x'); print('pandas' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
