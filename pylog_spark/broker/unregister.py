"""UnregisterBroker: a broker that is gone for good is forgotten, by compare-and-set.

Each registration writes the document of the level, too (`membership`): when a broker comes back meanwhile the write
conflicts, and the decision is taken again with it. Replicas that it has stay where they are; they are moved by a reassignment.
"""

import logging

from pylog_spark.broker import messages
from pylog_spark.broker.answers import error_of
from pylog_spark.broker.registry import CONFLICT, CONFLICTS_MAX, TopicRegistry, change_notification
from pylog_spark.cluster import documents
from pylog_spark.cluster.errors import Refusal
from pylog_spark.cluster.known import forgotten
from pylog_spark.cluster.store import Guard, RevisionConflict, Write

log = logging.getLogger("pylog.broker.cluster")


def unregister_broker(
    registry: TopicRegistry, request: messages.UnregisterBrokerRequest
) -> messages.UnregisterBrokerResponse:
    """UnregisterBroker."""
    return {"throttle_time_ms": 0, **error_of(_outcome(registry, request["broker_id"]))}


def _outcome(registry: TopicRegistry, broker_id: int) -> Refusal | None:
    if not registry.shared:
        alone = forgotten({}, broker_id, registry.live().alive)
        assert isinstance(alone, Refusal), "no other broker is known"
        return alone
    for _ in range(CONFLICTS_MAX):
        try:
            return _forget(registry, broker_id)
        except RevisionConflict:  # noqa: PERF203
            continue
    return CONFLICT


def _forget(registry: TopicRegistry, broker_id: int) -> Refusal | None:
    store = registry.store
    # Read first: a broker that registers after this read changes the document, and the write conflicts.
    level = store.get(documents.FEATURES)
    assert level is not None, "the first broker made it"
    stored, registration = store.get_all([documents.KNOWN_BROKERS, documents.registration_path(broker_id)])
    alive = () if registration is None else (broker_id,)
    left = forgotten(documents.decode_known_brokers(stored.data if stored else None), broker_id, alive)
    if isinstance(left, Refusal):
        return left
    assert stored is not None, "the broker is known by it"
    write = Write(documents.KNOWN_BROKERS, documents.encode_known_brokers(left), stored.revision)
    store.write_all([write], Guard(documents.FEATURES, level.revision), change_notification([], brokers=True))
    log.info("Broker %d is unregistered: it gets no replicas any more.", broker_id)
    return None
