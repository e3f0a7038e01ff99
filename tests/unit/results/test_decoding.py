"""The native half's documents become dataclasses, and a document of another build is refused with the field that is wrong."""

import dataclasses
import importlib
import pickle
import pkgutil
import re
from dataclasses import asdict, dataclass, fields

import pytest

from pylog_spark import results
from pylog_spark.client.errors import LogError, translated
from pylog_spark.errors import PylogError
from pylog_spark.errors import translated as translated_for_spark
from pylog_spark.offsets import TopicPartition
from pylog_spark.results.decoding import DocumentError, all_decoded, decoded
from pylog_spark.results.groups import MemberDescription
from pylog_spark.results.topics import PartitionDescription, TopicDescription
from pylog_spark.results.writes import FlushResult, OffsetSpan

PARTITION = PartitionDescription(0, 1, 7, (1, 2), (1,), None)
TOPIC = TopicDescription("events", "id", False, None, (PARTITION,))
#: As the native half gives it: lists.
DOCUMENT = {
    "name": "events",
    "topic_id": "id",
    "is_internal": False,
    "error": None,
    "partitions": [{"partition": 0, "leader": 1, "leader_epoch": 7, "replicas": [1, 2], "isr": [1], "error": None}],
}


def classes() -> list[type]:
    """Every dataclass of the package."""
    modules = [
        importlib.import_module(f"{results.__name__}.{module.name}")
        for module in pkgutil.iter_modules(results.__path__)
    ]
    return [
        found
        for module in modules
        for found in vars(module).values()
        if dataclasses.is_dataclass(found) and isinstance(found, type) and found.__module__ == module.__name__
    ]


def test_a_document_becomes_its_class_with_all_that_is_in_it() -> None:
    assert decoded(TopicDescription, DOCUMENT) == TOPIC
    assert all_decoded(TopicDescription, [DOCUMENT, asdict(TOPIC)]) == [TOPIC, TOPIC]


def test_pairs_become_topic_partitions_and_spans() -> None:
    member = {"member_id": "m", "instance_id": None, "client_id": "c", "host": "h", "partitions": [["events", 3]]}
    assert decoded(MemberDescription, member).partitions == (TopicPartition("events", 3),)
    flushed = decoded(FlushResult, {"records": 2, "bytes": 9, "offsets": {("events", 3): [4, 5]}})
    assert flushed.offsets == {("events", 3): OffsetSpan(4, 5)}
    assert (next(iter(flushed.offsets)).topic, flushed.offsets["events", 3].last) == ("events", 5)


def test_a_result_can_be_pickled_and_not_changed() -> None:
    assert pickle.loads(pickle.dumps(TOPIC)) == TOPIC
    with pytest.raises(dataclasses.FrozenInstanceError):
        TOPIC.name = "other"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("changes", "wrong"),
    [
        ({"is_internal": 1}, "in 'is_internal' 1 is no bool"),
        ({"name": None}, "in 'name' None is no str"),
        ({"error": 3}, "in 'error' 3 is no str"),
        ({"partitions": None}, "in 'partitions' None is no list"),
        ({"rack": "r"}, "it has 'rack', which is not known"),
        ({"partitions": [{**asdict(PARTITION), "isr": [True]}]}, "in 'partitions' in 'isr' True is no int"),
        ({"partitions": [{"partition": 0}]}, "in 'partitions' it lacks 'error'"),
        ({"partitions": [[0]]}, r"in 'partitions' \[0\] is no object"),
    ],
)
def test_a_field_that_is_not_what_the_class_says_is_refused_by_its_name(changes: dict[str, object], wrong: str) -> None:
    with pytest.raises(DocumentError, match=f"no TopicDescription, {wrong}: the two halves of pylog-spark") as caught:
        decoded(TopicDescription, {**DOCUMENT, **changes})
    assert caught.value.args[0] == "MISMATCHED_BUILDS"


@pytest.mark.parametrize("field", sorted(DOCUMENT))
def test_a_missing_field_is_refused_by_its_name(field: str) -> None:
    with pytest.raises(DocumentError, match=f"it lacks '{field}'"):
        decoded(TopicDescription, {name: value for name, value in DOCUMENT.items() if name != field})


@pytest.mark.parametrize("document", [None, [], "text", 3])
def test_what_is_no_object_is_refused(document: object) -> None:
    with pytest.raises(DocumentError, match="is no object"):
        decoded(TopicDescription, document)


def test_a_pair_of_another_length_is_refused() -> None:
    member = {"member_id": "m", "instance_id": None, "client_id": "c", "host": "h", "partitions": [["events"]]}
    with pytest.raises(DocumentError, match="is no TopicPartition"):
        decoded(MemberDescription, member)


def test_clients_and_spark_get_it_as_an_error_of_their_own() -> None:
    with pytest.raises(LogError, match="different builds") as caught, translated():
        decoded(TopicDescription, {})
    assert caught.value.kind == "MISMATCHED_BUILDS"
    with pytest.raises(PylogError, match=r"PYLOG_NATIVE_MISSING.*different builds"), translated_for_spark():
        decoded(TopicDescription, {})


@pytest.mark.parametrize("kind", classes(), ids=lambda kind: kind.__name__)
def test_every_class_is_frozen_says_each_field_and_has_a_decoder(kind: type) -> None:
    documented = kind.__doc__ or ""
    named = {name for line in re.findall(r"^ {4}([\w, ]+) :", documented, re.MULTILINE) for name in line.split(", ")}
    assert named == {field.name for field in fields(kind)}
    with pytest.raises(DocumentError, match="it lacks"):
        decoded(kind, {})


def test_a_class_with_a_type_that_documents_do_not_have_is_a_mistake() -> None:
    @dataclass(frozen=True)
    class Wrong:
        when: complex

    with pytest.raises(TypeError, match="complex"):
        decoded(Wrong, {"when": 1})
