"""The REST interface: which path and method asks or changes what. Paths, parameters and answers are those of Confluent's registry.

Contexts, metadata and rules of schemas, exporters and encryption keys are not there; what names one is refused. Thread-safe.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pylog_spark.registry import decisions
from pylog_spark.registry.decisions import Decision
from pylog_spark.registry.model import AVRO, PROTOBUF, Schema
from pylog_spark.registry.refusals import (
    malformed,
    no_level,
    no_mode,
    no_schema,
    no_subject,
)
from pylog_spark.registry.schemas import SERVED, joined
from pylog_spark.registry.state import RegistryState
from pylog_spark.registry.stored import NUMBER_MAX, Version
from pylog_spark.web.refusal import Refusal

#: How many schemas one answer lists.
LISTED_MAX = 1_000


class Raw(str):
    """An answer that is sent as it is: the text of a schema."""


@dataclass(frozen=True, slots=True)
class Call:
    """A request.

    Attributes
    ----------
    path : tuple of str
        What the path named, decoded: a subject, a version, an id.
    query : mapping of str to str
        The parameters.
    body : mapping
        The document that came with it.
    """

    path: tuple[str, ...]
    query: Mapping[str, str]
    body: Mapping[str, Any]

    def flag(self, name: str) -> bool:
        """Whether a parameter says true."""
        return self.query.get(name, "").lower() == "true"

    def number(self, name: str, default: int) -> int:
        """A parameter that is a number."""
        text = self.query.get(name, "")
        if not text or text == "-1":
            return default
        if (number := _whole(text)) is None:
            raise malformed(f"The parameter {name} is a number.")
        return number


#: Asks the state; decides a change of it.
Question = Callable[[RegistryState, Call], Any]
Change = Callable[[RegistryState, Call], Decision]


@dataclass(frozen=True, slots=True)
class Route:
    """What a method does with a path; `act` is a `Change` where `changes`, else a `Question`."""

    method: str
    path: re.Pattern[str]
    changes: bool
    act: Callable[[RegistryState, Call], Any]


def _types(_state: RegistryState, _call: Call) -> Any:
    return list(SERVED)


def _nothing(_state: RegistryState, _call: Call) -> Any:
    return {}


def _contexts(_state: RegistryState, _call: Call) -> Any:
    return ["."]


def _subjects(state: RegistryState, call: Call) -> Any:
    prefix = call.query.get("subjectPrefix", "")
    # What stands for "all contexts" at Confluent's registry, where there is only one.
    prefix = "" if prefix in (":*:", ":.:") else prefix
    found = state.subjects(deleted=call.flag("deleted"), deleted_only=call.flag("deletedOnly"))
    return _page([subject for subject in found if subject.startswith(prefix)], call, len(found))


def _versions(state: RegistryState, call: Call) -> Any:
    (subject,) = call.path
    found = state.versions(subject, deleted=call.flag("deleted"), deleted_only=call.flag("deletedOnly"))
    if not found:
        raise no_subject(subject)
    return [version.version for version in found]


def _version(state: RegistryState, call: Call) -> Any:
    return _shown(state, call, decisions.found_version(state, *call.path, deleted=call.flag("deleted")))


def _version_text(state: RegistryState, call: Call) -> Any:
    version = decisions.found_version(state, *call.path, deleted=call.flag("deleted"))
    return Raw(_text(state, call, version.schema))


def _referenced_by(state: RegistryState, call: Call) -> Any:
    version = decisions.found_version(state, *call.path, deleted=True)
    return state.referring(version.subject, version.version)


def _by_id(state: RegistryState, call: Call) -> Any:
    shown = _schema(state, call, _found_schema(state, call))
    return {**shown, "maxId": state.max_id} if call.flag("fetchMaxId") else shown


def _by_id_text(state: RegistryState, call: Call) -> Any:
    return Raw(_text(state, call, _found_schema(state, call)))


def _subjects_of_id(state: RegistryState, call: Call) -> Any:
    _found_schema(state, call)
    found = state.having(_id(call), deleted=call.flag("deleted"))
    wanted = call.query.get("subject")
    return sorted({version.subject for version in found if wanted in (None, "", version.subject)})


def _versions_of_id(state: RegistryState, call: Call) -> Any:
    _found_schema(state, call)
    found = state.having(_id(call), deleted=call.flag("deleted"))
    return [{"subject": version.subject, "version": version.version} for version in found]


def _schemas(state: RegistryState, call: Call) -> Any:
    found: list[Version] = []
    deleted = call.flag("deleted")
    for subject in state.subjects(deleted=deleted):
        if subject.startswith(call.query.get("subjectPrefix", "")):
            versions = state.versions(subject, deleted=deleted)
            found += versions[-1:] if call.flag("latestOnly") else versions
    return [_shown(state, call, version) for version in _page(found, call, LISTED_MAX)]


def _register(state: RegistryState, call: Call) -> Decision:
    (subject,) = call.path
    return decisions.register(state, subject, call.body, call.flag("normalize"))


def _lookup(state: RegistryState, call: Call) -> Any:
    (subject,) = call.path
    deleted = call.flag("deleted")
    if not state.versions(subject, deleted=deleted):
        raise no_subject(subject)
    given = decisions.given_schema(state, call.body, call.flag("normalize"))
    found = decisions.same_in(state, subject, given, deleted=deleted)
    if found is None:
        raise no_schema()
    return _shown(state, call, found)


def _compatible(state: RegistryState, call: Call) -> Any:
    subject = call.path[0]
    earlier = state.versions(subject)
    level = state.level_in_force(subject)
    if len(call.path) > 1:
        latest = call.path[1] in ("latest", "-1")
        # With one version named it is compared with that one, whatever the level says of others.
        earlier = [decisions.found_version(state, *call.path)] if earlier or not latest else []
    given = decisions.given_schema(state, call.body, call.flag("normalize"))
    messages = decisions.differences(state, given, level, earlier)
    found: dict[str, Any] = {"is_compatible": not messages}
    if call.flag("verbose"):
        found["messages"] = joined(messages)
    return found


def _delete_subject(state: RegistryState, call: Call) -> Decision:
    return decisions.delete_subject(state, call.path[0], call.flag("permanent"))


def _delete_version(state: RegistryState, call: Call) -> Decision:
    subject, version = call.path
    return decisions.delete_version(state, subject, version, call.flag("permanent"))


def _level(state: RegistryState, call: Call) -> Any:
    subject = _subject(call)
    level = state.level(subject)
    if level is None and subject is not None and not call.flag("defaultToGlobal"):
        raise no_level(subject)
    return {"compatibilityLevel": state.level_in_force(subject)}


def _set_level(state: RegistryState, call: Call) -> Decision:
    return decisions.set_level(state, _subject(call), call.body)


def _delete_level(state: RegistryState, call: Call) -> Decision:
    return decisions.delete_level(state, _subject(call))


def _mode(state: RegistryState, call: Call) -> Any:
    subject = _subject(call)
    if state.mode(subject) is None and subject is not None and not call.flag("defaultToGlobal"):
        raise no_mode(subject)
    return {"mode": state.mode_in_force(subject)}


def _set_mode(state: RegistryState, call: Call) -> Decision:
    return decisions.set_mode(state, _subject(call), call.body, call.flag("force"))


def _delete_mode(state: RegistryState, call: Call) -> Decision:
    return decisions.delete_mode(state, _subject(call))


def _route(method: str, path: str, act: Callable[[RegistryState, Call], Any], *, changes: bool = False) -> Route:
    return Route(method, re.compile(path.replace("{}", "([^/]+)") + "/?"), changes, act)


#: Every route.
ROUTES = (
    _route("GET", "", _nothing),
    _route("GET", "/schemas", _schemas),
    _route("GET", "/schemas/types", _types),
    _route("GET", "/schemas/ids/{}", _by_id),
    _route("GET", "/schemas/ids/{}/schema", _by_id_text),
    _route("GET", "/schemas/ids/{}/subjects", _subjects_of_id),
    _route("GET", "/schemas/ids/{}/versions", _versions_of_id),
    _route("GET", "/contexts", _contexts),
    _route("GET", "/subjects", _subjects),
    _route("POST", "/subjects/{}", _lookup),
    _route("DELETE", "/subjects/{}", _delete_subject, changes=True),
    _route("GET", "/subjects/{}/versions", _versions),
    _route("POST", "/subjects/{}/versions", _register, changes=True),
    _route("GET", "/subjects/{}/versions/{}", _version),
    _route("DELETE", "/subjects/{}/versions/{}", _delete_version, changes=True),
    _route("GET", "/subjects/{}/versions/{}/schema", _version_text),
    _route("GET", "/subjects/{}/versions/{}/referencedby", _referenced_by),
    _route("POST", "/compatibility/subjects/{}/versions", _compatible),
    _route("POST", "/compatibility/subjects/{}/versions/{}", _compatible),
    _route("GET", "/config", _level),
    _route("PUT", "/config", _set_level, changes=True),
    _route("DELETE", "/config", _delete_level, changes=True),
    _route("GET", "/config/{}", _level),
    _route("PUT", "/config/{}", _set_level, changes=True),
    _route("DELETE", "/config/{}", _delete_level, changes=True),
    _route("GET", "/mode", _mode),
    _route("PUT", "/mode", _set_mode, changes=True),
    _route("DELETE", "/mode", _delete_mode, changes=True),
    _route("GET", "/mode/{}", _mode),
    _route("PUT", "/mode/{}", _set_mode, changes=True),
    _route("DELETE", "/mode/{}", _delete_mode, changes=True),
)


def route_of(method: str, path: str) -> tuple[Route, tuple[str, ...]]:
    """Give the route of a request, and what its path named, still encoded. Raises `Refusal`."""
    there = [(route, match) for route in ROUTES if (match := route.path.fullmatch(path))]
    for route, match in there:
        if route.method == method:
            return route, match.groups()
    if there:
        raise Refusal(
            405, 405, f"{method} does nothing here: the path takes {', '.join(each.method for each, _ in there)}."
        )
    raise Refusal(404, 404, "There is no such path.")


def document(body: bytes) -> Mapping[str, Any]:
    """Read the document of a request. Raises `Refusal`."""
    try:
        found = json.loads(body or b"{}")
    except (ValueError, RecursionError):
        raise Refusal(400, 400, "The body of the request is not JSON.") from None
    if not isinstance(found, dict):
        raise malformed("The body of the request is a JSON object.")
    return found


def _subject(call: Call) -> str | None:
    return call.path[0] if call.path else None


def _id(call: Call) -> int:
    text = call.path[0]
    if not (number := _whole(text)):
        raise Refusal(404, 404, f"'{text[:40]}' is no id.")
    return number


def _whole(text: str) -> int | None:
    """The number that a text is, up to `NUMBER_MAX`. None: it is none, or has more digits, be they zeros."""
    if len(text) > len(str(NUMBER_MAX)) or not text.isascii() or not text.isdigit() or int(text) > NUMBER_MAX:
        return None
    return int(text)


def _found_schema(state: RegistryState, call: Call) -> Schema:
    found = state.schema(_id(call))
    if found is None:
        raise no_schema(_id(call))
    return found


def _page(found: list[Any], call: Call, most: int) -> list[Any]:
    start = call.number("offset", 0)
    return found[start : start + min(most, call.number("limit", most))]


def _text(state: RegistryState, call: Call, schema: Schema) -> str:
    """The text in the form that is asked for; forms that a type does not have are its text."""
    if call.query.get("format") == "serialized" and schema.schema_type == PROTOBUF:
        return decisions.read_schema(state, schema).serialized()
    return schema.text


def _schema(state: RegistryState, call: Call, schema: Schema) -> dict[str, Any]:
    shown: dict[str, Any] = {} if schema.schema_type == AVRO else {"schemaType": schema.schema_type}
    if schema.references:
        shown["references"] = [each._asdict() for each in schema.references]
    return {**shown, "schema": _text(state, call, schema)}


def _shown(state: RegistryState, call: Call, version: Version) -> dict[str, Any]:
    shown = _schema(state, call, version.schema)
    found = {"subject": version.subject, "version": version.version, "id": version.id, **shown}
    return {**found, "deleted": True} if version.deleted else found
