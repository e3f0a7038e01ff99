"""A topic as a table of files, exactly once: loaded by a schedule or a stream, read together with the log's newest records.

    records of a topic -> `values` (columns) -> Parquet files in place -> one commit: files, and the offsets up to which they go

The commit is what counts. It names the table's files and, for each partition, the offset of the next record that the table lacks; it
appears whole or not at all, and each version once. A micro-batch that Spark runs again after a crash is compared with those
offsets: what the table has is left out. So rows are there once whatever dies when, and whatever becomes of the checkpoint.

| module | what it owns |
|---|---|
| `spec` | pure: what the user says of a table, how a later schema is merged into it |
| `commits` | pure: what is written into a commit, a table's state from its commits, which small files are to be merged |
| `files` | files and folders: what appears whole, and once |
| `values` | a record's columns, and the columns of its value |
| `table` | what a table of any format is for the others |
| `parquet` | a table of Parquet files: state, append, commit, compaction |
| `delta` | the same with a Delta log beside it, for other engines |
| `loading`, `reading` | what users call |

The names here are loaded when they are asked for, since they need pyspark.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pylog_spark.lakehouse.loading import compact, load, stream
    from pylog_spark.lakehouse.reading import read

__all__ = ["compact", "load", "read", "stream"]


def __getattr__(name: str) -> object:
    if name in ("compact", "load", "stream"):
        from pylog_spark.lakehouse import loading

        return getattr(loading, name)
    if name == "read":
        from pylog_spark.lakehouse import reading

        return reading.read
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
