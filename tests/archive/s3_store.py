"""An S3 server in a process of its own (`s3_server`), as tests see it."""

from __future__ import annotations

import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.harness.children import PipedChild

_ROOT = Path(__file__).parents[2]


class Store:
    """The server, with a bucket ``logs``."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._ask("PUT", "logs")

    def url(self, folder: str) -> str:
        """The URL of a folder."""
        return f"s3://logs/{folder}?scheme=http&region=us-east-1&endpoint_override=127.0.0.1%3A{self.port}"

    def fail(self, rate: float, seed: int = 0) -> None:
        """Fail in so many of the requests."""
        self._ask("POST", f"_faults?rate={rate}&seed={seed}")

    def _ask(self, method: str, path: str) -> None:
        with urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{self.port}/{path}", method=method)):
            pass


@contextmanager
def running_store() -> Iterator[Store]:
    """Start a server; its credentials are in the environment meanwhile."""
    with pytest.MonkeyPatch.context() as patched:
        for name, value in {"AWS_ACCESS_KEY_ID": "nobody", "AWS_SECRET_ACCESS_KEY": "secret"}.items():
            patched.setenv(name, value)
        words = [sys.executable, "-m", "tests.archive.s3_server"]
        with PipedChild(words, cwd=_ROOT, errors=subprocess.DEVNULL) as server:
            yield Store(int(server.line()))
