"""What the handlers of requests have in common: their form, and the error of an answer or of one of its items."""

from collections.abc import Callable
from typing import Any

from pylog_spark.broker.messages import Answer, Error
from pylog_spark.broker.registry import TopicRegistry
from pylog_spark.cluster.errors import ErrorCode, Refusal

#: Handles the requests of one kind. Each handler names its own types; the table of them is looked up by the kind that came with the JSON.
Handler = Callable[[TopicRegistry, Any], Answer]


def error_of(outcome: object) -> Error:
    """Give error_code and error_message of an item: those of a `Refusal`, and no error for anything else."""
    if isinstance(outcome, Refusal):
        return {"error_code": int(outcome.code), "error_message": outcome.message}
    return {"error_code": int(ErrorCode.NONE), "error_message": None}
