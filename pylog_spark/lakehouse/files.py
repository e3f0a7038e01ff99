"""Files and folders of a table: what a commit needs of a file system, which is that a file appears whole, and once.

In a local folder a commit is written under another name, brought to the device, and given its own name by a link, which fails where
that name exists. Data files are on the device before a commit names them.

Other file systems are asked through Hadoop, as Spark asks them. There a commit gets its name by a rename that must not replace anything,
as the files of Spark's checkpoints do: HDFS decides that at one place. An object store has no such rename: one process at a time may load
a table there.
"""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import unquote, urlparse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Files(Protocol):
    """A folder; names are relative to it, with slashes."""

    @property
    def root(self) -> str:
        """The folder, as Spark names it."""

    def names(self, folder: str) -> list[str]:
        """The names in a folder; none when it does not exist."""

    def read(self, name: str) -> str:
        """The text of a file. Raises FileNotFoundError when there is none."""

    def put_if_absent(self, name: str, text: str) -> bool:
        """Make a file, unless there is one of this name; whether it was made. Nobody sees a part of it."""

    def data_files(self, folder: str) -> Iterator[tuple[str, int]]:
        """The files of a folder, and of those below, that readers of Parquet would take: path below `folder`, and size."""

    def modified_ms(self, name: str) -> int:
        """When a file or folder was made or changed, in milliseconds since 1970; 0 when it is gone."""

    def move(self, name: str, to: str) -> None:
        """Bring a file to the device, and give it another name in another folder."""

    def remove(self, name: str) -> None:
        """Remove a file, or a folder with all that is in it, if it exists."""


class LocalFiles:
    """A folder of this machine."""

    def __init__(self, root: str) -> None:
        self._root = Path(root).absolute()

    @property
    def root(self) -> str:
        return str(self._root)

    def names(self, folder: str) -> list[str]:
        try:
            return os.listdir(self._root / folder)
        except FileNotFoundError:
            return []

    def read(self, name: str) -> str:
        return (self._root / name).read_text()

    def put_if_absent(self, name: str, text: str) -> bool:
        target = self._root / name
        target.parent.mkdir(parents=True, exist_ok=True)
        part = target.with_name(f".{uuid.uuid4().hex}")
        with part.open("w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(part, target)
        except FileExistsError:
            return False
        finally:
            part.unlink()
        _sync(target.parent)
        return True

    def data_files(self, folder: str) -> Iterator[tuple[str, int]]:
        top = self._root / folder
        for place, folders, names in os.walk(top):
            folders[:] = [name for name in folders if not _is_hidden(name)]
            for name in names:
                if not _is_hidden(name):
                    path = Path(place, name)
                    yield str(path.relative_to(top)), path.stat().st_size

    def modified_ms(self, name: str) -> int:
        try:
            return (self._root / name).stat().st_mtime_ns // 1_000_000
        except FileNotFoundError:
            return 0

    def move(self, name: str, to: str) -> None:
        target = self._root / to
        target.parent.mkdir(parents=True, exist_ok=True)
        _sync(self._root / name)
        os.rename(self._root / name, target)
        _sync(target.parent)

    def remove(self, name: str) -> None:
        path = self._root / name
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


class HadoopFiles:
    """A folder of any file system that Spark can write to."""

    def __init__(self, spark: SparkSession, root: str) -> None:
        java: Any = spark._jvm
        self._java = java.org.apache.hadoop
        configuration = spark._jsparkSession.sessionState().newHadoopConf()
        self._root = self._java.fs.Path(root)
        self._system = self._root.getFileSystem(configuration)
        self._context = self._java.fs.FileContext.getFileContext(self._root.toUri(), configuration)
        self._to_text = java.org.apache.commons.io.IOUtils.toString
        self._no_options = spark.sparkContext._gateway.new_array(self._java.fs.Options.Rename, 0)  # type: ignore[union-attr]

    @property
    def root(self) -> str:
        return str(self._root.toString())

    def names(self, folder: str) -> list[str]:
        path = self._path(folder)
        return [status.getPath().getName() for status in self._system.listStatus(path)] if self._has(path) else []

    def read(self, name: str) -> str:
        path = self._path(name)
        if not self._has(path):
            raise FileNotFoundError(str(path))
        stream = self._system.open(path)
        try:
            return str(self._to_text(stream, "UTF-8"))
        finally:
            stream.close()

    def put_if_absent(self, name: str, text: str) -> bool:
        from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]

        target = self._path(name)
        part = self._java.fs.Path(target.getParent(), f".{uuid.uuid4().hex}")
        stream = self._system.create(part, False)
        stream.write(bytearray(text.encode()))
        stream.close()
        try:
            self._context.rename(part, target, self._no_options)
        except Py4JJavaError as error:
            self._system.delete(part, False)
            if error.java_exception.getClass().getSimpleName() != "FileAlreadyExistsException":
                raise
            return False
        return True

    def data_files(self, folder: str) -> Iterator[tuple[str, int]]:
        top = self._path(folder)
        ahead = [("", top)] if self._has(top) else []
        while ahead:
            prefix, path = ahead.pop()
            for status in self._system.listStatus(path):
                name = status.getPath().getName()
                if _is_hidden(name):
                    continue
                if status.isDirectory():
                    ahead.append((f"{prefix}{name}/", status.getPath()))
                else:
                    yield f"{prefix}{name}", int(status.getLen())

    def modified_ms(self, name: str) -> int:
        path = self._path(name)
        return int(self._system.getFileStatus(path).getModificationTime()) if self._has(path) else 0

    def move(self, name: str, to: str) -> None:
        target = self._path(to)
        self._system.mkdirs(target.getParent())
        if not self._system.rename(self._path(name), target):
            raise OSError(f"{name} could not be renamed to {to} in {self.root}")

    def remove(self, name: str) -> None:
        self._system.delete(self._path(name), True)

    def _path(self, name: str) -> Any:
        return self._java.fs.Path(self._root, name) if name else self._root

    def _has(self, path: Any) -> bool:
        return bool(self._system.exists(path))


def files_of(spark: SparkSession, path: str) -> Files:
    """Give the files of a folder. A path without a scheme is one of Spark's default file system."""
    java: Any = spark._jvm
    configuration = spark._jsparkSession.sessionState().newHadoopConf()
    given = java.org.apache.hadoop.fs.Path(path)
    whole = str(given.getFileSystem(configuration).makeQualified(given).toString())
    parsed = urlparse(whole)
    if parsed.scheme != "file":
        return HadoopFiles(spark, whole)
    # Java may have been started in another folder than this process is in now.
    return LocalFiles(path if not urlparse(path).scheme else unquote(parsed.path))


def _is_hidden(name: str) -> bool:
    """Whether Spark does not look at this file or folder; a folder of a partition column may begin with any character."""
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
