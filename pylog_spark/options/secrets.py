"""Settings of a client whose ``repr`` shows no secret: they stand in readers, writers and plans, which Spark and tracebacks may print.

Which names hold secrets is said here once more, so that printing needs no native module; a test compares it with the declared kinds.
"""

from __future__ import annotations

import re

#: What is shown in a secret's place, as the native half and Kafka's clients do.
HIDDEN = "[hidden]"
_SECRET = re.compile(
    r"password|secret|jaas|\.key$|\.pem$|certificates?$|certificate\.chain$|oauthbearer\.config$", re.IGNORECASE
)


def is_secret(name: str) -> bool:
    """Whether the setting (or option) `name` may hold a secret."""
    return _SECRET.search(name) is not None


class ClientSettings(dict[str, str]):
    """Settings of the native client by their names: a dict that hides secrets where it is printed. Pickles as it is."""

    def __repr__(self) -> str:
        return repr({name: HIDDEN if is_secret(name) else text for name, text in self.items()})
