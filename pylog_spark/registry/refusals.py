"""Why the registry refuses a request: status, error code and sentence. The codes are those of Confluent's REST interface. Pure."""

from __future__ import annotations

from pylog_spark.registry.stored import NUMBER_MAX
from pylog_spark.web.refusal import Refusal


def no_subject(subject: str) -> Refusal:
    """There is no such subject."""
    return Refusal(404, 40401, f"Subject '{subject}' not found.")


def no_version(version: int | str) -> Refusal:
    """The subject has no such version."""
    return Refusal(404, 40402, f"Version {version} not found.")


def no_schema(schema_id: int | None = None) -> Refusal:
    """There is no schema with this id, or none like the one that is asked for."""
    return Refusal(404, 40403, "Schema not found." if schema_id is None else f"Schema {schema_id} not found.")


def soft_deleted(subject: str, version: int | None = None) -> Refusal:
    """It is deleted already."""
    if version is None:
        return Refusal(404, 40404, f"Subject '{subject}' is deleted already; delete it for good with permanent=true.")
    return Refusal(
        404,
        40406,
        f"Version {version} of subject '{subject}' is deleted already; delete it for good with permanent=true.",
    )


def not_soft_deleted(subject: str, version: int | None = None) -> Refusal:
    """A permanent deletion comes second."""
    if version is None:
        return Refusal(404, 40405, f"Subject '{subject}' must be deleted without permanent=true first.")
    return Refusal(
        404, 40407, f"Version {version} of subject '{subject}' must be deleted without permanent=true first."
    )


def no_level(subject: str) -> Refusal:
    """The subject has no compatibility level of its own."""
    return Refusal(
        404, 40408, f"Subject '{subject}' has no compatibility level of its own; ask with defaultToGlobal=true."
    )


def no_mode(subject: str) -> Refusal:
    """The subject has no mode of its own."""
    return Refusal(404, 40409, f"Subject '{subject}' has no mode of its own; ask with defaultToGlobal=true.")


def incompatible(subject: str, level: str, messages: list[str]) -> Refusal:
    """The schema is not compatible with earlier versions."""
    listed = "; ".join(messages)
    return Refusal(
        409,
        409,
        f"The schema is not compatible with earlier ones of subject '{subject}' by its level {level}: {listed}",
    )


def invalid_schema(sentence: str) -> Refusal:
    """It is no schema of its type, or nothing that can be judged."""
    return Refusal(422, 42201, f"Invalid schema: {sentence}")


def invalid_version(text: str) -> Refusal:
    """No version at all."""
    return Refusal(422, 42202, f"'{text[:40]}' is no version: give 1 to {NUMBER_MAX}, or latest.")


def not_permitted(sentence: str) -> Refusal:
    """The mode does not allow it."""
    return Refusal(422, 42205, sentence)


def referred_to(subject: str, version: int, by: list[int]) -> Refusal:
    """Other schemas refer to it."""
    ids = ", ".join(map(str, by[:10]))
    return Refusal(
        422, 42206, f"Version {version} of subject '{subject}' is referred to by the schemas with the ids {ids}."
    )


def other_id(schema_id: int) -> Refusal:
    """An id that is given with a schema is another one's."""
    return Refusal(422, 42207, f"The id {schema_id} is that of another schema.")


def invalid_subject(subject: str) -> Refusal:
    """A name that no subject can have."""
    return Refusal(
        422,
        42208,
        f"'{subject[:40]}' is no name of a subject: it must not be empty, nor begin with ':' (contexts are not supported).",
    )


def malformed(sentence: str) -> Refusal:
    """The request is not understood."""
    return Refusal(422, 422, sentence)


def too_much(seconds: float) -> Refusal:
    """Reading and comparing takes too long."""
    return Refusal(
        422,
        42201,
        f"Reading the schema and comparing it with earlier ones takes longer than {seconds:.0f} s: make it smaller, or set the subject's "
        "level to one that is not transitive.",
    )
