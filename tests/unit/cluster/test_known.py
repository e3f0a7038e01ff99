"""Who belongs to a cluster: from the first registration until it is forgotten by hand."""

from pylog_spark.cluster.errors import ErrorCode, Refusal
from pylog_spark.cluster.known import forgotten, remembered
from pylog_spark.cluster.model import BrokerInfo

ONE = BrokerInfo(1, "a", 9092, "r")


def test_a_broker_is_remembered_by_its_address_and_rack_only():
    known = remembered({}, BrokerInfo(1, "a", 9092, "r", epoch=5, level_max=7, min_isr=2))
    assert known == {1: ONE}
    assert remembered(known, BrokerInfo(1, "a", 9092, "r", epoch=6)) is known
    moved = remembered(known, BrokerInfo(1, "b", 9092, "r"))
    assert moved[1].host == "b"
    assert known == {1: ONE}


def test_who_is_dead_can_be_forgotten_and_nobody_else():
    known = {1: ONE, 2: BrokerInfo(2)}
    assert forgotten(known, 2, {1}) == {1: ONE}
    lives, unknown = forgotten(known, 1, {1}), forgotten(known, 3, {1})
    assert isinstance(lives, Refusal)
    assert isinstance(unknown, Refusal)
    assert (lives.code, unknown.code) == (ErrorCode.INVALID_REQUEST, ErrorCode.BROKER_ID_NOT_REGISTERED)
