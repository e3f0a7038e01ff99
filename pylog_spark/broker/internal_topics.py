"""The topics in which brokers keep groups, transactions and the like: how each is created when it is first needed.

In a cluster each has as many replicas as its setting says, and is created when so many brokers are known, as in Kafka: if the first
of three brokers created it alone, it would stay on that one for ever. Until then clients get an error after which they try again. A
broker without a cluster creates it with one replica.
"""

from dataclasses import replace

from pylog_spark.broker.config import BrokerConfig
from pylog_spark.cluster.topics import NewTopic

GROUPS = "__consumer_offsets"
TRANSACTIONS = "__transaction_state"
# The state of share groups: which records are delivered and acknowledged.
SHARES = "__share_group_state"
# Decisions of exactly-once writes: created by a client, which leaves the replication factor to the broker.
SINK = "__pylog_sink"
#: The settings of the replication factor, for the topics that the broker itself creates.
FACTORS = {
    GROUPS: "offsets.topic.replication.factor",
    TRANSACTIONS: "transaction.state.log.replication.factor",
    SHARES: "share.coordinator.state.topic.replication.factor",
}


def new_topic(broker: BrokerConfig, name: str, alone: bool) -> NewTopic:
    """Give the topic as the broker creates it on its own; an internal topic has the settings that Kafka gives it.

    Parameters
    ----------
    broker : BrokerConfig
        The broker's settings.
    name : str
        The topic's name.
    alone : bool
        Whether the broker runs without a cluster.
    """
    if name == GROUPS:
        prefix, configs = "offsets.topic", [("cleanup.policy", "compact"), ("compression.type", "producer")]
    elif name == TRANSACTIONS:
        prefix = "transaction.state.log"
        unclean = [("unclean.leader.election.enable", "false")]
        configs = [("cleanup.policy", "compact"), _min_isr(broker, prefix, alone), *unclean]
    elif name == SHARES:
        prefix = "share.coordinator.state.topic"
        configs = [("cleanup.policy", "compact"), _min_isr(broker, prefix, alone)]
    else:
        return NewTopic(name)
    return NewTopic(
        name,
        num_partitions=broker.number(f"{prefix}.num.partitions"),
        replication_factor=_factor(broker, prefix, alone),
        configs=[*configs, ("segment.bytes", str(broker.number(f"{prefix}.segment.bytes")))],
    )


def with_factor(broker: BrokerConfig, asked: NewTopic, alone: bool) -> NewTopic:
    """Give the topic as it is created when a client asks for it and leaves the replication factor to the broker."""
    is_ledger = asked.name == SINK or asked.name.startswith(f"{SINK}.")
    if is_ledger and asked.replication_factor == -1 and not asked.assignments:
        return replace(asked, replication_factor=_factor(broker, "offsets.topic", alone))
    return asked


def _min_isr(broker: BrokerConfig, prefix: str, alone: bool) -> tuple[str, str]:
    return "min.insync.replicas", str(min(broker.number(f"{prefix}.min.isr"), _factor(broker, prefix, alone)))


def _factor(broker: BrokerConfig, prefix: str, alone: bool) -> int:
    return 1 if alone else broker.number(f"{prefix}.replication.factor")
