"""What CreateAcls and DeleteAcls change: Kafka's rules, and bounds of our own."""

import itertools
from dataclasses import replace

import pytest

from pylog_spark.cluster.errors import ErrorCode, Refusal
from pylog_spark.cluster.security.acls import Acl, Filter, create, delete
from pylog_spark.cluster.security.documents import DOCUMENT_BYTES_MAX, encode
from pylog_spark.cluster.security.model import Entry, Limits, Operation, Pattern, PatternType, Permission, ResourceType

LIMITS = Limits(users=3, acls=6, entities=10, name_bytes=300)
ANY = Filter(ResourceType.ANY, None, PatternType.ANY, None, None, Operation.ANY, Permission.ANY)


def acl(name="events", kind=ResourceType.TOPIC, pattern=PatternType.LITERAL, who="User:alice", host="*",
        operation=Operation.READ, permission=Permission.ALLOW):  # fmt: skip
    return Acl(Pattern(kind, name, pattern), Entry(who, host, operation, permission))


def created(known, *acls, limits=LIMITS):
    changed, refusals = create(known, acls, limits)
    return {**known, **{each.pattern: each for each in changed}}, refusals


def all_of(known):
    return {Acl(pattern, entry) for pattern, acls in known.items() for entry in acls.entries}


def deleted(known, *filters):
    changed, outcomes = delete(known, filters)
    after = {**known, **{each.pattern: each for each in changed}}
    return {pattern: acls for pattern, acls in after.items() if not acls.is_empty}, outcomes


def test_acls_of_a_pattern_are_kept_together_each_once():
    reads, writes = acl(), acl(operation=Operation.WRITE)
    known, refusals = created({}, reads, writes, reads)
    assert refusals == [None, None, None]
    assert (len(known), all_of(known)) == (1, {reads, writes})
    changed, refusals = create(known, [reads], LIMITS)
    assert (changed, refusals) == ([], [None])
    known, _ = created(known, acl(pattern=PatternType.PREFIXED), acl(kind=ResourceType.GROUP))
    assert len(known) == 3


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (acl(""), "Invalid empty resource name"),
        (acl("c", ResourceType.CLUSTER), "The only valid name for the CLUSTER resource is kafka-cluster"),
        (acl(kind=ResourceType.ANY), "Invalid resourceType ANY"),
        (acl(kind=ResourceType.UNKNOWN), "Invalid resourceType UNKNOWN"),
        (acl(pattern=PatternType.MATCH), "Invalid patternType MATCH"),
        (acl(pattern=PatternType.ANY), "Invalid patternType ANY"),
        (acl(operation=Operation.ANY), "Invalid operation ANY"),
        (acl(operation=Operation.UNKNOWN), "Invalid operation UNKNOWN"),
        (acl(permission=Permission.ANY), "Invalid permissionType ANY"),
        (acl(who="x" * 301 + ":"), "A name, principal or host may have 300 bytes (security.name.max.bytes)."),
    ],
)
def test_what_is_no_acl_is_refused_and_the_others_are_created(wrong, sentence):
    known, (refused, fine) = created({}, wrong, acl())
    assert (refused.code, refused.message, fine) == (ErrorCode.INVALID_REQUEST, sentence, None)
    assert all_of(known) == {acl()}


def test_a_principal_without_a_type_would_never_match_and_is_refused():
    _, (refused,) = created({}, acl(who="alice"))
    assert refused.code is ErrorCode.INVALID_REQUEST
    assert "no colon" in refused.message


def test_there_are_at_most_as_many_acls_as_the_setting_says():
    known, refusals = created({}, *(acl(str(number)) for number in range(7)))
    assert refusals[:6] == [None] * 6
    assert refusals[6].code is ErrorCode.POLICY_VIOLATION
    assert "security.acls.max" in refusals[6].message
    _, (again, more) = created(known, acl("0"), acl("0", who="User:bob"))
    assert again is None
    assert isinstance(more, Refusal)


def test_a_pattern_whose_document_would_not_fit_keeps_what_it_had():
    roomy = replace(LIMITS, acls=100_000, name_bytes=32_767)
    known, _ = created({}, acl())
    many = [acl(who=f"User:{number}" + "x" * 30_000) for number in range(40)]
    after, refusals = created(known, *many, acl("other"), limits=roomy)
    assert all(refused.code is ErrorCode.POLICY_VIOLATION for refused in refusals[:-1])
    assert refusals[-1] is None
    assert all_of(after) == {acl(), acl("other")}
    assert all(len(encode(acls)) < DOCUMENT_BYTES_MAX for acls in after.values())


def matched(kept, **fields):
    known, _ = created({}, *kept)
    _, (found,) = deleted(known, replace(ANY, **fields))
    return set(found)


def test_a_filter_by_name_means_the_pattern_itself():
    literal, prefixed, wildcard = acl("events"), acl("even", pattern=PatternType.PREFIXED), acl("*")
    same = acl("events", pattern=PatternType.PREFIXED)
    kept = [literal, prefixed, wildcard, same]
    assert matched(kept) == set(kept)
    assert matched(kept, name="events", pattern_type=PatternType.LITERAL) == {literal}
    assert matched(kept, name="events", pattern_type=PatternType.PREFIXED) == {same}
    assert matched(kept, name="events") == {literal, same}
    assert matched(kept, name="*") == {wildcard}


def test_a_filter_that_matches_means_all_that_concern_the_resource():
    literal, prefixed, wildcard = acl("events"), acl("even", pattern=PatternType.PREFIXED), acl("*")
    other, of_group = acl("other"), acl("events", ResourceType.GROUP)
    kept = [literal, prefixed, wildcard, other, of_group]
    asked = {"name": "events", "pattern_type": PatternType.MATCH}
    assert matched(kept, **asked, resource_type=ResourceType.TOPIC) == {literal, prefixed, wildcard}
    assert matched(kept, **asked) == {literal, prefixed, wildcard, of_group}


def test_a_filter_lets_through_what_has_its_principal_host_operation_and_permission():
    kept = [
        acl(who=who, host=host, operation=operation, permission=permission)
        for who, host, operation, permission in itertools.islice(
            itertools.product(
                ("User:a", "User:b"),
                ("*", "10.0.0.1"),
                (Operation.READ, Operation.ALL),
                (Permission.ALLOW, Permission.DENY),
            ),
            0,
            16,
            3,
        )
    ]
    for field, of in (
        ("principal", lambda each: each.entry.principal),
        ("host", lambda each: each.entry.host),
        ("operation", lambda each: each.entry.operation),
        ("permission", lambda each: each.entry.permission),
    ):
        for value in {of(each) for each in kept}:
            assert matched(kept, **{field: value}) == {each for each in kept if of(each) == value}


def test_what_two_filters_let_through_is_in_both_answers_and_gone_once():
    known, _ = created({}, acl(), acl(operation=Operation.WRITE), acl("other"))
    left, (first, second) = deleted(known, replace(ANY, name="events"), replace(ANY, operation=Operation.READ))
    assert set(first) == {acl(), acl(operation=Operation.WRITE)}
    assert set(second) == {acl(), acl("other")}
    assert left == {}


@pytest.mark.parametrize(
    ("unknown", "sentence"),
    [
        ({"resource_type": ResourceType.UNKNOWN}, "Unknown patternFilter."),
        ({"pattern_type": PatternType.UNKNOWN}, "Unknown patternFilter."),
        ({"operation": Operation.UNKNOWN}, "Unknown entryFilter."),
        ({"permission": Permission.UNKNOWN}, "Unknown entryFilter."),
    ],
)
def test_a_filter_that_is_not_understood_removes_nothing(unknown, sentence):
    known, _ = created({}, acl(), acl("other"))
    left, (refused, found) = deleted(known, replace(ANY, **unknown), replace(ANY, name="other"))
    assert (refused.code, refused.message) == (ErrorCode.INVALID_REQUEST, sentence)
    assert found == [acl("other")]
    assert all_of(left) == {acl()}
