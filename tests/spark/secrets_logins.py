"""Logins with planted secrets at an Apache Kafka that demands them, for `secrets_driver` and `secrets_connect`: those that are let in,
and those that are refused on the driver, in a task, in a stream, by a function and by a server of tokens.
"""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from pylog_spark.client import Admin, LogError, Producer
from tests.harness.secured import jaas
from tests.harness.waiting import until

#: In every secret.
PLANTED = "planted-swordfish"
RIGHT, LATER, WRONG = f"{PLANTED}-20", f"{PLANTED}-21", f"{PLANTED}-22"
#: A client of the server of tokens, with the secret that the server takes, and another one.
CLIENT_ID, CLIENT_SECRET, WRONG_SECRET = "spark", f"{PLANTED}-23", f"{PLANTED}-24"

#: What Spark says of an error that came in a task.
_IN_A_TASK = "An exception was thrown from the Python worker"


def _encoded(part: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode()


#: A token that is good for a long time, which Kafka takes here although nobody signed it; and one that it refuses.
TOKEN = f"{_encoded({'alg': 'none'})}.{_encoded({'sub': 'robot', 'iat': 1_700_000_000, 'exp': 4_000_000_000})}."
REFUSED_TOKEN = f"{_encoded({'alg': 'none'})}.{_encoded({'sub': PLANTED, 'iat': 1_700_000_000, 'exp': 1_700_000_001})}."
#: What must be shown nowhere.
TELLING = (
    PLANTED,
    *(token.split(".")[1] for token in (TOKEN, REFUSED_TOKEN)),
    *(base64.b64encode(f"{CLIENT_ID}:{secret}".encode()).decode() for secret in (CLIENT_SECRET, WRONG_SECRET)),
)


@dataclass(frozen=True)
class Place:
    """An Apache Kafka with a topic, a user, and a server of tokens.

    Attributes
    ----------
    open, secured : str
        The listener without a login, and the one with a login by any mechanism over TLS.
    ca : str
        File of the certificate to trust.
    user, topic : str
        A user whose password is `RIGHT`, and a topic with records.
    tokens : str
        The URL of the server of tokens.
    """

    open: str
    secured: str
    ca: str
    user: str
    topic: str
    tokens: str

    def _at(self, mechanism: str, **more: str) -> dict[str, str]:
        return {
            "kafka.bootstrap.servers": self.secured,
            "kafka.security.protocol": "SASL_SSL",
            "kafka.ssl.ca.location": self.ca,
            "kafka.sasl.mechanism": mechanism,
            **more,
        }

    def by_password(self, password: str) -> dict[str, str]:
        """Options with a password."""
        login = jaas("scram.ScramLoginModule", username=self.user, password=password)
        return self._at("SCRAM-SHA-512", **{"kafka.sasl.jaas.config": login})

    def by_function(self, name: str) -> dict[str, str]:
        """Options with a function of this file."""
        prefix = "kafka.sasl.oauthbearer.token.provider"
        # A function that fails may give a token later, for which nobody should wait here.
        soon = {"kafka.default.api.timeout.ms": "1000"}
        return self._at("OAUTHBEARER", **soon, **{prefix: f"{__name__}:{name}", f"{prefix}.config": f"{PLANTED}-25"})

    def by_server(self, secret: str) -> dict[str, str]:
        """Options with the server of tokens."""
        module = jaas("oauthbearer.OAuthBearerLoginModule", clientId=CLIENT_ID, clientSecret=secret)
        url = {"kafka.sasl.oauthbearer.token.endpoint.url": self.tokens}
        return self._at("OAUTHBEARER", **url, **{"kafka.sasl.jaas.config": module})

    def lets_in(self, password: str) -> bool:
        """Whether the user may come in so by now."""
        settings = {name.removeprefix("kafka."): text for name, text in self.by_password(password).items()}
        try:
            with Admin(settings.pop("bootstrap.servers"), settings) as admin:
                admin.cluster()
        except LogError as error:
            if error.kind != "SASL_AUTHENTICATION_FAILED":
                raise
            return False
        return True


def _in_a_task() -> bool:
    from pyspark import TaskContext

    return TaskContext.get() is not None


def good_token(_config: str) -> tuple[str, float]:
    """A function for tokens."""
    return TOKEN, 4_000_000_000


def refused_in_tasks(_config: str) -> tuple[str, float]:
    """A function for tokens that the brokers take from the driver only."""
    return REFUSED_TOKEN if _in_a_task() else TOKEN, 4_000_000_000


def failing_in_tasks(config: str) -> tuple[str, float]:
    """A function that gives tokens to the driver only; its workers log all that they can."""
    if _in_a_task():
        log_all()
        raise ValueError(f"no token for {config}")
    return TOKEN, 4_000_000_000


def log_all() -> None:
    """Let this process write all lines about logins to its standard error."""
    log = logging.getLogger("pylog_spark.login")
    if not log.handlers:
        log.setLevel(logging.DEBUG)
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(name)s %(levelname)s %(message)s"))
        log.addHandler(handler)


class Keeping(Protocol):
    """Of `secrets_driver.Kept` what is used here."""

    def put(self, name: str, text: object) -> None:
        """Keep a text."""

    def plan(self, name: str, frame: Any) -> None:
        """Keep what a frame shows."""

    def failure(self, name: str, run: Callable[[], object], *parts: str) -> None:
        """Keep the text of an error, which has `parts` in it."""


def log_in(spark: Any, kept: Keeping, place: Place, checkpoint: Path) -> None:
    """Come in by each of these, and be refused."""
    log_all()

    def read(options: dict[str, str]) -> Any:
        return spark.read.format("pylog").options(**options, subscribe=place.topic).load()

    right = place.by_password(RIGHT)
    frame = read(right)
    kept.plan("login-read", frame)
    assert frame.count() > 0
    frame.select("value").write.format("pylog").options(**right, topic=place.topic).mode("append").save()
    kept.failure("error-login-driver", lambda: read(place.by_password(WRONG)), "refused the login")
    # The driver plans these, and the password changes before the tasks run.
    tasks = frame.rdd
    assert tasks.getNumPartitions() > 0
    # Read by tasks: the driver stays logged in over the connection that it has, as any client of Kafka's.
    by_tasks = {"subscribe": place.topic, "startingOffsets": "earliest", "prefetchMaxBytes": "0"}
    stream = spark.readStream.format("pylog").options(**right, **by_tasks).load()
    query = stream.writeStream.format("noop").option("checkpointLocation", str(checkpoint)).start()
    query.processAllAvailable()
    with Admin(place.open) as admin:
        assert admin.set_user_scram_credential(place.user, LATER).error is None
    until(lambda: not place.lets_in(RIGHT), "the password is another one")
    kept.failure("error-login-task", tasks.collect, "refused the login", _IN_A_TASK)
    with Producer(place.open, place.topic) as producer:
        producer.send(b"late")
    kept.failure("error-login-stream", lambda: query.awaitTermination(60), "refused the login", _IN_A_TASK)
    kept.put("stream-exception", query.exception())
    assert read(place.by_function("good_token")).count() > 0
    for name, part in (("refused_in_tasks", "refused the login"), ("failing_in_tasks", "it raised ValueError")):
        kept.failure(f"error-{name}", read(place.by_function(name)).collect, part, _IN_A_TASK)
    assert read(place.by_server(CLIENT_SECRET)).count() > 0
    kept.failure("error-token-server", lambda: read(place.by_server(WRONG_SECRET)), "with status 401")
