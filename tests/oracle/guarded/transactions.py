"""Requests about transactions, one of which was really begun: see `test_authorization`. None of them ends it."""

from tests.oracle.guarded.names import INTERNAL, PREPARED, Names, committed
from tests.oracle.script import Script

_NOBODYS = 77  # a producer id that does not fit


def transactions(s: Script, n: Names) -> None:
    """All of them, and the requests that only brokers send."""
    for name in n.both():
        s.call("InitProducerId", 4, transactional_id=name, transaction_timeout_ms=0)
        s.call("InitProducerId", 6, transactional_id=name + PREPARED, transaction_timeout_ms=1000, enable_2_pc=True)
        for topics in (n.both(), (n.mine,), (n.other,), (n.missing,), INTERNAL):
            s.call("AddPartitionsToTxn", 3, **n.adds(name, *topics))
        for group in n.both():
            s.call("AddOffsetsToTxn", 3, **{**n.producer(name), "producer_id": _NOBODYS}, group_id=group)
            _commits(s, n, name, group)
        s.call("EndTxn", 3, transactional_id=name, producer_id=_NOBODYS)
        s.call("DescribeTransactions", 0, transactional_ids=[name, n.missing])
    s.call("AddOffsetsToTxn", 3, **n.producer(n.mine), group_id=n.mine)
    s.call("TxnOffsetCommit", 3, **n.producer(n.mine), group_id=n.mine, topics=[committed(n.missing)])
    s.call("InitProducerId", 4, transactional_id=None, transaction_timeout_ms=1000)
    s.without("producer_id")
    s.listed("transactional_id", "ListTransactions", 0)
    of_brokers(s, n)


def _commits(s: Script, n: Names, name: str, group: str) -> None:
    named = {**n.producer(name), "group_id": group}
    s.call("TxnOffsetCommit", 3, **named, topics=[committed(topic) for topic in (*n.both(), INTERNAL[0], n.missing)])
    s.call("TxnOffsetCommit", 3, **named, topics=[committed(n.other)])
    s.call("TxnOffsetCommit", 6, **named, topics=[committed(one, named="topic_id") for one in n.ids.values()])


def of_brokers(s: Script, n: Names) -> None:
    """Requests that only brokers send."""
    ended = {"topics": [{"name": n.missing, "partition_indexes": [0]}]}
    s.call("WriteTxnMarkers", 1, markers=[{"producer_id": _NOBODYS, **ended}])
    for name in n.both():
        added = {"transactional_id": name, "producer_id": _NOBODYS, "verify_only": True}
        s.call("AddPartitionsToTxn", 4, transactions=[{**added, "topics": [{"name": n.mine, "partitions": [0]}]}])
