"""An S3 server, moto's, that fails as stores do when it is asked to: ``python -m tests.archive.s3_server`` prints its port.

``POST /_faults?rate=0.2&seed=7`` lets it fail in so many of the requests: answer 503, answer 500 although the request was done, show a list as it was
before, or be slow.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import parse_qs

from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server

from tests.harness.waiting import let_pass

Answer = tuple[str, list[tuple[str, str]], bytes]
_SLOW_S = 0.02


class Faults:
    """A WSGI application around another one, that fails at random."""

    def __init__(self, inner: Callable[..., Iterable[bytes]]) -> None:
        self._inner = inner
        self._rate = 0.0
        self._drawn = random.Random(0)
        self._lists: dict[str, Answer] = {}
        self._lock = threading.Lock()

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        status, headers, body = self._answer(environ)
        start_response(status, headers)
        return [] if environ["REQUEST_METHOD"] == "HEAD" else [body]

    def _answer(self, environ: dict[str, Any]) -> Answer:
        query = environ["QUERY_STRING"]
        if environ["PATH_INFO"] == "/_faults":
            asked = parse_qs(query)
            self._rate, self._drawn = float(asked["rate"][0]), random.Random(int(asked["seed"][0]))
            return "200 OK", [], b""
        is_list = environ["REQUEST_METHOD"] == "GET" and "list-type" in query
        with self._lock:
            fault = (
                self._drawn.choice(["refused", "lost", "stale", "slow"]) if self._drawn.random() < self._rate else ""
            )
        if fault == "refused":
            environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
            return "503 Slow Down", [], b"<Error><Code>SlowDown</Code></Error>"
        if fault == "stale" and is_list and query in self._lists:
            return self._lists[query]
        if fault == "slow":
            let_pass(_SLOW_S)
        answer = self._real(environ)
        if is_list:
            self._lists[query] = answer
        if fault == "lost":
            return "500 Internal Server Error", [], b"<Error><Code>InternalError</Code></Error>"
        return answer

    def _real(self, environ: dict[str, Any]) -> Answer:
        said: list[Any] = []
        body = b"".join(self._inner(environ, lambda status, headers, _info=None: said.extend((status, headers))))
        return said[0], said[1], body


def main() -> None:
    """Serve until the process is killed."""
    server = make_server("127.0.0.1", 0, Faults(DomainDispatcherApplication(create_backend_app)), threaded=True)
    print(server.port, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
