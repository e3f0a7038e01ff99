"""Requests for decisions over a fake native server: stored before applied, applied before answered."""

import json
import re
import time
import uuid
from pathlib import Path

import pytest

from pylog_spark.broker import requests
from pylog_spark.broker.config import broker_config
from pylog_spark.broker.registry import TopicRegistry
from pylog_spark.cluster.changes import Change, ConfigOperation, ConfigRules, incremental
from pylog_spark.cluster.errors import ErrorCode
from pylog_spark.cluster.model import topic_id_text, topic_id_uuid
from pylog_spark.cluster.store.file import FileStore

TOPIC, BROKER = requests.RESOURCE_TOPIC, requests.RESOURCE_BROKER


class FakeNative:
    """Remembers its calls; fails when `broken`."""

    def __init__(self):
        self.topics = {}
        self.broken = False
        self.unopenable = set()
        self.applied = 0

    def apply_topics(self, topics_json):
        self.applied += 1
        asked = {topic["name"]: topic for topic in json.loads(topics_json)}
        if self.broken or not self.unopenable.isdisjoint(asked):
            raise OSError("IO", "no space left on the disk.")
        self.topics |= asked

    def apply_security(self, security_json):
        self.security = json.loads(security_json)

    def set_cleaner_backoff(self, backoff_ms):
        self.cleaner_backoff_ms = backoff_ms

    def remove_topic(self, name):
        if self.broken:
            raise OSError("IO", "no space left on the disk.")
        del self.topics[name]


@pytest.fixture
def native():
    return FakeNative()


@pytest.fixture
def registry(tmp_path, native):
    return started(tmp_path, native)


def started(directory, native, **settings):
    made = TopicRegistry(FileStore(directory), native, broker_config([("num.partitions", "2")]))
    made.start()
    return made


def create(registry, name, validate_only=False, **more):
    topic = {"name": name, "num_partitions": -1, "replication_factor": -1, "configs": [], "assignments": [], **more}
    request = {"topics": [topic], "validate_only": validate_only, "timeout_ms": 1}
    return requests.create_topics(registry, request)["topics"][0]


def describe(registry, kind, name, keys=None, **more):
    resource = {"resource_type": kind, "resource_name": name, "configuration_keys": keys}
    return requests.describe_configs(registry, {"resources": [resource], **more})["results"][0]


def alter(registry, kind, name, validate_only=False, **configs):
    asked = [{"name": key.replace("_", "."), "config_operation": 0, "value": value} for key, value in configs.items()]
    resource = {"resource_type": kind, "resource_name": name, "configs": asked}
    request = {"resources": [resource], "validate_only": validate_only}
    return requests.incremental_alter_configs(registry, request)["responses"][0]


def test_a_created_topic_is_served_and_comes_back_after_a_restart(registry, native, tmp_path):
    answer = create(registry, "t", configs=[{"name": "retention.ms", "value": "5"}])
    assert (answer["error_code"], answer["num_partitions"], answer["replication_factor"]) == (0, 2, 1)
    assert native.topics["t"]["topic_id"] == answer["topic_id"]
    assert native.topics["t"]["config"]["retention.ms"] == 5
    assert {
        "name": "retention.ms",
        "value": "5",
        "read_only": False,
        "config_source": 1,
        "is_sensitive": False,
    } in answer["configs"]
    again = FakeNative()
    started(tmp_path, again)
    assert again.topics == native.topics


def create_all(registry, names):
    new = {"num_partitions": 1, "replication_factor": -1, "configs": [], "assignments": []}
    request = {"topics": [{"name": name, **new} for name in names], "validate_only": False, "timeout_ms": 1}
    return {each["name"]: each["error_code"] for each in requests.create_topics(registry, request)["topics"]}


def test_topics_that_are_created_together_are_served_together(registry, native):
    before = native.applied
    names = [f"t-{number}" for number in range(500)]
    assert create_all(registry, names) == dict.fromkeys(names, 0)
    assert (sorted(native.topics), sorted(registry.topics)) == (sorted(names), sorted(names))
    assert native.applied - before == 2, "the native server writes the names of all logs each time"


def test_of_topics_that_are_created_together_only_those_are_refused_that_cannot_be_served(registry, native):
    native.unopenable = {"t-3"}
    answers = create_all(registry, [f"t-{number}" for number in range(5)])
    assert [name for name, code in answers.items() if code] == ["t-3"]
    assert answers["t-3"] == ErrorCode.KAFKA_STORAGE_ERROR
    assert sorted(native.topics) == ["t-0", "t-1", "t-2", "t-4"]
    assert registry.has_unopened, "it is tried again later"


def test_validate_only_changes_nothing(registry, native):
    assert create(registry, "t", validate_only=True)["error_code"] == 0
    assert native.topics == {}
    assert registry.topics == {}
    create(registry, "u")
    request = {"topics": [{"name": "u", "count": 4, "assignments": None}], "validate_only": True, "timeout_ms": 1}
    assert requests.create_partitions(registry, request)["results"][0]["error_code"] == 0
    assert alter(registry, TOPIC, "u", validate_only=True, retention_ms="9")["error_code"] == 0
    assert len(native.topics["u"]["partitions"]) == 2
    assert native.topics["u"]["config"]["retention.ms"] == 604_800_000


def test_a_full_disk_is_an_answer_and_the_topic_is_served_after_the_next_start(registry, native, tmp_path):
    native.broken = True
    answer = create(registry, "t")
    assert answer["error_code"] == ErrorCode.KAFKA_STORAGE_ERROR
    assert "no space left" in answer["error_message"]
    native.broken = False
    started(tmp_path, native)
    assert list(native.topics) == ["t"]


def test_auto_create_makes_what_is_missing_and_only_logs_what_cannot_be(registry, native, caplog):
    create(registry, "old")
    assert requests.auto_create_topics(registry, {"topics": ["a", "old", "../x", "a"]}) == {}
    assert sorted(native.topics) == ["a", "old"]
    assert "'../x' is not created" in caplog.text


def test_a_topic_is_deleted_by_name_or_id_and_its_name_is_free_again(registry, native):
    first = create(registry, "t")
    by_name = requests.delete_topics(registry, {"topics": [{"name": "t", "topic_id": requests.NO_TOPIC_ID}]})[
        "responses"
    ][0]
    assert by_name == {"name": "t", "topic_id": first["topic_id"], "error_code": 0, "error_message": None}
    second = create(registry, "t")
    assert second["topic_id"] != first["topic_id"]
    by_id = requests.delete_topics(registry, {"topics": [{"name": None, "topic_id": second["topic_id"]}]})["responses"][
        0
    ]
    assert (by_id["name"], by_id["error_code"]) == ("t", 0)
    gone = requests.delete_topics(registry, {"topics": [], "topic_names": ["t"]})["responses"][0]
    assert (gone["name"], gone["error_code"]) == ("t", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert native.topics == {}


def test_a_deletion_cut_short_is_finished_at_the_next_start(registry, native, tmp_path):
    create(registry, "t")
    native.broken = True
    answer = requests.delete_topics(registry, {"topics": [{"name": "t", "topic_id": None}]})["responses"][0]
    assert answer["error_code"] == ErrorCode.KAFKA_STORAGE_ERROR
    assert describe(registry, TOPIC, "t")["error_code"] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    again = FakeNative()
    assert started(tmp_path, again).topics == {}
    assert again.topics == {}
    assert FileStore(tmp_path).paths("topics/") == []


def test_partitions_grow_and_the_native_server_hears_of_it(registry, native):
    create(registry, "t")
    request = {"topics": [{"name": "t", "count": 4, "assignments": None}], "validate_only": False, "timeout_ms": 1}
    assert requests.create_partitions(registry, request)["results"] == [
        {"name": "t", "error_code": 0, "error_message": None}
    ]
    assert len(native.topics["t"]["partitions"]) == 4


def test_topic_entries_show_kafkas_types_sources_and_synonyms(registry):
    create(registry, "t", configs=[{"name": "retention.ms", "value": "5"}])
    result = describe(registry, TOPIC, "t", include_synonyms=True, include_documentation=True)
    entries = {entry["name"]: entry for entry in result["configs"]}
    retention = entries["retention.ms"]
    assert (retention["value"], retention["config_source"], retention["config_type"]) == ("5", 1, 5)
    assert retention["synonyms"] == [
        {"name": "retention.ms", "value": "5", "source": 1},
        {"name": "log.retention.hours", "value": "168", "source": 5},
    ]
    assert retention["documentation"]
    assert (entries["cleanup.policy"]["value"], entries["cleanup.policy"]["config_type"]) == ("delete", 7)
    assert (entries["preallocate"]["value"], entries["preallocate"]["config_type"]) == ("false", 1)
    assert entries["segment.bytes"]["config_source"] == 5


def test_broker_entries_show_what_was_given_at_the_start(registry):
    entries = {entry["name"]: entry for entry in describe(registry, BROKER, "1")["configs"]}
    assert (entries["num.partitions"]["value"], entries["num.partitions"]["config_source"]) == ("2", 4)
    assert entries["num.partitions"]["read_only"]
    assert not entries["log.retention.ms"]["read_only"]
    assert entries["log.retention.ms"]["value"] is None
    assert (entries["auto.create.topics.enable"]["value"], entries["auto.create.topics.enable"]["config_type"]) == (
        "true",
        1,
    )
    assert entries["num.partitions"]["documentation"] is None
    assert entries["num.partitions"]["synonyms"] == []


def test_only_the_keys_asked_for_are_described(registry):
    result = describe(registry, BROKER, "1", keys=["num.partitions", "unknown"])
    assert [entry["name"] for entry in result["configs"]] == ["num.partitions"]


@pytest.mark.parametrize(
    ("kind", "name", "code"),
    [
        (TOPIC, "none", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC, "../x", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (BROKER, "2", ErrorCode.INVALID_REQUEST),
        (8, "2", ErrorCode.INVALID_REQUEST),
        (16, "1", ErrorCode.INVALID_REQUEST),
    ],
)
def test_a_resource_that_is_not_here_is_an_error_of_its_own(registry, kind, name, code):
    assert describe(registry, kind, name)["error_code"] == code
    assert alter(registry, kind, name, retention_ms="1")["error_code"] == code


def test_altered_topic_configs_reach_the_log_and_the_store(registry, native, tmp_path):
    create(registry, "t")
    assert alter(registry, TOPIC, "t", retention_ms="7")["error_code"] == 0
    assert native.topics["t"]["config"]["retention.ms"] == 7
    assert started(tmp_path, FakeNative()).topics["t"].configs == {"retention.ms": "7"}
    replaced = {"resource_type": TOPIC, "resource_name": "t", "configs": [{"name": "flush.ms", "value": "3"}]}
    answer = requests.alter_configs(registry, {"resources": [replaced], "validate_only": False})["responses"][0]
    assert answer["error_code"] == 0
    assert registry.topics["t"].configs == {"flush.ms": "3"}


def test_a_changed_broker_setting_reaches_every_topic_that_does_not_set_it(registry, native):
    create(registry, "t")
    create(registry, "own", configs=[{"name": "retention.ms", "value": "5"}])
    assert alter(registry, BROKER, "1", log_retention_ms="9")["error_code"] == 0
    assert native.topics["t"]["config"]["retention.ms"] == 9
    assert native.topics["own"]["config"]["retention.ms"] == 5
    entry = describe(registry, BROKER, "1", keys=["log.retention.ms"])["configs"][0]
    assert (entry["value"], entry["config_source"]) == ("9", 2)


def names_in(answer):
    """The names of an answer and of all that is in it."""
    items = [item for value in answer.values() if isinstance(value, list) for item in value]
    return set(answer).union(*map(names_in, items))


def fields_of_the_message(kind):
    """The fields of the answer on the wire: one that it does not have is refused."""
    if kind == "auto_create_topics":
        return set()
    text = (Path(__file__).parents[3] / "broker_native" / "wire" / "src" / "messages" / f"{kind}.rs").read_text()
    return set(re.findall(r"^ {8}(\w+): ", text.partition("Response of ")[2], re.MULTILINE))


#: One item of requests that name neither topics nor resources.
SECURED = {
    "alter_user_scram_credentials": {"deletions": [{"name": "a", "mechanism": 1}], "upsertions": []},
    "create_acls": {"creations": [{"resource_type": 2}]},
    "delete_acls": {"filters": [{"operation": 1}]},
    "alter_client_quotas": {"entries": [{"entity": [], "ops": []}]},
}


@pytest.mark.parametrize("kind", sorted(requests.HANDLERS))
def test_a_failure_inside_is_answered_item_by_item_or_as_a_whole(kind):
    resource = {"resource_type": 2, "resource_name": "t"}
    request = {"resources": [resource]} if "configs" in kind else {"topics": [{"name": "t"}], "topic_names": []}
    answer = requests.failed(kind, SECURED.get(kind, request))
    assert names_in(answer) <= fields_of_the_message(kind)
    if "error_code" in answer:
        assert answer["error_code"] == ErrorCode.UNKNOWN_SERVER_ERROR
        return
    items = [item for value in answer.values() if isinstance(value, list) for item in value]
    assert kind == "auto_create_topics" or [item["error_code"] for item in items] == [ErrorCode.UNKNOWN_SERVER_ERROR]


def test_directories_without_a_topic_are_named_and_left_alone(registry, tmp_path, caplog):
    create(registry, "known")
    for name in ("known-0", "lost-0", "lost-1", "gone-0.abc-delete", "plain"):
        (tmp_path / name).mkdir()
    registry.warn_of_stray_logs(str(tmp_path))
    assert "2 directories belong to no known topic and are not served: lost-0, lost-1" in caplog.text
    assert (tmp_path / "lost-0").is_dir()


def test_ids_on_the_wire_and_in_the_store_are_the_same(registry):
    answer = create(registry, "t")
    assert topic_id_text(topic_id_uuid(answer["topic_id"])) == registry.topics["t"].topic_id


def test_the_cleaners_back_off_changes_while_the_broker_runs(registry, native):
    changed = {"name": "log.cleaner.backoff.ms", "config_operation": 0, "value": "20"}
    resource = {"resource_type": BROKER, "resource_name": "1", "configs": [changed]}
    answer = requests.incremental_alter_configs(registry, {"validate_only": False, "resources": [resource]})
    assert answer["responses"][0]["error_code"] == 0
    assert native.cleaner_backoff_ms == 20
    resource["configs"] = [{"name": "log.cleaner.backoff.ms", "config_operation": 1, "value": None}]
    requests.incremental_alter_configs(registry, {"validate_only": False, "resources": [resource]})
    assert native.cleaner_backoff_ms == 15_000


def described(registry, resources, **more):
    named = [
        {"resource_type": kind, "resource_name": name, "configuration_keys": keys} for kind, name, keys in resources
    ]
    return requests.describe_configs(registry, {"resources": named, **more})["results"]


def test_a_resource_that_is_named_many_times_is_described_once_with_all_the_keys_that_are_asked_for(registry):
    (answer,) = described(registry, [(BROKER, "1", None)] * 13_000, include_synonyms=True, include_documentation=True)
    assert answer["error_code"] == 0
    everything = len(answer["configs"])
    (answer,) = described(registry, [(BROKER, "1", ["node.id"]), (BROKER, "1", ["num.partitions", "node.id"])])
    assert {config["name"] for config in answer["configs"]} == {"node.id", "num.partitions"}
    for order in ((["node.id"], None), (None, ["node.id"])):
        (answer,) = described(registry, [(BROKER, "1", keys) for keys in order])
        assert len(answer["configs"]) == everything


def test_one_request_gets_the_configs_of_so_many_resources_and_the_others_are_refused(tmp_path, native, caplog):
    made = TopicRegistry(FileStore(tmp_path), native, broker_config([("describe.configs.max.resources", "2")]))
    made.start()
    for name in ("a", "b", "c"):
        create(made, name)
    answers = described(made, [(TOPIC, name, None) for name in ("a", "a", "b", "c")])
    assert [answer["error_code"] for answer in answers] == [0, 0, ErrorCode.POLICY_VIOLATION]
    assert [bool(answer["configs"]) for answer in answers] == [True, True, False]
    assert "describe.configs.max.resources" in caplog.text


def seconds(work):
    began = time.process_time()
    work()
    return time.process_time() - began


@pytest.mark.parametrize("kind", ["alter_configs", "delete_topics", "delete_ids", "create_topics", "words"])
def test_a_request_of_many_items_is_decided_in_time_that_grows_as_they_do(registry, kind):
    many = 40_000

    def run():
        if kind == "alter_configs":
            named = [{"resource_type": 99, "resource_name": str(number), "configs": []} for number in range(many)]
            requests.alter_configs(registry, {"resources": named, "validate_only": True})
        elif kind == "delete_topics":
            named = [{"name": str(number // 2), "topic_id": None} for number in range(many)]
            requests.delete_topics(registry, {"topics": named})
        elif kind == "delete_ids":
            named = [{"name": None, "topic_id": str(uuid.UUID(int=number + 1))} for number in range(many)]
            requests.delete_topics(registry, {"topics": named})
        elif kind == "create_topics":
            blank = {"num_partitions": -1, "replication_factor": -1, "configs": [], "assignments": []}
            named = [{"name": str(number // 2), **blank} for number in range(many)]
            requests.create_topics(registry, {"topics": named, "validate_only": True})
        else:
            words = ",".join(str(number) for number in range(many))
            rules = ConfigRules(lambda _name, text: text, lambda _name, _present: words.split(","))
            for operation in (ConfigOperation.APPEND, ConfigOperation.SUBTRACT):
                assert isinstance(incremental({}, [Change("a", operation, words)], rules), dict)

    assert seconds(run) < 1.0


def test_topics_that_cannot_be_created_are_named_in_the_log_up_to_a_number(registry, caplog):
    requests.auto_create_topics(registry, {"topics": [f"not/legal{number}" for number in range(1_000)]})
    assert len(caplog.records) == requests.LOGGED_MAX + 1
    assert f"{1_000 - requests.LOGGED_MAX} more topics" in caplog.text
