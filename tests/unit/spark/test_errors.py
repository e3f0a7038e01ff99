"""Every error of a user is a condition and one sentence."""

import pickle

import pytest

from pylog_spark.errors import CONDITIONS, PylogError, from_native, translated


class NativeError(Exception):
    """Stands for pylog_spark._native.NativeError, which is known by its name."""


def test_a_native_error_becomes_the_users_without_a_chain() -> None:
    with pytest.raises(PylogError) as caught, translated():
        raise NativeError("OFFSET_OUT_OF_RANGE", "t-0: offset 7 is not in the log")
    assert str(caught.value) == (
        "[PYLOG_DATA_LOSS] t-0: offset 7 is not in the log; set failOnDataLoss to false to go on with what is left."
    )
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def test_another_exception_goes_through_untouched() -> None:
    with pytest.raises(ZeroDivisionError), translated():
        raise ZeroDivisionError


def test_an_unknown_kind_keeps_its_name() -> None:
    error = from_native("KAFKA_STORAGE_ERROR", "The disk of broker 1 failed.")
    assert str(error) == "[PYLOG_BROKER] The disk of broker 1 failed (KAFKA_STORAGE_ERROR)."


def test_a_token_that_is_missing_is_waited_for_as_a_broker_is_and_its_source_is_named() -> None:
    error = from_native("TOKEN_UNAVAILABLE", "The function tokens:one gave no token: it raised OSError")
    assert str(error) == (
        "[PYLOG_UNREACHABLE] The function tokens:one gave no token: it raised OSError; see kafka.sasl.oauthbearer.*."
    )


@pytest.mark.parametrize(
    "kind", ["UNREACHABLE", "UNKNOWN_TOPIC_OR_PARTITION", "CORRUPT_BATCH", "MESSAGE_TOO_LARGE", "X"]
)
def test_conditions_are_those_that_are_documented(kind: str) -> None:
    assert from_native(kind, "Something.").condition in CONDITIONS


def test_an_error_survives_pickling() -> None:
    error = pickle.loads(pickle.dumps(PylogError("PYLOG_BROKER", "No.")))
    assert (error.condition, error.sentence) == ("PYLOG_BROKER", "No.")
