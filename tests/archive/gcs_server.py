"""A server of Google Cloud Storage in memory, gcp-storage-emulator's, with a bucket ``logs``: ``python -m tests.archive.gcs_server`` prints its port."""

from __future__ import annotations

from functools import partial
from http.server import HTTPServer

from gcp_storage_emulator.handlers.buckets import create_bucket
from gcp_storage_emulator.server import RequestHandler
from gcp_storage_emulator.storage import Storage


def main() -> None:
    """Serve until the process is killed."""
    storage = Storage(use_memory_fs=True)
    create_bucket("logs", storage)
    server = HTTPServer(("127.0.0.1", 0), partial(RequestHandler, storage))
    print(server.server_port, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
