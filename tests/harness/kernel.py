"""A kernel of Jupyter, with the Python that runs the tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

#: Starting Java and the first query take most of a minute on a machine that is busy otherwise.
_DEADLINE_S = 200


@contextmanager
def kernel(folder: Path) -> Iterator[Callable[..., None]]:
    """A function that runs a cell in a new kernel, whose files are in `folder`.

    It gives each message of the cell to its second argument, and raises `AssertionError` when the cell raises. The test is skipped
    where jupyter_client is not installed.
    """
    manager = pytest.importorskip("jupyter_client.manager")
    with pytest.MonkeyPatch.context() as patch:
        # What a kernel keeps is not to be the user's.
        for name in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR"):
            patch.setenv(name, str(folder / name))
        running, client = manager.start_new_kernel(startup_timeout=_DEADLINE_S, kernel_name="python3", cwd=str(folder))

    def run(code: str, keep: Callable[[dict[str, Any]], None] = lambda message: None) -> None:
        reply = client.execute_interactive(code, timeout=_DEADLINE_S, output_hook=keep)
        assert reply["content"]["status"] == "ok", reply["content"]

    try:
        yield run
    finally:
        client.stop_channels()
        running.shutdown_kernel(now=True)
