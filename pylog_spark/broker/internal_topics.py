"""The topics in which brokers keep groups, transactions and the like: how each is created when it is first needed.

In a cluster each has as many replicas as its setting says, and is made when so many brokers are known, as in Kafka: made by the
first broker of three alone it would stay on that one for ever. Until then clients get an error that says to try again. A broker without a
cluster is all there will be, so what it makes has one replica.
"""

from dataclasses import replace

from pylog_spark.broker.config import BrokerConfig
from pylog_spark.cluster.topics import NewTopic

GROUPS = "__consumer_offsets"
TRANSACTIONS = "__transaction_state"
# What share groups did with records.
SHARES = "__share_group_state"
# Decisions of exactly-once writes: made by a client, which leaves the factor to the broker.
SINK = "__pylog_sink"
#: The settings that say how many replicas those have that nobody asks for by name.
FACTORS = {
    GROUPS: "offsets.topic.replication.factor",
    TRANSACTIONS: "transaction.state.log.replication.factor",
    SHARES: "share.coordinator.state.topic.replication.factor",
}


def new_topic(broker: BrokerConfig, name: str, alone: bool) -> NewTopic:
    """The topic as the broker makes it when somebody needs it: of an internal one also its settings, as Kafka sets them.

    `alone`: there is no cluster.
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
    """The topic as it is made when a client asks for it and leaves the replication factor open."""
    if asked.name == SINK and asked.replication_factor == -1 and not asked.assignments:
        return replace(asked, replication_factor=_factor(broker, "offsets.topic", alone))
    return asked


def _min_isr(broker: BrokerConfig, prefix: str, alone: bool) -> tuple[str, str]:
    return "min.insync.replicas", str(min(broker.number(f"{prefix}.min.isr"), _factor(broker, prefix, alone)))


def _factor(broker: BrokerConfig, prefix: str, alone: bool) -> int:
    return 1 if alone else broker.number(f"{prefix}.replication.factor")
