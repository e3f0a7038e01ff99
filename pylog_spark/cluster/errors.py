"""Kafka's error codes that a control decision can answer with, and the value that carries one.

The codes are the protocol's (org.apache.kafka.common.protocol.Errors); the native side's `ErrorCode` has all of them.
"""

import enum
from dataclasses import dataclass


class ErrorCode(enum.IntEnum):
    """Error code of an answer. The names may change, the numbers cannot."""

    UNKNOWN_SERVER_ERROR = -1
    NONE = 0
    UNKNOWN_TOPIC_OR_PARTITION = 3
    INVALID_TOPIC_EXCEPTION = 17
    TOPIC_ALREADY_EXISTS = 36
    INVALID_PARTITIONS = 37
    INVALID_REPLICATION_FACTOR = 38
    INVALID_REPLICA_ASSIGNMENT = 39
    INVALID_CONFIG = 40
    INVALID_REQUEST = 42
    POLICY_VIOLATION = 44
    KAFKA_STORAGE_ERROR = 56
    TOPIC_DELETION_DISABLED = 73
    UNKNOWN_TOPIC_ID = 100


@dataclass(frozen=True, slots=True)
class Refusal:
    """A decision not to do what was asked: the code for the client and one sentence that says why."""

    code: ErrorCode
    message: str
