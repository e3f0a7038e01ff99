"""The first users of a broker or cluster, made before any broker runs: ``pylog broker format``.

To create a user at a cluster that asks for a login, an administrator must be able to log in. So the first user is made where the users are
stored: in the data directory of a broker without ZooKeeper, which must be stopped, or in the cluster's ZooKeeper. Running it again is
safe: a user that exists with the same password is left as it is, one with another password is refused.
"""

import base64
import fcntl
import hmac
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from pylog_spark import scram
from pylog_spark.broker.clustered import ChangeQueue, agreed_cluster_id, connect
from pylog_spark.broker.config import BrokerConfig
from pylog_spark.broker.errors import MembershipError
from pylog_spark.broker.foreign import belongs_to_kafka, sentence_for_kafka
from pylog_spark.broker.membership import understood_level
from pylog_spark.broker.registry import change_notification, stored_cluster_id
from pylog_spark.broker.security import CONFLICT, SecurityRegistry, limits
from pylog_spark.cluster import documents
from pylog_spark.cluster.documents import DocumentError
from pylog_spark.cluster.errors import Refusal
from pylog_spark.cluster.model import new_topic_id
from pylog_spark.cluster.security.model import User
from pylog_spark.cluster.security.users import Upsertion, alter
from pylog_spark.cluster.store import Store, StoreError
from pylog_spark.cluster.store.file import FileStore
from pylog_spark.scram import Mechanism

#: The file that a broker holds locked while it uses the data directory.
_LOCK = ".lock"
_TRIES = 20


class FormatError(Exception):
    """Nothing more was changed. `args[0]` is one sentence that says what to do."""


@dataclass(frozen=True, slots=True)
class FirstUser:
    """A user to make: with a password, or with a salted one and its salt."""

    name: str
    mechanism: Mechanism
    iterations: int = scram.DEFAULT_ITERATIONS
    password: str | None = field(default=None, repr=False)
    salt: bytes | None = field(default=None, repr=False)
    salted_password: bytes | None = field(default=None, repr=False)


def parse(argument: str) -> FirstUser:
    """Read what Kafka's ``--add-scram`` takes: ``SCRAM-SHA-256=[name=admin,password=secret,iterations=8192,salt=base64]``.

    A value may stand in double quotes, and has no comma. In place of a password there may be the ``saltedpassword``, in base64.
    Without either, somebody must be asked for the password. Raises `FormatError`, whose sentence has no value in it.
    """
    kind, equals, inside = argument.strip().partition("=")
    mechanism = scram.BY_TEXT.get(kind)
    if mechanism is None:
        raise FormatError(f"--add-scram must begin with one of {', '.join(f'{text}=' for text in scram.BY_TEXT)}.")
    if not (equals and inside.startswith("[") and inside.endswith("]")):
        raise FormatError(f"--add-scram {kind}= must go on with [name=NAME,...].")
    fields: dict[str, str] = {}
    for component in inside[1:-1].split(","):
        name, equals, value = component.partition("=")
        if not equals or name not in ("name", "password", "saltedpassword", "salt", "iterations"):
            raise FormatError(
                "--add-scram takes name=, password=, saltedpassword=, salt= and iterations=, with commas between them."
            )
        quoted = len(value) > 1 and value.startswith('"') and value.endswith('"')
        fields[name] = value[1:-1] if quoted else value
    if not fields.get("name"):
        raise FormatError("--add-scram needs name=NAME.")
    if "saltedpassword" in fields and ("password" in fields or "salt" not in fields):
        raise FormatError("--add-scram takes saltedpassword= only with salt=, and without password=.")
    given = fields.get("iterations", str(scram.DEFAULT_ITERATIONS))
    iterations = int(given) if given.isdecimal() else -1
    if not scram.MIN_ITERATIONS <= iterations <= scram.MAX_ITERATIONS:
        raise FormatError(
            f"iterations= of --add-scram must be between {scram.MIN_ITERATIONS} and {scram.MAX_ITERATIONS}."
        )
    return FirstUser(
        fields["name"],
        mechanism,
        iterations,
        fields.get("password"),
        _base64(fields, "salt"),
        _base64(fields, "saltedpassword"),
    )


def _base64(fields: dict[str, str], name: str) -> bytes | None:
    try:
        return base64.b64decode(fields[name], validate=True) if name in fields else None
    except ValueError:
        raise FormatError(f"{name}= of --add-scram is not base64.") from None


def add_users(data_dir: str | None, given: BrokerConfig, users: Sequence[FirstUser]) -> list[str]:
    """Make `users` where the cluster of `given` stores them, or in `data_dir`. Returns a sentence for each.

    Raises
    ------
    FormatError
        When a user cannot be made; those before it are.
    """
    try:
        with _store(data_dir, given) as store:
            shared = given.text("zookeeper.connect") is not None
            registry = SecurityRegistry(
                store, _Nobody(), lambda sequence, paths: change_notification(security=(sequence, paths)), shared=shared
            )
            registry.read_all()
            level = understood_level(store.get(documents.FEATURES)) if shared else documents.LEVEL_MAX
            return [_added(registry, given, level, user) for user in users]
    except (StoreError, DocumentError, MembershipError) as error:
        raise FormatError(str(error)) from error
    except OSError as error:
        raise FormatError(
            f"The data directory {data_dir} cannot be used: {error.strerror}: {error.filename}."
        ) from error


class _Nobody:
    """Stands for the native server, which does not run."""

    def apply_security(self, security_json: str) -> None:
        """Do nothing."""


@contextmanager
def _store(data_dir: str | None, given: BrokerConfig) -> Iterator[Store]:
    if given.text("zookeeper.connect") is not None:
        store: Store = connect(given, ChangeQueue())
        try:
            agreed_cluster_id(store)
            yield store
        finally:
            store.close()
        return
    if data_dir is None:
        raise FormatError("Missing --data-dir DIR, or --zookeeper HOST:PORT for a cluster.")
    if belongs_to_kafka(data_dir):
        raise FormatError(sentence_for_kafka(data_dir))
    os.makedirs(data_dir, exist_ok=True)
    with open(os.path.join(data_dir, _LOCK), "a", encoding="ascii") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise FormatError(
                f"A broker uses the data directory {data_dir}: stop it first, or create the user with pylog user create."
            ) from None
        store = FileStore(data_dir)
        if stored_cluster_id(store) is None:
            store.compare_and_set(documents.CLUSTER, documents.encode_cluster(new_topic_id()), 0)
        yield store


def _added(registry: SecurityRegistry, given: BrokerConfig, level: int, user: FirstUser) -> str:
    refused: Refusal = CONFLICT
    for _ in range(_TRIES):
        there = registry.users.get(user.name)
        if there is not None and user.mechanism in there.credentials:
            return _kept(there, user)
        salt = user.salt if user.salt is not None else scram.new_salt()
        salted = user.salted_password or _salted(user, salt, user.iterations)
        change = Upsertion(user.name, user.mechanism.number, user.iterations, salt, salted)
        outcome = alter(registry.users, [], [change], limits(given))[user.name]
        not_stored = outcome if isinstance(outcome, Refusal) else registry.commit([outcome], level)
        if not_stored is None:
            return f"User {user.name} can log in by {user.mechanism.text}."
        refused = not_stored
        if refused is not CONFLICT:
            break
    raise FormatError(f"User {user.name} cannot be made: {refused.message.rstrip('.')}.")


def _kept(there: User, user: FirstUser) -> str:
    """The sentence about a user that exists already. Raises `FormatError` when its password is another one."""
    known = there.credentials[user.mechanism]
    salted = user.salted_password or _salted(user, known.salt, known.iterations)
    stored_key, _ = scram.keys(user.mechanism, salted)
    if not hmac.compare_digest(stored_key, known.stored_key):
        raise FormatError(
            f"User {user.name} exists already, with another password for {user.mechanism.text}, and was not changed. To change the password, "
            f"start the broker and run pylog user create {user.name}."
        )
    return f"User {user.name} can already log in by {user.mechanism.text}; nothing was changed."


def _salted(user: FirstUser, salt: bytes, iterations: int) -> bytes:
    assert user.password is not None, "the command line has asked for it"
    return scram.salted_password(user.mechanism, user.password, salt, iterations)
