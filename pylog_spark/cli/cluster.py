"""``pylog cluster start | describe | reassign | moves | cancel | elect | features | unregister``: several brokers as one."""

import click

from pylog_spark.cli import replicas
from pylog_spark.cli.features import features
from pylog_spark.cli.local_cluster import start


@click.group()
def cluster() -> None:
    """Start a cluster on this machine, show brokers and replicas, move replicas, elect leaders, raise its level, unregister brokers."""


for command in (
    replicas.describe,
    replicas.reassign,
    replicas.moves,
    replicas.cancel,
    replicas.elect,
    replicas.unregister,
    features,
):
    cluster.add_command(command)
cluster.add_command(start)
