"""The JSON of Kafka's messages about SCRAM users, ACLs and client quotas, as typed dictionaries; see `messages`."""

from __future__ import annotations

from typing import TypedDict

from pylog_spark.broker.messages import Error


class ByPrincipal(TypedDict):
    """A request that changes what clients may do. The native half adds the principal of the client."""

    principal: str


# AlterUserScramCredentials and DescribeUserScramCredentials


class ScramCredentialDeletion(TypedDict):
    name: str
    mechanism: int


class ScramCredentialUpsertion(TypedDict):
    """Bytes are hexadecimal."""

    name: str
    mechanism: int
    iterations: int
    salt: str
    salted_password: str


class AlterUserScramCredentialsRequest(ByPrincipal):
    deletions: list[ScramCredentialDeletion]
    upsertions: list[ScramCredentialUpsertion]


class AlterUserScramCredentialsResult(Error):
    user: str


class AlterUserScramCredentialsResponse(TypedDict):
    throttle_time_ms: int
    results: list[AlterUserScramCredentialsResult]


class UserName(TypedDict):
    name: str


class DescribeUserScramCredentialsRequest(TypedDict):
    """`users` is None or empty for all."""

    users: list[UserName] | None


class CredentialInfo(TypedDict):
    mechanism: int
    iterations: int


class DescribeUserScramCredentialsResult(Error):
    user: str
    credential_infos: list[CredentialInfo]


class DescribeUserScramCredentialsResponse(Error):
    throttle_time_ms: int
    results: list[DescribeUserScramCredentialsResult]


# CreateAcls and DeleteAcls


class AclCreation(TypedDict):
    resource_type: int
    resource_name: str
    resource_pattern_type: int
    principal: str
    host: str
    operation: int
    permission_type: int


class CreateAclsRequest(ByPrincipal):
    creations: list[AclCreation]


class CreateAclsResponse(TypedDict):
    throttle_time_ms: int
    results: list[Error]


class DeleteAclsFilter(TypedDict):
    resource_type_filter: int
    resource_name_filter: str | None
    pattern_type_filter: int
    principal_filter: str | None
    host_filter: str | None
    operation: int
    permission_type: int


class DeleteAclsRequest(ByPrincipal):
    filters: list[DeleteAclsFilter]


class DeleteAclsMatchingAcl(Error):
    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission_type: int


class DeleteAclsFilterResult(Error):
    matching_acls: list[DeleteAclsMatchingAcl]


class DeleteAclsResponse(TypedDict):
    throttle_time_ms: int
    filter_results: list[DeleteAclsFilterResult]


# AlterClientQuotas and DescribeClientQuotas


class EntityData(TypedDict):
    """`entity_name` is None for the default."""

    entity_type: str
    entity_name: str | None


class OpData(TypedDict):
    """`value` is None when it is no number."""

    key: str
    value: float | None
    remove: bool


class AlterClientQuotasEntry(TypedDict):
    """Kafka's EntryData."""

    entity: list[EntityData]
    ops: list[OpData]


class AlterClientQuotasRequest(ByPrincipal):
    entries: list[AlterClientQuotasEntry]
    validate_only: bool


class AlterClientQuotasEntryResult(Error):
    entity: list[EntityData]


class AlterClientQuotasResponse(TypedDict):
    throttle_time_ms: int
    entries: list[AlterClientQuotasEntryResult]


class QuotaComponent(TypedDict):
    """Kafka's ComponentData."""

    entity_type: str
    match_type: int
    match: str | None


class DescribeClientQuotasRequest(TypedDict):
    components: list[QuotaComponent]
    strict: bool


class QuotaValue(TypedDict):
    """Kafka's ValueData."""

    key: str
    value: float


class DescribeClientQuotasEntry(TypedDict):
    """Kafka's EntryData."""

    entity: list[EntityData]
    values: list[QuotaValue]


class DescribeClientQuotasResponse(Error):
    throttle_time_ms: int
    entries: list[DescribeClientQuotasEntry] | None
