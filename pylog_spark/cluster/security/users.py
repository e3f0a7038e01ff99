"""What AlterUserScramCredentials changes and DescribeUserScramCredentials shows (KIP-554), by Kafka's rules. Pure."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pylog_spark.cluster.errors import ErrorCode, Refusal
from pylog_spark.cluster.security.model import Credential, Limits, User
from pylog_spark.scram import BY_NUMBER, MAX_ITERATIONS, MIN_ITERATIONS, Mechanism, keys

_SALT_BYTES_MAX = 1024


@dataclass(frozen=True, slots=True)
class Deletion:
    """A credential to remove; `mechanism` is Kafka's number."""

    name: str
    mechanism: int


@dataclass(frozen=True, slots=True)
class Upsertion:
    """A credential to set; `mechanism` is Kafka's number."""

    name: str
    mechanism: int
    iterations: int
    salt: bytes = field(repr=False)
    salted_password: bytes = field(repr=False)


Outcome = User | Refusal


def alter(
    users: Mapping[str, User], deletions: Sequence[Deletion], upsertions: Sequence[Upsertion], limits: Limits
) -> dict[str, Outcome]:
    """Give for each user that is named either what it is afterwards, or why nothing of it changes.

    A user may be named once in a request, as in Kafka, even with two mechanisms.
    """
    outcomes: dict[str, Outcome] = {}
    count = len(users)
    changes: list[Deletion | Upsertion] = [*deletions, *upsertions]
    for change in changes:
        before = outcomes.get(change.name)
        if isinstance(before, Refusal):
            continue
        if before is not None:
            count -= before.name not in users
            outcomes[change.name] = _TWICE
            continue
        outcome = _altered(users, change, limits)
        if isinstance(outcome, User) and outcome.name not in users:
            if count >= limits.users:
                outcome = _too_many(limits)
            else:
                count += 1
        outcomes[change.name] = outcome
    return outcomes


_TWICE = Refusal(ErrorCode.DUPLICATE_RESOURCE, "A user credential cannot be altered twice in the same request")


def _too_many(limits: Limits) -> Refusal:
    return Refusal(
        ErrorCode.POLICY_VIOLATION,
        f"There are {limits.users} users already (security.users.max): delete some, or raise the setting.",
    )


def _altered(users: Mapping[str, User], change: Deletion | Upsertion, limits: Limits) -> Outcome:
    if not change.name:
        return Refusal(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
    mechanism = BY_NUMBER.get(change.mechanism)
    if mechanism is None:
        return Refusal(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
    before = users.get(change.name, User(change.name, {}))
    if isinstance(change, Deletion):
        if mechanism not in before.credentials:
            sentence = "Attempt to delete a user credential that does not exist"
            return Refusal(ErrorCode.RESOURCE_NOT_FOUND, sentence)
        return User(change.name, {other: each for other, each in before.credentials.items() if other is not mechanism})
    refused = _unacceptable(change, mechanism, limits)
    if refused is not None:
        return Refusal(ErrorCode.UNACCEPTABLE_CREDENTIAL, refused)
    return User(change.name, {**before.credentials, mechanism: credential(change, mechanism)})


def _unacceptable(change: Upsertion, mechanism: Mechanism, limits: Limits) -> str | None:
    if change.iterations < MIN_ITERATIONS:
        return "Too few iterations"
    if change.iterations > MAX_ITERATIONS:
        return "Too many iterations"
    if len(change.name.encode()) > limits.name_bytes:
        return f"A name may have {limits.name_bytes} bytes (security.name.max.bytes)."
    if not 0 < len(change.salt) <= _SALT_BYTES_MAX:
        return f"The salt has {len(change.salt)} bytes: it must have 1 to {_SALT_BYTES_MAX}."
    if len(change.salted_password) != mechanism.key_bytes:
        return (
            f"A salted password of {mechanism.text} has {mechanism.key_bytes} bytes, not {len(change.salted_password)}."
        )
    return None


def credential(change: Upsertion, mechanism: Mechanism) -> Credential:
    """What is stored of a salted password."""
    stored_key, server_key = keys(mechanism, change.salted_password)
    return Credential(change.salt, stored_key, server_key, change.iterations)


def describe(users: Mapping[str, User], names: Sequence[str]) -> dict[str, Outcome]:
    """Give the users `names`, or all when none is named; why not, for one that is named twice or does not exist."""
    if not names:
        return dict(users)
    times = Counter(names)
    return {name: _described(users, name, count) for name, count in times.items()}


def _described(users: Mapping[str, User], name: str, times: int) -> Outcome:
    if times > 1:
        sentence = f"Cannot describe SCRAM credentials for the same user twice in a single request: {name}"
        return Refusal(ErrorCode.DUPLICATE_RESOURCE, sentence)
    if name not in users:
        sentence = f"Attempt to describe a user credential that does not exist: {name}"
        return Refusal(ErrorCode.RESOURCE_NOT_FOUND, sentence)
    return users[name]
