"""Values as columns: pylog's typed read beside Spark's connector with `from_json` or `from_avro`, of values with 20 fields.

Both sides give the same columns to the noop sink: all of them, or two, which Spark's optimizer asks of `from_json` and the query of pylog.
"""

import io
import json
from functools import partial

import fastavro

from benchmarks.bench import PARTITIONS, Bench, Runs
from benchmarks.load import create_topic, fill

_MILLION = 1_000_000
#: A field of each kind that an event of a site has, four times: its type, in JSON, in Avro.
_KINDS = {
    "id": ("bigint", 1_234_567_890, "long", 1_234_567_890),
    "name": ("string", "an ordinary name", "string", "an ordinary name"),
    "price": ("double", 1234.5, "double", 1234.5),
    "flag": ("boolean", True, "boolean", True),
    "at": (
        "timestamp",
        "2026-01-02T03:04:05.678Z",
        {"type": "long", "logicalType": "timestamp-millis"},
        1_767_323_045_678,
    ),
}
_FIELDS = {f"{name}_{number}": kind for number in range(4) for name, kind in _KINDS.items()}
_TWO = ("id_1", "name_2")
_loaded: dict[tuple[Bench, str, int, str], str] = {}


def job(bench: Bench, side: str, records: int, columns: int, form: str) -> dict[str, object]:
    """What a session of `side` is to do: read `columns` of the 20 fields, all or two, of `records` records."""
    names = _TWO if columns == len(_TWO) else tuple(_FIELDS)
    ddl = ", ".join(f"{name} {kind}" for name, (kind, *_) in _FIELDS.items())
    return {
        "do": "typed",
        "bootstrap": bench.broker(side).bootstrap_servers,
        "topic": _topic(bench, side, records, form),
        "format": form,
        "schema": json.dumps(_avro_schema()) if form == "avro" else ddl,
        "wanted": ", ".join(f"{name} {_FIELDS[name][0]}" for name in names),
        "names": names,
    }


def read(bench: Bench, records: int, columns: int, form: str) -> Runs:
    """Million rows a second."""
    records = bench.records(records)

    def once(side: str) -> float:
        return records / _MILLION / bench.spark(side).run(**job(bench, side, records, columns, form))

    return bench.take_turns({side: partial(once, side) for side in bench.sides}, warm_up=2)


def _topic(bench: Bench, side: str, records: int, form: str) -> str:
    if (bench, side, records, form) not in _loaded:
        servers, topic = bench.broker(side).bootstrap_servers, bench.new_name()
        create_topic(servers, topic, PARTITIONS)
        fill(servers, topic, records, _avro_value() if form == "avro" else _json_value(), PARTITIONS)
        _loaded[bench, side, records, form] = topic
    return _loaded[bench, side, records, form]


def _json_value() -> bytes:
    return json.dumps({name: value for name, (_, value, _, _) in _FIELDS.items()}).encode()


def _avro_schema() -> dict[str, object]:
    fields = [{"name": name, "type": ["null", kind]} for name, (_, _, kind, _) in _FIELDS.items()]
    return {"type": "record", "name": "Event", "fields": fields}


def _avro_value() -> bytes:
    out = io.BytesIO()
    value = {name: value for name, (_, _, _, value) in _FIELDS.items()}
    fastavro.schemaless_writer(out, fastavro.parse_schema(_avro_schema()), value)
    return out.getvalue()
