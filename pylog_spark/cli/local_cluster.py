"""``pylog cluster start``: ZooKeeper and some brokers on this machine, until Ctrl-C."""

from typing import Any

import click

from pylog_spark.cli.common import SettingOption, say
from pylog_spark.cli.signals import StopSignal
from pylog_spark.testing.login import MODULES

_EPILOG = """\b
Example:
  pylog cluster start --brokers 3 --dir ./cluster
  pylog topic create events --partitions 6 --bootstrap-server HOST:PORT
  pylog cluster describe --bootstrap-server HOST:PORT

For first steps, and to try out what happens when a broker dies (the process ids are printed). For a cluster on several
machines, start ZooKeeper and then `pylog broker --zookeeper HOST:PORT/pylog --broker-id N` on each machine. It needs Java and
PySpark, which brings ZooKeeper.
"""

# Seconds between two checks whether a broker has ended.
_LOOK_S = 1.0


@click.command("start", epilog=_EPILOG)
@click.option("--dir", "-d", "directory", required=True, metavar="DIR",
              help="The directory of all data; a later start with it continues the same cluster.")  # fmt: skip
@click.option("--brokers", "-n", default=3, show_default=True, type=click.IntRange(1, 16), help="How many brokers.")
@click.option("--config", "-c", "settings", cls=SettingOption, owners=["broker"],
              help="A setting of every broker by Kafka's name. Repeatable.")  # fmt: skip
@click.option(
    "--tls",
    is_flag=True,
    help="Accept only TLS, with throw-away certificates in DIR/tls. Without --sasl, clients must show a certificate, too.",
)
@click.option("--sasl", type=click.Choice(tuple(MODULES)), metavar="MECHANISM",
              help=f"Require a login by {', '.join(MODULES)}. The user admin, with a throw-away password, may do everything.")  # fmt: skip
def start(directory: str, brokers: int, settings: list[tuple[str, str]], tls: bool, sasl: str | None) -> None:
    """Run ZooKeeper and some brokers on this machine, until Ctrl-C."""
    from pylog_spark.testing.local_cluster import LocalCluster
    from pylog_spark.testing.process import ProcessError

    stop = StopSignal()
    given: dict[str, Any] = {
        "zookeeper_session_timeout_ms": 6_000,
        **{name.replace(".", "_"): text for name, text in settings},
    }
    cluster = LocalCluster(directory, brokers, synced=True, tls=tls, sasl=sasl, **given)
    try:
        cluster.start()
    except ProcessError as error:
        raise click.ClickException(str(error)) from error
    for broker in cluster.brokers:
        say(f"broker {broker.broker_id}: {broker.bootstrap_servers}, pid {broker.pid}, data in {broker.data_dir}")
    say(f"ZooKeeper: {cluster.zookeeper.address}, pid {cluster.zookeeper.pid}")
    if tls or sasl:
        say(f"settings of clients, for --command-config: {cluster.client_properties()}")
    say(f"pylog cluster ready on {cluster.bootstrap_servers} (Ctrl-C stops it; it starts again from {directory})")
    gone: set[int] = set()
    while not stop.wait(_LOOK_S):
        for broker in cluster.brokers:
            if not broker.running and broker.broker_id not in gone:
                gone.add(broker.broker_id)
                say(f"broker {broker.broker_id} has ended; stop and start the cluster to run it again")
    cluster.close()
    say("stopped")
