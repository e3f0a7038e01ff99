"""Child processes whose output is read while they write, each by a thread of its own: no pipe fills up, and every line has a deadline.

A child may have a pipe for its standard input. Its standard error is the test's own unless it is asked for.
"""

import queue
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from os import PathLike
from types import TracebackType
from typing import IO

from tests.harness.waiting import DEADLINE_S, ended

_END = None


class ChildEnded(Exception):
    """The child has ended, and there is no further line."""


class PipedChild:
    """A process, from when it is started; ``with`` kills it at the end if it still runs. For the thread that made it.

    Parameters
    ----------
    words : sequence of str
        The command.
    env, cwd
        As of `subprocess.Popen`.
    stdin : int or IO, optional
        As there; a pipe unless something else is given.
    errors : bool, int or IO
        Where its standard error goes: True has it read, for `errors`; anything else is as for `subprocess.Popen`'s ``stderr``.
    lines_max : int, optional
        Hang up when so many lines are read: the child's next line finds no reader.
    """

    def __init__(
        self,
        words: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | PathLike[str] | None = None,
        stdin: int | IO[bytes] = subprocess.PIPE,
        errors: bool | int | IO[bytes] = False,
        lines_max: int | None = None,
    ) -> None:
        to_errors = subprocess.PIPE if errors is True else None if errors is False else errors
        self.process = subprocess.Popen(
            words, env=env, cwd=cwd, stdin=stdin, stdout=subprocess.PIPE, stderr=to_errors, bufsize=-1
        )
        self._said: list[bytes] = []
        self._wrong: list[bytes] = []
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._over = False
        readers = [threading.Thread(target=self._read_lines, args=(self.process.stdout, lines_max), daemon=True)]
        if self.process.stderr is not None:
            readers.append(threading.Thread(target=self._read_errors, args=(self.process.stderr,), daemon=True))
        for each in readers:
            each.start()
        self._readers = readers

    def _read_lines(self, pipe: IO[bytes], lines_max: int | None) -> None:
        with pipe:
            for line in pipe:
                self._said.append(line)
                # What a child that was killed had begun is no line.
                if line.endswith(b"\n"):
                    self._lines.put(line.decode(errors="replace").removesuffix("\n").removesuffix("\r"))
                if len(self._said) == lines_max:
                    break
        self._lines.put(_END)

    def _read_errors(self, pipe: IO[bytes]) -> None:
        with pipe:
            self._wrong.extend(pipe)

    @property
    def pid(self) -> int:
        """Its process id."""
        return self.process.pid

    @property
    def running(self) -> bool:
        """Whether it lives."""
        return self.process.poll() is None

    @property
    def output(self) -> str:
        """All that it has printed so far, taken as lines or not."""
        return b"".join(self._said).decode(errors="replace")

    @property
    def errors(self) -> str:
        """All that came on its standard error so far, where that is read."""
        return b"".join(self._wrong).decode(errors="replace")

    def line(self, deadline_s: float = DEADLINE_S) -> str:
        """The next line, without its end. Raises `ChildEnded` when there is none, AssertionError when none comes."""
        if (line := self._next(deadline_s)) is not _END:
            return line
        raise ChildEnded(f"{self._name} has ended with {ended(self.process)}. It said:\n{self.output}{self.errors}")

    def _next(self, deadline_s: float) -> str | None:
        if self._over:
            return _END
        try:
            line = self._lines.get(timeout=deadline_s)
        except queue.Empty:
            raise AssertionError(
                f"not within {deadline_s:g} s: a line of {self._name}. It said:\n{self.output}{self.errors}"
            ) from None
        self._over = line is _END
        return line

    def waiting_lines(self) -> list[str]:
        """The lines that have come and were not taken yet; none when there is none."""
        found = []
        while not self._over:
            try:
                line = self._lines.get_nowait()
            except queue.Empty:
                break
            if line is _END:
                self._over = True
            else:
                found.append(line)
        return found

    def lines_within(self, seconds: float) -> list[str]:
        """As `waiting_lines`, but when there is none wait so long for one; none when none comes, and at the end."""
        found = self.waiting_lines()
        if not found and not self._over:
            with suppress(queue.Empty):
                line = self._lines.get(timeout=seconds)
                self._over = line is _END
                found = [] if line is _END else [line, *self.waiting_lines()]
        return found

    def __iter__(self) -> Iterator[str]:
        """All lines to the end, however long each takes; for a thread that collects them."""
        while (line := self._lines.get()) is not _END:
            yield line

    @property
    def finished(self) -> bool:
        """Whether all its lines were taken, and there will be none."""
        return self._over

    def say(self, line: str) -> None:
        """Give it a line."""
        assert self.process.stdin is not None
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()

    def ask(self, line: str, deadline_s: float = DEADLINE_S) -> str:
        """Give it a line, and get its next one."""
        self.say(line)
        return self.line(deadline_s)

    def signal(self, number: int) -> None:
        """Send it a signal."""
        self.process.send_signal(number)

    def hang_up(self) -> None:
        """Close its standard input."""
        if self.process.stdin is not None and not self.process.stdin.closed:
            # It may be gone.
            with suppress(BrokenPipeError):
                self.process.stdin.close()

    def wait(self, deadline_s: float = DEADLINE_S) -> int:
        """Wait until it has ended and all is read that it printed; its exit code."""
        code = ended(self.process, deadline_s)
        self.hang_up()
        for each in self._readers:
            # Its own children may have the pipe, too.
            each.join(DEADLINE_S)
        return code

    def rest(self, deadline_s: float = DEADLINE_S) -> str:
        """Close its standard input, wait for its end, and give the lines that were not taken yet, each with its end."""
        self.hang_up()
        self.wait(deadline_s)
        return "".join(f"{line}\n" for line in self.waiting_lines())

    def kill(self) -> None:
        """SIGKILL, and wait."""
        self.process.kill()
        self.wait()

    @property
    def _name(self) -> str:
        return " ".join(map(str, self.process.args))[:200]  # type: ignore[arg-type]

    def __enter__(self) -> "PipedChild":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()
