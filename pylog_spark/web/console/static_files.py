"""The files of the page, by their names, from memory: what is not among them is not there, whatever a path says. Thread-safe."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from pylog_spark.web.console.guard import HEADERS
from pylog_spark.web.console.refusals import ConsoleRefusal
from pylog_spark.web.server import Content

_MEDIA = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/x-icon",
}
_FOLDER = Path(__file__).with_name("static")
_INDEX = "index.html"
# A browser asks again whether a file has changed: after an upgrade of the broker it has.
_HEADERS = (*HEADERS, ("Cache-Control", "no-cache"))


def page(path: str) -> Content:
    """The file for a path of the page. Raises `ConsoleRefusal` when there is none."""
    name = _INDEX if path in ("", "/") else path.removeprefix("/static/")
    found = _files().get(name) if path in ("", "/") or path.startswith("/static/") else None
    if found is None:
        raise ConsoleRefusal(
            404,
            "NOT_FOUND",
            "There is no such page: / is the broker's page; /metrics, /healthz and /readyz are here, too.",
        )
    return found


@cache
def _files() -> dict[str, Content]:
    files = (each for each in sorted(_FOLDER.rglob("*")) if each.suffix in _MEDIA and each.is_file())
    return {
        each.relative_to(_FOLDER).as_posix(): Content(_MEDIA[each.suffix], each.read_bytes(), headers=_HEADERS)
        for each in files
    }
