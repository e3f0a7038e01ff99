"""A function for ``foreachBatch`` that writes each micro-batch exactly once, in any output mode.

Spark offers the output mode update to no sink written in Python; ``foreachBatch`` takes every mode, and runs a batch again
after a crash. The batch's number as version makes the second run a no-op.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pylog_spark.errors import PylogError
from pylog_spark.offsets import texts


def foreach_batch(app_id: str, **options: object) -> Callable[[Any, int], None]:
    """Give a function for ``DataStreamWriter.foreachBatch`` that appends every micro-batch to the log exactly once.

    Parameters
    ----------
    app_id : str
        Name of this write: the same after each restart from the same checkpoint, another with another checkpoint (whose batches
        are counted from 0 again) and in another query.
    **options
        Of ``format("pylog")``; those with dots as ``**{"kafka.bootstrap.servers": "..."}``.

    Raises
    ------
    PylogError
        When `app_id` cannot be a name, or `options` say what this function says.

    Examples
    --------
    >>> servers = {"kafka.bootstrap.servers": "localhost:9092"}
    >>> write = foreach_batch("counts-by-airport", topic="counts", **servers)
    >>> counts.writeStream.outputMode("update").foreachBatch(write).start()  # doctest: +SKIP
    """
    try:
        texts.app_id(app_id)
    except ValueError as error:
        raise PylogError("PYLOG_INVALID_OPTION", f"The app_id of foreach_batch {error}.") from None
    taken = sorted(name for name in options if name.lower() in ("txnappid", "txnversion"))
    if taken:
        raise PylogError("PYLOG_INVALID_OPTION", f"foreach_batch sets the option {taken[0]} itself; leave it out.")
    given = {name: value for name, value in options.items() if value is not None}

    def write(frame: Any, batch_id: int) -> None:
        writer = frame.write.format("pylog").options(**given)
        writer.option("txnAppId", app_id).option("txnVersion", batch_id).mode("append").save()

    return write
