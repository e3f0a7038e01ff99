"""The level of a cluster: what all its brokers understand of stored documents and of each other's requests. Pure.

A broker understands the levels `documents.LEVEL_MIN` to `documents.LEVEL_MAX` and says so where it registers. Whatever only a
higher level than the cluster's understands is not written, so that brokers of two versions can live together and each can be
replaced by the other. Once all are new the level is raised, by hand, and from then on an older broker is refused at its start.
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
    """Why this pylog does not fit a cluster of `level`; None when it does."""
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
    """Why the level may not become `wanted`; None when it may. `brokers` are all that are registered."""
    if upgrade_type not in UpgradeType.__members__.values():
        return Refusal(ErrorCode.INVALID_UPDATE_VERSION, f"{upgrade_type} is no type of an update: use 1, an upgrade.")
    if wanted > now and upgrade_type != UpgradeType.UPGRADE:
        sentence = f"The cluster is at level {now}, and {wanted} is no downgrade: ask for an upgrade."
        return Refusal(ErrorCode.INVALID_UPDATE_VERSION, sentence)
    if wanted < now:
        sentence = f"The cluster is at level {now} and never goes back: what was stored since may need it."
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
        f"Level {wanted} is not understood by {named}: start a pylog there that understands it, then raise the level.",
    )
