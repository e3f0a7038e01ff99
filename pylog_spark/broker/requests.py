"""The handlers of requests that need a decision, one function for each kind.

Requests and answers are Kafka's messages (`messages`); each item of a request gets its own answer, and the refusal of one item
never stops another. Called by the control loop only.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from pylog_spark.broker import (
    config,
    describe,
    features,
    group_config,
    internal_topics,
    logger_requests,
    messages,
    replica_requests,
    security_requests,
    unregister,
)
from pylog_spark.broker.answers import Handler, error_of
from pylog_spark.broker.config import BROKER
from pylog_spark.broker.logger_requests import RESOURCE_BROKER_LOGGER
from pylog_spark.broker.registry import (
    CONFLICT,
    CONFLICTS_MAX,
    TopicRegistry,
    broker_config_rules,
    log,
    topic_config_rules,
)
from pylog_spark.broker.setting import ConfigError, show
from pylog_spark.broker.topic_configs import check_together
from pylog_spark.cluster import changes, topics
from pylog_spark.cluster.changes import Change, ConfigRules
from pylog_spark.cluster.election import reconfigured
from pylog_spark.cluster.errors import ErrorCode, Refusal
from pylog_spark.cluster.model import Topic, new_topic_id, topic_id_text, topic_id_uuid

RESOURCE_TOPIC = 2
RESOURCE_BROKER = 4
RESOURCE_GROUP = 32
NO_TOPIC_ID = "00000000-0000-0000-0000-000000000000"
#: The setting that bounds how much one DescribeConfigs request may ask for.
DESCRIBED_MAX = "describe.configs.max.resources"
#: Most topics of one request that are logged one by one when they cannot be created.
LOGGED_MAX = 10


def create_topics(registry: TopicRegistry, request: messages.CreateTopicsRequest) -> messages.CreateTopicsResponse:
    """CreateTopics."""
    alone = not registry.shared
    wanted = [internal_topics.with_factor(registry.broker, _new_topic(topic), alone) for topic in request["topics"]]
    twice = _more_than_once(topic.name for topic in wanted)
    decisions = _created_all(registry, wanted, request["validate_only"])
    return {
        "throttle_time_ms": 0,
        # A topic that is named twice is refused, with one answer.
        "topics": [
            *(
                _created(registry, topic.name, decision)
                for topic, decision in zip(wanted, decisions, strict=True)
                if topic.name not in twice
            ),
            *(_created(registry, name, _named_twice(name)) for name in twice),
        ],
    }


def auto_create_topics(registry: TopicRegistry, request: messages.AutoCreateTopicsRequest) -> messages.Answer:
    """Create topics that a Metadata request asked for and that do not exist. The answer does not say what could not be created; the log does."""
    missing = [name for name in dict.fromkeys(request["topics"]) if name not in registry.topics]
    wanted = [internal_topics.new_topic(registry.broker, name, not registry.shared) for name in missing]
    decisions = _created_all(registry, wanted, False)
    refused = [
        (topic.name, decision)
        for topic, decision in zip(wanted, decisions, strict=True)
        if isinstance(decision, Refusal) and decision.code is not ErrorCode.TOPIC_ALREADY_EXISTS
    ]
    for name, refusal in refused[:LOGGED_MAX]:
        _log_not_created(registry, name, refusal)
    if len(refused) > LOGGED_MAX:
        log.warning("%d more topics of the same request are not created.", len(refused) - LOGGED_MAX)
    return {}


def _log_not_created(registry: TopicRegistry, name: str, refusal: Refusal) -> None:
    """Log why a topic is not created. Clients ask for internal topics again and again, so each reason is logged once for those."""
    why = refusal.message
    setting = internal_topics.FACTORS.get(name)
    if setting is not None:
        if refusal.code is ErrorCode.INVALID_REPLICATION_FACTOR:
            why = f"{why} Start more brokers, or lower {setting}."
        if registry.warned.get(name) == why:
            return
        registry.warned[name] = why
    log.warning("Topic %r is not created for a client that asked for it: %s", name, why)


def delete_topics(registry: TopicRegistry, request: messages.DeleteTopicsRequest) -> messages.DeleteTopicsResponse:
    """DeleteTopics, by name or by id."""
    asked = request.get("topics") or [{"name": name, "topic_id": None} for name in request.get("topic_names", [])]
    twice = _more_than_once(name for item in asked if (name := item.get("name")) is not None)
    responses: list[messages.DeletableTopicResult] = [
        {"name": name, "topic_id": NO_TOPIC_ID, **error_of(_named_twice(name))} for name in twice
    ]
    names = topics.names_by_id(registry.topics) if any(item.get("topic_id") for item in asked) else {}
    for item in asked:
        if item.get("name") in twice:
            continue
        wire_id = item.get("topic_id") or NO_TOPIC_ID
        topic_id = topic_id_text(topic_id_uuid(wire_id)) if wire_id != NO_TOPIC_ID else None
        decision, refused = _deleted(registry, item.get("name"), topic_id, names)
        if isinstance(decision, Topic) and refused is None:
            log.info("Topic %s is deleted.", decision.name)
        name = decision.name if isinstance(decision, Topic) else item.get("name")
        answered_id = _wire_id(decision.topic_id) if isinstance(decision, Topic) else wire_id
        responses.append({"name": name, "topic_id": answered_id, **error_of(refused)})
    return {"throttle_time_ms": 0, "responses": responses}


def create_partitions(
    registry: TopicRegistry, request: messages.CreatePartitionsRequest
) -> messages.CreatePartitionsResponse:
    """CreatePartitions."""
    twice = _more_than_once(topic["name"] for topic in request["topics"])
    results: list[messages.CreatePartitionsTopicResult] = [
        {"name": name, **error_of(_named_twice(name))} for name in twice
    ]
    for topic in request["topics"]:
        if topic["name"] in twice:
            continue
        assigned = topic["assignments"]
        brokers = None if assigned is None else [each["broker_ids"] for each in assigned]

        def decide(
            asked: Sequence[messages.CreatePartitionsTopic], brokers: list[list[int]] | None = brokers
        ) -> list[Topic | Refusal]:
            return [
                topics.add_partitions(registry.topics, item["name"], item["count"], brokers, registry.rules())
                for item in asked
            ]

        (decision,) = decide([topic]) if request["validate_only"] else _stored(registry, [topic], decide)
        results.append({"name": topic["name"], **error_of(decision)})
    return {"throttle_time_ms": 0, "results": results}


def describe_configs(
    registry: TopicRegistry, request: messages.DescribeConfigsRequest
) -> messages.DescribeConfigsResponse:
    """DescribeConfigs of topics, of this broker, of its loggers and of groups. A resource that is named several times is described once, with the
    keys of all mentions."""
    synonyms, docs = bool(request.get("include_synonyms")), bool(request.get("include_documentation"))
    most = registry.broker.number(DESCRIBED_MAX)
    asked = _asked_about(request["resources"])
    results: list[messages.DescribeConfigsResult] = []
    for number, ((kind, name), keys) in enumerate(asked.items()):
        entries = _too_many_described(most) if number >= most else _entries(registry, kind, name, synonyms, docs)
        found = entries if isinstance(entries, list) else []
        configs = [entry for entry in found if not keys or entry["name"] in keys]
        results.append({**error_of(entries), "resource_type": kind, "resource_name": name, "configs": configs})
    if len(asked) > most:
        log.warning(
            "Of %d resources of a DescribeConfigs request %d are described (%s).", len(asked), most, DESCRIBED_MAX
        )
    return {"throttle_time_ms": 0, "results": results}


def _asked_about(resources: Iterable[messages.DescribeConfigsResource]) -> dict[tuple[int, str], set[str]]:
    """The keys that are asked for of each resource; an empty set means all. Clients make a map of the answers, so one answer for each
    resource is enough."""
    asked: dict[tuple[int, str], set[str]] = {}
    for item in resources:
        resource, keys = (item["resource_type"], item["resource_name"]), set(item.get("configuration_keys") or ())
        before = asked.get(resource)
        if before is None or not keys:
            asked[resource] = keys
        elif before:
            before |= keys
    return asked


def _too_many_described(most: int) -> Refusal:
    return Refusal(
        ErrorCode.POLICY_VIOLATION,
        f"One request may ask for the configs of {most} resources ({DESCRIBED_MAX}): ask in several requests.",
    )


def incremental_alter_configs(
    registry: TopicRegistry, request: messages.AlterConfigsRequest
) -> messages.AlterConfigsResponse:
    """IncrementalAlterConfigs: set, delete, append to or subtract from single settings; change levels of loggers."""

    def decide(
        present: dict[str, str], resource: messages.AlterConfigsResource, rules: ConfigRules
    ) -> dict[str, str] | Refusal:
        asked = [Change(config["name"], config["config_operation"], config["value"]) for config in resource["configs"]]
        return changes.incremental(present, asked, rules)

    def alter(resource: messages.AlterConfigsResource) -> Refusal | None:
        if resource["resource_type"] == RESOURCE_BROKER_LOGGER:
            return logger_requests.alter(registry.broker.number("node.id"), resource, request["validate_only"])
        return _alter(registry, resource, decide, request["validate_only"])

    return _altered(request, alter)


def alter_configs(registry: TopicRegistry, request: messages.AlterConfigsRequest) -> messages.AlterConfigsResponse:
    """AlterConfigs, the older request: replace all settings of a resource."""

    def decide(
        _present: dict[str, str], resource: messages.AlterConfigsResource, rules: ConfigRules
    ) -> dict[str, str] | Refusal:
        return changes.full([(config["name"], config["value"]) for config in resource["configs"]], rules)

    return _altered(request, lambda resource: _alter(registry, resource, decide, request["validate_only"]))


HANDLERS: dict[str, Handler] = {
    "create_topics": create_topics,
    "auto_create_topics": auto_create_topics,
    "delete_topics": delete_topics,
    "create_partitions": create_partitions,
    "describe_configs": describe_configs,
    "incremental_alter_configs": incremental_alter_configs,
    "alter_configs": alter_configs,
    "elect_leaders": replica_requests.elect_leaders,
    "alter_partition_reassignments": replica_requests.alter_partition_reassignments,
    "list_partition_reassignments": replica_requests.list_partition_reassignments,
    "update_features": features.update_features,
    "unregister_broker": unregister.unregister_broker,
    **security_requests.HANDLERS,
}

# Kinds whose answer has one error for the whole request.
_WITH_ONE_ERROR = (
    "elect_leaders",
    "alter_partition_reassignments",
    "list_partition_reassignments",
    "update_features",
    "unregister_broker",
)


def failed(
    kind: str, request: Mapping[str, Any], why: str = "The broker failed at this request; its log says why."
) -> messages.Answer:
    """The answer when a handler raises: UNKNOWN_SERVER_ERROR for each item (the log has the cause)."""
    refusal = Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, why)
    error = error_of(refusal)
    if kind in security_requests.HANDLERS:
        return security_requests.failed(kind, request, refusal)
    if kind == "auto_create_topics":
        return {}
    if kind in _WITH_ONE_ERROR:
        sentence = {} if kind == "elect_leaders" else {"error_message": error["error_message"]}
        return {"throttle_time_ms": 0, "error_code": error["error_code"], **sentence}
    if "resources" in request:
        items = [{**error, "resource_type": resource["resource_type"], "resource_name": resource["resource_name"]}
                 for resource in request["resources"]]  # fmt: skip
        return {"throttle_time_ms": 0, ("results" if kind == "describe_configs" else "responses"): items}
    names = [topic["name"] for topic in request.get("topics", [])] or list(request.get("topic_names", []))
    field = {"create_topics": "topics", "delete_topics": "responses"}.get(kind, "results")
    return {"throttle_time_ms": 0, field: [{"name": name, **error} for name in names]}


Named = TypeVar("Named")


def _new_topic(topic: messages.CreatableTopic) -> topics.NewTopic:
    return topics.NewTopic(
        topic["name"],
        topic["num_partitions"],
        topic["replication_factor"],
        [(config["name"], config["value"]) for config in topic["configs"]],
        [(each["partition_index"], each["broker_ids"]) for each in topic["assignments"]],
    )


def _more_than_once(names: Iterable[Named]) -> Collection[Named]:
    """The names that a request has twice or more, each once, in order. Kafka refuses such a topic with one answer."""
    return {name: times for name, times in Counter(names).items() if times > 1}.keys()


def _named_twice(name: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_REQUEST, f"Topic '{name}' is in the request more than once.")


Asked = TypeVar("Asked")


def _stored(
    registry: TopicRegistry, asked: Sequence[Asked], decide: Callable[[Sequence[Asked]], list[Topic | Refusal]]
) -> list[Topic | Refusal]:
    """Decide, store and apply. A write that the store refuses becomes a `Refusal`; what another broker has changed meanwhile is decided
    again."""
    outcomes: list[Topic | Refusal] = [CONFLICT] * len(asked)
    for _ in range(CONFLICTS_MAX):
        still = [index for index, outcome in enumerate(outcomes) if outcome is CONFLICT]
        if not still:
            break
        decisions = decide([asked[index] for index in still])
        stored = iter(registry.commit([decision for decision in decisions if isinstance(decision, Topic)]))
        for index, decision in zip(still, decisions, strict=True):
            outcomes[index] = (next(stored) or decision) if isinstance(decision, Topic) else decision
        registry.refresh(
            [
                decision.name
                for index, decision in zip(still, decisions, strict=True)
                if isinstance(decision, Topic) and outcomes[index] is CONFLICT
            ]
        )
    for done in outcomes:
        if isinstance(done, Topic):
            log.info("Topic %s has %d partitions (id %s).", done.name, len(done.partitions), done.topic_id)
    return outcomes


def _created_all(
    registry: TopicRegistry, wanted: Sequence[topics.NewTopic], validate_only: bool
) -> list[Topic | Refusal]:
    def decide(asked: Sequence[topics.NewTopic]) -> list[Topic | Refusal]:
        return topics.create(registry.topics, asked, registry.rules(), new_topic_id)

    return decide(wanted) if validate_only else _stored(registry, wanted, decide)


def _deleted(
    registry: TopicRegistry, name: str | None, topic_id: str | None, names: Mapping[str, str]
) -> tuple[Topic | Refusal, Refusal | None]:
    """Delete a topic. Returns the topic, or why it may not be deleted; and why the store refused, if it did."""
    for _ in range(CONFLICTS_MAX):
        decision = topics.delete(registry.topics, name, topic_id, names, registry.rules())
        refused = registry.remove(decision) if isinstance(decision, Topic) else decision
        if refused is not CONFLICT or not isinstance(decision, Topic):
            break
        registry.refresh([decision.name])
    return decision, refused


def _created(registry: TopicRegistry, name: str, decision: Topic | Refusal) -> messages.CreatableTopicResult:
    if isinstance(decision, Refusal):
        return {
            "name": name,
            **error_of(decision),
            "topic_config_error_code": 0,
            "topic_id": NO_TOPIC_ID,
            "num_partitions": -1,
            "replication_factor": -1,
            "configs": [],
        }
    entries = describe.topic_entries(registry.broker, registry.overrides(decision), False, False)
    configs: list[messages.CreatedTopicConfig] = [
        {
            "name": entry["name"],
            "value": entry["value"],
            "read_only": entry["read_only"],
            "config_source": entry["config_source"],
            "is_sensitive": entry["is_sensitive"],
        }
        for entry in entries
    ]
    return {
        "name": name,
        "topic_id": _wire_id(decision.topic_id),
        **error_of(None),
        "topic_config_error_code": 0,
        "num_partitions": len(decision.partitions),
        "replication_factor": len(decision.partitions[0].replicas),
        "configs": configs,
    }


def _entries(
    registry: TopicRegistry, kind: int, name: str, synonyms: bool, docs: bool
) -> list[messages.DescribeConfigsEntry] | Refusal:
    if kind == RESOURCE_TOPIC:
        topic = registry.topics.get(name)
        if topic is None or topic.deleting:
            return _no_topic(name)
        return describe.topic_entries(registry.broker, registry.overrides(topic), synonyms, docs)
    if kind == RESOURCE_BROKER:
        if name == "":
            return []
        return _other_broker(registry, name) or describe.broker_entries(registry.broker, synonyms, docs)
    if kind == RESOURCE_BROKER_LOGGER:
        return logger_requests.entries(registry.broker.number("node.id"), name, docs)
    if kind == RESOURCE_GROUP:
        return _no_group(name) or describe.group_entries(
            registry.broker, config.parse(group_config.GROUP, registry.groups.get(name, {}).items()), synonyms, docs
        )
    return _no_such_resource(kind)


Decide = Callable[[dict[str, str], messages.AlterConfigsResource, ConfigRules], dict[str, str] | Refusal]


def _altered(
    request: messages.AlterConfigsRequest, alter: Callable[[messages.AlterConfigsResource], Refusal | None]
) -> messages.AlterConfigsResponse:
    responses: list[messages.AlterConfigsResourceResponse] = []
    keys = [(resource["resource_type"], resource["resource_name"]) for resource in request["resources"]]
    twice = _more_than_once(keys)
    for resource, key in zip(request["resources"], keys, strict=True):
        if key in twice:
            refused: Refusal | None = Refusal(
                ErrorCode.INVALID_REQUEST, f"{key[1]!r} is in the request more than once."
            )
        else:
            refused = alter(resource)
        responses.append({**error_of(refused), "resource_type": key[0], "resource_name": key[1]})
    return {"throttle_time_ms": 0, "responses": responses}


def _alter(
    registry: TopicRegistry,
    resource: messages.AlterConfigsResource,
    decide: Decide,
    validate_only: bool,
    again: int = CONFLICTS_MAX,
) -> Refusal | None:
    kind, name = resource["resource_type"], resource["resource_name"]
    if kind == RESOURCE_TOPIC:
        if name == "":
            return Refusal(ErrorCode.INVALID_REQUEST, "The request names no topic: configs are changed topic by topic.")
        topic = registry.topics.get(name)
        if topic is None or topic.deleting:
            return _no_topic(name)
        configs = decide(dict(topic.configs), resource, topic_config_rules(registry.broker))
        if isinstance(configs, Refusal):
            return configs
        try:
            check_together(registry.broker, configs)
        except ConfigError as error:
            return Refusal(ErrorCode.INVALID_CONFIG, str(error))
        refused = topics.mirror_change(topic, configs)
        if refused is not None or validate_only:
            return refused
        after = replace(topic, configs=configs)
        refused = registry.commit([reconfigured(after, registry.partition_rules(after))])[0]
        if refused is CONFLICT and again > 0:
            registry.refresh([name])
            return _alter(registry, resource, decide, validate_only, again - 1)
        return refused
    if kind == RESOURCE_BROKER:
        refused = _other_broker(registry, name)
        if refused is not None:
            return refused
        fixed = [
            config["name"]
            for config in resource["configs"]
            if config["name"] in BROKER and not BROKER[config["name"]].dynamic
        ]
        if fixed:
            sentence = f"{', '.join(fixed)} cannot change while the broker runs: restart it with --config NAME=VALUE."
            return Refusal(ErrorCode.INVALID_REQUEST, sentence)
        present = {key: show(value) or "" for key, value in registry.broker.dynamic.items()}
        configs = decide(present, resource, broker_config_rules(registry.broker))
        if isinstance(configs, Refusal) or validate_only:
            return configs if isinstance(configs, Refusal) else None
        return registry.change_broker(configs)
    if kind == RESOURCE_GROUP:
        for _ in range(CONFLICTS_MAX):
            configs = _no_group(name) or decide(
                dict(registry.groups.get(name, {})), resource, group_config.rules(registry.broker)
            )
            if isinstance(configs, Refusal) or validate_only:
                return configs if isinstance(configs, Refusal) else None
            outcome = registry.change_group(name, configs)
            if outcome is not CONFLICT:
                return outcome
            registry.read_groups()
        return CONFLICT
    return _no_such_resource(kind)


def _other_broker(registry: TopicRegistry, name: str) -> Refusal | None:
    node_id = registry.broker.number("node.id")
    if name == str(node_id):
        return None
    return Refusal(ErrorCode.INVALID_REQUEST, f"This is broker {node_id}: ask broker {name!r} itself for its configs.")


def _no_group(name: str) -> Refusal | None:
    if name:
        return None
    return Refusal(
        ErrorCode.INVALID_REQUEST, "The request names no group: configs are read and changed group by group."
    )


def _no_topic(name: str) -> Refusal:
    reason = topics.invalid_name(name)
    return Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, reason) if reason else topics.unknown_topic(name)


def _no_such_resource(kind: int) -> Refusal:
    return Refusal(
        ErrorCode.INVALID_REQUEST,
        f"Resources of type {kind} have no configs: name topics (2), brokers (4), loggers of brokers (8) or groups (32).",
    )


def _wire_id(text: str) -> str:
    return str(topic_id_uuid(text))
