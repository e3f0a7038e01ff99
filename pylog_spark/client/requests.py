"""What the parts of `Admin` share."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from pylog_spark.client.errors import LogError


class Requests(ABC):
    """Requests that the native client knows by name; `Admin` carries them out."""

    @abstractmethod
    def _request(self, name: str, **arguments: object) -> list[dict[str, Any]]: ...


def sole(results: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The only result. Raises `LogError` when it is an error."""
    raise_if_failed(results[0])
    return results[0]


def raise_if_failed(result: Mapping[str, Any]) -> None:
    """Raise the error of a result as `LogError`."""
    if result.get("error"):
        raise LogError(result["error"], result.get("message") or f"{result.get('name')}: {result['error']}.")
