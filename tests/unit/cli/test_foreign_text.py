"""What others have chosen (names of groups, topics and clients, sentences of brokers) does nothing to a terminal, and begins no line."""

import ast
import json
import sys
from pathlib import Path

import pytest

from pylog_spark import cli
from pylog_spark.cli import main
from pylog_spark.cli.common import echo_json, echo_table, say
from pylog_spark.client.errors import LogError

#: Escape sequences by ESC and by CSI, lines, a deletion, text from right to left, what draws over the line before.
HOSTILE = "a\x1b]0;owned\x07\x1b[2J\x9b31m\nfake\rover\x7f\u202ecod.exe\u2028\x00b"
COMMANDS = sorted(Path(cli.__file__).parent.glob("*.py"))


def is_harmless(text: str) -> bool:
    """Whether there is nothing but lines of printable text."""
    return all(line.isprintable() for line in text.split("\n"))


def test_a_line_and_a_table_stay_what_they_are_whatever_a_name_has_in_it(capsys: pytest.CaptureFixture[str]) -> None:
    say(f"Group {HOSTILE} (Stable)")
    say(f"Group {HOSTILE}", err=True)
    echo_table(["GROUP", HOSTILE], [[HOSTILE, 1], ["ordinary-\u00fc \u6f22", 2]])
    shown = capsys.readouterr()
    assert len(shown.out.splitlines()) == 4
    assert len(shown.err.splitlines()) == 1
    assert is_harmless(shown.out)
    assert is_harmless(shown.err)
    assert "ordinary-\u00fc \u6f22" in shown.out


def test_json_says_the_same_by_escapes(capsys: pytest.CaptureFixture[str]) -> None:
    echo_json({"group": HOSTILE, "ordinary": "\u00fc\u6f22"})
    shown = capsys.readouterr().out
    assert is_harmless(shown)
    assert json.loads(shown) == {"group": HOSTILE, "ordinary": "\u00fc\u6f22"}
    assert "\u00fc\u6f22" in shown


def test_a_sentence_of_a_broker_stays_a_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise LogError("GROUP_ID_NOT_FOUND", f"There is no group {HOSTILE}.")

    monkeypatch.setattr(sys, "argv", ["pylog", "topic", "list"])
    monkeypatch.setattr(main.pylog, "invoke", refused)
    with pytest.raises(SystemExit):
        main.main()
    shown = capsys.readouterr()
    assert (shown.out, len(shown.err.splitlines())) == ("", 1)
    assert is_harmless(shown.err)


@pytest.mark.parametrize("file", COMMANDS, ids=[file.stem for file in COMMANDS])
def test_every_command_prints_by_these(file: Path) -> None:
    """A literal may be printed as it is."""
    for node in ast.walk(ast.parse(file.read_text())):
        if not isinstance(node, ast.Call) or file.stem == "common":
            continue
        name = ast.unparse(node.func)
        assert name not in ("print", "click.secho", "click.style", "sys.stdout.write", "sys.stderr.write"), file.name
        if name == "click.echo" and node.args:
            shown = ast.unparse(node.args[0])
            assert shown == "page()" or shown.startswith("printable("), f"{file.name}:{node.lineno}: {shown}"
