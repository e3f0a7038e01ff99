"""TLS and logins by hand: a client of a few lines, by which honest clients and attackers of tests come in, each as it is told to.

TLS is Python's, so it is OpenSSL's; the messages of SASL are written from RFC 5802 and RFC 7628, so nothing of pylog's own code is used.
"""

import base64
import functools
import hashlib
import hmac
import os
import socket
import ssl
import struct
import warnings
from dataclasses import dataclass, field

from tests.broker.wire import Answer, Connection, text

SASL_HANDSHAKE, SASL_AUTHENTICATE = 17, 36
MECHANISM = "SCRAM-SHA-512"
_DIGEST = "sha512"
_TIMEOUT_S = 60.0


@dataclass(frozen=True)
class Login:
    """Whom a client over TLS trusts, and by which user and password it logs in."""

    ca: str
    user: str
    password: str = field(repr=False)


@functools.cache
def context(
    ca: str, certificate: str | None = None, version: ssl.TLSVersion | None = None, ciphers: str | None = None
) -> ssl.SSLContext:
    """What a client trusts and shows, and the one version that it speaks, if it does not speak all."""
    made = ssl.create_default_context(cafile=ca)
    if certificate is not None:
        made.load_cert_chain(certificate)
    if ciphers is not None:
        made.set_ciphers(ciphers)
    if version is not None:
        with warnings.catch_warnings():
            # Of the old ones Python says that nobody should use them.
            warnings.simplefilter("ignore", DeprecationWarning)
            made.minimum_version = made.maximum_version = version
    return made


def dialled(address: str, from_host: str = "127.0.0.1") -> socket.socket:
    """A connection to ``HOST:PORT`` from that address, without TLS."""
    host, _, port = address.rpartition(":")
    connection = socket.create_connection((host, int(port)), timeout=_TIMEOUT_S, source_address=(from_host, 0))
    # What is sent byte by byte is to go byte by byte.
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def encrypted(address: str, by: ssl.SSLContext, from_host: str = "127.0.0.1") -> ssl.SSLSocket:
    """The same with TLS; raises `OSError` when the handshake fails."""
    plain = dialled(address, from_host)
    try:
        return by.wrap_socket(plain, server_hostname=address.rpartition(":")[0])
    except BaseException:
        plain.close()
        raise


class Client(Connection):
    """A client over a connection that is open already. A context manager that closes it."""

    def __init__(self, connection: socket.socket) -> None:
        self.socket = connection
        self.sent = 0

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def handshake(self, mechanism: str = MECHANISM) -> int:
        """SaslHandshake v1: its error code."""
        return int(self.ask(SASL_HANDSHAKE, 1, text(mechanism)).take("h"))

    def authenticate(self, message: bytes) -> tuple[int, str | None, bytes]:
        """SaslAuthenticate v1: error code, sentence, and the message of the broker."""
        answer: Answer = self.ask(SASL_AUTHENTICATE, 1, struct.pack(">i", len(message)) + message)
        code, sentence, length = answer.take("h"), answer.text(), answer.take("i")
        return code, sentence, answer.data[answer.at : answer.at + length]

    def log_in(self, user: str, password: str) -> tuple[int, str | None]:
        """A whole login by SCRAM-SHA-512: error code and sentence of its end."""
        if code := self.handshake():
            return code, None
        scram = Scram(user, password)
        code, sentence, challenge = self.authenticate(scram.first)
        if code:
            return code, sentence
        code, sentence, _ = self.authenticate(scram.final(challenge))
        return code, sentence


class Scram:
    """A client's side of SCRAM-SHA-512.

    Attributes
    ----------
    first : bytes
        Its first message.
    proof : bytes
        The proof of its last one.
    """

    def __init__(self, user: str, password: str, nonce: str | None = None) -> None:
        self._password = password
        self.nonce = nonce or base64.b64encode(os.urandom(18)).decode()
        self._bare = f"n={user.replace('=', '=3D').replace(',', '=2C')},r={self.nonce}"
        self.first = f"n,,{self._bare}".encode()
        self.proof = b""

    def final(self, challenge: bytes, nonce: str | None = None) -> bytes:
        """Its last message, with the nonce of the challenge, or another one, of which the proof is then."""
        said = dict(part.partition("=")[::2] for part in challenge.decode().split(","))
        without_proof = f"c=biws,r={said['r'] if nonce is None else nonce}"
        salted = _salted(self._password, base64.b64decode(said["s"]), int(said["i"]))
        key = hmac.digest(salted, b"Client Key", _DIGEST)
        signed = f"{self._bare},{challenge.decode()},{without_proof}".encode()
        signature = hmac.digest(hashlib.new(_DIGEST, key).digest(), signed, _DIGEST)
        self.proof = bytes(a ^ b for a, b in zip(key, signature, strict=True))
        return f"{without_proof},p={base64.b64encode(self.proof).decode()}".encode()


@functools.cache
def _salted(password: str, salt: bytes, iterations: int) -> bytes:
    """An attacker need not wait for this at each attempt."""
    return hashlib.pbkdf2_hmac(_DIGEST, password.encode(), salt, iterations)
