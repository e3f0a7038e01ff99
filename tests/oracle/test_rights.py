"""AlterUserScramCredentials, DescribeUserScramCredentials, AlterClientQuotas, DescribeClientQuotas."""

from typing import Any

import pytest

from tests.oracle.compare import case
from tests.oracle.script import Script

SHA_256, SHA_512 = 1, 2
EXACT, DEFAULT, SPECIFIED = 0, 1, 2
SALT, SALTED = "73616c74", "ab" * 32

pytestmark = pytest.mark.peers


def upsertion(name: str, mechanism: int = SHA_256, iterations: int = 4096) -> dict[str, Any]:
    """A credential to set."""
    salted = SALTED if mechanism == SHA_256 else SALTED * 2
    return {"name": name, "mechanism": mechanism, "iterations": iterations, "salt": SALT, "salted_password": salted}


def alter(s: Script, *upsertions: dict[str, Any], deletions: tuple[tuple[str, int], ...] = ()) -> None:
    """AlterUserScramCredentials, with names in order of the answer."""
    gone = [{"name": name, "mechanism": mechanism} for name, mechanism in deletions]
    s.call("AlterUserScramCredentials", 0, deletions=gone, upsertions=list(upsertions))
    in_order(s, "results", "user")


def described(s: Script, *names: str) -> None:
    """DescribeUserScramCredentials of `names`; Apache Kafka knows of a change a little after it has answered."""
    s.call("DescribeUserScramCredentials", 0, users=[{"name": name} for name in names])
    in_order(s, "results", "user")


def in_order(s: Script, field: str, key: str) -> None:
    """Sort the last answer by `key`: Apache Kafka keeps it in a hash map."""
    asked, answer = s.transcript.pop()
    if isinstance(answer.get(field), list):
        answer = {**answer, field: sorted(answer[field], key=lambda item: str(item[key]))}
        for item in answer[field]:
            if "credential_infos" in item:
                item["credential_infos"].sort(key=lambda info: info["mechanism"])
    s.transcript.append((asked, answer))


def until_described(s: Script, name: str, *mechanisms: int) -> None:
    """Wait until the broker that is asked knows by what a user logs in."""

    def known(answer: dict[str, Any]) -> bool:
        return sorted(info["mechanism"] for result in answer["results"] for info in result["credential_infos"]) == [
            *mechanisms
        ]

    s.until(known, "DescribeUserScramCredentials", 0, users=[{"name": name}])
    in_order(s, "results", "user")


@case
def test_a_user_gets_and_loses_credentials(s: Script) -> None:
    name = s.new("user")
    alter(s, upsertion(name))
    s.says("NONE")
    until_described(s, name, SHA_256)
    alter(s, upsertion(name, SHA_512, 16384))
    until_described(s, name, SHA_256, SHA_512)
    s.holds(iterations=16384)
    alter(s, deletions=((name, SHA_256),))
    s.says("NONE")
    until_described(s, name, SHA_512)
    alter(s, deletions=((name, SHA_512),))
    until_described(s, name)
    s.says("RESOURCE_NOT_FOUND")


@case
def test_a_credential_that_is_not_there_cannot_be_deleted(s: Script) -> None:
    name = s.new("user")
    alter(s, deletions=((name, SHA_256),))
    s.says("RESOURCE_NOT_FOUND")
    alter(s, upsertion(name))
    alter(s, deletions=((name, SHA_512),))
    s.says("RESOURCE_NOT_FOUND")


@case
def test_a_user_without_a_name_or_by_an_unknown_mechanism(s: Script) -> None:
    name = s.new("user")
    alter(s, upsertion(""), upsertion(name, 3), deletions=((s.new("other"), 0),))
    s.says("UNACCEPTABLE_CREDENTIAL", "UNSUPPORTED_SASL_MECHANISM", "UNSUPPORTED_SASL_MECHANISM")


@case
def test_iterations_have_bounds(s: Script) -> None:
    for iterations in (-1, 0, 4095, 16385, 2**31 - 1):
        alter(s, upsertion(s.new("user"), SHA_256, iterations))
        s.says("UNACCEPTABLE_CREDENTIAL")
    for iterations in (4096, 16384):
        alter(s, upsertion(s.new("user"), SHA_256, iterations))
        s.says("NONE")


@case
def test_a_user_that_is_named_twice_in_a_request(s: Script) -> None:
    name, other = s.new("user"), s.new("user")
    alter(s, upsertion(name), upsertion(name, SHA_512), upsertion(other))
    s.says("DUPLICATE_RESOURCE")
    alter(s, upsertion(other, SHA_512), deletions=((other, SHA_256),))
    s.says("DUPLICATE_RESOURCE")
    # The first reason stands.
    alter(s, upsertion(name), deletions=((name, SHA_256),))
    s.says("RESOURCE_NOT_FOUND")


@case
def test_users_that_are_named_twice_or_do_not_exist_are_not_described(s: Script) -> None:
    name = s.new("user")
    alter(s, upsertion(name))
    until_described(s, name, SHA_256)
    described(s, name, s.new("nobody"), name)
    s.says("DUPLICATE_RESOURCE", "RESOURCE_NOT_FOUND")


@case
def test_names_of_users_may_be_anything(s: Script) -> None:
    for name in ("/", "..", "é" * 100, "a b", "x" * 300, "a\tb", "User:x", "=,"):
        named = s.new("user") + name
        alter(s, upsertion(named))
        s.says("NONE")
        until_described(s, named, SHA_256)


def entity(**parts: str | None) -> list[dict[str, Any]]:
    """An entity: ``client_id`` is client-id."""
    return [{"entity_type": kind.replace("_", "-"), "entity_name": name} for kind, name in parts.items()]


def quotas(
    s: Script, whose: list[dict[str, Any]], *, dry: bool = False, version: int = 1, **values: float | None
) -> None:
    """AlterClientQuotas of one entity; None removes."""
    ops = [{"key": key, "value": value or 0.0, "remove": value is None} for key, value in values.items()]
    s.call("AlterClientQuotas", version, entries=[{"entity": whose, "ops": ops}], validate_only=dry)
    parts_in_order(s)


def parts_in_order(s: Script) -> None:
    """Sort the parts of entities, their quotas and the entities of the last answer: Apache Kafka keeps them in hash maps."""
    asked, answer = s.transcript.pop()
    if isinstance(answer.get("entries"), list):
        for entry in answer["entries"]:
            entry["entity"].sort(key=lambda part: part["entity_type"])
            entry.get("values", []).sort(key=lambda value: value["key"])
        answer["entries"].sort(key=str)
    s.transcript.append((asked, answer))


def filtered(s: Script, *components: tuple[str, int, str | None], strict: bool = False) -> None:
    """DescribeClientQuotas."""
    asked = [{"entity_type": kind, "match_type": match_type, "match": name} for kind, match_type, name in components]
    s.call("DescribeClientQuotas", 1, components=asked, strict=strict)
    parts_in_order(s)


def until_there(s: Script, kind: str, name: str, count: int) -> None:
    """Wait until as many entities have this part."""
    asked = [{"entity_type": kind, "match_type": EXACT, "match": name}]
    s.until(
        lambda answer: len(answer["entries"] or []) == count, "DescribeClientQuotas", 1, components=asked, strict=False
    )
    parts_in_order(s)


@case
def test_quotas_are_set_changed_and_removed(s: Script) -> None:
    name = s.new("user")
    quotas(s, entity(user=name), producer_byte_rate=1024.0, request_percentage=12.5)
    s.says("NONE")
    until_there(s, "user", name, 1)
    quotas(s, entity(user=name, client_id="c"), consumer_byte_rate=2048.0, version=0)
    until_there(s, "user", name, 2)
    quotas(s, entity(user=name), producer_byte_rate=None, request_percentage=None, consumer_byte_rate=None)
    s.says("NONE")
    until_there(s, "user", name, 1)


@case
def test_quotas_of_a_default_and_of_an_address(s: Script) -> None:
    name = s.new("client")
    quotas(s, entity(user=None, client_id=name), controller_mutation_rate=1.5)
    until_there(s, "client-id", name, 1)
    filtered(s, ("client-id", EXACT, name), ("user", DEFAULT, None), strict=True)
    filtered(s, ("client-id", EXACT, name), ("user", SPECIFIED, None), strict=True)
    filtered(s, ("client-id", EXACT, name), ("user", EXACT, "x"))
    filtered(s, ("client-id", EXACT, name), strict=True)
    quotas(s, entity(ip="203.0.113.7"), connection_creation_rate=20.0)
    s.says("NONE")
    until_there(s, "ip", "203.0.113.7", 1)
    quotas(s, entity(ip="203.0.113.7"), connection_creation_rate=None)


@case
def test_a_quota_that_is_only_checked_is_not_set(s: Script) -> None:
    name = s.new("user")
    quotas(s, entity(user=name), dry=True, producer_byte_rate=1.0)
    s.says("NONE")
    quotas(s, entity(user=name), dry=True, producer_byte_rate=-1.0)
    s.says("INVALID_REQUEST")
    filtered(s, ("user", EXACT, name))


@case
def test_invalid_quotas(s: Script) -> None:
    user = entity(user=s.new("user"))
    for whose, values in (
        (entity(), {"producer_byte_rate": 1.0}),
        (entity(tenant="t"), {"producer_byte_rate": 1.0}),
        (entity(user=""), {"producer_byte_rate": 1.0}),
        (entity(user="a", ip="10.0.0.1"), {"connection_creation_rate": 1.0}),
        (entity(ip="10.0.0.1"), {"producer_byte_rate": 1.0}),
        (user, {"connection_creation_rate": 1.0}),
        (user, {"no_such_quota": 1.0}),
        (user, {"producer_byte_rate": 0.0}),
        (user, {"producer_byte_rate": 1.5}),
        (user, {"producer_byte_rate": 1e19}),
        (entity(ip=None), {"connection_creation_rate": 2.0**31}),
    ):
        quotas(s, whose, **values)
        s.says("INVALID_REQUEST")
    quotas(s, user, no_such_quota=None)
    s.says("NONE")


@case
def test_a_quota_that_is_named_twice_is_not_set(s: Script) -> None:
    twice = [{"key": "producer_byte_rate", "value": value, "remove": False} for value in (1.0, 2.0)]
    name = s.new("user")
    s.call("AlterClientQuotas", 1, entries=[{"entity": entity(user=name), "ops": twice}], validate_only=False)
    s.says("INVALID_REQUEST")
    filtered(s, ("user", EXACT, name))


@case
def test_filters_of_quotas_that_make_no_sense(s: Script) -> None:
    for components, error in (
        ([("", EXACT, "a")], "INVALID_REQUEST"),
        ([("tenant", EXACT, "a")], "UNSUPPORTED_VERSION"),
        ([("user", EXACT, None)], "INVALID_REQUEST"),
        ([("user", DEFAULT, "a")], "INVALID_REQUEST"),
        ([("user", SPECIFIED, "a")], "INVALID_REQUEST"),
        ([("user", 3, None)], "INVALID_REQUEST"),
        ([("user", EXACT, "a"), ("user", EXACT, "b")], "INVALID_REQUEST"),
        ([("user", EXACT, "a"), ("ip", EXACT, "10.0.0.1")], "INVALID_REQUEST"),
    ):
        filtered(s, *components)
        s.says(error)
