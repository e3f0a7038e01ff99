"""The throw-away user of brokers that ask for a login: how it is made, and what clients and brokers need to log in as it.

It is kept in a file that only its owner can read, so that a later start with the same data finds the same user. The file is one of
settings, from which brokers read how they log in at each other: what stands on a command line can be read by every user of the machine.
"""

import os
import re
import secrets
from dataclasses import dataclass, field
from pathlib import Path

#: The name of the user.
USER = "admin"
#: The mechanisms that take a password, and Java's names of their modules.
MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}


@dataclass(frozen=True, slots=True)
class Login:
    """A mechanism, and the user who logs in by it.

    Attributes
    ----------
    mechanism : str
        ``PLAIN``, ``SCRAM-SHA-256`` or ``SCRAM-SHA-512``.
    user, password : str
        What the user says.
    file : path
        A properties file with the setting ``sasl.jaas.config``.
    """

    mechanism: str
    user: str
    password: str = field(repr=False)
    file: Path

    def __post_init__(self) -> None:
        if self.mechanism not in MODULES:
            raise ValueError(f"sasl= takes {', '.join(MODULES)}, not {self.mechanism!r}.")

    @property
    def stored_mechanism(self) -> str:
        """The mechanism whose credential the broker keeps: PLAIN is compared with one of SCRAM-SHA-512."""
        return "SCRAM-SHA-512" if self.mechanism == "PLAIN" else self.mechanism

    @property
    def jaas(self) -> str:
        """The text of ``sasl.jaas.config``, of a client or of a broker that logs in at another one."""
        return f'{MODULES[self.mechanism]} required username="{self.user}" password="{self.password}";'

    def client_settings(self) -> dict[str, str]:
        """Settings of a client that logs in, by Kafka's names."""
        return {"sasl.mechanism": self.mechanism, "sasl.jaas.config": self.jaas}

    def broker_settings(self) -> dict[str, str]:
        """Settings of a broker at which the user logs in, may do everything, and is who brokers are among themselves."""
        return {
            "sasl.enabled.mechanisms": self.mechanism,
            "sasl.mechanism.inter.broker.protocol": self.mechanism,
            "super.users": f"User:{self.user}",
        }


def kept_login(file: Path, mechanism: str) -> Login:
    """The user of `file`, to log in by `mechanism`; made when there is none. Raises `ValueError` for another mechanism."""
    kept = re.search(r'password="([^"]*)"', file.read_text(encoding="ascii")) if file.exists() else None
    login = Login(mechanism, USER, kept[1] if kept else secrets.token_urlsafe(18), file)
    write_private(file, f"sasl.jaas.config={login.jaas}\n")
    return login


def write_private(file: Path, text: str) -> None:
    """Write a file that only its owner can read."""
    file.parent.mkdir(parents=True, exist_ok=True)
    new = file.with_suffix(".new")
    with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as opened:
        opened.write(text)
    new.replace(file)


def make_user(data_dir: str, settings: list[tuple[str, str]], login: Login) -> None:
    """Make the user where a broker with these settings finds it; that broker must not run yet. Raises `broker.format.FormatError`."""
    from pylog_spark import scram
    from pylog_spark.broker.config import broker_config
    from pylog_spark.broker.format import FirstUser, add_users

    user = FirstUser(login.user, scram.BY_TEXT[login.stored_mechanism], password=login.password)
    add_users(data_dir, broker_config(settings), [user])
