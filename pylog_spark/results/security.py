"""Users that log in by SCRAM, ACLs, client quotas. Enumerations are text, with Kafka's names."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ScramCredentialInfo:
    """By what a user can log in; what for is never shown.

    Attributes
    ----------
    mechanism : str
        ``SCRAM-SHA-256`` or ``SCRAM-SHA-512``.
    iterations : int
        How often the password was hashed.
    """

    mechanism: str
    iterations: int


@dataclass(frozen=True, slots=True)
class UserScramCredentialsDescription:
    """A user that can log in by SCRAM.

    Attributes
    ----------
    name : str
        The user.
    credentials : tuple of ScramCredentialInfo
        One for each mechanism.
    error, message : str or None
        Kafka's name of the error, and its sentence; None without an error.
    """

    name: str
    credentials: tuple[ScramCredentialInfo, ...]
    error: str | None
    message: str | None


@dataclass(frozen=True, slots=True)
class AclBinding:
    """One ACL: who may or may not do what.

    Attributes
    ----------
    resource_type, resource_name : str
        ``TOPIC``, ``GROUP``, ``CLUSTER`` (its name is ``kafka-cluster``), ``TRANSACTIONAL_ID`` or ``USER``, and the name.
    pattern_type : str
        ``LITERAL`` (the name ``*`` means all) or ``PREFIXED``.
    principal, host : str
        Such as ``User:alice``, and the address from which; ``*`` means from all.
    operation, permission : str
        Such as ``READ`` or ``ALL``; ``ALLOW`` or ``DENY``.
    """

    resource_type: str
    resource_name: str
    pattern_type: str
    principal: str
    host: str
    operation: str
    permission: str


@dataclass(frozen=True, slots=True)
class AclBindingFilter:
    """Which ACLs; None and ``ANY`` let all through.

    Attributes
    ----------
    resource_type, resource_name : str, str or None
        As in `AclBinding`.
    pattern_type : str
        As in `AclBinding`, or ``MATCH``: all that concern the resource of this name, literal, prefixed, and for all.
    principal, host : str or None
        As in `AclBinding`.
    operation, permission : str
        As in `AclBinding`.
    """

    resource_type: str = "ANY"
    resource_name: str | None = None
    pattern_type: str = "ANY"
    principal: str | None = None
    host: str | None = None
    operation: str = "ANY"
    permission: str = "ANY"


@dataclass(frozen=True, slots=True)
class CreateAclResult:
    """What became of an ACL to create.

    Attributes
    ----------
    error, message : str or None
        Kafka's name of the error, and its sentence; None without an error.
    """

    error: str | None
    message: str | None


@dataclass(frozen=True, slots=True)
class DeleteAclsResult:
    """What a filter deleted.

    Attributes
    ----------
    acls : tuple of AclBinding
        The ACLs that are gone.
    error, message : str or None
        Kafka's name of the error, and its sentence; None without an error.
    """

    acls: tuple[AclBinding, ...]
    error: str | None
    message: str | None


@dataclass(frozen=True, slots=True)
class ClientQuota:
    """The quotas of an entity.

    Attributes
    ----------
    entity : dict of str to (str or None)
        ``user``, ``client-id`` or ``ip`` -> the name; None is the default of all that have no quotas of their own.
    quotas : dict of str to float
        Such as ``producer_byte_rate`` -> bytes a second.
    """

    entity: dict[str, str | None]
    quotas: dict[str, float]


@dataclass(frozen=True, slots=True)
class AlterQuotaResult:
    """What became of the changes of an entity's quotas.

    Attributes
    ----------
    entity : dict of str to (str or None)
        As in `ClientQuota`.
    error, message : str or None
        Kafka's name of the error, and its sentence; None without an error.
    """

    entity: dict[str, str | None]
    error: str | None
    message: str | None
