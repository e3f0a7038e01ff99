"""An answer without what must differ between two brokers: ids become "member 1", times become "now", order is by name.

Nothing else is taken out; what remains is compared field by field. Texts for people (error messages) are not compared.
"""

from typing import Any

from tests.oracle.batches import described

_NO_ID = "00000000-0000-0000-0000-000000000000"
# Fields whose value a broker makes up: what the first different value of it is called.
_MADE_UP = {
    "producer_id": "producer",
    "ongoing_txn_producer_id": "producer",
    "member_id": "member",
    "leader": "member",
    "topic_id": "topic id",
    "cluster_id": "cluster",
    "session_id": "fetch session",
    "port": "port",
}
_NOT_MADE_UP = (None, "", -1, 0, _NO_ID)
_TEXTS = {"error_message", "batch_index_error_message", "documentation"}
_TIMES = {"log_append_time_ms", "transaction_start_time_ms", "last_timestamp"}
# What a list is sorted by, the first that its elements have.
_ORDER = (
    "name", "topic", "topic_name", "group_id", "transactional_id", "key", "resource_name", "partition_index", "partition",
    "index", "api_key", "member_id", "producer_id", "topic_id", "broker_id", "node_id", "error_code",
)  # fmt: skip
_PLACE = {name: number for number, name in enumerate(_ORDER)}
# Of these those that are the same at both brokers: by them lists are sorted before what is made up gets its names.
_PLACE_BEFORE = {name: number for name, number in _PLACE.items() if name not in _MADE_UP}


class Names:
    """The made-up values of one broker, numbered in the order in which they came."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, Any], str] = {}

    def of(self, kind: str, value: Any) -> str:
        """What `value` is called; the same value has the same name everywhere in a script."""
        names = [key for key in self._known if key[0] == kind]
        return self._known.setdefault((kind, value), f"{kind} {len(names) + 1}")


def normal(answer: Any, names: Names, field: str = "") -> Any:
    """`answer` with made-up values named, times and texts replaced, lists sorted by what they are about."""
    if isinstance(answer, dict):
        return {
            name: normal(described(value) if name == "records" else value, names, name)
            for name, value in answer.items()
            if name not in _TEXTS
        }
    if isinstance(answer, list):
        if field == "records":
            return [normal(item, names, field) for item in answer]
        return _sorted([normal(item, names, field) for item in _sorted(answer, _PLACE_BEFORE)], _PLACE)
    if field in _MADE_UP and answer not in _NOT_MADE_UP:
        return names.of(_MADE_UP[field], answer)
    if field in _TIMES and isinstance(answer, int) and answer > 0:
        return "now"
    return answer


def _sorted(items: list[Any], place: dict[str, int]) -> list[Any]:
    if all(isinstance(item, int) for item in items):
        return sorted(items)
    if not all(isinstance(item, dict) for item in items):
        return items
    return sorted(
        items,
        key=lambda item: [str(item[name]).rjust(12) for name in sorted(item.keys() & place, key=place.__getitem__)],
    )


def _by_name(items: list[Any]) -> dict[str, Any] | None:
    """Settings and the like as a mapping, so that an absent one is reported by its name."""
    if not all(isinstance(item, dict) and "value" in item and "name" in item for item in items):
        return None
    return {item["name"]: item for item in items}


def differences(kafka: Any, pylog: Any, path: str = "") -> list[tuple[str, Any, Any]]:
    """(path, Kafka's value, pylog's value) of every field that differs."""
    if isinstance(kafka, dict) and isinstance(pylog, dict):
        found = []
        for name in sorted(kafka.keys() | pylog.keys()):
            inner = f"{path}.{name}" if path else name
            found += differences(kafka.get(name, "absent"), pylog.get(name, "absent"), inner)
        return found
    if isinstance(kafka, list) and isinstance(pylog, list):
        by_name = _by_name(kafka), _by_name(pylog)
        if by_name[0] is not None and by_name[1] is not None:
            return differences(*by_name, path)
    if isinstance(kafka, list) and isinstance(pylog, list) and len(kafka) == len(pylog):
        return [
            each
            for number, (ours, theirs) in enumerate(zip(kafka, pylog, strict=True))
            for each in differences(ours, theirs, f"{path}[{number}]")
        ]
    return [] if kafka == pylog else [(path, kafka, pylog)]
