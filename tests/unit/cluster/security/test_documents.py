"""The documents of users, ACLs and quotas: read back as written, whatever characters a name has; anything else is refused."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pylog_spark.cluster.documents import DocumentError
from pylog_spark.cluster.security import documents
from pylog_spark.cluster.security.model import (
    Credential,
    Entry,
    Operation,
    Pattern,
    PatternType,
    Permission,
    Quotas,
    ResourceAcls,
    ResourceType,
    User,
)
from pylog_spark.cluster.store.file import FileStore
from pylog_spark.scram import Mechanism

HOSTILE = [
    "/",
    "..",
    ".",
    "../../etc/passwd",
    "a\0b",
    "",
    "é" * 250,
    "x" * 5_000,
    "\n",
    "😀",
    "a.b",
    "A" * 40,
    "a" * 40,
    "%2F",
]
CREDENTIAL = Credential(b"salt", b"stored", b"server", 4096)


def units(name):
    """One of each kind that has `name` in it."""
    entry = Entry(f"User:{name}", name, Operation.ALL, Permission.DENY)
    return [
        User(name, {Mechanism.SCRAM_SHA_256: CREDENTIAL, Mechanism.SCRAM_SHA_512: CREDENTIAL}),
        ResourceAcls(Pattern(ResourceType.TOPIC, name, PatternType.LITERAL), (entry,)),
        ResourceAcls(Pattern(ResourceType.TOPIC, name, PatternType.PREFIXED), (entry,)),
        ResourceAcls(Pattern(ResourceType.GROUP, name, PatternType.LITERAL), (entry,)),
        Quotas((("client-id", name),), {"producer_byte_rate": 1.5}),
        Quotas((("user", name),), {"producer_byte_rate": 1.0}),
        Quotas((("client-id", None), ("user", name)), {"producer_byte_rate": 1.0}),
    ]


def test_hostile_names_are_kept_in_a_file_each_and_below_the_directory(tmp_path):
    store = FileStore(tmp_path)
    kept = {documents.path_of(unit): unit for name in HOSTILE for unit in units(name)}
    assert len(kept) == len(HOSTILE) * 7
    for path, unit in kept.items():
        store.compare_and_set(path, documents.encode(unit), 0)
    found = [path for folder in documents.FOLDERS for path in store.paths(folder)]
    assert sorted(found) == sorted(kept)
    for path, unit in kept.items():
        assert documents.decode(path, store.get(path).data) == unit
    files = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert len(files) == len(kept)
    assert all(tmp_path / ".pylog" / "security" in file.parents for file in files)


@given(st.text())
def test_every_name_is_read_back(name):
    for unit in units(name):
        path = documents.path_of(unit)
        assert documents.decode(path, documents.encode(unit)) == unit
        assert path.isascii()
        assert len(path.rpartition("/")[2]) <= 97
        assert set(path.rpartition("/")[2]) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.")


@given(st.text(), st.text())
def test_two_names_have_two_paths(one, other):
    paths = {documents.path_of(unit) for name in {one, other} for unit in units(name)}
    # The default of client ids and one that is called so are two.
    paths.add(documents.path_of(Quotas((("client-id", None),), {})))
    assert len(paths) == 7 * len({one, other}) + 1


def test_a_document_of_somebody_else_is_refused():
    alice, bob = units("alice")[0], units("bob")[0]
    with pytest.raises(DocumentError, match="does not match its path"):
        documents.decode(documents.path_of(alice), documents.encode(bob))


@pytest.mark.parametrize("unit", units("alice"))
def test_every_damage_of_a_document_is_a_sentence(unit):
    path, body = documents.path_of(unit), json.loads(documents.encode(unit))
    for field in body:
        for damaged in ({**body, field: None}, {**body, field: 7}, {key: body[key] for key in body if key != field}):
            with pytest.raises(DocumentError, match=path.replace(".", r"\.")):
                documents.decode(path, json.dumps(damaged).encode())
    with pytest.raises(DocumentError, match="missing or unknown: more"):
        documents.decode(path, json.dumps({**body, "more": 1}).encode())
    with pytest.raises(DocumentError, match="newer pylog"):
        documents.decode(path, json.dumps({**body, "version": 2}).encode())


def test_the_native_server_gets_all_of_it_flat():
    known = json.loads(documents.native(units("alice"), None))
    assert [each["mechanism"] for each in known["scram"]] == ["SCRAM-SHA-256", "SCRAM-SHA-512"]
    assert known["scram"][0] == {
        "user": "alice",
        "mechanism": "SCRAM-SHA-256",
        "salt": "c2FsdA==",
        "stored_key": "c3RvcmVk",
        "server_key": "c2VydmVy",
        "iterations": 4096,
    }
    assert known["acls"][1] == {
        "resource_type": "TOPIC",
        "resource_name": "alice",
        "pattern_type": "PREFIXED",
        "principal": "User:alice",
        "host": "alice",
        "operation": "ALL",
        "permission": "DENY",
    }
    assert known["quotas"][2] == {
        "entity": {"client-id": None, "user": "alice"},
        "values": {"producer_byte_rate": 1.0},
    }
