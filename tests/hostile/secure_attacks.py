"""The attacks on a secured broker: what is tried, what the attacker must see each time, and what the log must say; one table, `ATTACKS`.

Rows of one group are tried in turns, so each goes on beside the others. What a client of ours refuses is tested elsewhere: certificates of brokers, also for another
host (``broker_native/security/src/tls/tests``), and a broker whose SCRAM has 0 or 2^31 iterations
(``broker_native/security/src/sasl/scram/tests.rs``).
"""

import ssl
from collections.abc import Callable
from dataclasses import dataclass

from tests.hostile import attempts as a
from tests.hostile.attempts import CLOSED, Attempt, asks, drips, sends, shows, speaks, token
from tests.hostile.fort import FORGED, HANDSHAKE_MS, LOGIN_MS, REQUEST_MS, Fort
from tests.oracle.batches import batch

#: Attempts in a second of those who come over the network, and of those who are logged in already.
PER_S, ASKED_PER_S = 25, 100
_FAILED = f"SASL_AUTHENTICATION_FAILED, {CLOSED}"
_NOT_OFFERED = f"UNSUPPORTED_SASL_MECHANISM, {CLOSED}"
_CLUSTER, _TOPIC, _GROUP = (f"{kind}_AUTHORIZATION_FAILED" for kind in ("CLUSTER", "TOPIC", "GROUP"))
_UNACCEPTABLE = "UNACCEPTABLE_CREDENTIAL"
_INT_MAX = 2**31 - 1
_INTERNAL = "__consumer_offsets"
#: Groups of those who are logged in.
_INSIDE = ("topic ids", "transactions", "internal topics", "of another", "as a broker")
_NO_WAIT = {"max_wait_ms": 0, "min_bytes": 0}


@dataclass(frozen=True)
class Attack:
    """One row.

    Attributes
    ----------
    group, name : str
        With which others it is tried, and what it is.
    attempt : callable
        Tries it once.
    sees : str
        What the attacker must see.
    log : str or None
        What the log must say.
    least : callable
        How many attempts are made at least.
    """

    group: str
    name: str
    attempt: Attempt
    sees: str
    log: str | None = None
    least: Callable[[Fort], int] = lambda _: 1


def _secret_id(fort: Fort) -> str:
    return fort.id_of("secret")


def _internal_id(fort: Fort) -> str:
    return fort.id_of(_INTERNAL)


def _records(**topic: object) -> list[object]:
    """A record for one topic, as Produce has it."""
    return [{**topic, "partition_data": [{"index": 0, "records": batch("x")}]}]


def _transaction(name: str, *topics: str) -> dict[str, object]:
    """AddPartitionsToTxn v3."""
    return {
        "v3_and_below_transactional_id": name,
        "v3_and_below_producer_id": 77,
        "v3_and_below_topics": [{"name": topic, "partitions": [0]} for topic in topics],
    }


def _offsets(topic: str) -> list[object]:
    return [{"name": topic, "partitions": [{"partition_index": 0, "timestamp": -1}]}]


def _offsets_of(group: str) -> list[object]:
    return [{"group_id": group, "topics": None}]


def _iterations(count: int) -> Attempt:
    upsertion = {
        "name": "victim",
        "mechanism": 2,
        "iterations": count,
        "salt": "73616c74",
        "salted_password": "ab" * 64,
    }
    return asks("by-iterations", "AlterUserScramCredentials", 0, deletions=[], upsertions=[upsertion])


def _produce(user: str, version: int, client_id: str = "raw", **topic: object) -> Attempt:
    return asks(user, "Produce", version, client_id, acks=1, timeout_ms=1_000, topic_data=_records(**topic))


def _marker(topic: str) -> list[object]:
    return [{"producer_id": 77, "transaction_result": True, "topics": [{"name": topic, "partition_indexes": [0]}]}]


_DENIED, _AS_BROKER = "User:{} at 127.0.0.1 may not {} for {}".format, 'CLUSTER_ACTION CLUSTER "kafka-cluster"'

ATTACKS = (
    # A listener with ssl.client.auth=required.
    Attack("certificates", "expired", shows("expired"), "SSLV3_ALERT_CERTIFICATE_EXPIRED", "certificate expired on"),
    Attack("certificates", "not yet valid", shows("not yet"), "SSLV3_ALERT_CERTIFICATE_EXPIRED", "is not valid before"),
    Attack("certificates", "self-signed", shows("self-signed"), "TLSV1_ALERT_UNKNOWN_CA", "its certificate is not trusted"),
    Attack("certificates", "of an unknown authority", shows("stranger's"), "TLSV1_ALERT_UNKNOWN_CA", "its certificate is not trusted"),
    Attack("certificates", "for servers", shows("for servers"), "SSLV3_ALERT_UNSUPPORTED_CERTIFICATE", "a client's clientAuth"),
    Attack("certificates", "none", shows(None), "TLSV13_ALERT_CERTIFICATE_REQUIRED", "it showed no certificate"),
    # What OpenSSL says before 1.2 has no signature algorithms, for want of which it is refused.
    Attack("old versions", "TLS 1.1", speaks(ssl.TLSVersion.TLSv1_1, "SECURED"), "SSLV3_ALERT_HANDSHAKE_FAILURE", "a TLS of before 1.2"),
    Attack("old versions", "TLS 1.2 where it is not enabled", speaks(ssl.TLSVersion.TLSv1_2, "AGAIN"), "TLSV1_ALERT_PROTOCOL_VERSION", "to the listener AGAIN (SASL_SSL)"),
    Attack("renegotiation", "by OpenSSL's client", a.renegotiates, "no renegotiation"),
    # Logins.
    Attack("SCRAM", "a nonce that is not the broker's", a.wrong_nonce, _FAILED, "the nonce is not of this login"),
    Attack("SCRAM", "a login that was heard", a.reused_proof(in_new_message=False), _FAILED, "the nonce is not of this login"),
    Attack("SCRAM", "its proof with the new nonce", a.reused_proof(in_new_message=True), _FAILED, "the password is wrong"),
    Attack("tokens", "alg none", token(a.signed_by_nobody), _FAILED, '(alg) "none" is not accepted'),
    Attack("tokens", "alg HS256 with the public key", token(a.signed_with_the_public_key), _FAILED, '(alg) "HS256" is not accepted'),
    Attack("tokens", "of another key", token(a.signed_by_another), _FAILED, "the token's signature is wrong"),
    Attack("tokens", "for another audience", token(lambda fort: a.good_token(fort, aud="others")), _FAILED, "the token's audience is not in"),
    Attack("tokens", "expired", token(lambda fort: a.good_token(fort, lasts_s=-60)), _FAILED, "the token has expired"),
    Attack("readable passwords", "PLAIN without TLS", a.mechanism("PLAIN", "OPEN"), _NOT_OFFERED, 'the mechanism "PLAIN", which is not offered'),
    Attack("readable passwords", "PLAIN's message as one of SCRAM", a.plain_in_scram, _FAILED, "its first message is not understood"),
    Attack("before a login", "every request", a.before_login, CLOSED, "before a login", least=lambda fort: len(a.requests_before_login(fort))),
    Attack("again", "as another user", a.again_as("victim", "AGAIN"), _FAILED, 'it was "by-login" and wants to be "victim"'),
    Attack("again", "as another user, where sessions have no end", a.again_as("victim", "SECURED"), "ILLEGAL_SASL_STATE, still denied"),
    Attack("again", "by another mechanism", a.again_by_token, _NOT_OFFERED, "wants to log in again by OAUTHBEARER"),
    # Past ACLs.
    Attack("topic ids", "Fetch", asks("by-id", "Fetch", 13, **_NO_WAIT, topics=[a.partition(topic_id=_secret_id)]), _TOPIC, _DENIED("by-id", 'READ TOPIC "secret"', "Fetch")),
    Attack("topic ids", "Produce", _produce("by-id", 13, topic_id=_secret_id), _TOPIC, _DENIED("by-id", 'WRITE TOPIC "secret"', "Produce")),
    Attack("topic ids", "Metadata", a.names_by_id("Metadata", 12), f"{_TOPIC}, no name"),
    Attack("topic ids", "DeleteTopics", a.names_by_id("DeleteTopics", 6, timeout_ms=1_000), f"{_TOPIC}, no name"),
    Attack("transactions", "WriteTxnMarkers", asks("by-transaction", "WriteTxnMarkers", 1, markers=_marker("secret")), _CLUSTER, _DENIED("by-transaction", _AS_BROKER, "WriteTxnMarkers")),
    Attack("transactions", "a topic of another", asks("by-transaction", "AddPartitionsToTxn", 3, **_transaction("own", "own", "secret")), f"OPERATION_NOT_ATTEMPTED+{_TOPIC}", _DENIED("by-transaction", 'WRITE TOPIC "secret"', "AddPartitionsToTxn")),
    Attack("transactions", "the id of another", asks("by-transaction", "AddPartitionsToTxn", 3, **_transaction("secret", "own")), "TRANSACTIONAL_ID_AUTHORIZATION_FAILED"),
    Attack("transactions", "as a coordinator", asks("by-transaction", "AddPartitionsToTxn", 4, transactions=[{"transactional_id": "own", "producer_id": 77, "topics": [{"name": "own", "partitions": [0]}]}]), _CLUSTER),
    Attack("internal topics", "AddPartitionsToTxn", asks("by-internal", "AddPartitionsToTxn", 3, **_transaction("own", _INTERNAL)), _TOPIC),
    Attack("internal topics", "Produce", _produce("by-internal", 9, name=_INTERNAL), "INVALID_TOPIC_EXCEPTION"),
    Attack("internal topics", "Produce by id", _produce("by-internal", 13, topic_id=_internal_id), "INVALID_TOPIC_EXCEPTION"),
    Attack("internal topics", "Produce as __admin_client", _produce("by-internal", 9, "__admin_client", name=_INTERNAL), _CLUSTER, _DENIED("by-internal", _AS_BROKER, "Produce")),
    Attack("internal topics", "Produce by id as __admin_client", _produce("by-internal", 13, "__admin_client", topic_id=_internal_id), _CLUSTER),
    Attack("of another", "its fetch session", a.in_session_of_another(None), "FETCH_SESSION_ID_NOT_FOUND, the victim NONE"),
    Attack("of another", "the end of its fetch session", a.in_session_of_another(-1), "NONE, the victim NONE"),
    Attack("of another", "OffsetFetch", asks("by-another", "OffsetFetch", 8, groups=_offsets_of("secret")), _GROUP, _DENIED("by-another", 'DESCRIBE GROUP "secret"', "OffsetFetch")),
    Attack("as a broker", "Fetch", asks("by-broker", "Fetch", 12, **_NO_WAIT, replica_id=1, topics=[a.partition("own")]), _CLUSTER, _DENIED("by-broker", _AS_BROKER, "Fetch")),
    Attack("as a broker", "Fetch with a state", asks("by-broker", "Fetch", 15, **_NO_WAIT, replica_state={"replica_id": 1, "replica_epoch": 1}, topics=[a.partition(topic_id=_secret_id)]), _CLUSTER),
    Attack("as a broker", "ListOffsets", asks("by-broker", "ListOffsets", 7, replica_id=1, topics=_offsets("own")), _CLUSTER),
    Attack("as a broker", "OffsetForLeaderEpoch", asks("by-broker", "OffsetForLeaderEpoch", 4, replica_id=1, topics=[{"topic": "own", "partitions": [{"partition": 0, "leader_epoch": 0}]}]), _CLUSTER),
    Attack("as a broker", "ReadShareGroupState", asks("by-broker", "ReadShareGroupState", 0, group_id="own", topics=[{"topic_id": _secret_id, "partitions": [{"partition": 0}]}]), _CLUSTER),
    # Slowly, a byte at a time.
    Attack("slow loris", "in the handshake", drips(a.in_handshake), CLOSED, f"longer than {HANDSHAKE_MS} ms (ssl.handshake.timeout.ms)"),
    Attack("slow loris", "in a record of TLS", drips(a.in_record), CLOSED, f"it did not log in within {LOGIN_MS} ms (sasl.login.deadline.ms)"),
    Attack("slow loris", "in a login", drips(a.in_login), CLOSED, f"it did not log in within {LOGIN_MS} ms (sasl.login.deadline.ms)"),
    Attack("slow loris", "in a request", drips(a.in_request), CLOSED, f"within {REQUEST_MS} ms (socket.request.receive.timeout.ms)"),
    # Much at once.
    Attack("bombs", "2^31-1 bytes are announced", sends("SECURED", a.length(_INT_MAX)), CLOSED, "a request of 2147483647 bytes is not within [8, 65536]"),
    Attack("bombs", "-1 bytes are announced", sends("OPEN", a.length(-1)), CLOSED, "a request of -1 bytes"),
    Attack("bombs", "2^31-1 bytes in a login without headers", sends("OPEN", a.length(_INT_MAX), "SCRAM-SHA-512", 0), CLOSED, "not within [0, 65536]"),
    Attack("bombs", "100 MB of SaslAuthenticate", sends("SECURED", a.large_authenticate, "SCRAM-SHA-512"), CLOSED, "a request of 104857614 bytes"),
    Attack("bombs", "a message of 2^31-1 bytes in a short request", sends("SECURED", a.lying_authenticate, "SCRAM-SHA-512"), CLOSED, "length 2147483647 at byte 10 cannot be true"),
    Attack("bombs", "2^32-1 tags", sends("OPEN", a.lying_tags), CLOSED, "4294967295 elements"),
    Attack("bombs", "a token that is nested", token(a.nested), _FAILED, "its header is not understood"),
    # Names that would be lines of the log.
    Attack("forged lines", "of a user", a.logs_in_as(f"nobody{FORGED}"), _FAILED, "nobody\\n1999-01-01"),
    Attack("forged lines", "of a mechanism", a.mechanism(f"none{FORGED}", "SECURED"), _NOT_OFFERED, "none\\n1999-01-01"),
    Attack("forged lines", "of a certificate", a.as_forger, _TOPIC, "User:CN=forger\\n1999-01-01"),
    Attack("forged lines", "of a token", a.as_forger_by_token, _TOPIC, "User:forger\\n1999-01-01"),
    Attack("forged lines", "of a topic", asks("by-name", "ListOffsets", 7, topics=_offsets(f"topic{FORGED}")), _TOPIC, "topic\\n1999-01-01"),
    Attack("forged lines", "of a group", asks("by-name", "OffsetFetch", 8, groups=_offsets_of(f"group{FORGED}")), _GROUP, "group\\n1999-01-01"),
    Attack("forged lines", "of a client", asks("by-name", "ListOffsets", 7, f"client{FORGED}", topics=_offsets("secret")), _TOPIC),
    # The most and the least that SCRAM's field holds, 2^31 as it would arrive, and 0.
    Attack("iterations", "0", _iterations(0), _UNACCEPTABLE),
    Attack("iterations", "2^31-1", _iterations(_INT_MAX), _UNACCEPTABLE),
    Attack("iterations", "2^31", _iterations(-(2**31)), _UNACCEPTABLE),
)  # fmt: skip
GROUPS = tuple(dict.fromkeys(attack.group for attack in ATTACKS))


def pace(group: str) -> int:
    """How many attempts a group makes in a second."""
    return ASKED_PER_S if group in _INSIDE else PER_S
