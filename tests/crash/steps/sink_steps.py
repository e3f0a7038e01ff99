"""Stops the sink at a named step, in the process under test, without a hook in production code.

The native classes that the sink works with are wrapped as soon as they are imported. A test asks for a stop by making a file
``armed/<step>@<key>`` in the folder ``$PYLOG_STEPS``; the first process that comes to that step of that write renames it to
``reached/<step>@<key>@<pid>`` and waits there until the test removes it, or kills it.

Nothing but waiting is done to the sink, with one exception: to stop between two EndTxn, a list of several transactions is ended in
two calls.
"""

import contextlib
import os
import signal
import sys
import time
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import PathFinder

BEFORE_FLUSH = "before-flush"
FLUSHED = "flushed"
PREPARED = "prepared"
BEFORE_DECISION = "before-decision"
DECIDED = "decided"
BETWEEN_ENDS = "between-ends"
ENDED = "ended"
IN_TASKS = (BEFORE_FLUSH, FLUSHED, PREPARED)
ON_DRIVER = (BEFORE_DECISION, DECIDED, BETWEEN_ENDS, ENDED)
STEPS = IN_TASKS + ON_DRIVER

_NATIVE = "pylog_spark._native"
_TASK_PREFIX = "pylog-once."
_DRIVER_PREFIX = "pylog-sink."
_PAUSE_S = 0.005

# Keys about which this process has decided, and whose transactions it has not ended. A driver also ends those of the version before
# (they usually are), and that is not the step that is meant.
_decided: "set[str]" = set()


def stop_at(step: str, key: "str | None") -> None:
    """Wait here when a test has asked for it."""
    name = f"{step}@{key}".replace("/", ":")
    control = os.environ["PYLOG_STEPS"]
    reached = os.path.join(control, "reached", f"{name}@{os.getpid()}")
    try:
        os.rename(os.path.join(control, "armed", name), reached)
    except FileNotFoundError:
        return
    _outlive_spark()
    while os.path.exists(reached):
        time.sleep(_PAUSE_S)


def _outlive_spark() -> None:
    """Spark's daemon takes its workers along when it ends; on a machine that is cut off no process does, and a zombie goes on."""
    with contextlib.suppress(ValueError):  # not the main thread
        signal.signal(signal.SIGHUP, signal.SIG_IGN)


def _key_of(transactional_id: str) -> str:
    """The write that a transaction of a task belongs to."""
    return transactional_id.removeprefix(_TASK_PREFIX).rsplit(".", 3)[0]


def _query_of_task() -> "str | None":
    from pyspark import TaskContext

    task = TaskContext.get()
    return None if task is None else task.getLocalProperty("sql.streaming.queryId")


class _Wrapped:
    """Passes everything on to the native object inside."""

    def __init__(self, inside: object) -> None:
        self._inside = inside

    def __getattr__(self, name: str) -> object:
        return getattr(self._inside, name)


def _record_writer(native: type) -> type:
    class RecordWriter(_Wrapped):
        def __init__(self, config: dict, topic: "str | None" = None, **more: "str | None") -> None:
            super().__init__(native(config, topic, **more))
            name = more.get("transactional_id") or ""
            self._decides = name.startswith(_DRIVER_PREFIX)
            self._key = _key_of(name) if name.startswith(_TASK_PREFIX) else name.removeprefix(_DRIVER_PREFIX)

        def flush(self) -> dict:
            if self._decides:
                return self._inside.flush()
            key = self._key or _query_of_task()
            stop_at(BEFORE_FLUSH, key)
            result = self._inside.flush()
            stop_at(FLUSHED, key)
            return result

        def prepare(self) -> "dict | None":
            result = self._inside.prepare()
            if not self._decides:
                stop_at(PREPARED, self._key)
            return result

        def end(self, commit: bool) -> None:
            if self._decides and commit:
                stop_at(BEFORE_DECISION, self._key)
            self._inside.end(commit)
            if self._decides and commit:
                _decided.add(self._key)
                stop_at(DECIDED, self._key)

    return RecordWriter


def _client(native: type) -> type:
    class Client(_Wrapped):
        def __init__(self, *arguments: object, **named: object) -> None:
            super().__init__(native(*arguments, **named))

        def end_transactions(self, transactions: list, commit: bool, timeout_ms: int) -> list:
            key, done = _key_of(transactions[0][0]) if transactions else "", []
            if not commit or key not in _decided:
                return self._inside.end_transactions(transactions, commit, timeout_ms)
            if len(transactions) > 1:
                done = self._inside.end_transactions(transactions[:1], commit, timeout_ms)
                stop_at(BETWEEN_ENDS, key)
                transactions = transactions[1:]
            done = [*done, *self._inside.end_transactions(transactions, commit, timeout_ms)]
            _decided.discard(key)
            stop_at(ENDED, key)
            return done

    return Client


class _AfterImport(Loader):
    """Loads the native module as always, then wraps its classes."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def create_module(self, spec: object) -> object:
        return self._loader.create_module(spec)

    def exec_module(self, module: object) -> None:
        self._loader.exec_module(module)
        module.RecordWriter = _record_writer(module.RecordWriter)
        module.Client = _client(module.Client)


class _Finder(MetaPathFinder):
    """Finds only the native module."""

    def find_spec(self, name: str, path: object, target: object = None) -> object:
        if name != _NATIVE:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None:
            spec.loader = _AfterImport(spec.loader)
        return spec


def install() -> None:
    """Wrap the native classes when they are imported."""
    sys.meta_path.insert(0, _Finder())
