"""Requests of an administrator, made by the native client; its errors are raised as `LogError`.

Topics, offsets and settings are here; groups, replicas, transactions, users, ACLs and quotas are in the base classes of `Admin`.
"""

import json
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING

from pylog_spark.client.errors import LogError, translated
from pylog_spark.client.groups import GroupAdmin
from pylog_spark.client.replicas import ReplicaAdmin
from pylog_spark.client.requests import raise_if_failed, sole
from pylog_spark.client.security import SecurityAdmin
from pylog_spark.client.transactions import TransactionAdmin
from pylog_spark.results.configs import ConfigDescription
from pylog_spark.results.decoding import Decoded, all_decoded, decoded
from pylog_spark.results.topics import (
    ClusterDescription,
    CreateTopicResult,
    DeletedRecords,
    DeleteTopicResult,
    ListedTopic,
    NamedResult,
    PartitionOffset,
    TopicDescription,
)

if TYPE_CHECKING:
    from pylog_spark._native import _NewTopic

EARLIEST = -2
LATEST = -1


class Admin(GroupAdmin, ReplicaAdmin, SecurityAdmin, TransactionAdmin):
    """Admin requests to one cluster. Thread-safe; must not be used after a fork.

    Each method raises `LogError` when no broker can be reached. Requests about several topics give a result for each:
    ``error`` is None or Kafka's name of the error, ``message`` its sentence.

    Parameters
    ----------
    bootstrap_servers : str
        ``HOST:PORT``, several separated by commas.
    config : mapping of str to str, optional
        Settings of the client by Kafka's names.
    """

    def __init__(self, bootstrap_servers: str, config: Mapping[str, str] | None = None) -> None:
        from pylog_spark._native import Client

        with translated():
            self._client = Client({**(config or {}), "bootstrap.servers": bootstrap_servers})

    def __enter__(self) -> "Admin":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def cluster(self) -> ClusterDescription:
        """Describe the cluster and its brokers."""
        with translated():
            return decoded(ClusterDescription, self._client.describe_cluster())

    def topics(self, names: Sequence[str] | None = None) -> list[TopicDescription]:
        """Describe `names`, or all topics. Never creates one."""
        with translated():
            return all_decoded(TopicDescription, self._client.describe_topics(names))

    def list_topics(self) -> list[ListedTopic]:
        """List all topics with the numbers of their partitions: where there are thousands, several times as quick as `topics`."""
        with translated():
            return [ListedTopic(*each) for each in self._client.list_partitions(None)]

    def topic(self, name: str) -> TopicDescription:
        """Describe one topic. Raises `LogError` when it does not exist.

        Parameters
        ----------
        name : str
            The topic's name.
        """
        described = self.topics([name])[0]
        if described.error:
            sentence = f"Topic '{name}' does not exist: create it with 'pylog topic create {name}'."
            if described.error != "UNKNOWN_TOPIC_OR_PARTITION":
                sentence = f"Topic '{name}' cannot be described: {described.error}."
            raise LogError(described.error, sentence)
        return described

    def create_topic(
        self,
        name: str,
        partitions: int = -1,
        replication_factor: int = -1,
        config: Mapping[str, str] | None = None,
        *,
        validate_only: bool = False,
    ) -> CreateTopicResult:
        """Create a topic; -1 takes the broker's default. Raises `LogError` when the brokers refuse it.

        Parameters
        ----------
        name : str
            The topic's name.
        partitions : int
            Number of partitions.
        replication_factor : int
            Replicas of each partition.
        config : mapping of str to str, optional
            Settings of the topic by Kafka's names.
        validate_only : bool
            Only check whether the brokers would create it.
        """
        wanted: _NewTopic = {
            "name": name,
            "num_partitions": partitions,
            "replication_factor": replication_factor,
            "configs": dict(config or {}),
        }
        with translated():
            return sole(all_decoded(CreateTopicResult, self._client.create_topics([wanted], validate_only)))

    def delete_topics(self, names: Sequence[str]) -> list[DeleteTopicResult]:
        """Delete topics with all their records.

        Parameters
        ----------
        names : sequence of str
            The topics' names.
        """
        with translated():
            return all_decoded(DeleteTopicResult, self._client.delete_topics(names))

    def create_partitions(self, name: str, count: int) -> NamedResult:
        """Grow a topic to `count` partitions. Raises `LogError` when the brokers refuse it.

        Parameters
        ----------
        name : str
            The topic's name.
        count : int
            The number of partitions that it then has.
        """
        with translated():
            return sole(all_decoded(NamedResult, self._client.create_partitions({name: count})))

    def delete_records(self, before: Sequence[tuple[str, int, int]]) -> list[DeletedRecords]:
        """Delete the records before an offset of each partition.

        Parameters
        ----------
        before : sequence of (str, int, int)
            Topic, partition, offset; -1 for all that are committed.
        """
        with translated():
            return all_decoded(DeletedRecords, self._client.delete_records(before))

    def end_mirror(self, name: str, partitions: Sequence[int]) -> None:
        """End the mirror in partitions of a topic whose ``mirror.source`` is ``ended``; see `pylog_spark.mirror.promotion`.

        Parameters
        ----------
        name : str
            The topic's name.
        partitions : sequence of int
            The numbers of its partitions.
        """
        with translated():
            self._client.end_mirror(name, partitions)

    def fetch_batches(self, name: str, partition: int, offset: int, until: int, max_bytes: int) -> tuple[bytes, int]:
        """Give stored record batches as they are, and the offset behind them. Their checksums are right.

        Parameters
        ----------
        name, partition : str, int
            The topic and the number of the partition.
        offset, until : int
            From the batch that has `offset`, those that begin before `until`; where the log has none, no bytes and `until`.
        max_bytes : int
            About so many bytes, and at least one batch.
        """
        with translated():
            return self._client.fetch_batches(name, partition, offset, until, max_bytes)

    def append_batches(self, source: str, name: str, partition: int, start: int, batches: bytes | None = None) -> int:
        """Append stored batches to a topic whose ``mirror.source`` is `source`, and give the end of its log.

        What the log has already is passed over.

        Parameters
        ----------
        source : str
            What its ``mirror.source`` is.
        name, partition : str, int
            The topic and the number of the partition.
        start : int
            The batches are all that there is from this offset on, so the log may have a gap before them.
        batches : bytes, optional
            The batches; without them the log begins at `start`.
        """
        with translated():
            return self._client.append_batches(source, name, partition, start, batches)

    def offsets(
        self, wanted: Sequence[tuple[str, int, int]], isolation_level: str = "read_uncommitted"
    ) -> list[PartitionOffset]:
        """Find offsets of partitions, by time or at the ends of their logs.

        Parameters
        ----------
        wanted : sequence of (str, int, int)
            Topic, partition, and a timestamp in milliseconds since 1970, `EARLIEST` or `LATEST`.
        isolation_level : str
            With ``read_committed`` the latest offset is that of the oldest open transaction, if there is one.

        Returns
        -------
        list of PartitionOffset
            In the order of `wanted`: of each partition the first offset at or after the timestamp.
        """
        with translated():
            return [PartitionOffset(*found) for found in self._client.list_offsets(wanted, isolation_level)]

    def configs(self, resource_type: str, names: Sequence[str]) -> list[ConfigDescription]:
        """Describe settings, or levels of a broker's loggers.

        Parameters
        ----------
        resource_type : str
            ``topic``, ``broker``, ``group`` or, for levels, ``broker-logger``.
        names : sequence of str
            The names of the topics or groups, the numbers of the brokers.
        """
        with translated():
            return all_decoded(ConfigDescription, self._client.describe_configs(resource_type, names))

    def alter_configs(
        self, resource_type: str, name: str, changes: Mapping[str, str | None], *, validate_only: bool = False
    ) -> None:
        """Change settings. Raises `LogError` when the brokers refuse one.

        Parameters
        ----------
        resource_type, name : str
            As in `configs`.
        changes : mapping of str to (str or None)
            Values by the names of the settings; None resets one to its default.
        validate_only : bool
            Only check whether the brokers would do it.
        """
        with translated():
            answers = self._client.alter_configs(resource_type, name, changes, validate_only)
            for result in all_decoded(NamedResult, answers):
                raise_if_failed(result)

    def _request(self, kind: type[Decoded], name: str, **arguments: object) -> list[Decoded]:
        with translated():
            return all_decoded(kind, self._client.request(name, json.dumps(arguments)))
