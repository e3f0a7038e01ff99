"""The topics in which the broker itself keeps something: how each is made when it is first needed."""

from pylog_spark.broker.config import BrokerConfig
from pylog_spark.cluster.topics import NewTopic

GROUPS = "__consumer_offsets"
TRANSACTIONS = "__transaction_state"


def new_topic(broker: BrokerConfig, name: str) -> NewTopic:
    """The topic as the broker makes it when somebody needs it: of an internal one also its settings, as Kafka sets them."""
    if name == GROUPS:
        prefix, configs = "offsets.topic", [("cleanup.policy", "compact"), ("compression.type", "producer")]
    elif name == TRANSACTIONS:
        isr = str(broker.number("transaction.state.log.min.isr"))
        configs = [
            ("cleanup.policy", "compact"),
            ("min.insync.replicas", isr),
            ("unclean.leader.election.enable", "false"),
        ]
        prefix = "transaction.state.log"
    else:
        return NewTopic(name)
    return NewTopic(
        name,
        num_partitions=broker.number(f"{prefix}.num.partitions"),
        configs=[*configs, ("segment.bytes", str(broker.number(f"{prefix}.segment.bytes")))],
    )
