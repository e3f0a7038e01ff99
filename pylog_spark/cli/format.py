"""``pylog broker format``: make the first users, before any broker runs."""

from dataclasses import replace

import click

from pylog_spark.cli.common import SettingOption, say
from pylog_spark.cli.passwords import VARIABLE, password_of, password_option


@click.command("format", epilog=f"""\b
Examples:
  pylog broker format --data-dir ./data --add-scram 'SCRAM-SHA-512=[name=admin]'
  pylog broker format --data-dir ./data --add-scram 'SCRAM-SHA-512=[name=admin]' --password-file admin.password
  pylog broker format --zookeeper 127.0.0.1:2181/pylog --add-scram 'SCRAM-SHA-256=[name=admin,iterations=8192]'

The password may also be given inside, as in Kafka: [name=admin,password=secret]. But then every user of
the machine can read it while the command runs. Otherwise it comes from --password-file or from
{VARIABLE}, or the command asks for it.
""")  # fmt: skip
@click.option(
    "--data-dir",
    "-d",
    metavar="DIR",
    help="The data directory of a broker without ZooKeeper; created when missing.",
)
@click.option(
    "--zookeeper", "-z", metavar="HOST:PORT[/CHROOT]", help="The ZooKeeper that the brokers of a cluster share."
)
@click.option("--add-scram", "added", multiple=True, required=True, metavar="MECHANISM=[name=NAME,...]",
              help="A user to make, as Kafka's kafka-storage format takes it. Repeatable.")  # fmt: skip
@password_option
@click.option("--config", "-c", "settings", cls=SettingOption, owners=["broker"],
              help="A setting of the broker, such as zookeeper.digest.file=FILE. Repeatable.")  # fmt: skip
@click.option("--config-file", "-f", metavar="FILE", help="The settings of the broker as a properties file.")
def format_(
    data_dir: str | None,
    zookeeper: str | None,
    added: tuple[str, ...],
    password_file: str | None,
    settings: list[tuple[str, str]],
    config_file: str | None,
) -> None:
    """Make the first users of a broker or cluster, so that somebody can log in.

    Running it again is safe: a user that exists with the same password is left as it is.
    """
    from pylog_spark.broker import properties
    from pylog_spark.broker.config import broker_config
    from pylog_spark.broker.format import FormatError, add_users, parse
    from pylog_spark.broker.setting import ConfigError

    try:
        given = [*(properties.read(config_file) if config_file else []), *settings]
        given += [("zookeeper.connect", zookeeper)] if zookeeper else []
        broker = broker_config(given)
        users = [parse(argument) for argument in added]
        asked: dict[str, str] = {}
        for index, user in enumerate(users):
            if user.password is None and user.salted_password is None:
                if user.name not in asked:
                    asked[user.name] = password_of(user.name, password_file)
                users[index] = replace(user, password=asked[user.name])
        directory = data_dir or broker.text("log.dirs")
        for sentence in add_users(directory, broker, users):
            say(sentence)
    except ConfigError as error:
        raise click.UsageError(str(error)) from error
    except FormatError as error:
        raise click.ClickException(str(error)) from error
