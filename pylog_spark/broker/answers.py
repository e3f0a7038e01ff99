"""What the answers of all requests that need a decision have in common."""

from typing import Any

from pylog_spark.cluster.errors import ErrorCode, Refusal

Json = dict[str, Any]


def error_of(outcome: object) -> Json:
    """Give error_code and error_message of one item: those of a `Refusal`, and no error for anything else."""
    if isinstance(outcome, Refusal):
        return {"error_code": int(outcome.code), "error_message": outcome.message}
    return {"error_code": int(ErrorCode.NONE), "error_message": None}
