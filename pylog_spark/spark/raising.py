"""How our errors look in Spark's messages: the sentence first and last, without our own stack frames between.

Spark's Python processes print the traceback of what a data source raises, its causes before it, and the Java half puts that into the
message of its own exception, in front of its own stack: over Spark Connect ten thousand characters. So an error leaves through
one of the methods that Spark calls without the frames that it came through, and with its own sentence as its cause: a cause without a
traceback is printed as one line. Where Spark simplifies tracebacks (`spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled`, for
what it plans), it drops causes; then two lines of one frame are in front of the sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any, TypeVar, cast

from pylog_spark.errors import PylogError

Method = TypeVar("Method", bound=Callable[..., Any])


def sentence_first(method: Method) -> Method:
    """Let `method`, which Spark calls, raise a `PylogError` so that its sentence comes first in Spark's message."""

    @wraps(method)
    def raising(*given: Any, **named: Any) -> Any:
        try:
            return method(*given, **named)
        except PylogError as error:
            raise error.with_traceback(None) from _line(error)

    return cast("Method", raising)


def rows_sentence_first(method: Method) -> Method:
    """The same for a `method` that gives an iterator, for errors that are raised while Spark iterates."""

    @wraps(method)
    def raising(*given: Any, **named: Any) -> Iterator[Any]:
        try:
            yield from method(*given, **named)
        except PylogError as error:
            raise error.with_traceback(None) from _line(error)

    return cast("Method", raising)


def _line(error: PylogError) -> PylogError:
    return PylogError(error.condition, error.sentence)
