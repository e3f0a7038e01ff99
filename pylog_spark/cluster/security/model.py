"""SCRAM users, ACLs and client quotas as immutable values. Numbers and names of enumerations are the protocol's.

Each of the three is kept in units that are stored together: all credentials of a user, all ACLs of a resource pattern, all quotas of
an entity. A unit that is empty is not stored.
"""

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

from pylog_spark.scram import Mechanism


@dataclass(frozen=True, slots=True)
class Credential:
    """What a broker needs to know to let somebody log in. Never shown: the keys allow guessing the password."""

    salt: bytes = field(repr=False)
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)
    iterations: int


@dataclass(frozen=True, slots=True)
class User:
    """A user that can log in by SCRAM."""

    name: str
    credentials: Mapping[Mechanism, Credential]

    @property
    def is_empty(self) -> bool:
        """Whether nothing is left to store."""
        return not self.credentials


class ResourceType(enum.IntEnum):
    """What an ACL is about."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(enum.IntEnum):
    """How the name of a resource is meant; `ANY` and `MATCH` stand in filters only."""

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class Operation(enum.IntEnum):
    """What somebody does to a resource."""

    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class Permission(enum.IntEnum):
    """Whether an ACL allows or denies."""

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


@dataclass(frozen=True, slots=True, order=True)
class Pattern:
    """The resources that an ACL is about. The name ``*`` of a literal pattern means all."""

    resource_type: ResourceType
    name: str
    pattern_type: PatternType


@dataclass(frozen=True, slots=True, order=True)
class Entry:
    """Who may or may not do what, from which host (``*``: from all)."""

    principal: str
    host: str
    operation: Operation
    permission: Permission


@dataclass(frozen=True, slots=True)
class ResourceAcls:
    """All ACLs of a pattern, sorted."""

    pattern: Pattern
    entries: tuple[Entry, ...]

    @property
    def is_empty(self) -> bool:
        """Whether nothing is left to store."""
        return not self.entries


#: Whose quotas: (``user``, ``client-id`` or ``ip``, its name or None for the default of all others), sorted by type.
Entity = tuple[tuple[str, str | None], ...]


@dataclass(frozen=True, slots=True)
class Quotas:
    """All quotas of an entity by their names."""

    entity: Entity
    values: Mapping[str, float]

    @property
    def is_empty(self) -> bool:
        """Whether nothing is left to store."""
        return not self.values


#: What is stored as one document.
Unit = User | ResourceAcls | Quotas


@dataclass(frozen=True, slots=True)
class Limits:
    """How much may be stored: users, ACLs and entities in all, and bytes of each name (of a user, resource, principal, host...)."""

    users: int
    acls: int
    entities: int
    name_bytes: int
