"""The lines of native brokers in Python's `logging`, as records of the loggers whose names they have.

The native half queues its lines. One thread of its own hands them to `_deliver` a moment later, several at a time, and calls it at least
once a second; a record has the time at which its line was logged. Levels are those of `logging`: the native half is given the level of each
logger, so that lines below it cost nothing; a change that is made with `setLevel` is seen within a second.
"""

import atexit
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from pylog_spark.broker import loggers

if TYPE_CHECKING:
    from pylog_spark._native import _LogLine

#: How long a broker that stops waits for slow handlers to write its last lines.
_FLUSH_TIMEOUT_MS = 5_000
#: The native half numbers its levels so: 0 is off, 1 error. The levels of `logging` by these numbers.
_SEVERITIES = (logging.CRITICAL, logging.ERROR, logging.WARNING, logging.INFO, logging.DEBUG, loggers.TRACE)
_NATIVE = tuple(name for name in loggers.LOGGERS if name.startswith("pylog.broker"))


class _Native:
    """The functions of the native module that are used once the log is open."""

    def __init__(self) -> None:
        self.set_levels: Callable[[list[tuple[str, int]]], None] = lambda _levels: None
        self.flush: Callable[[int], bool] = lambda _timeout_ms: True
        self.levels: list[tuple[str, int]] = []


_native = _Native()


def open_log() -> None:
    """Take the lines of this process's native brokers. Called before the first one is created; a second call changes nothing."""
    from pylog_spark import _native as module

    loggers.name_brokers()
    if module.open_log(_deliver):
        _native.set_levels, _native.flush, _native.levels = module.set_log_levels, module.flush_log, []
        atexit.register(module.close_log, _FLUSH_TIMEOUT_MS)
    take_levels()


def take_levels() -> None:
    """Give the native half the present levels of the loggers."""
    levels = [(name, _most_detailed(logging.getLogger(name))) for name in _NATIVE]
    if levels != _native.levels:
        _native.set_levels(levels)
        _native.levels = levels


def flush() -> None:
    """Wait until the lines that were logged so far are written, for a bounded time."""
    _native.flush(_FLUSH_TIMEOUT_MS)


def _most_detailed(logger: logging.Logger) -> int:
    written = [number for number, severity in enumerate(_SEVERITIES) if number and logger.isEnabledFor(severity)]
    return max(written, default=0)


def _deliver(lines: "list[_LogLine]") -> None:
    take_levels()
    for line in lines:
        logger, level = logging.getLogger(line["logger"]), _SEVERITIES[line["level"]]
        if logger.isEnabledFor(level):
            logger.handle(_record(logger, level, line))


def _record(logger: logging.Logger, level: int, line: "_LogLine") -> logging.LogRecord:
    record = logger.makeRecord(logger.name, level, line["file"], line["line"], line["message"], (), None)
    since_start = record.relativeCreated - record.created * 1000
    record.created = line["created"]
    record.msecs = int((record.created - int(record.created)) * 1000) + 0.0
    record.relativeCreated = record.created * 1000 + since_start
    record.threadName = line["thread"]
    record.broker, record.fields = line["broker"], line["fields"]
    return record
