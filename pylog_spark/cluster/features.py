"""The level of a cluster: what all its brokers understand of stored documents and of each other's requests. Pure.

A broker understands the levels `documents.LEVEL_MIN` to `documents.LEVEL_MAX`, and its registration says so. Nothing is written that
needs a higher level than the cluster's, so that brokers of two versions can run together and each can be replaced by the other. When all
brokers are new, an administrator raises the level, and from then on an older broker is refused at its start.
"""

import enum
from collections.abc import Iterable

from pylog_spark.cluster import documents
from pylog_spark.cluster.errors import ErrorCode, Refusal
from pylog_spark.cluster.model import BrokerInfo

#: The level's name among Kafka's features.
FEATURE = "pylog.version"


class UpgradeType(enum.IntEnum):
    """What an update may do; the numbers are the protocol's."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


def not_understood(level: int) -> str | None:
    """Give the sentence that says why this pylog cannot join a cluster of `level`; None when it can."""
    if documents.LEVEL_MIN <= level <= documents.LEVEL_MAX:
        return None
    which = "a newer" if level > documents.LEVEL_MAX else "an older"
    return (
        f"The cluster is at level {level}, this pylog understands {documents.LEVEL_MIN} to {documents.LEVEL_MAX}: "
        f"start {which} pylog."
    )


def raised(
    now: int, wanted: int, brokers: Iterable[BrokerInfo], upgrade_type: int = UpgradeType.UPGRADE
) -> Refusal | None:
    """Give the refusal when the level may not become `wanted`; None when it may. `brokers` are all registered ones."""
    if upgrade_type not in UpgradeType.__members__.values():
        return Refusal(ErrorCode.INVALID_UPDATE_VERSION, f"{upgrade_type} is no type of an update: use 1, an upgrade.")
    if wanted > now and upgrade_type != UpgradeType.UPGRADE:
        sentence = f"The cluster is at level {now}, and {wanted} is no downgrade: ask for an upgrade."
        return Refusal(ErrorCode.INVALID_UPDATE_VERSION, sentence)
    if wanted < now:
        sentence = (
            f"The cluster is at level {now}, which cannot be lowered: documents that were stored since may need it."
        )
        return Refusal(ErrorCode.INVALID_UPDATE_VERSION, sentence)
    unable = sorted(
        (broker for broker in brokers if not broker.level_min <= wanted <= broker.level_max),
        key=lambda broker: broker.id,
    )
    if not unable:
        return None
    named = ", ".join(f"broker {broker.id} ({broker.level_min} to {broker.level_max})" for broker in unable)
    return Refusal(
        ErrorCode.INVALID_UPDATE_VERSION,
        f"Level {wanted} is not understood by {named}: start a newer pylog there, then raise the level.",
    )
