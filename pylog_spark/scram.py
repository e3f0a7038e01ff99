"""SCRAM's keys (RFC 5802) and the mechanisms that Kafka has. Pure; thread-safe.

A broker keeps what `keys` gives and never the password: with the stored key it checks a client's proof, with the server key it proves
itself. Whoever has the salted password can log in, so it is a secret like the password; it is what an administrator's client sends.
As in Kafka, a password is its bytes in UTF-8, without preparation.

`hashlib` loads OpenSSL: 3 MiB that a broker without users, or one that makes none, does without.
"""

import enum
import os

MIN_ITERATIONS = 4096
MAX_ITERATIONS = 16384
#: As many as Kafka's documentation uses.
DEFAULT_ITERATIONS = 8192
SALT_BYTES = 32


class Mechanism(enum.Enum):
    """A mechanism: Kafka's number of it, the name of its hash function, and how long its keys are."""

    SCRAM_SHA_256 = (1, "sha256", 32)
    SCRAM_SHA_512 = (2, "sha512", 64)

    def __init__(self, number: int, digest: str, key_bytes: int) -> None:
        self.number = number
        self.digest = digest
        self.key_bytes = key_bytes

    @property
    def text(self) -> str:
        """Its name, such as ``SCRAM-SHA-256``."""
        return self.name.replace("_", "-")


BY_NUMBER = {mechanism.number: mechanism for mechanism in Mechanism}
BY_TEXT = {mechanism.text: mechanism for mechanism in Mechanism}


def new_salt() -> bytes:
    """A random salt."""
    return os.urandom(SALT_BYTES)


def salted_password(mechanism: Mechanism, password: str, salt: bytes, iterations: int) -> bytes:
    """What SCRAM makes of a password. Takes some milliseconds, by intention."""
    import hashlib

    return hashlib.pbkdf2_hmac(mechanism.digest, password.encode(), salt, iterations)


def keys(mechanism: Mechanism, salted: bytes) -> tuple[bytes, bytes]:
    """The stored key and the server key of a salted password."""
    import hashlib
    import hmac

    client_key = hmac.digest(salted, b"Client Key", mechanism.digest)
    return hashlib.new(mechanism.digest, client_key).digest(), hmac.digest(salted, b"Server Key", mechanism.digest)
