"""Audit: do the logs hold what their producers have written? As in the Kafka paper, section 5.

    a producer counts its records by topic and window of their timestamps -> audit records in a topic of their own
    a checker counts what is in the log by the same windows, adds up the audit records, and names the windows that differ

A record that was lost makes a window in which the log has fewer; one that was written twice, or by nobody who counts, one in which it
has more. Windows go by the records' own timestamps, so it does not matter when a record, or a count, arrives.

| module | what it owns |
|---|---|
| `document` | pure: the one form in which counts are stored, and what windows are |
| `comparing` | pure: what differs, and which topics can be compared at all |
| `counting` | timestamps and counts as Arrow |
| `confluent` | `AuditedProducer`: confluent-kafka's producer, which counts |
| `checking` | `check`: everything read once, without Spark; what ``pylog audit`` calls |
| `stream` | `differences`: the same as a streaming frame |

The sink counts with its options `auditTopic` and `auditWindow`, `pylog_spark.client.Producer` and ``pylog produce`` likewise.
The names here are loaded when they are asked for: each needs something else that may not be installed.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pylog_spark.audit.checking import check
    from pylog_spark.audit.comparing import Difference, Report
    from pylog_spark.audit.confluent import AuditedProducer
    from pylog_spark.audit.document import Audit
    from pylog_spark.audit.stream import differences

__all__ = ["Audit", "AuditedProducer", "Difference", "Report", "check", "differences"]

_MODULES = {
    "Audit": "document",
    "AuditedProducer": "confluent",
    "Difference": "comparing",
    "Report": "comparing",
    "check": "checking",
    "differences": "stream",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"pylog_spark.audit.{_MODULES[name]}"), name)
