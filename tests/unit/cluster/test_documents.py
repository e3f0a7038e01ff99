"""Stored documents come back as they were; a newer or damaged one is refused by name."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pylog_spark.cluster import documents
from pylog_spark.cluster.documents import DocumentError
from pylog_spark.cluster.model import BrokerInfo, Endpoint, Partition, Topic, new_topic_id, topic_id_text, topic_id_uuid

TOPIC = Topic(
    "t", "A" * 22, {"retention.ms": "5"}, (Partition(0, (1,), 1, 0, (1,)), Partition(1, (1, 2), -1, 7, ())), True
)


def test_a_topic_comes_back_as_it_was_stored():
    assert documents.decode_topic("topics/t", documents.encode_topic(TOPIC)) == TOPIC


def test_version_one_is_read_for_ever():
    stored = (
        b'{"version":1,"name":"t","topic_id":"AAAAAAAAAAAAAAAAAAAAAA","deleting":true,"configs":{"retention.ms":"5"},'
        b'"partitions":[{"partition":0,"replicas":[1],"leader":1,"leader_epoch":0,"isr":[1]},'
        b'{"partition":1,"replicas":[1,2],"leader":-1,"leader_epoch":7,"isr":[]}]}'
    )
    assert documents.decode_topic("topics/t", stored) == TOPIC
    assert documents.encode_topic(TOPIC) == stored
    assert documents.decode_cluster(b'{"version":1,"cluster_id":"c"}') == "c"
    assert documents.decode_broker_config("brokers/1/config", b'{"version":1,"configs":{"a":"b"}}') == {"a": "b"}


def test_a_newer_version_is_refused_with_what_to_start_instead():
    newer = json.dumps({**json.loads(documents.encode_topic(TOPIC)), "version": 3}).encode()
    with pytest.raises(DocumentError, match=r"topics/t has version 3, written by a newer pylog"):
        documents.decode_topic("topics/t", newer)


@pytest.mark.parametrize("damage", ["missing", "unknown", "list", "name", "number", "text", "version"])
def test_a_damaged_document_is_an_error_that_names_it(damage):
    body = json.loads(documents.encode_topic(TOPIC))
    if damage == "missing":
        del body["partitions"]
    elif damage == "unknown":
        body["more"] = 1
    elif damage == "list":
        body["partitions"] = 5
    elif damage == "name":
        body["name"] = "other"
    elif damage == "number":
        body["partitions"][1]["partition"] = 7
    elif damage == "version":
        body["version"] = "1"
    data = b"not json" if damage == "text" else json.dumps(body).encode()
    with pytest.raises(DocumentError, match="topics/t"):
        documents.decode_topic("topics/t", data)


@given(st.binary(max_size=200))
def test_no_bytes_crash_a_decoder(data):
    for decode in (documents.decode_cluster, lambda raw: documents.decode_topic("topics/t", raw)):
        with pytest.raises(DocumentError):
            decode(data)


def test_topic_ids_turn_into_uuids_and_back():
    for _ in range(100):
        text = new_topic_id()
        assert len(text) == 22
        assert not text.startswith("-")
        assert topic_id_text(topic_id_uuid(text)) == text
        assert topic_id_uuid(str(topic_id_uuid(text))) == topic_id_uuid(text)


KNOWN = {1: BrokerInfo(1, "a", 9092, "r"), 30: BrokerInfo(30, "b", 9093)}


def test_known_brokers_come_back_as_they_were_stored_and_nobody_without_the_document():
    assert documents.decode_known_brokers(documents.encode_known_brokers(KNOWN)) == KNOWN
    assert documents.decode_known_brokers(None) == {}
    stored = (
        b'{"version":1,"brokers":{"1":{"host":"a","port":9092,"rack":"r"},"30":{"host":"b","port":9093,"rack":null}}}'
    )
    assert documents.encode_known_brokers(KNOWN) == stored


def test_brokers_with_listeners_come_back_as_they_were_stored():
    listeners = (("INSIDE", Endpoint("a", 9092)), ("SSL", Endpoint("b", 9093)))
    broker = BrokerInfo(1, "a", 9092, "r", epoch=7, listeners=listeners)
    stored = documents.encode_registration(broker, "d", False)
    assert documents.decode_registration("brokers/ids/1", stored, 7) == (broker, "d", False)
    known = {1: replace(broker, epoch=0), 30: KNOWN[30]}
    assert documents.decode_known_brokers(documents.encode_known_brokers(known)) == known
    assert b'"version":2' in documents.encode_known_brokers(known)


def test_a_registration_without_listeners_has_one_called_plaintext():
    stored = documents.encode_registration(BrokerInfo(1, "a", 9092), "d", False)
    assert b"listeners" not in stored
    broker, _, _ = documents.decode_registration("brokers/ids/1", stored, 7)
    assert broker.endpoints == {"PLAINTEXT": Endpoint("a", 9092)}


@pytest.mark.parametrize("body", ['{"1": {}}', '{"1": {"host": "a", "port": 1, "rack": null, "listeners": 5}}', '{"x": {"host": "a", "port": 1, "rack": null}}', "[]", '{"1": 2}',
                                  '{"1": {"host": "a", "port": 1, "rack": null, "more": 1}}'])  # fmt: skip
def test_damaged_known_brokers_are_an_error_that_names_them(body):
    with pytest.raises(DocumentError, match="known_brokers is damaged"):
        documents.decode_known_brokers(f'{{"version": 1, "brokers": {body}}}'.encode())
