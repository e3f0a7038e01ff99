"""Users, ACLs and quotas of a broker: stored before applied, applied before answered, the same at all brokers of a cluster."""

import json
import os
import stat

import pytest

from pylog_spark.broker import requests
from pylog_spark.broker.config import broker_config
from pylog_spark.broker.registry import TopicRegistry
from pylog_spark.cluster import documents as cluster_documents
from pylog_spark.cluster.documents import DocumentError
from pylog_spark.cluster.errors import ErrorCode
from pylog_spark.cluster.security import documents
from pylog_spark.cluster.store import OutcomeUnknown
from pylog_spark.cluster.store.file import FileStore
from tests.unit.broker.shared_world import turn

SALT, SALTED = "73616c74", "00" * 32


class Native:
    """Remembers what was applied."""

    def __init__(self):
        self.security = None

    def apply_security(self, security_json):
        self.security = json.loads(security_json)


def started(directory, native, **settings):
    made = TopicRegistry(FileStore(directory), native, broker_config(settings.items()))
    made.start()
    return made


@pytest.fixture
def native():
    return Native()


@pytest.fixture
def registry(tmp_path, native):
    return started(tmp_path, native)


def ask(registry, kind, **request):
    return requests.HANDLERS[kind](registry, {"principal": "User:admin", **request})


def set_user(registry, *names):
    upsertions = [{"name": name, "mechanism": 1, "iterations": 4096, "salt": SALT, "salted_password": SALTED}
                  for name in names]  # fmt: skip
    answer = ask(registry, "alter_user_scram_credentials", deletions=[], upsertions=upsertions)
    return [result["error_code"] for result in answer["results"]]


def delete_user(registry, name):
    answer = ask(registry, "alter_user_scram_credentials", deletions=[{"name": name, "mechanism": 1}], upsertions=[])
    return answer["results"][0]["error_code"]


def creation(name, principal="User:alice", **more):
    rest = {"host": "*", "operation": 3, "permission_type": 3, "resource_type": 2, "resource_pattern_type": 3}
    return {**rest, "resource_name": name, "principal": principal, **more}


def create_acls(registry, *creations):
    return [result["error_code"] for result in ask(registry, "create_acls", creations=list(creations))["results"]]


def delete_acls(registry, **more):
    anything = {"resource_type_filter": 1, "resource_name_filter": None, "pattern_type_filter": 1,
                "principal_filter": None, "host_filter": None, "operation": 1, "permission_type": 1}  # fmt: skip
    (result,) = ask(registry, "delete_acls", filters=[{**anything, **more}])["filter_results"]
    return result["error_code"], sorted(each["resource_name"] for each in result["matching_acls"])


def set_quota(registry, user, validate_only=False, **values):
    entry = {
        "entity": [{"entity_type": "user", "entity_name": user}],
        "ops": [{"key": key, "value": value, "remove": value is None} for key, value in values.items()],
    }
    answer = ask(registry, "alter_client_quotas", entries=[entry], validate_only=validate_only)
    return answer["entries"][0]["error_code"]


def users_of(security):
    return [each["user"] for each in security["scram"]]


def topics_of(security):
    return sorted(each["resource_name"] for each in security["acls"])


def test_all_of_it_is_applied_at_once_and_again_after_a_restart(registry, native, tmp_path):
    assert native.security == {"scram": [], "acls": [], "quotas": [], "decoy_key": None}
    assert set_user(registry, "alice", "../bob") == [0, 0]
    assert create_acls(registry, creation("events"), creation("/", operation=2)) == [0, 0]
    assert set_quota(registry, "alice", producer_byte_rate=1024.0) == 0
    assert sorted(users_of(native.security)) == ["../bob", "alice"]
    assert topics_of(native.security) == ["/", "events"]
    assert native.security["quotas"] == [{"entity": {"user": "alice"}, "values": {"producer_byte_rate": 1024.0}}]
    again = Native()
    started(tmp_path, again)
    assert again.security == native.security


def test_the_log_says_who_changed_what_and_no_name_makes_a_second_line(registry, caplog):
    caplog.set_level("INFO")
    upsertion = {"name": "al\nice", "mechanism": 1, "iterations": 4096, "salt": SALT, "salted_password": SALTED}
    changed = {"deletions": [], "upsertions": [upsertion], "principal": "User:ro\not"}
    ask(registry, "alter_user_scram_credentials", **changed)
    create_acls(registry, creation("events"))
    delete_acls(registry)
    set_quota(registry, "alice", producer_byte_rate=1.0)
    set_quota(registry, "alice", validate_only=True, producer_byte_rate=2.0)
    shown = "ALLOW 'User:alice' from '*' READ on LITERAL TOPIC 'events'"
    assert caplog.messages == [
        "'User:ro\\not' changed the SCRAM credentials of user 'al\\nice'.",
        f"'User:admin' created the ACL {shown}.",
        f"'User:admin' deleted the ACL {shown}.",
        "'User:admin' changed the quotas of {'user': 'alice'} to {'producer_byte_rate': 1.0}.",
    ]


def test_what_is_taken_away_is_gone_after_a_restart_too(registry, native, tmp_path):
    set_user(registry, "alice")
    create_acls(registry, creation("events"), creation("events", "User:bob"), creation("other"))
    set_quota(registry, "alice", producer_byte_rate=1024.0)
    assert delete_user(registry, "alice") == 0
    assert delete_acls(registry, principal_filter="User:bob") == (0, ["events"])
    assert delete_acls(registry, resource_name_filter="other") == (0, ["other"])
    assert delete_acls(registry, resource_name_filter="other") == (0, [])
    assert set_quota(registry, "alice", producer_byte_rate=None) == 0
    assert (users_of(native.security), topics_of(native.security)) == ([], ["events"])
    again = Native()
    started(tmp_path, again)
    assert again.security == native.security
    left = sorted(path.parent.name for path in (tmp_path / ".pylog" / "security").rglob("*.json"))
    assert left == ["acls", "security"]


def test_users_and_quotas_are_described_without_their_secrets(registry):
    set_user(registry, "alice")
    set_quota(registry, "alice", producer_byte_rate=1024.0)
    described = ask(registry, "describe_user_scram_credentials", users=None)
    assert described["results"] == [
        {
            "user": "alice",
            "error_code": 0,
            "error_message": None,
            "credential_infos": [{"mechanism": 1, "iterations": 4096}],
        }
    ]
    quotas = ask(registry, "describe_client_quotas", components=[], strict=False)
    assert quotas["entries"] == [
        {
            "entity": [{"entity_type": "user", "entity_name": "alice"}],
            "values": [{"key": "producer_byte_rate", "value": 1024.0}],
        }
    ]
    wrong = ask(registry, "describe_client_quotas", components=[{"entity_type": "", "match_type": 0, "match": None}],
                strict=False)  # fmt: skip
    assert (wrong["error_code"], wrong["entries"]) == (ErrorCode.INVALID_REQUEST, None)


def test_a_quota_that_is_only_checked_is_not_stored(registry, native):
    assert set_quota(registry, "alice", validate_only=True, producer_byte_rate=1.0) == 0
    assert set_quota(registry, "alice", validate_only=True, producer_byte_rate=-1.0) == ErrorCode.INVALID_REQUEST
    assert native.security["quotas"] == []


def test_the_file_of_a_user_is_readable_by_the_brokers_user_alone(registry, tmp_path):
    set_user(registry, "alice")
    create_acls(registry, creation("events"))
    (user,) = (tmp_path / ".pylog" / "security" / "users").iterdir()
    (acls,) = (tmp_path / ".pylog" / "security" / "acls").iterdir()
    assert stat.S_IMODE(user.stat().st_mode) == 0o600
    assert stat.S_IMODE(acls.stat().st_mode) & 0o077
    assert "password" not in user.read_text()


def test_the_key_of_decoys_is_made_with_the_first_user_and_stays(registry, native, tmp_path):
    create_acls(registry, creation("events"))
    assert native.security["decoy_key"] is None
    set_user(registry, "alice")
    key = native.security["decoy_key"]
    set_user(registry, "bob")
    delete_user(registry, "alice")
    delete_user(registry, "bob")
    again = Native()
    started(tmp_path, again)
    assert again.security["decoy_key"] == native.security["decoy_key"] == key
    assert len(bytes.fromhex(key)) == 32
    assert stat.S_IMODE((tmp_path / ".pylog" / "security" / "decoy_key.json").stat().st_mode) == 0o600


def test_a_damaged_document_keeps_the_broker_from_starting(registry, tmp_path):
    create_acls(registry, creation("events", permission_type=2))
    path = documents.ACLS
    store = FileStore(tmp_path)
    (there,) = store.paths(path)
    store.compare_and_set(there, b'{"version": 1}', 1)
    with pytest.raises(DocumentError, match="damaged"):
        started(tmp_path, Native())


def test_a_full_disk_is_an_error_of_the_request_and_nothing_changes(registry, native, tmp_path):
    create_acls(registry, creation("events"))
    before = native.security
    os.rename(tmp_path / ".pylog" / "security" / "acls", tmp_path / "aside")
    (tmp_path / ".pylog" / "security" / "acls").touch()
    assert create_acls(registry, creation("other")) == [ErrorCode.KAFKA_STORAGE_ERROR]
    (tmp_path / ".pylog" / "security" / "acls").unlink()
    os.rename(tmp_path / "aside", tmp_path / ".pylog" / "security" / "acls")
    registry.security.read_all()
    assert native.security == before


def test_a_document_that_is_damaged_later_takes_nothing_away_of_what_it_said(registry, native, tmp_path):
    create_acls(registry, creation("events", permission_type=2))
    set_user(registry, "alice")
    store = FileStore(tmp_path)
    (path,) = store.paths(documents.ACLS)
    store.compare_and_set(path, b'{"version": 1}', 1)
    with pytest.raises(DocumentError, match="damaged"):
        registry.security.read_all()
    set_user(registry, "bob")
    assert (users_of(native.security), topics_of(native.security)) == (["alice", "bob"], ["events"])


# In a cluster


def test_two_brokers_that_make_the_first_user_at_once_agree_on_the_key_of_decoys(members):
    one, two, _ = members
    assert set_user(one.registry, "alice") == [0]
    assert set_user(two.registry, "bob") == [0]
    turn(members)
    assert one.native.security["decoy_key"] == two.native.security["decoy_key"]
    assert sorted(users_of(two.native.security)) == ["alice", "bob"]


def test_a_change_by_one_broker_is_applied_by_all_at_their_next_turn(members):
    one, two, three = members
    assert set_user(one.registry, "alice") == [0]
    assert create_acls(two.registry, creation("events")) == [0]
    assert set_quota(three.registry, "alice", producer_byte_rate=1.0) == 0
    turn(members)
    assert one.native.security == two.native.security == three.native.security
    assert (users_of(one.native.security), topics_of(one.native.security)) == (["alice"], ["events"])
    assert one.native.security["quotas"]
    assert delete_user(three.registry, "alice") == 0
    assert delete_acls(three.registry) == (0, ["events"])
    turn(members)
    assert one.native.security == two.native.security == three.native.security
    assert (users_of(one.native.security), topics_of(one.native.security)) == ([], [])


def test_a_decision_that_did_not_know_of_another_brokers_change_is_made_again(members):
    """Deleted and created again at the same revision: without a number of all changes the old ACL would come back."""
    one, two, _ = members
    create_acls(one.registry, creation("events", "User:evil"))
    turn(members)
    delete_acls(one.registry)
    create_acls(one.registry, creation("events", "User:good"))
    assert create_acls(two.registry, creation("events", "User:other")) == [0]
    turn(members)
    assert [each["principal"] for each in one.native.security["acls"]] == ["User:good", "User:other"]
    assert one.native.security == two.native.security


def test_a_broker_that_misses_a_change_reads_everything(members, world):
    one, two, _ = members
    create_acls(one.registry, creation("first"))
    for path in [path for path in world.documents if path.startswith(cluster_documents.CHANGES)]:
        del world.documents[path]
    create_acls(one.registry, creation("second"))
    turn(members)
    assert topics_of(two.native.security) == ["first", "second"]


def test_a_write_of_which_nobody_knows_whether_it_happened_is_read_back(members):
    one, two, _ = members
    one.store.unknown = "carried out"
    with pytest.raises(OutcomeUnknown):
        create_acls(one.registry, creation("events"))
    turn(members)
    assert topics_of(one.native.security) == topics_of(two.native.security) == ["events"]
    one.store.unknown = "lost"
    with pytest.raises(OutcomeUnknown):
        create_acls(one.registry, creation("other"))
    turn(members)
    assert topics_of(one.native.security) == topics_of(two.native.security) == ["events"]
    assert create_acls(one.registry, creation("other")) == [0]


def test_older_brokers_would_not_heed_them_so_the_cluster_must_be_at_their_level(members):
    one, two, _ = members
    one.registry.level = cluster_documents.LEVEL_OF_SECURITY - 1
    assert set_user(one.registry, "alice") == [ErrorCode.UNSUPPORTED_VERSION]
    assert create_acls(one.registry, creation("events")) == [ErrorCode.UNSUPPORTED_VERSION]
    assert set_quota(one.registry, "alice", producer_byte_rate=1.0) == ErrorCode.UNSUPPORTED_VERSION
    turn(members)
    assert two.native.security == {"scram": [], "acls": [], "quotas": [], "decoy_key": None}


def test_thousands_of_acls_are_stored_in_requests_that_zookeeper_takes(members, monkeypatch):
    one, two, _ = members
    sizes = []
    write_all = one.store.write_all

    def measured(writes, guard=None, notification=None):
        sizes.append(len(notification) + sum(len(write.data or b"") + len(write.path) for write in writes))
        return write_all(writes, guard, notification)

    monkeypatch.setattr(one.store, "write_all", measured)
    creations = [creation(f"topic-{number}") for number in range(5_000)]
    assert set(create_acls(one.registry, *creations)) == {0}
    assert len(sizes) > 1
    assert max(sizes) < 1_000_000
    assert delete_acls(one.registry)[0] == 0
    turn(members)
    assert topics_of(two.native.security) == []
