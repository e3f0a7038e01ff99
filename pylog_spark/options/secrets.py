"""Settings of a client whose ``repr`` shows no secret: they stand in readers, writers and plans, which Spark and tracebacks may print.

Spark itself shows the options of a write, in plans, on its pages and in its event log; it hides those whose name or text has one of a
few words in it. A private key as text has none of them, so it is refused unless a line before it has (`shown_key`).

Which names hold secrets is said here once more, so that printing needs no native module; a test compares it with the declared kinds.
"""

from __future__ import annotations

import re

#: What is shown in a secret's place, as the native half and Kafka's clients do.
HIDDEN = "[hidden]"
_SECRET = re.compile(
    r"password|secret|jaas|\.key$|\.pem$|certificates?$|certificate\.chain$|token\.provider\.config$", re.IGNORECASE
)


#: What Spark hides unless a session says otherwise (its setting ``spark.redaction.regex``).
_HIDDEN_BY_SPARK = re.compile(r"secret|password|token|access[.]?key", re.IGNORECASE)
_PRIVATE_KEY = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----")


def shown_key(name: str, text: str) -> str | None:
    """Say what to do about an option whose text is a private key that Spark would show; None for any other."""
    if not _PRIVATE_KEY.search(text) or _HIDDEN_BY_SPARK.search(name) or _HIDDEN_BY_SPARK.search(text):
        return None
    return (
        "it is a private key as text, which Spark would show in plans, on its pages and in its event log; name a file of it in "
        "kafka.ssl.key.location (or kafka.ssl.keystore.location), or put a line with the word secret before its -----BEGIN, by which "
        "Spark knows that it must hide the text"
    )


def is_secret(name: str) -> bool:
    """Whether the setting (or option) `name` may hold a secret."""
    return _SECRET.search(name) is not None


class ClientSettings(dict[str, str]):
    """Settings of the native client by their names: a dict that hides secrets where it is printed. Pickles as it is."""

    def __repr__(self) -> str:
        return repr({name: HIDDEN if is_secret(name) else text for name, text in self.items()})
