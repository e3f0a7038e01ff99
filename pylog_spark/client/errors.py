"""The error of the Python client, and the one place where a native error becomes it."""

from collections.abc import Iterator
from contextlib import contextmanager

from pylog_spark.results.decoding import DocumentError


class LogError(Exception):
    """A request to a broker failed.

    Attributes
    ----------
    kind : str
        Kafka's name of an error (``UNKNOWN_TOPIC_OR_PARTITION``...), a kind of `pylog_spark._native.NativeError`, ``MISMATCHED_BUILDS``:
        the native module is of another build than this package, or of formats and schemas a condition of `pylog_spark.errors`.
    sentence : str
        What happened, where, and what to do.
    """

    def __init__(self, kind: str, sentence: str) -> None:
        super().__init__(kind, sentence)
        self.kind = kind
        self.sentence = sentence

    def __str__(self) -> str:
        return self.sentence


@contextmanager
def translated() -> Iterator[None]:
    """Turn a `NativeError` or `DocumentError` raised inside into a `LogError`."""
    from pylog_spark._native import NativeError

    try:
        yield
    except (NativeError, DocumentError) as error:
        kind, sentence = error.args
        raise LogError(kind, sentence) from error
