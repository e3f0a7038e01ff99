"""The error of an answer, or of one of its items."""

from pylog_spark.broker.messages import Error
from pylog_spark.cluster.errors import ErrorCode, Refusal


def error_of(outcome: object) -> Error:
    """Give error_code and error_message of an item: those of a `Refusal`, and no error for anything else."""
    if isinstance(outcome, Refusal):
        return {"error_code": int(outcome.code), "error_message": outcome.message}
    return {"error_code": int(ErrorCode.NONE), "error_message": None}
