"""The command ``pylog``: imports the verb's file, and turns errors into one sentence and an exit code.

Exit codes: 0 done; 1 it could not be done (the sentence says why); 2 the command line or a setting is wrong; 130 stopped by
Ctrl-C; 141 the reader of the output closed it. Only the verb that is called is imported: ``pylog broker`` must be serving
within 0.3 s of its start.
"""

import os
import sys
from importlib import import_module
from typing import NoReturn

import click

from pylog_spark import __version__

EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_INTERRUPTED = 130
EXIT_BROKEN_PIPE = 141
# Set by a shell that asks what a command line can go on with.
_COMPLETE = "_PYLOG_COMPLETE"

_VERBS = {
    "broker": "Run a broker: a durable log in a directory, served over Kafka's protocol.",
    "cluster": "Show brokers and replicas, move replicas, elect leaders.",
    "topic": "Create, list, describe, alter and delete topics.",
    "config": "Show and change settings of topics and brokers.",
    "transaction": "List and describe transactions, end one that hangs.",
    "sink": "List Spark's exactly-once writes, end those that a dead driver has left open.",
    "user": "Create, list and delete users that log in by SCRAM.",
    "acl": "List, create and delete ACLs: which principal may do what.",
    "quota": "List, set and remove quotas of users, client ids and addresses.",
    "checkpoint": "Look at a streaming query's checkpoint, show its lag, rewind it, copy it.",
    "group": "List and describe consumer groups, reset their offsets, delete them.",
    "top": "Show brokers, topics and groups in a terminal, with rates and lag.",
    "mirror": "Keep topics of another cluster, Apache Kafka or pylog, in this one.",
    "produce": "Write lines of a file or of standard input into a topic.",
    "consume": "Print the records of a topic.",
    "inspect": "Show and verify what is in a broker's data directory, or in an archive, without brokers.",
    "archive": "Copy logs into an archive that Spark reads; write a topic into a file, and back.",
    "cut": "Keep ranges of a topic in an archive under a name.",
    "audit": "Compare what producers say that they have written with what the log has.",
}

_EPILOG = """\b
First steps, in two terminals:
  pylog broker --data-dir ./data
  pylog topic create events --partitions 4
  echo 'hello' | pylog produce events
  pylog consume events --from-beginning
"""


class _Verbs(click.Group):
    """A group whose verbs live in files of their own, imported when called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _VERBS:
            return None
        command = getattr(import_module(f"pylog_spark.cli.{cmd_name}"), cmd_name)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(_VERBS.items()))


@click.group(
    cls=_Verbs, epilog=_EPILOG, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(__version__, prog_name="pylog")
def pylog() -> None:
    """A durable, replayable log for PySpark: Kafka's protocol and file format, no JVM.

    Every command has its own help: pylog COMMAND --help.
    """


def main() -> NoReturn:
    """Run the command line and leave the process with its exit code."""
    if _COMPLETE in os.environ:
        from click.shell_completion import shell_complete

        sys.exit(shell_complete(pylog, {}, "pylog", _COMPLETE, os.environ[_COMPLETE]))
    try:
        # Not pylog.main(), which handles a broken pipe itself.
        with pylog.make_context("pylog", sys.argv[1:]) as context:
            pylog.invoke(context)
        sys.stdout.flush()
        sys.exit(0)
    except click.exceptions.Exit as error:
        sys.exit(error.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.exceptions.Abort, KeyboardInterrupt):
        click.echo(err=True)
        sys.exit(EXIT_INTERRUPTED)
    except BrokenPipeError:
        # Python would complain again when it flushes standard output at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(EXIT_BROKEN_PIPE)
    except Exception as error:
        sentence = _sentence(error)
        if sentence is None:
            raise
        from pylog_spark.results.markup import printable

        # A broker's sentence may have a name in it that somebody else chose.
        click.echo(printable(f"Error: {sentence.rstrip('.')}."), err=True)
        sys.exit(EXIT_FAILED)


def _sentence(error: Exception) -> str | None:
    """The sentence of an error that the user or the system caused; None for a bug of pylog, which shows its traceback."""
    from pylog_spark.client.errors import LogError

    if isinstance(error, LogError):
        return error.sentence
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}." if error.filename else f"{error.strerror}."
    return None


if __name__ == "__main__":
    main()
