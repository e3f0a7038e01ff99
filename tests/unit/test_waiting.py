"""The tests' waits: what stays so is asked to the end, a log's line is waited for, a child is read while it writes, and nothing listens nowhere."""

import itertools
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.harness.children import ChildEnded, PipedChild
from tests.harness.ports import nowhere, silent_port
from tests.harness.waiting import brief, during, ended, pause, said, stays, turns


def test_what_stays_so_is_asked_to_the_end_and_what_does_not_is_named() -> None:
    asked = itertools.count()
    stays(lambda: next(asked) >= 0, "it is", for_s=0.05, pause_s=0.01)
    assert next(asked) >= 2
    answers = iter([True, True, False])
    with pytest.raises(AssertionError, match="did not stay so: a leader"):
        stays(lambda: next(answers), "a leader", for_s=60, pause_s=0)


def test_a_loop_has_its_turns_until_it_is_so_and_what_is_not_is_named() -> None:
    found: list[int] = []
    for _ in turns(lambda: len(found) == 3, "three"):
        found.insert(0, len(found))
    assert found == [2, 1, 0]
    with pytest.raises(AssertionError, match="not within 0 s: three of 3"):
        for _ in turns(lambda: False, lambda: f"three of {len(found)}", deadline_s=0):
            pass


def test_a_load_goes_on_for_its_seconds_and_runs_once_at_least() -> None:
    passed = list(during(0.05))
    assert passed[0] == 0 <= passed[-1] < 0.05
    assert list(during(0)) == [0]


class Log:
    """Has one more line each time that it is looked at."""

    def __init__(self) -> None:
        self.lines = 0

    def logs(self) -> str:
        self.lines += 1
        return "".join(f"line {number}\n" for number in range(self.lines))


def test_a_line_of_a_log_is_waited_for(tmp_path: Path) -> None:
    assert said(Log(), "line 2") == "line 0\nline 1\nline 2\n"
    assert said(Log(), re.compile(r"line \d"), 2, after=len("line 0\n")) == "line 1\nline 2\n"
    file = tmp_path / "log"
    file.write_text("there")
    assert said(file, "there") == "there"
    with pytest.raises(AssertionError, match=r"not within 0 s: 'no line' is in the log, 1 times:\nthere"):
        said(file, "no line", deadline_s=0)


def test_a_pause_ends_with_what_it_waits_for() -> None:
    event = threading.Event()
    assert not pause(event, 0)
    event.set()
    assert pause(event, 60)


def test_a_brief_look_at_a_socket_leaves_it_as_patient_as_it_was() -> None:
    near, far = socket.socketpair()
    with near, far:
        near.settimeout(60)
        with brief(near, 0.01), pytest.raises(TimeoutError):
            near.recv(1)
        assert near.gettimeout() == 60
        with brief(near, 0.01):
            near.close()


def test_nothing_listens_nowhere_and_nothing_else_gets_the_port() -> None:
    assert nowhere() == nowhere() != nowhere(1)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", silent_port()))
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with pytest.raises(OSError, match="in use"):
            other.bind(("127.0.0.1", silent_port()))


@pytest.fixture
def run() -> Callable[..., PipedChild]:
    def start(program: str, **options: object) -> PipedChild:
        return PipedChild([sys.executable, "-c", program], **options)  # type: ignore[arg-type]

    return start


def test_a_child_may_write_more_than_a_pipe_holds_before_anybody_takes_a_line(run: Callable[..., PipedChild]) -> None:
    much = "import sys\nfor number in range(30_000):\n    print(number)\n    print('wrong', number, file=sys.stderr)"
    with run(much, errors=True) as child:
        assert child.wait() == 0
        assert [child.line() for _ in range(3)] == ["0", "1", "2"]
        assert child.waiting_lines()[-1] == "29999"
        assert child.errors.endswith("wrong 29999\n")
        with pytest.raises(ChildEnded, match="has ended with 0"):
            child.line()


def test_a_child_answers_a_line_and_its_rest_comes_at_the_end_of_its_input(run: Callable[..., PipedChild]) -> None:
    with run("import sys\nfor line in sys.stdin:\n    print(line.strip() * 2, flush=True)\nprint('end')") as child:
        assert child.ask("a") == "aa"
        child.say("b")
        assert child.lines_within(60) == ["bb"]
        assert (child.waiting_lines(), child.finished) == ([], False)
        assert child.rest() == "end\n"
        assert (child.wait(), child.output, child.finished) == (0, "aa\nbb\nend\n", True)


def test_what_a_killed_child_had_begun_is_no_line_and_its_reader_may_hang_up(run: Callable[..., PipedChild]) -> None:
    with run("import sys, time\nsys.stdout.write('one\\ntw')\nsys.stdout.flush()\ntime.sleep(60)") as child:
        assert child.line() == "one"
        child.kill()
        assert (child.rest(), child.output) == ("", "one\ntw")
        assert child.wait() == -signal.SIGKILL
    endless = "import signal\nsignal.signal(signal.SIGPIPE, signal.SIG_DFL)\nwhile True: print('x' * 1_000)"
    with run(endless, lines_max=1) as child:
        assert child.wait() == -signal.SIGPIPE
        assert child.waiting_lines() == ["x" * 1_000]


def test_a_line_that_does_not_come_and_an_end_that_does_not_are_named(run: Callable[..., PipedChild]) -> None:
    with run("import sys\nsys.stdin.read()") as child:
        with pytest.raises(AssertionError, match=r"(?s)not within 0.01 s: a line of .*sys.stdin.read"):
            child.line(0.01)
        with pytest.raises(AssertionError, match=r"not within 0.01 s: the end of"):
            ended(child.process, 0.01)
    with subprocess.Popen(["true"]) as process:
        assert ended(process) == 0
