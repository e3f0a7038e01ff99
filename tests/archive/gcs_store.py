"""A server of Google Cloud Storage in a process of its own (`gcs_server`), as tests see it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from tests.harness.children import PipedChild

_ROOT = Path(__file__).parents[2]


@contextmanager
def running_gcs(folder: Path) -> Iterator[str]:
    """Start a server, with a bucket ``logs``; gives what follows the path in a URL there. Its credentials are in the environment meanwhile."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(_service_account(folder / "account.json")))
        words = [sys.executable, "-m", "tests.archive.gcs_server"]
        with PipedChild(words, cwd=_ROOT, errors=subprocess.DEVNULL) as server:
            yield f"scheme=http&endpoint_override=127.0.0.1%3A{server.line()}&retry_limit_seconds=5"


def _service_account(path: Path) -> Path:
    """The file of an account that nobody has; clients sign with its key themselves and ask nobody for a token."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    text = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    account = {
        "type": "service_account",
        "project_id": "logs",
        "private_key_id": "1",
        "private_key": text,
        "client_email": "nobody@logs.example",
        "client_id": "1",
        "token_uri": "https://oauth2.googleapis.com/token",
    }
    path.write_text(json.dumps(account))
    return path
