"""What the tests of archives compare."""

from collections.abc import Callable
from pathlib import Path

from pylog_spark.archive.checking import ArchiveReader
from pylog_spark.archive.container import members
from pylog_spark.archive.document import segment_of
from pylog_spark.archive.exporting import ExportOptions, export
from pylog_spark.archive.restoring import RestoreOptions, restore
from pylog_spark.client import Admin

#: The project.
ROOT = Path(__file__).parent.parent.parent
#: So small that each test has many segments.
SEGMENT_BYTES = 4_000


def exported(admin: Admin, topic: str, path: Path, **options: int | bool | None) -> Path:
    """Export `topic` into `path` in small segments."""
    given = {"segment_bytes": SEGMENT_BYTES, **options}
    export(admin, topic, str(path), ExportOptions(**given), lambda _done, _whole: None)
    return path


def restored(
    admin: Admin, path: Path, name: str, say: Callable[[str], None] = lambda _line: None, **configs: str
) -> int:
    """Make the topic `name` of an archive; how many batches that took."""
    options = RestoreOptions(name, {setting.replace("_", "."): text for setting, text in configs.items()})
    _, batches = restore(admin, ArchiveReader(str(path)), options, say, lambda _done, _whole: None)
    return batches


def batches_of(path: Path, partition: int) -> bytes:
    """The batches of a partition in an archive, but for the leader epochs."""
    found = ((segment_of(member.name), member.data) for member in members(str(path)))
    return b"".join(without_epochs(data) for segment, data in found if segment is not None and segment[1] == partition)


def without_epochs(records: bytes) -> bytes:
    """Batches but for the leader epochs."""
    whole = bytearray()
    while records:
        size = 12 + int.from_bytes(records[8:12], "big")
        whole += records[:12] + records[16:size]
        records = records[size:]
    return bytes(whole)


def behind_the_end(ends: list[int]) -> list[int]:
    """Where the logs of a restored topic end: behind the last offset of the archive there is the end of the copy."""
    return [end + 1 for end in ends]
