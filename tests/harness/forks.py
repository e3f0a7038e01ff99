"""``pylog`` without the start of an interpreter: a process that has imported every command forks for each call of one.

A call is a process of its own with its own environment, folder, input and outputs, and runs the same `main` as ``python -m pylog_spark``. It
saves the quarter of a second of the processor's time that Python and the imports take, of which hundreds of calls are made. The process
that forks has one thread and has opened nothing. Where a test is about signals, terminals or the start itself, it starts a process.

``python -m tests.harness.forks SOCKET`` is that process.
"""

from __future__ import annotations

import array
import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import IO, NoReturn

from tests.harness.waiting import until

_MESSAGE_BYTES_MAX = 1 << 20
_PR_SET_PDEATHSIG = 1
_ROOT = Path(__file__).parent.parent.parent


class Forks:
    """The process, as long as the block.

    Parameters
    ----------
    folder : Path
        For its socket.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / "forks"
        self._process = subprocess.Popen([sys.executable, "-m", "tests.harness.forks", str(self._path)], cwd=_ROOT)

    def __enter__(self) -> Forks:
        until(self._path.exists, "the process that forks listens")
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()

    def run(
        self, words: list[str], stdin: IO[bytes], stdout: IO[bytes], stderr: IO[bytes], env: Mapping[str, str]
    ) -> int:
        """Run ``pylog`` with `words` in the present folder; its exit code."""
        call = json.dumps({"words": words, "env": dict(env), "folder": os.getcwd()}).encode()
        files = array.array("i", [each.fileno() for each in (stdin, stdout, stderr)])
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as asked:
            asked.connect(str(self._path))
            asked.sendmsg([call], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, files)])
            answer = asked.recv(16)
        assert answer, f"no answer to pylog {' '.join(words)}"
        return int(answer)


def _serve(path: str) -> NoReturn:
    # It ends with the process of tests, however that ends.
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    for verb in import_module("pylog_spark.cli.main").pylog.list_commands(None):
        import_module(f"pylog_spark.cli.{verb}")
    threads = len(os.listdir("/proc/self/task"))
    assert threads == 1, f"{threads} threads cannot be forked"
    # The child that waits for the command answers; nothing waits for that child.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listening.bind(path)
    listening.listen()
    while True:
        asked, _ = listening.accept()
        if os.fork() == 0:
            listening.close()
            _answer(asked)
        asked.close()


def _answer(asked: socket.socket) -> NoReturn:
    message, files, _, _ = socket.recv_fds(asked, _MESSAGE_BYTES_MAX, 3)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    child = os.fork()
    if child == 0:
        asked.close()
        _become(json.loads(message), files)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    asked.send(str(code).encode())
    os._exit(0)


def _become(call: dict[str, object], files: list[int]) -> NoReturn:
    for number, file in enumerate(files):
        os.dup2(file, number)
    os.closerange(3, max(files) + 1)
    words, environment, folder = call["words"], call["env"], call["folder"]
    assert isinstance(words, list)
    assert isinstance(environment, dict)
    os.chdir(str(folder))
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["pylog", *words]
    from pylog_spark.cli.main import main

    try:
        main()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    else:
        code = 0
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    _serve(sys.argv[1])
