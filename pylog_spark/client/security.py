"""An administrator's requests about users, ACLs and quotas; a base class of `Admin`."""

import dataclasses
from collections.abc import Mapping, Sequence

from pylog_spark import scram
from pylog_spark.client.requests import Requests
from pylog_spark.results.security import (
    AclBinding,
    AclBindingFilter,
    AlterQuotaResult,
    ClientQuota,
    CreateAclResult,
    DeleteAclsResult,
    UserScramCredentialsDescription,
)
from pylog_spark.results.topics import NamedResult

EVERY_ACL = AclBindingFilter()

#: ``user``, ``client-id`` or ``ip`` -> its name, or None for the default.
Entity = Mapping[str, str | None]


class SecurityAdmin(Requests):
    """Who can log in by SCRAM, who may do what, and how much. Results have ``error`` and ``message``, as in `Admin`."""

    def describe_user_scram_credentials(self, users: Sequence[str] = ()) -> list[UserScramCredentialsDescription]:
        """Describe `users`, or all when none is named, sorted by name."""
        return self._request(
            UserScramCredentialsDescription, "describe_user_scram_credentials", names=list(dict.fromkeys(users))
        )

    def set_user_scram_credential(
        self,
        user: str,
        password: str,
        mechanism: str = "SCRAM-SHA-512",
        iterations: int = scram.DEFAULT_ITERATIONS,
    ) -> NamedResult:
        """Let `user` log in with `password` by `mechanism`; an earlier password for it holds no more.

        The password stays here: what is sent is what SCRAM makes of it with a new salt. That is a secret as well: use an encrypted
        connection.

        Parameters
        ----------
        user, password : str
            The user's name and password.
        mechanism : str
            ``SCRAM-SHA-256`` or ``SCRAM-SHA-512``.
        iterations : int
            How often the password is hashed, 4096 to 16384: more makes guessing, and logging in, slower.
        """
        known = scram.BY_TEXT.get(mechanism)
        salt = scram.new_salt()
        # An unknown mechanism is refused by the native half, a wrong number by the brokers, each with a sentence.
        rounds = min(max(iterations, 1), scram.MAX_ITERATIONS)
        salted = b"" if known is None else scram.salted_password(known, password, salt, rounds)
        upsertion = {
            "user": user,
            "mechanism": mechanism,
            "iterations": iterations,
            "salt": salt.hex(),
            "salted_password": salted.hex(),
        }
        (result,) = self._request(NamedResult, "alter_user_scram_credentials", deletions=[], upsertions=[upsertion])
        return result

    def delete_user_scram_credentials(self, credentials: Sequence[tuple[str, str]]) -> list[NamedResult]:
        """Delete credentials.

        Parameters
        ----------
        credentials : sequence of (str, str)
            User and mechanism. A user may be named once.
        """
        return self._request(
            NamedResult, "alter_user_scram_credentials", deletions=[list(each) for each in credentials], upsertions=[]
        )

    def describe_acls(self, wanted: AclBindingFilter = EVERY_ACL) -> list[AclBinding]:
        """List the ACLs that `wanted` lets through, sorted by resource. Raises `LogError` when the brokers refuse to show them."""
        return sorted(
            self._request(AclBinding, "describe_acls", filter=dataclasses.asdict(wanted)), key=dataclasses.astuple
        )

    def create_acls(self, acls: Sequence[AclBinding]) -> list[CreateAclResult]:
        """Create ACLs; a result for each, in order. One that is there already is no error.

        Parameters
        ----------
        acls : sequence of AclBinding
            The ACLs.
        """
        return self._request(CreateAclResult, "create_acls", acls=[dataclasses.asdict(acl) for acl in acls])

    def delete_acls(self, filters: Sequence[AclBindingFilter]) -> list[DeleteAclsResult]:
        """Delete the ACLs that `filters` let through; a result for each filter, in order."""
        return self._request(DeleteAclsResult, "delete_acls", filters=[dataclasses.asdict(each) for each in filters])

    def describe_client_quotas(
        self, entity: Entity | None = None, any_of: Sequence[str] = (), *, strict: bool = False
    ) -> list[ClientQuota]:
        """List quotas. Raises `LogError` when the brokers refuse to show them.

        Parameters
        ----------
        entity : mapping of str to (str or None), optional
            Only entities that have all of this: a name, or None for the default.
        any_of : sequence of str
            Only entities that have each of these types, with any name.
        strict : bool
            Only entities that have nothing else.
        """
        return self._request(
            ClientQuota, "describe_client_quotas", entity=dict(entity or {}), any=list(any_of), strict=strict
        )

    def alter_client_quotas(
        self, alterations: Sequence[tuple[Entity, Mapping[str, float | None]]], *, validate_only: bool = False
    ) -> list[AlterQuotaResult]:
        """Change quotas of entities.

        Parameters
        ----------
        alterations : sequence of (mapping, mapping)
            The entity, as in `describe_client_quotas`, and its quotas by their names: a number, or None to remove it.
        validate_only : bool
            Only check whether the brokers would do it.
        """
        asked = [(dict(entity), dict(quotas)) for entity, quotas in alterations]
        return self._request(AlterQuotaResult, "alter_client_quotas", alterations=asked, validate_only=validate_only)
