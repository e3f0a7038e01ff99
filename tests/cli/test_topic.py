"""``pylog topic``: what is printed, what is refused, with which exit code."""

import contextlib
import json
import os
import pty
import re
import subprocess

from tests.harness.ports import nowhere


def test_a_topic_is_created_described_altered_listed_and_deleted(pylog):
    made = pylog("topic", "create", "events", "--partitions", "3", "--config", "retention.ms=60000")
    assert (made.returncode, made.stdout, made.stderr) == (0, "Created topic events with 3 partitions.\n", "")
    shown = pylog("topic", "describe", "events").stdout
    assert re.match(r"Topic events \(id \S{22}\)\n3 partitions, 0 offsets\n  retention\.ms=60000\n", shown)
    assert re.search(r"^PARTITION +LEADER +START +STABLE +END +ISR\n +0 +1 +0 +0 +0 +1$", shown, re.MULTILINE)
    changed = pylog(
        "topic", "alter", "events", "-p", "4", "--config", "flush.ms=1000", "--delete-config", "retention.ms"
    )
    assert (changed.returncode, changed.stdout) == (0, "Changed topic events.\n")
    described = json.loads(pylog("topic", "describe", "events", "--json").stdout)[0]
    assert described["configs"] == {"flush.ms": "1000"}
    assert [partition["partition"] for partition in described["partitions"]] == [0, 1, 2, 3]
    assert "events" in pylog("topic", "list").stdout
    gone = pylog("topic", "delete", "events", "--yes")
    assert (gone.returncode, gone.stdout) == (0, "Deleted events.\n")
    assert "events" not in [topic["name"] for topic in json.loads(pylog("topic", "list", "--json").stdout)]


def test_all_settings_are_shown_on_demand(pylog):
    pylog("topic", "create", "full")
    assert "segment.bytes=1073741824" in pylog("topic", "describe", "full", "--all-configs").stdout


def test_what_the_broker_refuses_is_one_sentence_and_exit_code_1(pylog):
    pylog("topic", "create", "twice")
    for words, sentence in (
        (["create", "twice"], "Error: Topic 'twice' already exists.\n"),
        (
            ["create", "a/b"],
            "Error: Topic name is invalid: 'a/b' has characters other than ASCII letters, digits, '.', '_' and '-'.\n",
        ),
        (
            ["create", "x", "-r", "3"],
            "Error: Unable to replicate the partition 3 time(s): the replication factor of 3 cannot be reached, because only 1 broker(s) are registered.\n",
        ),
        (
            ["create", "x", "-c", "retention.mss=1"],
            "Error: retention.mss is not a topic setting of pylog: did you mean retention.ms.\n",
        ),
        (["describe", "none"], "Error: Topic 'none' does not exist: create it with 'pylog topic create none'.\n"),
        (["alter", "none", "-c", "flush.ms=1"], "Error: Topic 'none' does not exist.\n"),
        (
            ["alter", "twice", "-p", "1"],
            "Error: Topic 'twice' has 1 partitions, so 1 would not add any: partitions cannot be removed.\n",
        ),
        (["delete", "none", "-y"], "Error: Topic 'none' does not exist.\n"),
    ):
        done = pylog("topic", *words)
        assert (done.returncode, done.stderr, done.stdout) == (1, sentence, ""), words


def test_repeating_is_harmless_where_that_is_asked_for(pylog):
    for _ in range(2):
        assert pylog("topic", "create", "again", "--if-not-exists").returncode == 0
    for _ in range(2):
        assert pylog("topic", "delete", "again", "--yes", "--if-exists").returncode == 0


def test_deleting_without_a_terminal_needs_yes(pylog):
    pylog("topic", "create", "kept")
    done = pylog("topic", "delete", "kept")
    assert done.returncode == 2
    assert "add --yes" in done.stderr
    assert "kept" in pylog("topic", "list").stdout


def test_a_command_that_would_change_nothing_says_so(pylog):
    done = pylog("topic", "alter", "any")
    assert done.returncode == 2
    assert "Nothing to change" in done.stderr


def test_an_unreachable_broker_is_one_sentence(pylog, environment):
    silent = {**environment, "PYLOG_BOOTSTRAP_SERVERS": nowhere()}
    words = ["--client-config", "default.api.timeout.ms=1500"]
    for verb in (["topic", "list"], ["topic", "create", "t"], ["consume", "t"], ["produce", "t"]):
        done = pylog(*verb, *words, stdin="x\n", env=silent)
        assert done.returncode == 1, done.stderr
        assert done.stderr.startswith("Error: "), done.stderr
        assert nowhere() in done.stderr
        assert done.stderr.count("\n") == 1, done.stderr


def test_help_names_every_verb_and_starts_in_no_time(pylog):
    done = pylog("--help")
    assert done.returncode == 0
    for verb in ("broker", "topic", "config", "group", "transaction", "produce", "consume"):
        assert f"\n  {verb} " in done.stdout
        shown = pylog(verb, "--help")
        assert shown.returncode == 0
        assert "Usage: pylog" in shown.stdout


def test_wrong_words_are_exit_code_2_and_point_to_help(pylog):
    for words in (["topc"], ["topic", "create"], ["consume", "t", "--offset", "x"], ["broker", "--no-such"]):
        done = pylog(*words)
        assert done.returncode == 2, words
        assert done.stderr.startswith("Usage: pylog") or "Error: " in done.stderr


def test_it_works_where_there_is_no_home_and_no_terminal(pylog, environment):
    bare = {key: value for key, value in environment.items() if key not in ("HOME", "TERM", "LANG", "LC_ALL")}
    assert pylog("topic", "list", env={**bare, "PATH": os.defpath}).returncode == 0


def _all_of(terminal: int) -> bytes:
    """What was shown on a terminal whose other side is closed; it comes in pieces, and ends with an error."""
    said = b""
    with open(terminal, "rb", buffering=0) as shown, contextlib.suppress(OSError):
        while piece := shown.read(10_000):
            said += piece
    return said


def test_deleting_on_a_terminal_asks_first(pylog, environment, command):
    pylog("topic", "create", "asked")
    for answer, code, left in ((b"n\n", 130, True), (b"y\n", 0, False)):
        terminal, child_side = pty.openpty()
        words = [*command, "topic", "delete", "asked"]
        with subprocess.Popen(words, env=environment, stdin=child_side, stdout=child_side, stderr=child_side) as asking:
            os.close(child_side)
            os.write(terminal, answer)
            assert asking.wait(60) == code
        said = _all_of(terminal)
        assert b"Delete asked with all records? [y/N]" in said
        assert ("asked" in pylog("topic", "list").stdout) is left
