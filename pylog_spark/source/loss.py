"""The one place that decides what missing records mean: an error, or a warning and going on with what is left."""

from __future__ import annotations

import logging

from pylog_spark.errors import PylogError

_log = logging.getLogger("pylog_spark")

_ADVICE = (
    "The records between are gone. To go on with what is left, set failOnDataLoss to false; to begin anew, use another "
    "checkpointLocation"
)


def report_loss(fail: bool, sentence: str, condition: str = "PYLOG_DATA_LOSS") -> None:
    """Raise, or warn when the query was told to go on.

    Parameters
    ----------
    fail : bool
        The option `failOnDataLoss`.
    sentence : str
        What is gone, naming topic, partition and offsets, without a final dot.
    condition : str
        ``PYLOG_DATA_LOSS`` or ``PYLOG_TOPIC_RECREATED``.

    Raises
    ------
    PylogError
        When `fail`.
    """
    if fail:
        raise PylogError(condition, f"{sentence}. {_ADVICE}.")
    _log.warning("%s: %s; going on because failOnDataLoss is false", condition, sentence)
