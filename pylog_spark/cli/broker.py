"""``pylog broker``: run a broker until SIGTERM or Ctrl-C. ``pylog broker format`` makes its first users (`cli/format`)."""

import logging
import os
import resource
import sys
import time
from typing import TYPE_CHECKING

import click

from pylog_spark.broker import loggers
from pylog_spark.broker.errors import BrokerError
from pylog_spark.broker.process import Broker, open_broker
from pylog_spark.broker.setting import ConfigError
from pylog_spark.cli.common import SettingOption, say
from pylog_spark.cli.log_lines import FORMATTERS, log_to_stderr
from pylog_spark.cli.signals import StopSignal

if TYPE_CHECKING:
    from collections.abc import Callable

    from pylog_spark.web.beside import HttpOptions

_EPILOG = """\b
Examples:
  pylog broker --data-dir ./data
  pylog broker --data-dir ./data --listen 127.0.0.1:0 --config num.partitions=4
  pylog broker --config-file server.properties
  pylog broker --data-dir ./data --listen PLAINTEXT://127.0.0.1:9092,SSL://0.0.0.0:9093 \\
      --config ssl.keystore.type=PEM --config ssl.keystore.location=broker.pem
  pylog broker --data-dir ./data --schema-registry 127.0.0.1:8081
  pylog broker --data-dir ./data --http 127.0.0.1:8080
  pylog broker --data-dir ./1 --listen 127.0.0.1:9092 --zookeeper 127.0.0.1:2181/pylog --broker-id 1
  pylog broker --data-dir ./2 --listen 127.0.0.1:9093 --zookeeper 127.0.0.1:2181/pylog --broker-id 2

It prints one line on standard output when it is ready; its log goes to standard error. SIGTERM or
Ctrl-C stops it cleanly; a kill at any moment loses no acknowledged record. For topics whose records
also survive power loss, set durability=flushed on the topic, or log.durability=flushed on the broker.
"""


def _list_settings(ctx: click.Context, _option: click.Parameter, asked: bool) -> None:
    if asked:
        from pylog_spark.broker.reference import page

        click.echo(page(), nl=False)
        ctx.exit()


class _Broker(click.Group):
    """A command that runs a broker unless a command behind it is called, whose file is imported then."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        return ["format"]

    def get_command(self, _ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name != "format":
            return None
        from pylog_spark.cli.format import format_

        return format_


@click.group(cls=_Broker, epilog=_EPILOG, invoke_without_command=True, subcommand_metavar="[format]")
@click.pass_context
@click.option("--data-dir", "-d", metavar="DIR", help="The directory of the log; created when missing.")
@click.option(
    "--listen",
    "-l",
    metavar="[NAME://]HOST:PORT[,...]",
    help="The address to serve on, or several as Kafka's setting listeners; port 0 takes a free port.  [default: 127.0.0.1:9092]",
)
@click.option(
    "--config", "-c", "settings", cls=SettingOption, owners=["broker"],
    help="A setting by Kafka's name, such as num.partitions=4. Repeatable; wins over --config-file.",
)  # fmt: skip
@click.option(
    "--config-file", "-f", metavar="FILE", help="Settings as a properties file, like Kafka's server.properties."
)
@click.option(
    "--allow-plaintext", is_flag=True, help="Serve without encryption on an address that other machines can reach."
)
@click.option("--zookeeper", "-z", metavar="HOST:PORT[/CHROOT]",
              help="The ZooKeeper that the brokers of a cluster share. Without it the broker runs alone.")  # fmt: skip
@click.option("--broker-id", "-i", type=click.IntRange(0), metavar="N",
              help="Number of this broker; each broker of a cluster has another one.  [default: 1]")  # fmt: skip
@click.option("--schema-registry", metavar="[https://]HOST:PORT",
              help="Serve a schema registry, too, with Confluent's REST interface; its schemas are in the topic _schemas. Port 0 takes a free port.")  # fmt: skip
@click.option("--schema-registry-config", type=click.Path(dir_okay=False), metavar="FILE",
              help="Settings of a client, such as security.protocol and sasl.jaas.config, by which the registry reaches the broker. "
                   "Without it: as brokers of a cluster reach each other.")  # fmt: skip
@click.option("--schema-registry-without-login", is_flag=True,
              help="Let everybody use the registry although the broker asks for a login.")  # fmt: skip
@click.option("--http", metavar="[https://]HOST:PORT",
              help="Serve a page for browsers, /metrics for Prometheus, /healthz and /readyz by HTTP. Port 0 takes a free port.")  # fmt: skip
@click.option("--http-config", type=click.Path(dir_okay=False), metavar="FILE",
              help="Settings of a client, such as security.protocol and sasl.mechanism, by which logins are tried at the broker. "
                   "Without it: as brokers of a cluster reach each other.")  # fmt: skip
@click.option("--http-without-login", is_flag=True,
              help="Show everybody the metrics although the broker asks for a login. There is no page then.")  # fmt: skip
@click.option("--http-without-page", is_flag=True, help="Leave out the page; metrics and probes stay.")
@click.option("--otlp", is_flag=True,
              help="Send the metrics by OpenTelemetry's protocol, too, to a collector that OTEL_EXPORTER_OTLP_ENDPOINT names.")  # fmt: skip
@click.option("--log-level", "log_levels", default="info", metavar="LEVEL[,LOGGER=LEVEL...]", show_default=True,
              help="Level of the log: off, fatal, error, warn, info, debug or trace; single loggers may have another one, as in "
                   "info,pylog.broker.network=debug.")  # fmt: skip
@click.option("--log-format", default="text", type=click.Choice(list(FORMATTERS)), show_default=True,
              help="Lines for people, or one JSON object each.")  # fmt: skip
@click.option("--list-settings", is_flag=True, is_eager=True, expose_value=False, callback=_list_settings,
              help="Print all settings of brokers and topics, as Markdown, and exit.")  # fmt: skip
def broker(
    ctx: click.Context,
    data_dir: str | None,
    listen: str | None,
    settings: list[tuple[str, str]],
    config_file: str | None,
    allow_plaintext: bool,
    zookeeper: str | None,
    broker_id: int | None,
    schema_registry: str | None,
    schema_registry_config: str | None,
    schema_registry_without_login: bool,
    http: str | None,
    http_config: str | None,
    http_without_login: bool,
    http_without_page: bool,
    otlp: bool,
    log_levels: str,
    log_format: str,
) -> None:
    """Run a broker: a durable log in a directory, served over Kafka's protocol.

    Any Kafka client can use it, and Spark by format("pylog").
    """
    if ctx.invoked_subcommand is not None:
        return
    _take_all_descriptors()
    try:
        registry = _http_options(
            "schema-registry", schema_registry, schema_registry_config, schema_registry_without_login, allow_plaintext
        )
        pages = _http_options("http", http, http_config, http_without_login, allow_plaintext, not http_without_page)
        log_to_stderr(loggers.parse_levels(log_levels), log_format)
        given = [*(_read(config_file) if config_file else []), *settings]
        given += [("zookeeper.connect", zookeeper)] if zookeeper else []
        given += [("node.id", str(broker_id))] if broker_id is not None else []
        directory, given = _place(given, data_dir, listen)
        running = open_broker(directory, given, allow_plaintext)
    except ConfigError as error:
        raise click.UsageError(str(error)) from error
    except BrokerError as error:
        raise click.ClickException(str(error)) from error
    with loggers.serving_as(running.node_id):
        _serve(running, _open_beside(running, registry, pages, otlp))


def _place(given: list[tuple[str, str]], data_dir: str | None, listen: str | None) -> tuple[str, list[tuple[str, str]]]:
    """The data directory, and the settings with the addresses to listen on."""
    named = dict(given)
    directory = data_dir or named.get("log.dirs") or named.get("log.dir")
    if not directory:
        raise ConfigError("Where should the log be kept? Name a directory with --data-dir DIR.")
    return directory, [*given, ("listeners", listen)] if listen else given


def _http_options(
    option: str,
    address: str | None,
    config: str | None,
    without_login: bool,
    allow_plaintext: bool,
    page: bool = True,
) -> "HttpOptions | None":
    """What is said of a server beside the broker; None when there is to be none."""
    if address is None:
        if config or without_login or not page:
            raise ConfigError(f"A setting of --{option} is given, and no --{option} HOST:PORT.")
        return None
    from pylog_spark.web.beside import HttpOptions

    return HttpOptions(address, dict(_read(config) if config else []), without_login, allow_plaintext, page)


def _open_beside(
    running: Broker, registry: "HttpOptions | None", pages: "HttpOptions | None", otlp: bool
) -> "list[tuple[str, Callable[[], None]]]":
    """The servers beside the broker: what the ready line says of each, and what closes it. The broker is stopped when it cannot have one."""
    opened: list[tuple[str, Callable[[], None]]] = []
    server = None
    try:
        if registry is not None:
            from pylog_spark.registry.serving import open_registry

            server = open_registry(running, registry)
            opened.append((f"schema registry on {server.url}", server.close))
        if pages is not None:
            from pylog_spark.web.pages import open_pages

            http = open_pages(running, pages, None if server is None else server.schemas)
            opened.append((f"metrics on {http.url}", http.close))
        if otlp:
            opened.append(("metrics sent by OTLP", _open_sender(running)))
    except ConfigError as error:
        for _, close in opened:
            close()
        running.close()
        raise click.UsageError(str(error)) from error
    return opened


def _open_sender(running: Broker) -> "Callable[[], None]":
    """Begin to send metrics; what ends it."""
    try:
        from pylog_spark.web.otlp import open_sender
    except ImportError as error:
        sentence = (
            "Metrics by OTLP need OpenTelemetry's exporter: pip install 'pylog-spark[otlp]', or leave out --otlp."
        )
        raise ConfigError(sentence) from error
    return open_sender(running).close


def _serve(running: Broker, beside: "list[tuple[str, Callable[[], None]]]") -> None:
    stop = StopSignal()
    topics, partitions = f"{running.topic_count} topics", f"{running.partition_count} partitions"
    counts = ", ".join([topics, partitions, *(what for what, _ in beside)])
    say(f"pylog broker ready on {_addresses(running)} (data in {running.data_dir}, {counts}, pid {os.getpid()})")
    sys.stdout.flush()
    running.when_failed(stop.come)
    log = logging.getLogger("pylog.broker")
    log.info("Serving on %s, ready after %.3f s.", _addresses(running), running.start_seconds)
    stop.wait()
    log.info("Stopping.")
    started = time.perf_counter()
    for _, close in beside:
        close()
    try:
        running.close()
    except BrokerError as error:
        raise click.ClickException(" ".join(filter(None, (running.failure, str(error))))) from error
    if running.failure:
        raise click.ClickException(running.failure)
    log.info("Stopped cleanly after %.3f s.", time.perf_counter() - started)


def _addresses(running: Broker) -> str:
    """The address of the only listener, or all with their names."""
    listeners = running.listeners.all
    return running.bootstrap_servers if len(listeners) == 1 else ",".join(map(str, listeners))


def _read(config_file: str) -> list[tuple[str, str]]:
    # javaproperties loads much that a broker without a file never needs: XML, HTTP and TLS.
    from pylog_spark.broker import properties

    return properties.read(config_file)


def _take_all_descriptors() -> None:
    """Raise the limit of open files as far as the system allows, because each connection and each open segment takes a file descriptor."""
    _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
