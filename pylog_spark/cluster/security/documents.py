"""The documents of users, ACLs and quotas: one for each user, resource pattern and entity, so that none of them grows large.

==========================  =====================================================================================
path                        JSON
==========================  =====================================================================================
``security/users/<key>``    {"version": 1, "name", "credentials": {mechanism: {"salt", "stored_key", "server_key" (base64),
                            "iterations"}}}; never a password. Its file is readable by the broker's user alone, its node in ZooKeeper
                            by the brokers alone (``zookeeper.set.acl``)
``security/acls/<key>``     {"version": 1, "resource_type", "resource_name", "pattern_type",
                            "entries": [{"principal", "host", "operation", "permission"}]}, with Kafka's names of enumerations
``security/quotas/<key>``   {"version": 1, "entity": {"user", "client-id" or "ip": name or null}, "values": {quota: number}}
``security/decoy_key``      {"version": 1, "decoy_key": 64 hexadecimal digits}: made with the first user, and kept as secret. Brokers derive
                            from it the salt that they show for unknown users, so that all show the same one
``security/sequence``       {"version": 1, "sequence"}: how often any of them has changed; only in a store that several brokers share,
                            where every change writes it, too
==========================  =====================================================================================

A key is made of the name, whatever characters that has (``/``, ``..``, NUL, thousands of them): up to 32 of its letters and digits, so
that people find it, and SHA-256 of all of it. The name itself stands in the document, and a document at another name's path is refused.

All this needs level 3 of the cluster (`LEVEL_OF_SECURITY`): a broker of an older pylog would let everybody do everything.
"""

import base64
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from pylog_spark.cluster.documents import DECOY_KEY, SCRAM_USERS, DocumentError, decode_body, encode_body
from pylog_spark.cluster.security.model import (
    Credential,
    Entity,
    Entry,
    Operation,
    Pattern,
    PatternType,
    Permission,
    Quotas,
    ResourceAcls,
    ResourceType,
    Unit,
    User,
)
from pylog_spark.scram import BY_TEXT

USERS = SCRAM_USERS
ACLS = "security/acls/"
QUOTAS = "security/quotas/"
#: All of them, in the order in which they are read.
FOLDERS = (USERS, ACLS, QUOTAS)
SEQUENCE = "security/sequence"

#: Most bytes of a document; one node of ZooKeeper takes a little more.
DOCUMENT_BYTES_MAX = 900_000
_READABLE_MAX = 32
_HEX_KEY = re.compile("[0-9a-f]{64}")
_UNREADABLE = re.compile(r"[^A-Za-z0-9_-]")


def path_of(unit: Unit) -> str:
    """Where `unit` is stored."""
    if isinstance(unit, User):
        return USERS + _key(unit.name, unit.name)
    if isinstance(unit, ResourceAcls):
        pattern = unit.pattern
        whole = json.dumps([pattern.resource_type.name, pattern.pattern_type.name, pattern.name])
        return ACLS + _key(f"{pattern.resource_type.name}-{pattern.name}", whole)
    return QUOTAS + _key("-".join(name or "default" for _, name in unit.entity), json.dumps(unit.entity))


def _key(readable: str, whole: str) -> str:
    import hashlib  # as in pylog_spark.scram

    shown = _UNREADABLE.sub("_", readable[:_READABLE_MAX])
    return f"{shown}.{hashlib.sha256(whole.encode()).hexdigest()}"


def encode(unit: Unit) -> bytes:
    """The document of `unit`."""
    if isinstance(unit, User):
        credentials = {mechanism.text: _credential_body(each) for mechanism, each in unit.credentials.items()}
        return encode_body({"name": unit.name, "credentials": credentials})
    if isinstance(unit, ResourceAcls):
        return encode_body({**pattern_body(unit.pattern), "entries": [entry_body(entry) for entry in unit.entries]})
    return encode_body({"entity": dict(unit.entity), "values": dict(unit.values)})


def decode(path: str, data: bytes) -> Unit:
    """The unit stored at `path`. Raises `DocumentError`."""
    read = _user if path.startswith(USERS) else _acls if path.startswith(ACLS) else _quotas
    try:
        unit = read(path, data)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DocumentError(f"The document {path} is damaged ({error!r}): restore it from a copy.") from error
    if path_of(unit) != path:
        raise DocumentError(f"The content of the document {path} does not match its path: restore it from a copy.")
    return unit


def encode_decoy_key(key: str) -> bytes:
    """The document of the decoy key."""
    return encode_body({"decoy_key": key})


def decode_decoy_key(data: bytes) -> str:
    """The decoy key. Raises `DocumentError`."""
    key = decode_body(DECOY_KEY, data, {"decoy_key"})["decoy_key"]
    if not isinstance(key, str) or not _HEX_KEY.fullmatch(key):
        raise DocumentError(f"The document {DECOY_KEY} is damaged (no 64 hexadecimal digits): restore it from a copy.")
    return key


def native(units: Iterable[Unit], decoy_key: str | None) -> str:
    """What the native server gets to know (`NativeBroker.apply_security`): everything at once."""
    known: dict[str, list[Mapping[str, object]]] = {"scram": [], "acls": [], "quotas": []}
    for unit in units:
        if isinstance(unit, User):
            known["scram"] += [
                {"user": unit.name, "mechanism": mechanism.text, **_credential_body(credential)}
                for mechanism, credential in unit.credentials.items()
            ]
        elif isinstance(unit, ResourceAcls):
            known["acls"] += [{**pattern_body(unit.pattern), **entry_body(entry)} for entry in unit.entries]
        else:
            known["quotas"].append({"entity": dict(unit.entity), "values": dict(unit.values)})
    return json.dumps({**known, "decoy_key": decoy_key})


def pattern_body(pattern: Pattern) -> dict[str, Any]:
    """A pattern by Kafka's names."""
    return {
        "resource_type": pattern.resource_type.name,
        "resource_name": pattern.name,
        "pattern_type": pattern.pattern_type.name,
    }


def entry_body(entry: Entry) -> dict[str, Any]:
    """An ACL without its pattern, by Kafka's names."""
    return {
        "principal": entry.principal,
        "host": entry.host,
        "operation": entry.operation.name,
        "permission": entry.permission.name,
    }


def _credential_body(credential: Credential) -> dict[str, Any]:
    return {
        "salt": base64.b64encode(credential.salt).decode(),
        "stored_key": base64.b64encode(credential.stored_key).decode(),
        "server_key": base64.b64encode(credential.server_key).decode(),
        "iterations": credential.iterations,
    }


def _user(path: str, data: bytes) -> User:
    body = decode_body(path, data, {"name", "credentials"})
    return User(_text(body["name"]), {BY_TEXT[text]: _credential(each) for text, each in body["credentials"].items()})


def _credential(body: Mapping[str, Any]) -> Credential:
    keys = ("salt", "stored_key", "server_key")
    if body.keys() != {*keys, "iterations"}:
        raise KeyError(*body)
    salt, stored, server = (base64.b64decode(body[key], validate=True) for key in keys)
    return Credential(salt, stored, server, int(body["iterations"]))


def _acls(path: str, data: bytes) -> ResourceAcls:
    body = decode_body(path, data, {"resource_type", "resource_name", "pattern_type", "entries"})
    pattern = Pattern(
        ResourceType[body["resource_type"]], _text(body["resource_name"]), PatternType[body["pattern_type"]]
    )
    return ResourceAcls(pattern, tuple(sorted(map(_entry, body["entries"]))))


def _entry(body: Mapping[str, Any]) -> Entry:
    if body.keys() != {"principal", "host", "operation", "permission"}:
        raise KeyError(*body)
    operation, permission = Operation[body["operation"]], Permission[body["permission"]]
    return Entry(_text(body["principal"]), _text(body["host"]), operation, permission)


def _quotas(path: str, data: bytes) -> Quotas:
    body = decode_body(path, data, {"entity", "values"})
    entity = entity_of((str(kind), None if name is None else _text(name)) for kind, name in body["entity"].items())
    return Quotas(entity, {str(key): float(value) for key, value in body["values"].items()})


def entity_of(parts: Iterable[tuple[str, str | None]]) -> Entity:
    """An entity of its parts, in the order that all have."""
    return tuple(sorted(parts, key=lambda part: part[0]))


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value
