"""What pylog itself says that its requests demand, read from its source: the table of rights, and the APIs that it serves."""

import re
from dataclasses import dataclass
from pathlib import Path

_SERVER = Path(__file__).parents[3] / "broker_native/server/src"
_ROW = re.compile(r"^    ([A-Z_0-9]+): (\w+) (\w+) (\w+) (refuses|hides);$", re.MULTILINE)
_SERVED = re.compile(r"^pub const SERVED: &\[ApiKey\] = &\[$(.*?)^\];$", re.MULTILINE | re.DOTALL)
_ERRORS = {
    "TOPIC": "TOPIC_AUTHORIZATION_FAILED",
    "GROUP": "GROUP_AUTHORIZATION_FAILED",
    "CLUSTER": "CLUSTER_AUTHORIZATION_FAILED",
    "TRANSACTIONAL_ID": "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
}


@dataclass(frozen=True)
class Row:
    """A row: `refuses` says whether what lacks the right gets an error."""

    name: str
    api: str
    operation: str
    kind: str
    refuses: bool

    @property
    def error(self) -> str:
        """The error of what is refused for want of it."""
        return "CLUSTER_AUTHORIZATION_FAILED" if self.name == "INIT_PRODUCER_ID_SOME_TOPIC" else _ERRORS[self.kind]


def rows() -> list[Row]:
    """All rows, in their order."""
    found = _ROW.findall((_SERVER / "authorization/table.rs").read_text())
    assert len(found) > 100
    return [
        Row(name, api, _words(operation), _words(kind), says == "refuses") for name, api, operation, kind, says in found
    ]


def served() -> set[str]:
    """The names of all APIs that are served."""
    found = _SERVED.search((_SERVER / "call.rs").read_text())
    assert found is not None
    return set(re.findall(r"ApiKey::(\w+)", found[1]))


def _words(name: str) -> str:
    """Kafka's word for a name of the source: ``DESCRIBE_CONFIGS`` for ``DescribeConfigs``."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).upper()
