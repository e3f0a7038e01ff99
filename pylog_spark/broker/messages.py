"""What the native server and the handlers of its requests exchange: the JSON of Kafka's messages as typed dictionaries.

The names are those of Kafka's schemas in snake_case. A class has the fields that the handlers read or write; a request may have more
of them, such as a time-out. A field that some versions of a message lack is `NotRequired`. The native half (`server/src/decide.rs`)
makes the requests and turns the answers into bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from typing_extensions import NotRequired

#: An answer of any kind.
Answer = Mapping[str, object]


class Error(TypedDict):
    """The error of a request, or of one of its items."""

    error_code: int
    error_message: str | None


# CreateTopics, and what a Metadata request creates


class CreatableTopicConfig(TypedDict):
    name: str
    value: str | None


class CreatableReplicaAssignment(TypedDict):
    partition_index: int
    broker_ids: list[int]


class CreatableTopic(TypedDict):
    name: str
    num_partitions: int
    replication_factor: int
    assignments: list[CreatableReplicaAssignment]
    configs: list[CreatableTopicConfig]


class CreateTopicsRequest(TypedDict):
    topics: list[CreatableTopic]
    validate_only: bool


class CreatedTopicConfig(TypedDict):
    name: str
    value: str | None
    read_only: bool
    config_source: int
    is_sensitive: bool


class CreatableTopicResult(Error):
    name: str
    topic_id: str
    topic_config_error_code: int
    num_partitions: int
    replication_factor: int
    configs: list[CreatedTopicConfig]


class CreateTopicsResponse(TypedDict):
    throttle_time_ms: int
    topics: list[CreatableTopicResult]


class AutoCreateTopicsRequest(TypedDict):
    """Not Kafka's: the topics of a Metadata request that do not exist."""

    topics: list[str]


# DeleteTopics


class DeleteTopicState(TypedDict):
    name: str | None
    topic_id: str | None


class DeleteTopicsRequest(TypedDict):
    """Up to version 5 topics have only names."""

    topics: NotRequired[list[DeleteTopicState]]
    topic_names: NotRequired[list[str]]


class DeletableTopicResult(Error):
    name: str | None
    topic_id: str


class DeleteTopicsResponse(TypedDict):
    throttle_time_ms: int
    responses: list[DeletableTopicResult]


# CreatePartitions


class CreatePartitionsAssignment(TypedDict):
    broker_ids: list[int]


class CreatePartitionsTopic(TypedDict):
    name: str
    count: int
    assignments: list[CreatePartitionsAssignment] | None


class CreatePartitionsRequest(TypedDict):
    topics: list[CreatePartitionsTopic]
    validate_only: bool


class CreatePartitionsTopicResult(Error):
    name: str


class CreatePartitionsResponse(TypedDict):
    throttle_time_ms: int
    results: list[CreatePartitionsTopicResult]


# DescribeConfigs


class DescribeConfigsResource(TypedDict):
    resource_type: int
    resource_name: str
    configuration_keys: NotRequired[list[str] | None]


class DescribeConfigsRequest(TypedDict):
    resources: list[DescribeConfigsResource]
    include_synonyms: NotRequired[bool]
    include_documentation: NotRequired[bool]


class DescribeConfigsSynonym(TypedDict):
    name: str
    value: str | None
    source: int


class DescribeConfigsEntry(TypedDict):
    """Kafka's DescribeConfigsResourceResult."""

    name: str
    value: str | None
    read_only: bool
    config_source: int
    is_sensitive: bool
    synonyms: list[DescribeConfigsSynonym]
    config_type: int
    documentation: str | None


class DescribeConfigsResult(Error):
    resource_type: int
    resource_name: str
    configs: list[DescribeConfigsEntry]


class DescribeConfigsResponse(TypedDict):
    throttle_time_ms: int
    results: list[DescribeConfigsResult]


# IncrementalAlterConfigs and AlterConfigs


class AlterableConfig(TypedDict):
    """A setting to change; AlterConfigs has no operation."""

    name: str
    value: str | None
    config_operation: NotRequired[int]


class AlterConfigsResource(TypedDict):
    resource_type: int
    resource_name: str
    configs: list[AlterableConfig]


class AlterConfigsRequest(TypedDict):
    resources: list[AlterConfigsResource]
    validate_only: bool


class AlterConfigsResourceResponse(Error):
    resource_type: int
    resource_name: str


class AlterConfigsResponse(TypedDict):
    throttle_time_ms: int
    responses: list[AlterConfigsResourceResponse]


# ElectLeaders


class ElectionTopicPartitions(TypedDict):
    topic: str
    partitions: list[int]


class ElectLeadersRequest(TypedDict):
    """`topic_partitions` is None for all partitions; version 0 knows only the election of preferred leaders."""

    topic_partitions: NotRequired[list[ElectionTopicPartitions] | None]
    election_type: NotRequired[int]


class ElectionPartitionResult(Error):
    partition_id: int


class ReplicaElectionResult(TypedDict):
    topic: str
    partition_result: list[ElectionPartitionResult]


class ElectLeadersResponse(TypedDict):
    throttle_time_ms: int
    error_code: int
    replica_election_results: list[ReplicaElectionResult]


# AlterPartitionReassignments and ListPartitionReassignments


class ReassignablePartition(TypedDict):
    """`replicas` is None to cancel a reassignment."""

    partition_index: int
    replicas: list[int] | None


class ReassignableTopic(TypedDict):
    name: str
    partitions: list[ReassignablePartition]


class AlterPartitionReassignmentsRequest(TypedDict):
    topics: list[ReassignableTopic]
    allow_replication_factor_change: NotRequired[bool]


class ReassignablePartitionResponse(Error):
    partition_index: int


class ReassignableTopicResponse(TypedDict):
    name: str
    partitions: list[ReassignablePartitionResponse]


class AlterPartitionReassignmentsResponse(Error):
    throttle_time_ms: int
    allow_replication_factor_change: bool
    responses: list[ReassignableTopicResponse]


class ListPartitionReassignmentsTopics(TypedDict):
    name: str
    partition_indexes: list[int]


class ListPartitionReassignmentsRequest(TypedDict):
    """`topics` is None for all."""

    topics: NotRequired[list[ListPartitionReassignmentsTopics] | None]


class OngoingPartitionReassignment(TypedDict):
    partition_index: int
    replicas: tuple[int, ...]
    adding_replicas: tuple[int, ...]
    removing_replicas: tuple[int, ...]


class OngoingTopicReassignment(TypedDict):
    name: str
    partitions: list[OngoingPartitionReassignment]


class ListPartitionReassignmentsResponse(Error):
    throttle_time_ms: int
    topics: list[OngoingTopicReassignment]


# UpdateFeatures


class FeatureUpdate(TypedDict):
    """Version 0 has a flag in place of the type."""

    feature: str
    max_version_level: int
    allow_downgrade: NotRequired[bool]
    upgrade_type: NotRequired[int]


class UpdateFeaturesRequest(TypedDict):
    feature_updates: list[FeatureUpdate]
    validate_only: NotRequired[bool]


class UpdatableFeatureResult(Error):
    feature: str


class UpdateFeaturesResponse(Error):
    throttle_time_ms: int
    results: list[UpdatableFeatureResult]


# UnregisterBroker


class UnregisterBrokerRequest(TypedDict):
    broker_id: int


class UnregisterBrokerResponse(Error):
    throttle_time_ms: int


# Of the native server itself, in a cluster: not Kafka's messages


class ProposedPartition(TypedDict):
    """An ISR that a leader proposes, with the broker epochs of its members."""

    topic: str
    partition: int
    leader_epoch: int
    partition_epoch: int
    new_isr: list[int]
    new_isr_epochs: NotRequired[list[int]]


class AlterPartitionRequest(TypedDict):
    partitions: list[ProposedPartition]


class AlteredPartition(TypedDict):
    topic: str
    partition: int
    error_code: int


class AlterPartitionResponse(TypedDict):
    partitions: list[AlteredPartition]


class AllocateProducerIdsRequest(TypedDict):
    pass


class AllocateProducerIdsResponse(TypedDict):
    first: int
    count: int


# What the native server gets to know of topics and brokers (`NativeBroker.apply_topics`, `apply_cluster`)


class NativePartition(TypedDict):
    partition: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    partition_epoch: int
    adding: tuple[int, ...]
    removing: tuple[int, ...]
    elr: tuple[int, ...]


class NativeTopic(TypedDict):
    """A topic as the native server takes it; `config` is what `log_config` gives."""

    name: str
    topic_id: str
    internal: bool
    config: Mapping[str, object]
    partitions: list[NativePartition]
