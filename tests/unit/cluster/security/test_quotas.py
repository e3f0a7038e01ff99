"""What AlterClientQuotas changes and DescribeClientQuotas shows: Kafka's rules, and bounds of our own."""

import math

import pytest

from pylog_spark.cluster.errors import ErrorCode
from pylog_spark.cluster.security.model import Limits, Quotas
from pylog_spark.cluster.security.quotas import Alteration, Component, MatchType, Op, alter, describe

LIMITS = Limits(users=3, acls=6, entities=3, name_bytes=300)
ALICE = (("user", "alice"),)


def altering(parts, **values):
    return Alteration(tuple(parts), tuple(Op(key, value) for key, value in values.items()))


def after(known, *alterations):
    outcomes = alter(known, alterations, LIMITS)
    assert all(isinstance(outcome, Quotas) for outcome in outcomes.values()), outcomes
    return {entity: quotas for entity, quotas in {**known, **outcomes}.items() if not quotas.is_empty}


def refused(known, *alterations):
    (outcome,) = alter(known, alterations, LIMITS).values()
    return outcome.code, outcome.message


def test_quotas_are_set_changed_and_removed_one_by_one():
    known = after({}, altering(ALICE, producer_byte_rate=1024.0, request_percentage=12.5))
    known = after(known, altering(ALICE, producer_byte_rate=2048.0))
    assert known[ALICE].values == {"producer_byte_rate": 2048.0, "request_percentage": 12.5}
    known = after(known, altering(ALICE, producer_byte_rate=None, consumer_byte_rate=None))
    assert known[ALICE].values == {"request_percentage": 12.5}
    assert after(known, altering(ALICE, request_percentage=None)) == {}


def test_an_entity_is_the_same_in_whatever_order_it_is_named():
    pair = [("user", "alice"), ("client-id", None)]
    known = after({}, altering(pair, producer_byte_rate=1.0))
    assert len(after(known, altering(pair[::-1], consumer_byte_rate=1.0))) == 1


@pytest.mark.parametrize(
    ("parts", "values", "sentence"),
    [
        ([], {"producer_byte_rate": 1.0}, "Invalid empty client quota entity"),
        ([("tenant", "t")], {"producer_byte_rate": 1.0}, "Unhandled client quota entity type: tenant"),
        ([("user", "")], {"producer_byte_rate": 1.0}, "Empty user not supported"),
        (
            [("user", "a"), ("ip", "10.0.0.1")],
            {"connection_creation_rate": 1.0},
            "Invalid quota entity combination, IP entity shouldnot be combined with User or ClientId",
        ),
        (
            [("ip", "not an address")],
            {"connection_creation_rate": 1.0},
            "not an address is not a valid IP or resolvable host.",
        ),
        (ALICE, {"connection_creation_rate": 1.0}, "Invalid configuration key connection_creation_rate"),
        ([("ip", "::1")], {"producer_byte_rate": 1.0}, "Invalid configuration key producer_byte_rate"),
        (ALICE, {"producer_byte_rate": 0.0}, "Quota producer_byte_rate must be greater than 0"),
        (ALICE, {"request_percentage": -1.0}, "Quota request_percentage must be greater than 0"),
        (ALICE, {"request_percentage": math.nan}, "Quota request_percentage must be greater than 0"),
        (ALICE, {"request_percentage": math.inf}, "Quota request_percentage must be greater than 0"),
        (ALICE, {"producer_byte_rate": 1.5}, "producer_byte_rate cannot be a fractional value."),
        (ALICE, {"producer_byte_rate": 1e19}, "Proposed value for producer_byte_rate is too large for a LONG."),
        (
            [("ip", None)],
            {"connection_creation_rate": 2.0**31},
            "Proposed value for connection_creation_rate is too large for an INT.",
        ),
        ([("user", "x" * 301)], {"producer_byte_rate": 1.0}, "A name may have 300 bytes (security.name.max.bytes)."),
    ],
)
def test_what_cannot_be_is_refused_with_kafkas_sentence(parts, values, sentence):
    assert refused({}, altering(parts, **values)) == (ErrorCode.INVALID_REQUEST, sentence)


def test_a_quota_or_an_entity_that_is_named_twice_is_refused():
    sentence = "Ignoring duplicate entity ClientQuotaEntity(entries={user=alice})"
    twice = Alteration(ALICE, (Op("producer_byte_rate", 1.0), Op("producer_byte_rate", 2.0)))
    assert refused({}, twice) == (ErrorCode.INVALID_REQUEST, sentence)
    same = altering(ALICE, producer_byte_rate=1.0), altering(ALICE, consumer_byte_rate=1.0)
    assert refused({}, *same) == (ErrorCode.INVALID_REQUEST, sentence)


def test_there_are_at_most_as_many_entities_as_the_setting_says():
    known = after({}, *(altering([("user", name)], producer_byte_rate=1.0) for name in "abc"))
    code, sentence = refused(known, altering([("user", "d")], producer_byte_rate=1.0))
    assert code is ErrorCode.POLICY_VIOLATION
    assert "security.quota.entities.max" in sentence
    assert len(after(known, altering([("user", "c")], producer_byte_rate=2.0))) == 3
    # What leaves nothing takes no room.
    assert len(after(known, altering([("user", "d")], producer_byte_rate=None))) == 3


USER_A, USER_DEFAULT = (("user", "a"),), (("user", None),)
PAIR, CLIENT = (("client-id", "c"), ("user", "a")), (("client-id", "c"),)
ADDRESS = (("ip", "10.0.0.1"),)
KNOWN = {
    entity: Quotas(entity, {"request_percentage": 1.0}) for entity in (USER_A, USER_DEFAULT, PAIR, CLIENT, ADDRESS)
}
EXACT, DEFAULT, SPECIFIED = MatchType


@pytest.mark.parametrize(
    ("components", "strict", "found"),
    [
        ([], False, list(KNOWN)),
        ([], True, []),
        ([("user", EXACT, "a")], False, [USER_A, PAIR]),
        ([("user", EXACT, "a")], True, [USER_A]),
        ([("user", DEFAULT, None)], False, [USER_DEFAULT]),
        ([("user", SPECIFIED, None)], False, [USER_A, USER_DEFAULT, PAIR]),
        ([("user", SPECIFIED, None)], True, [USER_A, USER_DEFAULT]),
        ([("user", SPECIFIED, None), ("client-id", EXACT, "c")], True, [PAIR]),
        ([("ip", SPECIFIED, None)], True, [ADDRESS]),
        ([("user", EXACT, "b")], False, []),
    ],
)
def test_a_filter_shows_the_entities_that_have_its_components(components, strict, found):
    described = describe(KNOWN, [Component(*each) for each in components], strict)
    assert [quotas.entity for quotas in described] == found


@pytest.mark.parametrize(
    ("components", "code", "sentence"),
    [
        ([("", EXACT, "a")], ErrorCode.INVALID_REQUEST, "Invalid empty entity type."),
        ([("tenant", EXACT, "a")], ErrorCode.UNSUPPORTED_VERSION, "Unsupported entity type tenant"),
        (
            [("user", EXACT, None)],
            ErrorCode.INVALID_REQUEST,
            "Request specified MATCH_TYPE_EXACT, but set match string to null.",
        ),
        (
            [("user", DEFAULT, "a")],
            ErrorCode.INVALID_REQUEST,
            "Request specified MATCH_TYPE_DEFAULT, but also specified a match string.",
        ),
        (
            [("user", SPECIFIED, "a")],
            ErrorCode.INVALID_REQUEST,
            "Request specified MATCH_TYPE_SPECIFIED, but also specified a match string.",
        ),
        ([("user", 3, None)], ErrorCode.INVALID_REQUEST, "Unknown match type 3"),
        (
            [("user", EXACT, "a"), ("user", EXACT, "b")],
            ErrorCode.INVALID_REQUEST,
            "Entity type user cannot appear more than once in the filter.",
        ),
    ],
)
def test_a_filter_that_makes_no_sense_is_refused_with_kafkas_sentence(components, code, sentence):
    outcome = describe(KNOWN, [Component(*each) for each in components], False)
    assert (outcome.code, outcome.message) == (code, sentence)


def test_addresses_are_not_asked_for_together_with_users():
    outcome = describe(KNOWN, [Component("ip", SPECIFIED, None), Component("user", SPECIFIED, None)], False)
    assert outcome.code is ErrorCode.INVALID_REQUEST
    assert "IP filter component should not be used with" in outcome.message
