"""What the parts of `Admin` share."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Protocol, TypeVar

from pylog_spark.client.errors import LogError
from pylog_spark.results.decoding import Decoded


class Result(Protocol):
    """The result for one topic, group, partition or transactional id of a request."""

    @property
    def error(self) -> str | None:
        """Kafka's name of the error; None without one."""

    @property
    def message(self) -> str | None:
        """The error's sentence."""


AnyResult = TypeVar("AnyResult", bound=Result)


class Requests(ABC):
    """Requests that the native client knows by name; `Admin` carries them out."""

    @abstractmethod
    def _request(self, kind: type[Decoded], name: str, **arguments: object) -> list[Decoded]: ...


def sole(results: Sequence[AnyResult]) -> AnyResult:
    """Give the only result. Raises `LogError` when it is an error."""
    (result,) = results
    raise_if_failed(result)
    return result


def raise_if_failed(result: Result) -> None:
    """Raise the error of a result as `LogError`."""
    if result.error:
        raise LogError(result.error, result.message or f"The request failed: {result.error}.")
