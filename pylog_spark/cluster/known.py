"""Which brokers belong to a cluster, also while they are dead. Pure; no IO, no clock.

A broker belongs to it from its first registration until it is unregistered by hand: new replicas may be placed on it also while it is
dead. A cluster that an older pylog began knows only its live brokers, and those that register with a newer pylog.
"""

from collections.abc import Collection, Mapping

from pylog_spark.cluster.errors import ErrorCode, Refusal
from pylog_spark.cluster.model import BrokerInfo

Known = Mapping[int, BrokerInfo]


def remembered(known: Known, broker: BrokerInfo) -> Known:
    """Give `known` with `broker` as it registers now; the same object when nothing changes."""
    shown = BrokerInfo(broker.id, broker.host, broker.port, broker.rack, listeners=broker.listeners)
    return known if known.get(broker.id) == shown else {**known, broker.id: shown}


def forgotten(known: Known, broker_id: int, alive: Collection[int]) -> Known | Refusal:
    """Give `known` without that broker. Refused for a live broker, which would be back at once."""
    if broker_id in alive:
        return Refusal(ErrorCode.INVALID_REQUEST, f"Broker {broker_id} lives: stop it, then unregister it.")
    if broker_id not in known:
        return Refusal(ErrorCode.BROKER_ID_NOT_REGISTERED, f"Broker {broker_id} is not registered.")
    return {number: broker for number, broker in known.items() if number != broker_id}
