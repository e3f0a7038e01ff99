"""The log of `pylog broker` on standard error: one line for each record, as text that people read and search, or as JSON for programs."""

import json
import logging
from datetime import datetime, timezone

from pylog_spark.broker import loggers

#: Characters that would end a line or control a terminal: control characters and Unicode's line ends.
_ESCAPES = {
    **{code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0))},
    ord("\n"): "\\n",
    ord("\r"): "\\r",
    ord("\t"): "\\t",
    **{code: f"\\u{code:04x}" for code in (0x2028, 0x2029)},
}


class TextFormatter(logging.Formatter):
    """``2026-11-22T10:11:12.345Z WARN pylog.broker.network broker=1: closed the connection of ...``."""

    def format(self, record: logging.LogRecord) -> str:
        """Format one line; line ends inside it are escaped."""
        broker = getattr(record, "broker", None)
        whose = "" if broker is None else f" broker={broker}"
        said = "\n".join(filter(None, (record.getMessage(), _exception(self, record))))
        return f"{_time(record)} {loggers.severity(record.levelno)} {record.name}{whose}: {said.translate(_ESCAPES)}"


class JsonFormatter(logging.Formatter):
    """``{"time": ..., "level": ..., "logger": ..., "broker": ..., "message": ..., "fields": {...}}``, and "exception" where there is one."""

    def format(self, record: logging.LogRecord) -> str:
        """Format one line."""
        line = {
            "time": _time(record),
            "level": loggers.severity(record.levelno),
            "logger": record.name,
            "broker": getattr(record, "broker", None),
            "message": record.getMessage(),
            "fields": getattr(record, "fields", {}),
        }
        exception = _exception(self, record)
        return json.dumps(line | ({"exception": exception} if exception else {}))


FORMATTERS: dict[str, type[logging.Formatter]] = {"text": TextFormatter, "json": JsonFormatter}


def log_to_stderr(levels: dict[str, int], form: str) -> None:
    """Write the log of this process to standard error, with levels as `loggers.parse_levels` gives them."""
    handler = logging.StreamHandler()
    handler.setFormatter(FORMATTERS[form]())
    logging.getLogger().addHandler(handler)
    loggers.configure(levels)


def _time(record: logging.LogRecord) -> str:
    moment = datetime.fromtimestamp(record.created, timezone.utc)
    return moment.isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"


def _exception(formatter: logging.Formatter, record: logging.LogRecord) -> str:
    return formatter.formatException(record.exc_info) if record.exc_info else ""
