"""What every reader of typed columns shares, with Spark and without it. pyspark is not imported here."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pylog_spark._native import TypedRead

_log = logging.getLogger("pylog_spark")

#: The native kind of records that begin with the id of a schema which is to be looked up.
UNKNOWN_WRITERS = "UNKNOWN_WRITERS"


def log_left_out(decoder: TypedRead | None) -> None:
    """Say in the log of this process how many damaged records a reader left out."""
    if decoder is not None and decoder.left_out:
        _log.warning("left out %d records that do not parse, as mode=DROPMALFORMED says", decoder.left_out)
