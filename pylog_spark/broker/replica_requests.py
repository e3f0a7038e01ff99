"""The handlers of requests about replicas: elections and reassignments.

The decisions are stored; the controller continues with them when it next reconciles the topic.
"""

from collections.abc import Iterable, Mapping

from pylog_spark.broker import messages
from pylog_spark.broker.answers import error_of
from pylog_spark.broker.registry import TopicRegistry
from pylog_spark.cluster import election, reassignment
from pylog_spark.cluster.errors import ErrorCode, Refusal
from pylog_spark.cluster.model import Topic

PREFERRED = 0
UNCLEAN = 1


def elect_leaders(registry: TopicRegistry, request: messages.ElectLeadersRequest) -> messages.ElectLeadersResponse:
    """ElectLeaders, of the partitions that are named or of all. In an answer for all, partitions that need no election are left out."""
    asked = request.get("topic_partitions")
    kind = request.get("election_type", PREFERRED)
    if kind not in (PREFERRED, UNCLEAN):
        return {"throttle_time_ms": 0, "error_code": int(ErrorCode.INVALID_REQUEST), "replica_election_results": []}
    elect = election.elect_preferred if kind == PREFERRED else election.elect_unclean
    wanted: Iterable[tuple[str, list[int]]]
    if asked is None:
        wanted = [(topic.name, [each.partition for each in topic.partitions]) for topic in _present(registry)]
    else:
        # A topic or partition that is named several times has one answer.
        named: dict[str, dict[int, None]] = {}
        for item in asked:
            named.setdefault(item["topic"], {}).update(dict.fromkeys(item["partitions"]))
        wanted = [(name, list(partitions)) for name, partitions in named.items()]
    results: list[messages.ReplicaElectionResult] = []
    for name, partitions in wanted:

        def decide(topic: Topic, partitions: list[int] = partitions) -> tuple[Topic, dict[int, Refusal]]:
            return elect(topic, partitions, registry.live(), registry.partition_rules(topic))

        refused = registry.change(name, decide)
        answered: list[messages.ElectionPartitionResult] = [
            {"partition_id": index, **error_of(_of(refused, index))}
            for index in partitions
            if asked is not None or not _needs_none(_of(refused, index))
        ]
        if answered:
            results.append({"topic": name, "partition_result": answered})
    return {"throttle_time_ms": 0, "error_code": 0, "replica_election_results": results}


def alter_partition_reassignments(
    registry: TopicRegistry, request: messages.AlterPartitionReassignmentsRequest
) -> messages.AlterPartitionReassignmentsResponse:
    """AlterPartitionReassignments: begin or cancel reassignments."""
    may_change_factor = bool(request.get("allow_replication_factor_change", True))
    responses: list[messages.ReassignableTopicResponse] = []
    # A topic that is named several times is moved once: the last mention of a partition counts.
    asked: dict[str, dict[int, list[int] | None]] = {}
    for topic in request["topics"]:
        named = {each["partition_index"]: each["replicas"] for each in topic["partitions"]}
        asked.setdefault(topic["name"], {}).update(named)
    for name, targets in asked.items():

        def decide(topic: Topic, targets: Mapping[int, list[int] | None] = targets) -> tuple[Topic, dict[int, Refusal]]:
            refused = {} if may_change_factor else _other_factor(topic, targets)
            allowed = {index: to for index, to in targets.items() if index not in refused}
            live, rules = registry.live(), registry.partition_rules(topic)
            moved, more = reassignment.start(topic, allowed, live, rules)
            return election.reconcile(moved, live, rules), {**refused, **more}

        refused = registry.change(name, decide)
        partitions: list[messages.ReassignablePartitionResponse] = [
            {"partition_index": index, **error_of(_of(refused, index))} for index in targets
        ]
        responses.append({"name": name, "partitions": partitions})
    return {
        "throttle_time_ms": 0,
        "allow_replication_factor_change": may_change_factor,
        **error_of(None),
        "responses": responses,
    }


def list_partition_reassignments(
    registry: TopicRegistry, request: messages.ListPartitionReassignmentsRequest
) -> messages.ListPartitionReassignmentsResponse:
    """ListPartitionReassignments, of the partitions that are named or of all."""
    asked = request.get("topics")
    named = None if asked is None else {item["name"]: set(item["partition_indexes"]) for item in asked}
    found: list[messages.OngoingTopicReassignment] = []
    for topic in _present(registry):
        partitions: list[messages.OngoingPartitionReassignment] = [
            {
                "partition_index": partition.partition,
                "replicas": partition.replicas,
                "adding_replicas": partition.adding,
                "removing_replicas": partition.removing,
            }
            for partition in reassignment.listing(topic)
            if named is None or partition.partition in named.get(topic.name, ())
        ]
        if partitions:
            found.append({"name": topic.name, "partitions": partitions})
    return {"throttle_time_ms": 0, **error_of(None), "topics": found}


def _present(registry: TopicRegistry) -> list[Topic]:
    return [topic for name, topic in sorted(registry.topics.items()) if not topic.deleting]


def _other_factor(topic: Topic, targets: Mapping[int, list[int] | None]) -> dict[int, Refusal]:
    refused = {}
    for index, to in targets.items():
        if to is None or not 0 <= index < len(topic.partitions):
            continue
        before = len(reassignment.original(topic.partitions[index]))
        if len(to) != before:
            sentence = f"It has {before} replicas and would have {len(to)}: this request may not change their number."
            refused[index] = Refusal(ErrorCode.INVALID_REPLICATION_FACTOR, sentence)
    return refused


def _of(refused: Refusal | Mapping[int, Refusal], index: int) -> Refusal | None:
    """The refusal of one partition, when the whole topic or some of its partitions are refused."""
    return refused if isinstance(refused, Refusal) else refused.get(index)


def _needs_none(refused: Refusal | None) -> bool:
    return refused is not None and refused.code == ErrorCode.ELECTION_NOT_NEEDED
