"""Throw-away certificates: an authority of one's own and what it issues, as PEM files in a directory. Nobody else trusts them.

The authority's key is in no file, so each directory has all the certificates that it will ever have.
"""

import os
import time
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

#: The names and addresses of this machine that brokers of tests are reached by.
LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1")
_DAY_S = 86_400
_CA = "ca.pem"
Usage = Literal["server", "client", "both"]


class Certificates:
    """The files of a directory.

    Attributes
    ----------
    directory : Path
        Where they are: ``ca.pem``, and ``<name>.pem`` with key and certificate of each.
    ca : str
        The file of the authority's certificate, which clients and brokers trust.
    """

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        self.directory = Path(directory).absolute()
        self.ca = str(self.directory / _CA)

    def made(
        self,
        names: Mapping[str, Sequence[str]] | Sequence[str] = ("broker", "client"),
        *,
        usage: Usage = "both",
        days: tuple[int, int] = (-1, 30),
    ) -> "Certificates":
        """Make a new authority and a certificate for each of `names`, with the hosts that it is for; keep those that are there already.

        `days`: from when and until when they are valid, in days from now.
        """
        wanted = dict(names) if isinstance(names, Mapping) else dict.fromkeys(names, LOCAL_HOSTS)
        if not all(Path(self.store(name)).exists() for name in wanted):
            self.replace(wanted, usage=usage, days=days)
        return self

    def replace(
        self, names: Mapping[str, Sequence[str]], *, usage: Usage = "both", days: tuple[int, int] = (-1, 30)
    ) -> None:
        """Make a new authority and new certificates in the place of those that are there."""
        from pylog_spark._native import throwaway_certificates

        first, last = (int(time.time()) + day * _DAY_S for day in days)
        asked = [(name, list(hosts), usage, first, last) for name, hosts in names.items()]
        # With the name of another one, what that one issued would look badly signed and not foreign.
        ca, issued = throwaway_certificates(f"pylog throw-away CA {uuid.uuid4()}", asked)
        self.directory.mkdir(parents=True, exist_ok=True)
        for name, (certificate, key) in zip(names, issued, strict=True):
            _write(Path(self.store(name)), key + certificate + ca)
        _write(Path(self.ca), ca)

    def store(self, name: str) -> str:
        """The file of the private key and the certificate called `name`."""
        return str(self.directory / f"{name}.pem")

    def client_settings(self, name: str | None = None) -> dict[str, str]:
        """Settings of a client that trusts the authority and shows the certificate `name`, if that is given."""
        own = {} if name is None else {"ssl.keystore.type": "PEM", "ssl.keystore.location": self.store(name)}
        return {
            "security.protocol": "SSL",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": self.ca,
            **own,
        }

    def broker_settings(self, name: str = "broker") -> dict[str, str]:
        """Settings of a broker that shows the certificate `name` and trusts the authority."""
        return {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": self.store(name),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": self.ca,
        }


def _write(path: Path, text: str) -> None:
    """Write the file as a whole: who reads it meanwhile has the old or the new one."""
    new = path.with_suffix(".new")
    new.write_text(text, encoding="ascii")
    new.chmod(0o600)
    new.replace(path)
