"""How strangers, and users who want more than they may, try one thing at a secured broker (`fort`); what they must see is in
`secure_attacks`.

An attempt is made once for each call, from the address that it is given. It gives what the attacker saw, or, where that takes the broker a
while, what waits for it.
"""

import base64
import contextlib
import functools
import hashlib
import hmac
import itertools
import os
import ssl
import struct
import subprocess
from collections.abc import Callable
from typing import Any

from tests.broker.wire import array, text
from tests.harness.children import PipedChild
from tests.harness.waiting import brief
from tests.hostile.exchange import advertised
from tests.hostile.floods import MIB, send_what_is_taken
from tests.hostile.fort import AUDIENCE, FORGED, FROM, Fort, password
from tests.hostile.logins import SASL_AUTHENTICATE, SASL_HANDSHAKE, Client, Scram, dialled
from tests.hostile.requests import framed, uvarint
from tests.oracle.errors import NAMES
from tests.oracle.script import error_names

CLOSED, LET_IN = "closed", "let in"
METADATA, API_VERSIONS = 3, 18
_INVALID_TOKEN = b'{"status":"invalid_token"}'
_TOPIC_AUTHORIZATION_FAILED = 29
_INT_MAX = 2**31 - 1
_DEEP = 20_000
#: How often a byte comes when it is waited for the end, and how often at most.
_DRIP_S, _DRIPS_MAX = 0.05, 200

Later = Callable[[], str]
Attempt = Callable[[Fort, str], str | Later]


def _end(client: Client) -> str:
    """What becomes of a connection on which the broker owes nothing."""
    try:
        return CLOSED if client.closed() else "answered"
    except TimeoutError:
        return LET_IN


def _failure(client: Client, code: int) -> str:
    return f"{NAMES[code]}, {_end(client)}" if code else LET_IN


# TLS.


def shows(certificate: str | None) -> Attempt:
    """A client comes with this certificate: the alert that it is sent."""

    def attempt(fort: Fort, host: str) -> str:
        return _alert(fort, host, "CERTIFIED", certificate)

    return attempt


def speaks(version: ssl.TLSVersion, listener: str) -> Attempt:
    """A client speaks only this version: the alert that it is sent."""

    def attempt(fort: Fort, host: str) -> str:
        # OpenSSL itself has to be told that it may.
        return _alert(fort, host, listener, version=version, ciphers="DEFAULT@SECLEVEL=0")

    return attempt


def _alert(
    fort: Fort,
    host: str,
    listener: str,
    certificate: str | None = None,
    version: ssl.TLSVersion | None = None,
    ciphers: str | None = None,
) -> str:
    try:
        with fort.dial(listener, host, certificate, version=version, ciphers=ciphers) as client:
            # In TLS 1.3 a client is through before the broker has looked at its certificate.
            return _end(client)
    except ssl.SSLError as error:
        return str(error.reason)


def renegotiates(fort: Fort, host: str) -> Later:
    """OpenSSL's own client asks for another handshake on its connection."""
    command = ["openssl", "s_client", "-tls1_2", "-CAfile", fort.certificates.ca,
               "-bind", host, "-connect", fort.address("SECURED")]  # fmt: skip
    client = PipedChild(command, errors=subprocess.STDOUT)
    client.say("R")

    def later() -> str:
        # The pipe stays open meanwhile: at its end OpenSSL's client would hang up.
        client.wait()
        said = client.output
        assert "RENEGOTIATING" in said, said
        return "no renegotiation" if "no renegotiation" in said else said

    return later


# Logins.


def wrong_nonce(fort: Fort, host: str) -> str:
    """The proof is right, but of another nonce than the broker's."""
    with fort.dial("SECURED", host) as client:
        assert client.handshake() == 0
        scram = Scram("victim", password("victim"))
        _, _, challenge = client.authenticate(scram.first)
        return _failure(client, client.authenticate(scram.final(challenge, nonce=f"{scram.nonce}guessed"))[0])


def reused_proof(in_new_message: bool) -> Attempt:
    """Somebody who heard a whole login says the same on another connection, or puts its proof into a message that fits."""

    def attempt(fort: Fort, host: str) -> str:
        scram, final = fort.kept("a login that was heard", lambda: _heard(fort, host))
        with fort.dial("SECURED", host) as client:
            assert client.handshake() == 0
            _, _, challenge = client.authenticate(scram.first)
            proof = base64.b64encode(scram.proof).decode()
            said = f"c=biws,{challenge.decode().partition(',')[0]},p={proof}".encode() if in_new_message else final
            return _failure(client, client.authenticate(said)[0])

    return attempt


def _heard(fort: Fort, host: str) -> tuple[Scram, bytes]:
    with fort.dial("SECURED", host) as client:
        assert client.handshake() == 0
        scram = Scram("victim", password("victim"))
        _, _, challenge = client.authenticate(scram.first)
        final = scram.final(challenge)
        assert client.authenticate(final)[0] == 0
        return scram, final


def token(make: Callable[[Fort], str]) -> Attempt:
    """A client comes with this token."""

    def attempt(fort: Fort, host: str) -> str:
        made = fort.kept(make, lambda: make(fort))
        with fort.dial("SECURED", host) as client:
            assert client.handshake("OAUTHBEARER") == 0
            code, _, said = client.authenticate(_bearer(made))
            if (code, said) != (0, _INVALID_TOKEN):
                return LET_IN if code == 0 else _failure(client, code)
            code, sentence, _ = client.authenticate(b"\x01")
            assert sentence == _INVALID_TOKEN.decode()
            return _failure(client, code)

    return attempt


def _bearer(made: str) -> bytes:
    return b"n,,\x01auth=Bearer " + made.encode() + b"\x01\x01"


def good_token(fort: Fort, **other: object) -> str:
    """A token that the broker takes, but for what is given."""
    return fort.issuer.token(**{"aud": AUDIENCE, "iss": FROM, **other})  # type: ignore[arg-type]


def _encoded(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def signed_by_nobody(fort: Fort) -> str:
    """A token with the algorithm none."""
    return good_token(fort, header={"alg": "none"}).rpartition(".")[0] + "."


def signed_with_the_public_key(fort: Fort) -> str:
    """A token with an algorithm for which who checks it would need the key that signed it: the key that everybody knows."""
    message = good_token(fort, header={"alg": "HS256"}).rpartition(".")[0]
    return f"{message}.{_encoded(hmac.digest(fort.issuer.jwks().encode(), message.encode(), hashlib.sha256))}"


def signed_by_another(fort: Fort) -> str:
    """A token of somebody else who calls its key the same."""
    return fort.other_issuer.token(aud=AUDIENCE, iss=FROM)


def nested(fort: Fort) -> str:
    """A token whose header has arrays in arrays, as deep as a request before a login holds."""
    return _encoded(b'{"alg":' + b"[" * _DEEP) + "." + good_token(fort).partition(".")[2]


def mechanism(name: str, listener: str) -> Attempt:
    """A client asks for a mechanism that is not offered."""

    def attempt(fort: Fort, host: str) -> str:
        with fort.dial(listener, host) as client:
            return _failure(client, client.handshake(name))

    return attempt


def plain_in_scram(fort: Fort, host: str) -> str:
    """A right password where the messages of SCRAM are expected, readable for all."""
    with fort.dial("OPEN", host) as client:
        assert client.handshake() == 0
        return _failure(client, client.authenticate(f"\0victim\0{password('victim')}".encode())[0])


def before_login(fort: Fort, host: str) -> str:
    """A request before a login, of each kind in turns."""
    kinds = fort.kept("kinds", lambda: itertools.cycle(requests_before_login(fort)))
    listener, key = next(kinds)
    with fort.dial(listener, host) as client:
        client.send(key, 0, bytes(20))
        return _end(client)


def requests_before_login(fort: Fort) -> list[tuple[str, int]]:
    """(listener, API key): all but those of a login, also one that there is not."""
    keys = sorted({*advertised(fort.broker), 1000} - {API_VERSIONS, SASL_HANDSHAKE})
    return [(listener, key) for key in keys for listener in ("OPEN", "SECURED")]


def again_as(user: str, listener: str) -> Attempt:
    """Who is logged in logs in once more as somebody else, whose password is right."""

    def attempt(fort: Fort, host: str) -> str:
        with fort.dial(listener, host) as client:
            assert client.log_in("by-login", password("by-login"))[0] == 0
            code, _ = client.log_in(user, password(user))
            if NAMES[code] != "ILLEGAL_SASL_STATE":
                return _failure(client, code)
            # Where no session ends the connection goes on, as who it was.
            return f"{NAMES[code]}, still denied" if _is_denied(client) != LET_IN else LET_IN

    return attempt


def again_by_token(fort: Fort, host: str) -> str:
    """Who is logged in by a password logs in once more by a token."""
    with fort.dial("AGAIN", host) as client:
        assert client.log_in("by-login", password("by-login"))[0] == 0
        return _failure(client, client.handshake("OAUTHBEARER"))


# Slowly.

Byte = Callable[[bytes], object]


def drips(begin: Callable[[Fort, str], tuple[Client, Byte]]) -> Attempt:
    """Connections that are never done with something and send another byte of it now and then: each attempt opens one with `begin`, which
    says how the bytes are sent, and sends one on each that was opened before."""

    def attempt(fort: Fort, host: str) -> Later:
        dripping: list[tuple[Client, Byte]] = fort.kept(begin, list)
        for _, send in dripping:
            with contextlib.suppress(OSError):
                send(b"\0")
        client, send = begin(fort, host)
        dripping.append((client, send))
        return lambda: _dripped(client, send)

    return attempt


def _dripped(client: Client, send: Byte) -> str:
    """Go on until the broker closes the connection."""
    with client, brief(client.socket, _DRIP_S):
        return CLOSED if any(_is_closed(client, send) for _ in range(_DRIPS_MAX)) else LET_IN


def _is_closed(client: Client, send: Byte) -> bool:
    """Send one more byte, and look a moment later."""
    try:
        send(b"\0")
        return client.closed()
    except TimeoutError:
        return False
    except OSError:
        return True


def in_handshake(fort: Fort, host: str) -> tuple[Client, Byte]:
    """A ClientHello of 512 bytes has begun."""
    client = Client(dialled(fort.address("SECURED"), host))
    client.socket.sendall(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")
    return client, client.socket.sendall


def in_record(fort: Fort, host: str) -> tuple[Client, Byte]:
    """A record of TLS of 16 KiB has begun."""
    client = fort.dial("SECURED", host)
    # Past TLS, to the same socket.
    os.write(client.socket.fileno(), b"\x17\x03\x03\x40\x00")
    return client, lambda byte: os.write(client.socket.fileno(), byte)


def in_login(fort: Fort, host: str) -> tuple[Client, Byte]:
    """A SaslAuthenticate has begun, each byte in a record of its own."""
    client = fort.dial("SECURED", host)
    assert client.handshake() == 0
    client.socket.sendall(struct.pack(">ihhih", 60_000, SASL_AUTHENTICATE, 1, 9, -1))
    return client, client.socket.sendall


def in_request(fort: Fort, host: str) -> tuple[Client, Byte]:
    """A Produce of one who is logged in has begun."""
    client = fort.dial("SECURED", host)
    assert client.log_in("by-login", password("by-login"))[0] == 0
    client.socket.sendall(struct.pack(">ihhih", 60_000, 0, 8, 9, -1))
    return client, client.socket.sendall


# Much, before a login.


def sends(listener: str, data: Callable[[], bytes], mechanism: str | None = None, version: int = 1) -> Attempt:
    """A client sends this, behind a SaslHandshake if it names a mechanism."""

    def attempt(fort: Fort, host: str) -> str:
        with fort.dial(listener, host) as client:
            if mechanism is not None:
                assert client.ask(SASL_HANDSHAKE, version, text(mechanism)).take("h") == 0
            with contextlib.suppress(ssl.SSLError):
                send_what_is_taken(client.socket, data())
            return _end(client)

    return attempt


def length(bytes_: int) -> Callable[[], bytes]:
    """The size of a request, and hardly any of it."""
    return lambda: struct.pack(">i", bytes_) + b"x"


@functools.cache
def large_authenticate() -> bytes:
    """A SaslAuthenticate that is all there."""
    head = struct.pack(">hhihi", SASL_AUTHENTICATE, 1, 9, -1, 100 * MIB)
    return struct.pack(">i", len(head) + 100 * MIB) + head + bytes(100 * MIB)


def lying_authenticate() -> bytes:
    """A SaslAuthenticate whose message is not as long as it says."""
    return framed(struct.pack(">hhihi", SASL_AUTHENTICATE, 1, 9, -1, _INT_MAX) + b"x")


def lying_tags() -> bytes:
    """ApiVersions v3 with names, and more tags than there can be."""
    names = b"\x02a\x02b"
    return framed(struct.pack(">hhih", API_VERSIONS, 3, 9, -1) + b"\0" + names + uvarint(2**32 - 1))


# Users who want more than they may.


def asks(user: str | None, api: str, version: int, client_id: str = "raw", **fields: object) -> Attempt:
    """A user who is logged in asks for this; in fields, what is callable is asked about the fort."""

    def attempt(fort: Fort, _host: str) -> str:
        return fort.errors(user, api, version, client_id, **{name: _of(fort, value) for name, value in fields.items()})

    return attempt


def names_by_id(api: str, version: int, **fields: object) -> Attempt:
    """A user asks for a topic's name by its id, or to delete it."""

    def attempt(fort: Fort, _host: str) -> str:
        answer = fort.ask("by-id", api, version, topics=[{"topic_id": fort.id_of("secret"), "name": None}], **fields)
        return f"{'+'.join(error_names(answer))}, {'its' if 'secret' in str(answer) else 'no'} name"

    return attempt


def partition(topic: str | None = None, **fields: object) -> dict[str, object]:
    """The first partition of a topic in a Fetch."""
    asked = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1_000}
    return {"topic": topic, "partitions": [asked]} if topic else {**fields, "partitions": [asked]}


def _of(fort: Fort, value: object) -> object:
    if callable(value):
        return value(fort)
    if isinstance(value, dict):
        return {name: _of(fort, item) for name, item in value.items()}
    return [_of(fort, item) for item in value] if isinstance(value, list) else value


class Session:
    """A fetch session of the victim, which goes on with each answer."""

    def __init__(self, fort: Fort) -> None:
        self._fort, self.epoch = fort, 0
        self.id = 0
        self.id = self._fetch(partition("secret"))["session_id"]

    def _fetch(self, *topics: object) -> Any:
        fields = {"session_id": self.id, "session_epoch": self.epoch, "topics": list(topics)}
        answer = self._fort.ask("victim", "Fetch", 12, max_wait_ms=0, min_bytes=0, **fields)
        self.epoch += 1
        return answer

    def goes_on(self) -> str:
        """The error that the victim gets."""
        return NAMES[self._fetch()["error_code"]]


def in_session_of_another(epoch: int | None) -> Attempt:
    """A fetch in the victim's session, at this epoch, or at the one that it has reached: what both see."""

    def attempt(fort: Fort, _host: str) -> str:
        session: Session = fort.kept("session", lambda: Session(fort))
        named = {"session_id": session.id, "session_epoch": session.epoch if epoch is None else epoch}
        sees = fort.errors("by-another", "Fetch", 12, max_wait_ms=0, min_bytes=0, topics=[], **named)
        return f"{sees}, the victim {session.goes_on()}"

    return attempt


def as_forger(fort: Fort, host: str) -> str:
    """A client whose certificate's name has a line of the log asks for what it may not."""
    with fort.dial("CERTIFIED", host, "forging") as client:
        return _is_denied(client)


def as_forger_by_token(fort: Fort, host: str) -> str:
    """The same by a token, which is good."""
    made = fort.kept("forging", lambda: good_token(fort, user=f"forger{FORGED}"))
    with fort.dial("SECURED", host) as client:
        assert client.handshake("OAUTHBEARER") == 0
        assert client.authenticate(_bearer(made))[::2] == (0, b"")
        return _is_denied(client)


def _is_denied(client: Client) -> str:
    answer = client.ask(METADATA, 1, array([text("secret")]))
    is_denied = struct.pack(">h", _TOPIC_AUTHORIZATION_FAILED) + text("secret") in answer.data
    return NAMES[_TOPIC_AUTHORIZATION_FAILED] if is_denied else LET_IN


def logs_in_as(user: str) -> Attempt:
    """Somebody guesses the password of a user that there is not."""

    def attempt(fort: Fort, host: str) -> str:
        with fort.dial("SECURED", host) as client:
            return _failure(client, client.log_in(user, "guessed")[0])

    return attempt
