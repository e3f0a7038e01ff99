"""``pylog broker``: its readiness line, its log, its exit codes."""

import re
import signal
import subprocess

import pytest

from tests.harness.children import PipedChild


def test_one_line_says_that_it_serves_and_sigint_stops_it_cleanly(command, environment, tmp_path):
    words = [*command, "broker", "--data-dir", str(tmp_path / "d"), "--listen", "127.0.0.1:0"]
    with PipedChild(words, env=environment, errors=True) as running:
        assert re.fullmatch(
            rf"pylog broker ready on 127\.0\.0\.1:\d+ \(data in {tmp_path}/d, 0 topics, 0 partitions, pid {running.pid}\)",
            running.line(),
        )
        running.signal(signal.SIGINT)
        assert (running.wait(), running.waiting_lines()) == (0, [])
        err = running.errors
    lines = err.splitlines()
    form = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (INFO|WARN|ERROR) pylog[.\w]* broker=1: .+")
    assert all(form.fullmatch(line) for line in lines), err
    assert "Stopped cleanly" in lines[-1]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ["--config", "num.partition=4"],
            "num.partition is not a broker setting of pylog: did you mean num.partitions.",
        ),
        (["--config", "num.partitions=0"], "num.partitions=0 is refused: it must be at least 1."),
        (["--listen", "0.0.0.0:0"], "0.0.0.0 can be reached by other machines"),
        (
            ["--listen", "nonsense"],
            "listeners has 'nonsense', which is refused: write each address as NAME://HOST:PORT",
        ),
        (
            ["--config-file", "/no/such/file"],
            "The settings file /no/such/file cannot be read: No such file or directory.",
        ),
        (["--config", "nonsense"], "'nonsense' is not NAME=VALUE."),
        (["--log-level", "loud"], "There is no log level 'loud': the levels are fatal, error, warn"),
        (["--log-level", "info,pylog.nothing=debug"], "There is no logger pylog.nothing: the loggers are root, "),
    ],
)
def test_a_wrong_setting_is_a_sentence_and_exit_code_2_and_nothing_is_made(pylog, tmp_path, words, sentence):
    done = pylog("broker", "--data-dir", str(tmp_path / "d"), *words)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "d").exists()


def test_without_a_directory_it_asks_for_one(pylog):
    done = pylog("broker")
    assert done.returncode == 2
    assert "--data-dir DIR" in done.stderr


def test_a_directory_that_cannot_be_made_is_exit_code_1(pylog, tmp_path):
    (tmp_path / "file").write_text("")
    done = pylog("broker", "--data-dir", str(tmp_path / "file" / "d"), "--listen", "127.0.0.1:0")
    assert done.returncode == 1
    assert done.stderr.startswith("Error: The data directory ")
    assert "Traceback" not in done.stderr


def test_a_settings_file_is_read_and_the_command_line_wins(command, environment, tmp_path):
    file = tmp_path / "server.properties"
    file.write_text(
        f"# as in Kafka\nlog.dirs={tmp_path}/from-file\nnum.partitions=3\nlisteners=PLAINTEXT://127.0.0.1:0\n"
    )
    words = [*command, "broker", "--config-file", str(file), "--config", "num.partitions=5"]
    with PipedChild(words, env=environment, errors=True) as running:
        address = re.match(r"pylog broker ready on (\S+) \(data in (\S+),", running.line())
        assert address[2] == f"{tmp_path}/from-file"
        made = [*command, "topic", "create", "t", "-b", address[1]]
        done = subprocess.run(made, env=environment, capture_output=True, text=True, timeout=60, check=True)
        assert done.stdout == "Created topic t with 5 partitions.\n"
        running.signal(signal.SIGTERM)
        running.wait()
