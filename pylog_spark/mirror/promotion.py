"""The end of a mirror: the copy becomes a topic as any other."""

from pylog_spark.client.admin import Admin
from pylog_spark.client.errors import LogError
from pylog_spark.mirror.topics import ENDED, MIRROR_SOURCE, read_topics


def promote(admin: Admin, name: str) -> str:
    """Let everybody write to a topic that is a mirror. Transactions that are open in the copy are aborted.

    In three steps, so that nobody writes before all partitions know: mirrors are refused, the partitions end, producers are let in. May be
    repeated when it failed.

    Parameters
    ----------
    admin : Admin
        Of the cluster that has the copy.
    name : str
        The topic.

    Returns
    -------
    str
        The id of the cluster that it was a copy of; ``ended`` when an earlier call had begun.

    Raises
    ------
    LogError
        It does not exist, is no mirror, or brokers do not answer.
    """
    described = admin.topic(name)
    source = read_topics(admin, [described])[name].source
    if not source:
        raise LogError("INVALID_CONFIG", f"Topic '{name}' is no mirror: anybody may write to it.")
    if source != ENDED:
        admin.alter_configs("topic", name, {MIRROR_SOURCE: ENDED})
    admin.end_mirror(name, [partition.partition for partition in described.partitions])
    admin.alter_configs("topic", name, {MIRROR_SOURCE: None})
    return source
