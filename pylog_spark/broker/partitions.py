"""Requests of the native server to the control loop in a cluster: ISRs that its leaders propose, and blocks of producer ids.

An answer of `alter_partition` is final: 0 says that the ISR is stored and was applied here, any other code that it is not stored and
never will be. So while it is unknown whether a write happened, the request is not answered; it stays open until the store can be read
again, and is decided from what is stored then.
"""

from collections import defaultdict
from collections.abc import Sequence

from pylog_spark.broker import messages
from pylog_spark.broker.answers import Handler
from pylog_spark.broker.registry import CONFLICT, CONFLICTS_MAX, TopicRegistry
from pylog_spark.cluster import documents, isr
from pylog_spark.cluster.errors import ErrorCode, Refusal
from pylog_spark.cluster.isr import IsrProposal
from pylog_spark.cluster.model import Partition
from pylog_spark.cluster.store import RevisionConflict, Store

#: Ids that a broker takes at once, as Kafka does.
PRODUCER_ID_BLOCK = 1_000


def alter_partition(
    registry: TopicRegistry, request: messages.AlterPartitionRequest
) -> messages.AlterPartitionResponse:
    """AlterPartition. Raises `StoreError` while the outcome is not known: ask again with the same request."""
    by_topic: dict[str, list[IsrProposal]] = defaultdict(list)
    for partition in request["partitions"]:
        by_topic[partition["topic"]].append(
            IsrProposal(
                partition["partition"],
                partition["leader_epoch"],
                partition["partition_epoch"],
                tuple(partition["new_isr"]),
                tuple(partition.get("new_isr_epochs", ())),
            )
        )
    open_topics = dict(by_topic)
    answers: dict[tuple[str, int], ErrorCode] = {}
    for _ in range(CONFLICTS_MAX):
        for name, codes in _decided(registry, open_topics).items():
            answers.update({(name, partition): code for partition, code in codes.items()})
            del open_topics[name]
        if not open_topics:
            break
        registry.refresh(list(open_topics))
    for name, proposals in open_topics.items():
        answers.update({(name, proposal.partition): ErrorCode.INVALID_UPDATE_VERSION for proposal in proposals})
    shown: list[messages.AlteredPartition] = [
        {"topic": topic, "partition": partition, "error_code": int(code)}
        for (topic, partition), code in answers.items()
    ]
    return {"partitions": shown}


def _decided(registry: TopicRegistry, asked: dict[str, list[IsrProposal]]) -> dict[str, dict[int, ErrorCode]]:
    """The answers for each topic whose change is stored or refused; topics that another broker changed are left out."""
    answers: dict[str, dict[int, ErrorCode]] = {}
    wanted = {}
    me = registry.broker.number("node.id")
    for name, proposals in asked.items():
        topic = registry.topics.get(name)
        if topic is None:
            answers[name] = {proposal.partition: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION for proposal in proposals}
            continue
        after, codes = isr.alter(topic, me, proposals, registry.live(), registry.partition_rules(topic))
        for proposal in proposals:
            if _is_stored(topic.partitions, proposal):
                codes[proposal.partition] = ErrorCode.NONE
        answers[name] = codes
        if after is not topic:
            wanted[name] = after
    for name, refused in zip(wanted, registry.commit(list(wanted.values())), strict=True):
        if refused is CONFLICT:
            del answers[name]
        elif isinstance(refused, Refusal) and registry.topics.get(name) != wanted[name]:
            answers[name] = {
                number: refused.code if code is ErrorCode.NONE else code for number, code in answers[name].items()
            }
    return answers


def _is_stored(partitions: Sequence[Partition], proposal: IsrProposal) -> bool:
    """Whether `proposal` was stored by an earlier try whose answer was lost."""
    if not 0 <= proposal.partition < len(partitions):
        return False
    stored = partitions[proposal.partition]
    return (
        stored.leader_epoch == proposal.leader_epoch
        and stored.partition_epoch == proposal.partition_epoch + 1
        and set(stored.isr) == set(proposal.new_isr)
    )


def allocate_producer_ids(
    registry: TopicRegistry, _request: messages.AllocateProducerIdsRequest
) -> messages.AllocateProducerIdsResponse:
    """AllocateProducerIds: take a block of ids that no other broker has. A block whose write may have failed is never used."""
    store: Store = registry.store
    while True:
        stored = store.get(documents.PRODUCER_IDS)
        first = 0 if stored is None else documents.decode_number(documents.PRODUCER_IDS, stored.data, "next")
        data = documents.encode_number("next", first + PRODUCER_ID_BLOCK)
        try:
            store.compare_and_set(documents.PRODUCER_IDS, data, 0 if stored is None else stored.revision)
        except RevisionConflict:
            continue
        return {"first": first, "count": PRODUCER_ID_BLOCK}


HANDLERS: dict[str, Handler] = {
    "alter_partition": alter_partition,
    "allocate_producer_ids": allocate_producer_ids,
}
