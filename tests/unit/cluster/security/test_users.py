"""What AlterUserScramCredentials changes: Kafka's rules, and bounds of our own."""

import base64
import hashlib
import hmac
from itertools import product

import pytest

from pylog_spark.cluster.errors import ErrorCode, Refusal
from pylog_spark.cluster.security.model import Limits, User
from pylog_spark.cluster.security.users import Deletion, Upsertion, alter, describe
from pylog_spark.scram import MAX_ITERATIONS, MIN_ITERATIONS, Mechanism, keys, salted_password

LIMITS = Limits(users=3, acls=10, entities=10, name_bytes=300)
SHA_256, SHA_512 = Mechanism.SCRAM_SHA_256, Mechanism.SCRAM_SHA_512
SALT = b"salt of 16 bytes"


def setting(name, mechanism=SHA_256, iterations=MIN_ITERATIONS, salt=SALT):
    salted = bytes(mechanism.key_bytes)
    return Upsertion(name, mechanism.number, iterations, salt, salted)


def after(users, *changes):
    """The users after changes that are all accepted."""
    deletions = [change for change in changes if isinstance(change, Deletion)]
    upsertions = [change for change in changes if isinstance(change, Upsertion)]
    outcomes = alter(users, deletions, upsertions, LIMITS)
    assert all(isinstance(outcome, User) for outcome in outcomes.values()), outcomes
    return {name: user for name, user in {**users, **outcomes}.items() if not user.is_empty}


def refused(users, *changes, limits=LIMITS):
    """The only outcome, a refusal: its code and sentence."""
    deletions = [change for change in changes if isinstance(change, Deletion)]
    upsertions = [change for change in changes if isinstance(change, Upsertion)]
    (outcome,) = alter(users, deletions, upsertions, limits).values()
    assert isinstance(outcome, Refusal), outcome
    return outcome.code, outcome.message


def test_the_keys_are_those_of_rfc_7677():
    """Its example: user, pencil, 4096 iterations; the proof and the signature are made of the keys."""
    salt = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
    stored, server = keys(SHA_256, salted_password(SHA_256, "pencil", salt, 4096))
    first = "n=user,r=rOprNGfwEbeRWgbNEkqO"
    answer = "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    last = "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    message = ",".join((first, answer, last)).encode()
    proof = base64.b64decode("dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=")
    client_key = bytes(a ^ b for a, b in zip(proof, hmac.digest(stored, message, "sha256"), strict=True))
    assert hashlib.sha256(client_key).digest() == stored
    signature = base64.b64encode(hmac.digest(server, message, "sha256"))
    assert signature == b"6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def test_a_user_has_one_credential_of_each_mechanism():
    users = after({}, setting("alice"))
    users = after(users, setting("alice", SHA_512, 8192))
    assert {each: credential.iterations for each, credential in users["alice"].credentials.items()} == {
        SHA_256: 4096,
        SHA_512: 8192,
    }
    users = after(users, Deletion("alice", SHA_256.number))
    assert list(users["alice"].credentials) == [SHA_512]
    assert after(users, Deletion("alice", SHA_512.number)) == {}


@pytest.mark.parametrize(
    ("change", "code", "sentence"),
    [
        (setting(""), ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty"),
        (Deletion("", 1), ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty"),
        (Deletion("alice", 0), ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism"),
        (Upsertion("alice", 3, 4096, SALT, bytes(32)), ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism"),
        (setting("alice", iterations=MIN_ITERATIONS - 1), ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations"),
        (setting("alice", iterations=-1), ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations"),
        (setting("alice", iterations=MAX_ITERATIONS + 1), ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations"),
        (Deletion("alice", 1), ErrorCode.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist"),
        (
            setting("alice", salt=b""),
            ErrorCode.UNACCEPTABLE_CREDENTIAL,
            "The salt has 0 bytes: it must have 1 to 1024.",
        ),
        (setting("a" * 301), ErrorCode.UNACCEPTABLE_CREDENTIAL, "A name may have 300 bytes (security.name.max.bytes)."),
        (
            Upsertion("alice", 1, 4096, SALT, bytes(64)),
            ErrorCode.UNACCEPTABLE_CREDENTIAL,
            "A salted password of SCRAM-SHA-256 has 32 bytes, not 64.",
        ),
    ],
)
def test_what_cannot_be_is_refused_with_kafkas_sentence(change, code, sentence):
    assert refused({}, change) == (code, sentence)


@pytest.mark.parametrize("pair", [*product([SHA_256, SHA_512], repeat=2)])
def test_a_user_is_changed_once_in_a_request_even_by_two_mechanisms(pair):
    users = after({}, setting("alice"), setting("bob"))
    twice = ErrorCode.DUPLICATE_RESOURCE, "A user credential cannot be altered twice in the same request"
    assert refused(users, setting("alice", pair[0]), setting("alice", pair[1])) == twice
    assert refused(users, Deletion("alice", SHA_256.number), setting("alice", pair[1])) == twice
    # The first reason stands.
    code, _ = refused(users, Deletion("alice", SHA_512.number), setting("alice", pair[1]))
    assert code is ErrorCode.RESOURCE_NOT_FOUND


def test_the_others_of_a_request_are_changed_where_one_is_refused():
    outcomes = alter({}, [Deletion("nobody", 1)], [setting("alice"), setting("")], LIMITS)
    assert [isinstance(outcome, User) for outcome in outcomes.values()] == [False, True, False]


def test_there_are_at_most_as_many_users_as_the_setting_says():
    users = after({}, setting("a"), setting("b"), setting("c"))
    code, sentence = refused(users, setting("d"))
    assert code is ErrorCode.POLICY_VIOLATION
    assert "security.users.max" in sentence
    assert after(users, setting("c", SHA_512)).keys() == {"a", "b", "c"}
    outcomes = alter({}, [], [setting(name) for name in "abcd"], LIMITS)
    assert [isinstance(outcome, User) for outcome in outcomes.values()] == [True, True, True, False]


def test_a_user_that_is_not_there_or_named_twice_is_not_described():
    users = after({}, setting("alice"), setting("bob"))
    assert describe(users, []) == users
    found = describe(users, ["bob", "nobody", "alice", "alice"])
    assert found["bob"] == users["bob"]
    assert (found["nobody"].code, found["nobody"].message) == (
        ErrorCode.RESOURCE_NOT_FOUND,
        "Attempt to describe a user credential that does not exist: nobody",
    )
    assert (found["alice"].code, found["alice"].message) == (
        ErrorCode.DUPLICATE_RESOURCE,
        "Cannot describe SCRAM credentials for the same user twice in a single request: alice",
    )


def test_no_secret_is_in_a_repr():
    (user,) = after({}, Upsertion("alice", 1, 4096, b"the salt", b"s" * 32)).values()
    shown = repr(user) + repr(Upsertion("alice", 1, 4096, b"the salt", b"s" * 32))
    assert "the salt" not in shown
    assert "sss" not in shown
    assert "key" not in shown
