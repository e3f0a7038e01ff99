"""What the connector answered when it was last asked (`make parity`): a file in ``recorded/`` for each file of tests.

An answer stands there under the test's name, the answers of one test in the order in which it asks. They are JSON that can be read
and compared line by line; what JSON has no word for is an object of one key that names the type: ``{"bytes": "a"}``,
``{"tuple": [1, 2]}``, ``{"time": "2023-11-14T22:13:20+00:00"}``, ``{"batch": {...}}``, and ``{"dict": [[key, value], ...]}`` where
keys are no texts. Reading gives exactly what was written, and the same answers give the same bytes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tests.parity.ways import Batch

FOLDER = Path(__file__).parent / "recorded"
_PEERS = Path(__file__).parents[1] / "peers"
_WIDTH = 130
_TYPES = ("bytes", "tuple", "time", "batch", "dict")


def encoded(value: Any) -> Any:
    """A plain value as JSON has it. Raises TypeError for what would not be the same when it is read."""
    kind = type(value)
    if value is None or kind in (bool, int, float, str):
        return value
    if kind is list:
        return [encoded(item) for item in value]
    if kind is bytes:
        return {"bytes": value.decode("latin-1")}
    if kind is Batch:
        return {"batch": {name: encoded(item) for name, item in value._asdict().items()}}
    if kind is tuple:
        return {"tuple": [encoded(item) for item in value]}
    if kind is datetime and value.tzinfo is not None:
        return {"time": value.isoformat()}
    if kind is dict:
        if all(type(key) is str for key in value) and not (len(value) == 1 and set(value) & set(_TYPES)):
            return {key: encoded(item) for key, item in value.items()}
        return {"dict": [[encoded(key), encoded(item)] for key, item in sorted(value.items(), key=repr)]}
    raise TypeError(f"{value!r} of {kind} cannot be recorded")


def decoded(value: Any) -> Any:
    """What `encoded` was given."""
    if isinstance(value, list):
        return [decoded(item) for item in value]
    if not isinstance(value, dict):
        return value
    name, inner = next(iter(value.items())) if len(value) == 1 else (None, None)
    if name not in _TYPES:
        return {key: decoded(item) for key, item in value.items()}
    if name == "bytes":
        return inner.encode("latin-1")
    if name == "tuple":
        return tuple(decoded(item) for item in inner)
    if name == "time":
        return datetime.fromisoformat(inner)
    if name == "batch":
        return Batch(**{key: decoded(item) for key, item in inner.items()})
    return {decoded(key): decoded(item) for key, item in inner}


def layout(value: Any, indent: int = 0) -> str:
    """JSON with sorted keys in lines that can be read: a key to a line, and as many entries of a list as fit."""
    line = json.dumps(value, sort_keys=True)
    if indent + len(line) <= _WIDTH or not value or not isinstance(value, list | dict):
        return line
    if isinstance(value, dict) and len(value) == 1 and (name := next(iter(value))) in _TYPES:
        return f'{{"{name}": {layout(value[name], indent)}}}'
    pad = " " * (indent + 1)
    if isinstance(value, dict):
        lines = [f"{pad}{json.dumps(key)}: {layout(value[key], indent + 1)}" for key in sorted(value)]
        return "{\n" + ",\n".join(lines) + "\n" + " " * indent + "}"
    lines = []
    for item in value:
        piece = pad + layout(item, indent + 1)
        if lines and "\n" not in lines[-1] + piece and len(lines[-1]) + len(piece) - indent <= _WIDTH:
            lines[-1] += f", {piece.lstrip()}"
        else:
            lines.append(piece)
    return "[\n" + ",\n".join(lines) + "\n" + " " * indent + "]"


def versions() -> dict[str, str]:
    """Of all that answers: Spark as it is installed, the rest as `tests/peers` brings it."""
    wanted = {"connector": ("spark.xml", "spark-sql-kafka-0-10_2.13"), "Apache Kafka": ("kafka.xml", "kafka_2.13")}
    found = {"Spark": version("pyspark")}
    for name, (file, artifact) in wanted.items():
        pattern = rf"<artifactId>{re.escape(artifact)}</artifactId><version>([^<]+)</version>"
        (found[name],) = re.findall(pattern, (_PEERS / file).read_text())
    return found


class Recording:
    """The recorded answers of one file of tests.

    Parameters
    ----------
    file : Path
        Where they are kept; it appears with the first answer.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        document = json.loads(file.read_text()) if file.exists() else {}
        self.versions: dict[str, str] = document.get("versions", {})
        self._answers: dict[str, list[Any]] = document.get("answers", {})

    @classmethod
    def of(cls, test_file: Path) -> Recording:
        """That of a file of tests."""
        return cls(FOLDER / f"{test_file.stem}.json")

    @property
    def tests(self) -> Sequence[str]:
        """The names of the tests that have answers."""
        return [*self._answers]

    def count(self, test: str) -> int:
        """How many answers a test has."""
        return len(self._answers.get(test, ()))

    def answer(self, test: str, call: int) -> Any:
        """What the connector answered. Raises AssertionError when nothing is recorded."""
        assert call < self.count(test), (
            f"No answer of Spark's connector is recorded for question {call + 1} of {test}: run `make parity`, "
            "which asks it and writes the answers into tests/parity/recorded."
        )
        return decoded(self._answers[test][call])

    def replace(self, test: str, answers: Sequence[Any]) -> None:
        """Write down all answers to one test in place of what was there."""
        self._answers[test] = [encoded(answer) for answer in answers]
        self.versions = versions()
        self.file.parent.mkdir(exist_ok=True)
        self.file.write_text(_page(self.versions, self._answers))


def _page(made_with: Mapping[str, str], answers: Mapping[str, Any]) -> str:
    """The whole file: a test to a line, or to more where they are long."""
    lines = [f"  {json.dumps(test)}: {layout(answers[test], 2)}" for test in sorted(answers)]
    return (
        '{"versions": ' + json.dumps(made_with, sort_keys=True) + ',\n "answers": {\n' + ",\n".join(lines) + "\n }}\n"
    )
