"""Who tries a guarded cluster all the time: without TLS, without a login, with a wrong password, and with a right one but without any ACL.

One thread for each broker, so that a broker that stands still keeps nobody from trying the others. A broker may be gone; one that answers
must refuse, with the right error. An intruder who is let in, and one whose right password is refused, end their thread with an
AssertionError, as clients of a `Load` do.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from pylog_spark._native import NativeError, RawConnection
from pylog_spark.testing import LocalBroker
from tests.cluster.rights import EVERY_ACL
from tests.cluster.sharing import ask
from tests.harness.history import History
from tests.harness.load import Client
from tests.harness.security import Security, Way

#: TOPIC_, GROUP_, CLUSTER_, TRANSACTIONAL_ID_AUTHORIZATION_FAILED.
TOPIC, GROUP, CLUSTER, TRANSACTIONAL_ID = 29, 30, 31, 53
BAD_LOGIN = "SASL_AUTHENTICATION_FAILED"
#: What a broker says to who has no TLS is an alert of TLS, and no answer of Kafka.
_NO_ANSWER = "IO"
_CLOSED = "UNREACHABLE"
#: How a connection ends that meets a fault.
_GONE = (_CLOSED, "TIMED_OUT")
_PATIENCE_MS = 1_000
_PERIOD_S = 0.1
_AT_ONCE = 3
_SCRAM_SHA_512 = 2

#: API, version, fields, and the error that is the answer.
Request = tuple[str, int, dict[str, Any], int]


def forbidden(topic: str, group: str, transactional_id: str, user: str) -> list[Request]:
    """What nobody may do who has no ACL, with what others use."""
    place, limits = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1}, {"max_wait_ms": 0, "max_bytes": 1}
    fetch = {**limits, "min_bytes": 0, "topics": [{"topic": topic, "partitions": [place]}]}
    records = [{"name": topic, "partition_data": [{"index": 0, "records": "00"}]}]
    ends = [{"name": topic, "partitions": [{"partition_index": 0, "timestamp": -1}]}]
    new = {"name": "theirs", "num_partitions": 1, "replication_factor": 1}
    user_gone = {"deletions": [{"name": user, "mechanism": _SCRAM_SHA_512}], "upsertions": []}
    return [
        ("Metadata", 12, {"topics": [{"name": topic}]}, TOPIC),
        ("Produce", 9, {"acks": -1, "timeout_ms": _PATIENCE_MS, "topic_data": records}, TOPIC),
        ("Fetch", 12, {"replica_id": -1, **fetch}, TOPIC),
        ("Fetch", 12, {"replica_id": 1, **fetch}, CLUSTER),
        ("ListOffsets", 7, {"replica_id": -1, "topics": ends}, TOPIC),
        ("CreateTopics", 7, {"topics": [new], "timeout_ms": _PATIENCE_MS}, TOPIC),
        ("DeleteTopics", 6, {"topics": [{"name": topic}], "timeout_ms": _PATIENCE_MS}, TOPIC),
        ("FindCoordinator", 4, {"key_type": 0, "coordinator_keys": [group]}, GROUP),
        ("OffsetFetch", 8, {"groups": [{"group_id": group, "topics": None}]}, GROUP),
        ("InitProducerId", 4, {"transactional_id": transactional_id, "transaction_timeout_ms": 1}, TRANSACTIONAL_ID),
        ("AlterUserScramCredentials", 0, user_gone, CLUSTER),
        ("DescribeUserScramCredentials", 0, {"users": None}, CLUSTER),
        ("DeleteAcls", 3, {"filters": [EVERY_ACL]}, CLUSTER),
    ]


def errors(answer: object) -> Iterator[int]:
    """All that an answer says is wrong, wherever it says so."""
    if isinstance(answer, dict):
        if answer.get("error_code"):
            yield answer["error_code"]
        for value in answer.values():
            yield from errors(value)
    elif isinstance(answer, list):
        for value in answer:
            yield from errors(value)


def entered(broker: LocalBroker, settings: dict[str, str]) -> RawConnection:
    """A connection to one broker, past its login. Raises NativeError."""
    return RawConnection(broker.host, broker.port, _PATIENCE_MS, settings)


def lets_in(broker: LocalBroker, security: Security, user: str, password: str) -> bool:
    """Whether a broker takes a login. Raises NativeError when it does not say."""
    try:
        entered(broker, security.client(user, password)).close()
    except NativeError as error:
        if error.args[0] != BAD_LOGIN:
            raise
        return False
    return True


def may_describe(broker: LocalBroker, security: Security, user: str, password: str, topic: str) -> bool:
    """Whether a broker lets a user, who can log in, describe a topic. Raises NativeError when it does not say."""
    connection = entered(broker, security.client(user, password))
    try:
        return TOPIC not in errors(ask(connection, "Metadata", 12, topics=[{"name": topic}]))
    finally:
        connection.close()


@dataclass
class Strangers:
    """Who must not get in, or may do nothing: users and passwords. Both lists grow while intruders read them.

    Attributes
    ----------
    wrong : list of (user, password)
        Logins that must be refused.
    powerless : list of (user, password)
        Logins that must be taken, of users without any ACL.
    """

    wrong: list[tuple[str, str]] = field(default_factory=list)
    powerless: list[tuple[str, str]] = field(default_factory=list)


class Intruder(Client):
    """Tries one broker, not through the network that faults befall.

    Attributes
    ----------
    refused : Counter of str
        How often it was refused, by what it tried.
    gone : int
        How often the broker did not answer.
    tries : mapping of str to callable
        What it tries, at random.
    """

    def __init__(
        self, broker: LocalBroker, security: Security, seed: int, strangers: Strangers, requests: list[Request]
    ) -> None:
        super().__init__(f"intruder-{broker.broker_id}", Way(""), History(), seed, _PERIOD_S)
        self.refused, self.gone = Counter[str](), 0
        self._broker, self._security, self._strangers, self._requests = broker, security, strangers, requests
        self.tries: dict[str, Callable[[], None]] = {
            "without TLS": self._try_without_tls,
            "without a login": self._try_without_login,
            "with a wrong password": self._try_wrong_password,
            "without an ACL": self._try_without_acl,
        }

    def step(self) -> None:
        what = self._random.choice(list(self.tries))
        try:
            self.tries[what]()
        except NativeError as error:
            if error.args[0] not in _GONE:
                raise AssertionError(f"{self._broker.broker_id}, {what}: {error}") from error
            self.gone += 1
        else:
            self.refused[what] += 1

    def _try_without_tls(self) -> None:
        self._ask_for_metadata({}, _NO_ANSWER)

    def _try_without_login(self) -> None:
        self._ask_for_metadata({"security.protocol": "SSL", "ssl.ca.location": self._security.ca}, _CLOSED)

    def _ask_for_metadata(self, settings: dict[str, str], refusal: str) -> None:
        connection = entered(self._broker, settings)
        try:
            answer = connection.call("Metadata", 12)
        except NativeError as error:
            # Behind a connection that was made there is a broker: one that was not killed at this moment.
            if error.args[0] != refusal or not self._broker.running:
                raise
            return
        finally:
            connection.close()
        raise AssertionError(f"broker {self._broker.broker_id} answers who comes with {settings}: {answer}")

    def _try_wrong_password(self) -> None:
        user, password = self._random.choice(self._strangers.wrong)
        if lets_in(self._broker, self._security, user, password):
            raise AssertionError(f"broker {self._broker.broker_id} takes a wrong password of {user}")

    def _try_without_acl(self) -> None:
        user, password = self._random.choice(self._strangers.powerless)
        connection = entered(self._broker, self._security.client(user, password))
        try:
            for api, version, fields, error in self._random.sample(self._requests, _AT_ONCE):
                answer = ask(connection, api, version, **fields)
                if set(errors(answer)) != {error}:
                    raise AssertionError(f"broker {self._broker.broker_id} answers {api} of {user}: {answer}")
        finally:
            connection.close()

    def finish(self) -> None:
        """Nothing was begun."""
