"""The Python client, for programs without Spark: `Admin`, `Consumer`, `Producer`, `read_range`, `read_directory`,
`follow`, on top of the native client; `pylog_spark.client.aio` is the same for asyncio.

All of them speak Kafka's protocol, so they work with Apache Kafka too. Settings have Kafka's names. Results are frozen
dataclasses, with Kafka's names where Kafka has some.

Examples
--------
>>> from pylog_spark.client import Consumer, Producer
>>> with Producer("127.0.0.1:9092", "events") as producer:  # doctest: +SKIP
...     producer.send(b"hello", key=b"k")
>>> for record in Consumer("127.0.0.1:9092", "events", start="earliest", follow=False):  # doctest: +SKIP
...     print(record.offset, record.value)
"""

from pylog_spark.client.admin import Admin
from pylog_spark.client.consumer import Consumer, Record
from pylog_spark.client.errors import LogError
from pylog_spark.client.following import BatchStream, follow
from pylog_spark.client.producer import Producer
from pylog_spark.client.ranges import read_directory, read_range
from pylog_spark.client.typed import FormatOptions
from pylog_spark.results.configs import ConfigDescription, ConfigEntry, ConfigSynonym
from pylog_spark.results.groups import GroupDescription, GroupListing, MemberDescription, SharePartitionOffsetInfo
from pylog_spark.results.replicas import FeatureLevel, PartitionReassignment
from pylog_spark.results.security import (
    AclBinding,
    AclBindingFilter,
    AlterQuotaResult,
    ClientQuota,
    CreateAclResult,
    DeleteAclsResult,
    ScramCredentialInfo,
    UserScramCredentialsDescription,
)
from pylog_spark.results.topics import (
    ClusterDescription,
    CreateTopicResult,
    DeleteTopicResult,
    ListedTopic,
    NamedResult,
    Node,
    PartitionDescription,
    PartitionOffset,
    PartitionResult,
    TopicDescription,
)
from pylog_spark.results.transactions import (
    FenceProducerResult,
    PartitionProducers,
    ProducerState,
    TransactionDescription,
    TransactionListing,
)
from pylog_spark.results.writes import FlushResult, OffsetSpan

__all__ = [
    "AclBinding",
    "AclBindingFilter",
    "Admin",
    "AlterQuotaResult",
    "BatchStream",
    "ClientQuota",
    "ClusterDescription",
    "ConfigDescription",
    "ConfigEntry",
    "ConfigSynonym",
    "Consumer",
    "CreateAclResult",
    "CreateTopicResult",
    "DeleteAclsResult",
    "DeleteTopicResult",
    "FeatureLevel",
    "FenceProducerResult",
    "FlushResult",
    "FormatOptions",
    "GroupDescription",
    "GroupListing",
    "ListedTopic",
    "LogError",
    "MemberDescription",
    "NamedResult",
    "Node",
    "OffsetSpan",
    "PartitionDescription",
    "PartitionOffset",
    "PartitionProducers",
    "PartitionReassignment",
    "PartitionResult",
    "Producer",
    "ProducerState",
    "Record",
    "ScramCredentialInfo",
    "SharePartitionOffsetInfo",
    "TopicDescription",
    "TransactionDescription",
    "TransactionListing",
    "UserScramCredentialsDescription",
    "follow",
    "read_directory",
    "read_range",
]
