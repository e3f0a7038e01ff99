"""Opens an archive, by the object that says that a folder is one."""

from __future__ import annotations

from pylog_spark.archive.store.layout import ROOT, check_root, root_document
from pylog_spark.archive.store.manifest import ManifestError
from pylog_spark.archive.store.objects import Objects
from pylog_spark.client.errors import LogError


def open_archive(url: str, *, create: bool = False) -> Objects:
    """Give the objects of an archive; make it when there is none and `create`.

    Raises
    ------
    LogError
        INVALID_ARGUMENT: there is none, or it is of another version.
    OSError
        The file system cannot be read or written.
    """
    return open_root(Objects(url), url, create=create)


def open_root(objects: Objects, where: str, *, create: bool = False) -> Objects:
    """Give `objects` when they are an archive, as `open_archive`; errors name it as `where`."""
    try:
        check_root(objects.read(ROOT))
    except FileNotFoundError:
        if not create:
            raise LogError("INVALID_ARGUMENT", f"{where} is no archive: it has no {ROOT}.") from None
        objects.put(ROOT, root_document())
    except ManifestError as error:
        raise LogError("INVALID_ARGUMENT", f"{where} is no archive that can be used: {error}.") from None
    return objects
