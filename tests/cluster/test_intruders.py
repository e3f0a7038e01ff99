"""The watch over a guarded cluster is itself watched: what must not be is planted, and noticed."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pylog_spark.client import Admin
from pylog_spark.testing import LocalBroker
from pylog_spark.testing.certificates import Certificates
from pylog_spark.testing.login import kept_login
from tests.cluster.guarded import logins_again
from tests.cluster.intruders import Intruder, Strangers, forbidden
from tests.harness.mixed import allowed
from tests.harness.security import ADMIN, MECHANISM, Security, secured

USER = "user"


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[LocalBroker, Security]]:
    """One broker that is guarded as a cluster is, with a user who may describe a topic."""
    folder = tmp_path_factory.mktemp("guarded")
    security = secured(folder, [USER])
    settings = {name: security.cluster[name] for name in ("connections_max_reauth_ms", "authorizer_class_name")}
    certificates, login = Certificates(folder / "tls").made(), kept_login(folder / "login", MECHANISM)
    with LocalBroker(folder / "data", tls=certificates, sasl=login, **settings) as broker:
        with Admin(broker.bootstrap_servers, security.client(ADMIN)) as admin:
            assert admin.set_user_scram_credential(USER, security.passwords[USER]).error is None
            admin.create_topic("open", 1)
            assert admin.create_acls([allowed(USER, "DESCRIBE", "TOPIC", "open")])[0].error is None
        yield broker, security


def intruder(broker: LocalBroker, security: Security, topic: str, wrong: str) -> Intruder:
    """One who comes as the user, with a password that is held to be wrong, and to a topic that is held to be closed."""
    strangers = Strangers([(USER, wrong)], [(USER, security.passwords[USER])])
    metadata, fetch, *_ = forbidden(topic, "group", "id", USER)
    return Intruder(broker, security, 0, strangers, [metadata, metadata, metadata, fetch])


def test_a_guarded_broker_refuses_whatever_an_intruder_tries(guarded: tuple[LocalBroker, Security]) -> None:
    one = intruder(*guarded, "closed", "guess")
    for attempt in one.tries.values():
        attempt()
    for _ in range(20):
        one.step()
    assert (one.refused.total(), one.gone) == (20, 0)


def test_who_comes_in_by_a_password_that_must_be_wrong_is_noticed(guarded: tuple[LocalBroker, Security]) -> None:
    with pytest.raises(AssertionError, match="takes a wrong password of user"):
        intruder(*guarded, "closed", guarded[1].passwords[USER]).tries["with a wrong password"]()


def test_who_may_do_something_and_must_not_is_noticed(guarded: tuple[LocalBroker, Security]) -> None:
    with pytest.raises(AssertionError, match="answers Metadata of user"):
        intruder(*guarded, "open", "guess").tries["without an ACL"]()


@pytest.mark.parametrize(("encrypted", "what"), [(False, "without TLS"), (True, "without a login")])
def test_a_broker_that_answers_without_what_it_must_demand_is_noticed(
    guarded: tuple[LocalBroker, Security], tmp_path: Path, encrypted: bool, what: str
) -> None:
    _, security = guarded
    certificates = Certificates(Path(security.ca).parent)
    with LocalBroker(tmp_path / "data", tls=certificates if encrypted else False) as broker:
        attempt = intruder(broker, security, "closed", "guess").tries[what]
        with pytest.raises(AssertionError, match="answers who comes with"):
            attempt()


def test_a_second_login_over_a_connection_counts_and_one_over_a_new_connection_of_the_same_port_does_not() -> None:
    accepted = "T DEBUG pylog.broker.network broker=1: accepted a connection of 127.0.0.1:1"
    logged_in = (
        'T DEBUG pylog.broker.network broker=1: 127.0.0.1:1 is logged in at the listener SASL_SSL as "u" by S, for 1 ms'
    )
    assert logins_again([accepted, logged_in, logged_in, logged_in]) == {"u": 2}
    assert logins_again([accepted, logged_in, accepted, logged_in]).total() == 0
