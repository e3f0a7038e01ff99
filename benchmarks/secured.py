"""Rows over TLS: each side has a broker with a plain listener, which fills and counts, and one with TLS, which is measured.

Both show the same certificate (P-256), made by openssl; what the loads do is what the plain rows do.
"""

import socket
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial

from benchmarks.bench import Bench, Runs
from benchmarks.brokers import Broker, make_tls_broker
from benchmarks.load import consume, create_topic, delete_topic, fill, produce
from benchmarks.process import cpu_seconds
from benchmarks.streams import SMALL_OF_FOUR, query_job
from tests.harness import certificates
from tests.peers.probe import answers_over

_MILLION = 1_000_000
_THOUSAND = 1_000
_PARTITIONS = 4
_SMALL_VALUE_BYTES = 100
#: librdkafka asks for no more for a second when records wait in it, so a broker that is quick is measured as slow.
_AT_ONCE = {"fetch.queue.backoff.ms": 2}


@dataclass(frozen=True)
class TlsSide:
    """A broker with both listeners.

    Attributes
    ----------
    plain, tls : str
        Their addresses.
    authority : str
        The file with the certificate of who signed the broker's.
    """

    broker: Broker
    plain: str
    tls: str
    authority: str

    def client(self) -> dict[str, object]:
        """Settings of librdkafka for the listener with TLS."""
        return {"bootstrap.servers": self.tls, "security.protocol": "SSL", "ssl.ca.location": self.authority}

    def options(self) -> dict[str, str]:
        """Options of both data sources for the listener with TLS."""
        return {
            "kafka.security.protocol": "SSL",
            "kafka.ssl.truststore.type": "PEM",
            "kafka.ssl.truststore.location": self.authority,
        }


@cache
def _side(bench: Bench, side: str) -> TlsSide:
    made = certificates.make(bench.fresh_folder("certificates"))
    broker, plain, tls = make_tls_broker(side, bench.fresh_folder(f"{side}-tls"), made.path("server.both.pem"))
    broker.start()
    bench.when_closed(broker.stop)
    return TlsSide(broker, plain, tls, made.path("ca.pem"))


@cache
def _loaded(bench: Bench, side: str, records: int, value_bytes: int) -> str:
    topic = f"loaded-{value_bytes}-{records}"
    create_topic(_side(bench, side).plain, topic, _PARTITIONS)
    fill(_side(bench, side).plain, topic, records, b"x" * value_bytes, _PARTITIONS)
    return topic


def produced(bench: Bench, records: int, value_bytes: int, settings: dict[str, object], figure: str) -> Runs:
    """Records that are produced over TLS: the broker's `cpu` seconds for a million of them, or their `rate` in millions a second."""
    records = bench.records(records)

    def once(side: str) -> float:
        tls, topic = _side(bench, side), bench.new_name()
        create_topic(tls.plain, topic, _PARTITIONS)
        given = {**settings, **tls.client()}
        found = _figure(tls, records, figure, lambda: produce(tls.plain, topic, records, [b"x" * value_bytes], given))
        delete_topic(tls.plain, topic)
        return found

    return bench.take_turns({side: partial(once, side) for side in bench.sides}, fills_memory=True)


def consumed(bench: Bench, records: int, value_bytes: int, figure: str) -> Runs:
    """As `produced`, of records that are consumed over TLS."""
    records = bench.records(records)

    def once(side: str) -> float:
        tls, topic = _side(bench, side), _loaded(bench, side, records, value_bytes)
        return _figure(tls, records, figure, lambda: consume(tls.plain, topic, records, {**_AT_ONCE, **tls.client()}))

    return bench.take_turns({side: partial(once, side) for side in bench.sides})


def _figure(tls: TlsSide, records: int, figure: str, load: Callable[[], float]) -> float:
    """What `load`, which says how many seconds it took, costs or brings."""
    before = cpu_seconds(tls.broker.pid)
    took = load()
    if figure == "rate":
        return records / _MILLION / took
    return (cpu_seconds(tls.broker.pid) - before) * _MILLION / records


def connections(bench: Bench, number: int, figure: str) -> Runs:
    """`number` connections one after the other, each with a whole handshake and one request: `rate` a second, or the broker's `cpu` in
    milliseconds for each."""
    number = bench.records(number)

    def once(side: str) -> float:
        tls = _side(bench, side)
        before, began = cpu_seconds(tls.broker.pid), time.perf_counter()
        for _ in range(number):
            _connect(tls)
        took, used = time.perf_counter() - began, cpu_seconds(tls.broker.pid) - before
        return number / took if figure == "rate" else used * _THOUSAND / number

    return bench.take_turns({side: partial(once, side) for side in bench.sides})


def _connect(tls: TlsSide) -> None:
    host, port = tls.tls.split(":")
    # A context for each: no session is resumed.
    context = ssl.create_default_context(cafile=tls.authority)
    with socket.create_connection((host, int(port))) as plain, context.wrap_socket(plain, server_hostname=host) as sock:
        if not answers_over(sock):
            raise RuntimeError(f"{tls.tls} did not answer")


def spark_read(bench: Bench, records: int, value_bytes: int) -> Runs:
    """Million rows a second that Spark reads over TLS, all columns."""
    records = bench.records(records)

    def once(side: str) -> float:
        tls, topic = _side(bench, side), _loaded(bench, side, records, value_bytes)
        job = {
            "do": "read",
            "columns": "all",
            "rows": records,
            "bytes": value_bytes,
            "bootstrap": tls.tls,
            "topic": topic,
        }
        return records / _MILLION / bench.spark(side).run(**job, options=tls.options())

    return bench.take_turns({side: partial(once, side) for side in bench.sides}, warm_up=2)


def sink(bench: Bench) -> Runs:
    """Milliseconds of a micro-batch of few records from a log into another, all over TLS: pylog exactly once, Spark's connector at least once."""
    batches = SMALL_OF_FOUR
    records = batches.rows * (batches.warm + batches.counted)

    def once(side: str) -> float:
        tls, source, target = _side(bench, side), _loaded(bench, side, records, _SMALL_VALUE_BYTES), bench.new_name()
        create_topic(tls.plain, target, _PARTITIONS)
        try:
            return bench.spark(side).figures(
                **query_job(bench, batches), bootstrap=tls.tls, topic=source, read=tls.options(),
                write={"kafka.bootstrap.servers": tls.tls, "topic": target, **tls.options()},
            )["whole"]  # fmt: skip
        finally:
            delete_topic(tls.plain, target)

    return bench.take_turns({side: partial(once, side) for side in bench.sides}, rounds_max=3)
