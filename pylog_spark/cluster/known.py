"""Which brokers belong to a cluster, also while they are dead. Pure; no IO, no clock.

A broker belongs to it from its first registration until it is forgotten by hand: new replicas may be placed on it, and wait for it.
A cluster that an older pylog began knows those that live, and whoever registers with this one.
"""

from collections.abc import Collection, Mapping

from pylog_spark.cluster.errors import ErrorCode, Refusal
from pylog_spark.cluster.model import BrokerInfo

Known = Mapping[int, BrokerInfo]


def remembered(known: Known, broker: BrokerInfo) -> Known:
    """`known` with `broker` as it registers now; the same object when it is known so already."""
    shown = BrokerInfo(broker.id, broker.host, broker.port, broker.rack)
    return known if known.get(broker.id) == shown else {**known, broker.id: shown}


def forgotten(known: Known, broker_id: int, alive: Collection[int]) -> Known | Refusal:
    """`known` without that broker; a live one would be back at once, so it is refused."""
    if broker_id in alive:
        return Refusal(ErrorCode.INVALID_REQUEST, f"Broker {broker_id} lives: stop it, then unregister it.")
    if broker_id not in known:
        return Refusal(ErrorCode.BROKER_ID_NOT_REGISTERED, f"Broker {broker_id} is not registered.")
    return {number: broker for number, broker in known.items() if number != broker_id}
