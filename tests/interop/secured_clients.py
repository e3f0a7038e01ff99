"""Each client of the matrix at a broker behind TLS and logins: an `Entry` in the client's own words, and its own error when it is refused.

Tokens come to a client as its users get them: from a server of tokens over HTTPS where the client can ask one, else from a function.
"""

import asyncio
import logging
import ssl
import subprocess
from base64 import b64decode, b64encode
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import pytest

from tests.harness.secured import jaas
from tests.harness.secured_broker import CLIENT_ID, CLIENT_SECRET, Entry
from tests.harness.waiting import until
from tests.interop import clients
from tests.interop.clients import DEADLINE_S, NONE, Given, Record
from tests.peers.tools import java

_OIDC = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"


class SecuredClient(clients.Client, Protocol):
    """One client, with what it needs for a secured broker."""

    def given(self, entry: Entry) -> Given:
        """`entry` as settings of this client."""

    def refusal(self, entry: Entry) -> str:
        """The error with which this client does not come in, as it shows it to its user."""


def _protocol(entry: Entry) -> str:
    return "SSL" if entry.mechanism is None else "SASL_SSL"


def token_url(entry: Entry) -> str:
    assert entry.tokens is not None
    return f"https://localhost:{entry.tokens.port}/token"


def _librdkafka(entry: Entry) -> dict[str, str]:
    """`entry` by librdkafka's names."""
    settings = {"security.protocol": _protocol(entry), "ssl.ca.location": entry.ca}
    if entry.certificate is not None:
        settings |= {"ssl.certificate.location": entry.certificate, "ssl.key.location": entry.certificate}
    if entry.mechanism is not None:
        settings |= {"sasl.mechanism": entry.mechanism}
    if entry.tokens is not None:
        return settings | {
            "sasl.oauthbearer.method": "oidc",
            "sasl.oauthbearer.client.id": CLIENT_ID,
            "sasl.oauthbearer.client.secret": CLIENT_SECRET,
            "sasl.oauthbearer.token.endpoint.url": token_url(entry),
            "https.ca.location": entry.ca,
        }
    if entry.mechanism is not None:
        settings |= {"sasl.username": entry.user, "sasl.password": entry.password}
    return settings


def java_settings(entry: Entry) -> dict[str, str]:
    """`entry` by the names of Java's clients."""
    trusted = {"ssl.truststore.type": "PEM", "ssl.truststore.location": entry.ca}
    settings = {"security.protocol": _protocol(entry), **trusted}
    if entry.certificate is not None:
        settings |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": entry.certificate}
    if entry.mechanism is None:
        return settings
    settings |= {"sasl.mechanism": entry.mechanism}
    if entry.tokens is not None:
        login = jaas("oauthbearer.OAuthBearerLoginModule", clientId=CLIENT_ID, clientSecret=CLIENT_SECRET, **trusted)
        handler = {
            "sasl.login.callback.handler.class": _OIDC,
            "sasl.oauthbearer.token.endpoint.url": token_url(entry),
        }
        return settings | handler | {"sasl.jaas.config": login}
    module = "plain.PlainLoginModule" if entry.mechanism == "PLAIN" else "scram.ScramLoginModule"
    return settings | {"sasl.jaas.config": jaas(module, username=entry.user, password=entry.password)}


class ConfluentKafka(clients.ConfluentKafka):
    """It asks the server of tokens itself."""

    def given(self, entry: Entry) -> Given:
        return _librdkafka(entry)

    def refusal(self, entry: Entry) -> str:
        """What its `error_cb` is told first."""
        from confluent_kafka import Producer

        errors: list[Any] = []
        settings = {**self.given(entry), "bootstrap.servers": entry.servers, "log_level": 0}
        producer = Producer({**settings, "error_cb": errors.append})
        until(lambda: producer.poll(0.1) is not None and errors, "the client reports an error")
        return f"{errors[0].name()} {errors[0].str()}"


class AioKafka(clients.AioKafka):
    """Tokens are given by an object of its user's."""

    def given(self, entry: Entry) -> Given:
        context = ssl.create_default_context(cafile=entry.ca)
        if entry.certificate is not None:
            context.load_cert_chain(entry.certificate)
        settings = {"security_protocol": _protocol(entry), "ssl_context": context}
        if entry.mechanism is None:
            return settings
        settings |= {"sasl_mechanism": entry.mechanism}
        if entry.tokens is not None:
            return settings | {"sasl_oauth_token_provider": self._provider(entry.tokens.token())}
        return settings | {"sasl_plain_username": entry.user, "sasl_plain_password": entry.password}

    @staticmethod
    def _provider(token: str) -> object:
        from aiokafka.abc import AbstractTokenProvider

        class Provider(AbstractTokenProvider):
            async def token(self) -> str:
                return token

        return Provider()

    def refusal(self, entry: Entry) -> str:
        """What it logs: its exception says only that it found no broker."""
        from aiokafka import AIOKafkaProducer
        from aiokafka.errors import KafkaConnectionError

        async def start() -> None:
            producer = AIOKafkaProducer(bootstrap_servers=entry.servers, **self.given(entry))
            try:
                with pytest.raises(KafkaConnectionError, match="Unable to bootstrap"):
                    await producer.start()
            finally:
                await producer.stop()

        lines: list[str] = []
        handler = logging.Handler()
        handler.emit = lambda record: lines.append(record.getMessage())  # type: ignore[method-assign]
        logger = logging.getLogger("aiokafka")
        logger.addHandler(handler)
        try:
            asyncio.run(asyncio.wait_for(start(), DEADLINE_S))
        finally:
            logger.removeHandler(handler)
        return "\n".join(lines)


class Kcat(clients.Kcat):
    """As confluent-kafka, as far as its librdkafka goes."""

    def given(self, entry: Entry) -> Given:
        return _librdkafka(entry)

    def refusal(self, entry: Entry, more: Given = NONE) -> str:
        """What it prints before it gives up; `more` goes over the settings of `entry`, None removes one."""
        given = {name: value for name, value in {**self.given(entry), **more}.items() if value is not None}
        settings = [word for name, value in given.items() for word in ("-X", f"{name}={value}")]
        command = ["kcat", "-P", "-b", entry.servers, "-t", "none", *settings]
        done = subprocess.run(command, input=b"v\n", capture_output=True, timeout=DEADLINE_S, check=False)
        assert done.returncode != 0
        return done.stderr.decode()


class Java:
    """Apache Kafka's own client, in a program of ours (`peers/java/Records.java`); it asks the server of tokens itself."""

    def given(self, entry: Entry) -> Given:
        return java_settings(entry)

    def produce(self, servers: str, topic: str, records: Sequence[Record], codec: str, given: Given = NONE) -> None:
        lines = b"".join(self._line(record) + b"\n" for record in records)
        self._run("write", topic, {"bootstrap.servers": servers, "compression.type": codec, **given}, lines)

    def consume(self, servers: str, topic: str, count: int, given: Given = NONE) -> list[Record]:
        printed = self._run("read", topic, {"bootstrap.servers": servers, **given})
        return [self._record(line) for line in printed.splitlines()]

    def refusal(self, entry: Entry) -> str:
        """What it throws."""
        given = {"bootstrap.servers": entry.servers, **self.given(entry)}
        return self._run("refusal", "none", given, self._line(Record(b"k", b"v")) + b"\n")

    @staticmethod
    def _run(what: str, topic: str, settings: Given, stdin: bytes = b"") -> str:
        words = (f"{name}={value}" for name, value in settings.items())
        return java("Records", what, topic, *words, stdin=stdin, deadline_s=DEADLINE_S)

    @staticmethod
    def _line(record: Record) -> bytes:
        headers = (name.encode() + b"=" + b64encode(value) for name, value in record.headers)
        return b" ".join((b64encode(record.key), b64encode(record.value), *headers))

    @staticmethod
    def _record(line: str) -> Record:
        key, value, *headers = line.split(" ")
        pairs = (header.split("=", 1) for header in headers)
        return Record(b64decode(key), b64decode(value), tuple((name, b64decode(text)) for name, text in pairs))


class KafkaJs(clients.KafkaJs):
    """Tokens are given by a function of its user's."""

    def given(self, entry: Entry) -> Given:
        tls = {"ca": [Path(entry.ca).read_text()]}
        if entry.certificate is not None:
            own = Path(entry.certificate).read_text()
            tls |= {"key": own, "cert": own}
        if entry.mechanism is None:
            return {"ssl": tls}
        proof = {"username": entry.user, "password": entry.password}
        if entry.tokens is not None:
            proof = {"token": entry.tokens.token()}
        return {"ssl": tls, "sasl": {"mechanism": entry.mechanism.lower(), **proof}}

    def refusal(self, entry: Entry) -> str:
        """The error of its `connect`, or of the first record."""
        return str(self.ask("refusal", entry.servers, dict(self.given(entry))))


class Pylog(clients.Pylog):
    """pylog's own; it asks the server of tokens itself."""

    def given(self, entry: Entry) -> Given:
        return _librdkafka(entry)

    def refusal(self, entry: Entry) -> str:
        """Its exception."""
        from pylog_spark.client import LogError, Producer

        with (
            pytest.raises(LogError) as raised,
            Producer(entry.servers, "none", dict(self.given(entry))) as producer,
        ):
            producer.send(b"v")
        return f"{raised.value.kind} {raised.value}"


SECURED_CLIENTS: dict[str, SecuredClient] = {
    "confluent-kafka": ConfluentKafka(),
    "aiokafka": AioKafka(),
    "java": Java(),
    "kcat": Kcat(),
    "kafkajs": KafkaJs(),
    "pylog": Pylog(),
}
