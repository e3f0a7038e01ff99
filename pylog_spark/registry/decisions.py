"""What a request to change the registry comes to: the records to write and the answer, given what the topic says so far. Pure.

A decision is made twice, before a write and inside its transaction (`topic`), so it depends on nothing but its arguments.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pylog_spark.registry import judged
from pylog_spark.registry.judged import Later
from pylog_spark.registry.levels import (
    DEFAULT_MODE,
    IMPORT,
    READONLY,
    READONLY_OVERRIDE,
    compared,
    new_reads_old,
    old_reads_new,
    read_level,
    read_mode,
)
from pylog_spark.registry.model import AVRO, TYPES, Reference, Schema
from pylog_spark.registry.refusals import (
    incompatible,
    invalid_schema,
    invalid_subject,
    invalid_version,
    malformed,
    no_level,
    no_mode,
    no_schema,
    no_subject,
    no_version,
    not_permitted,
    not_soft_deleted,
    other_id,
    referred_to,
    soft_deleted,
)
from pylog_spark.registry.schemas import ParsedSchema, SchemaError, joined
from pylog_spark.registry.state import RegistryState
from pylog_spark.registry.stored import (
    CONFIG,
    DELETE_SUBJECT,
    MODE,
    NOOP,
    NUMBER_MAX,
    SCHEMA,
    Key,
    Number,
    Record,
    Text,
    Version,
)
from pylog_spark.web.refusal import Refusal

#: The longest name of a subject, and how many references a schema may have, those of others included.
SUBJECT_CHARS_MAX = 1_000
REFERENCES_MAX = 1_000
_VERSION = re.compile(r"[1-9][0-9]{0,9}")


@dataclass(frozen=True, slots=True)
class Decision:
    """What is written, all of it or nothing, and what is answered then."""

    records: tuple[Record, ...]
    answer: Any


@dataclass(frozen=True, slots=True)
class Given:
    """A schema as a request gives it: as it is stored and compared, and the id and version that it is to have."""

    schema: Schema
    schema_id: int | None
    version: int | None


def checked_subject(subject: str) -> str:
    """Give the name. Raises `Refusal` for one that no subject can have."""
    if not subject or subject.startswith(":") or len(subject) > SUBJECT_CHARS_MAX or not subject.isprintable():
        raise invalid_subject(subject)
    return subject


def given_schema(state: RegistryState, body: Mapping[str, Any], normalize: bool) -> Given:
    """Read the schema of a request. Raises `Refusal` for one that is none, or whose references lead nowhere."""
    schema_type = body.get("schemaType") or AVRO
    if not isinstance(schema_type, str) or schema_type not in TYPES:
        raise invalid_schema(f"the type {str(schema_type)[:40]!r} is not one of {', '.join(TYPES)}.")
    text = body.get("schema")
    if not isinstance(text, str) or not text.strip():
        raise invalid_schema("the attribute schema holds its text.")
    for ignored in ("metadata", "ruleSet"):
        if body.get(ignored):
            raise malformed(f"Schemas with {ignored} are not supported: register the schema without.")
    references = _references(state, body.get("references") or ())
    stored, normal = _texts(state, Schema(schema_type, text, references))
    schema = Schema(schema_type, normal if normalize else stored, references)
    return Given(schema, _number(body, "id"), _number(body, "version"))


def whole(state: RegistryState, schema: Schema) -> judged.Whole:
    """Give a schema with the texts of all that it refers to. Raises `Refusal`."""
    referred: dict[str, str] = {}
    _resolve(state, schema, referred, 0)
    return schema, tuple(referred.items())


def read_schema(state: RegistryState, schema: Schema) -> ParsedSchema:
    """Read a schema with all that it refers to. Raises `Refusal` and `Later`."""
    try:
        return judged.read(*whole(state, schema))
    except SchemaError as error:
        raise invalid_schema(error.args[0]) from None


def _texts(state: RegistryState, schema: Schema) -> tuple[str, str]:
    """The text that is stored and the normalized one. Raises `Refusal` and `Later`."""
    try:
        return judged.texts(*whole(state, schema))
    except SchemaError as error:
        raise invalid_schema(error.args[0]) from None


def found_version(state: RegistryState, subject: str, text: str, *, deleted: bool = False) -> Version:
    """Give a version of a subject by its number or ``latest``. Raises `Refusal`."""
    versions = state.versions(subject, deleted=deleted)
    if text in ("latest", "-1"):
        if not versions:
            raise no_subject(subject)
        return versions[-1]
    if not _VERSION.fullmatch(text) or int(text) > NUMBER_MAX:
        raise invalid_version(text)
    if not versions:
        raise no_subject(subject)
    found = state.version(subject, int(text))
    if found is None or (found.deleted and not deleted):
        raise no_version(int(text))
    return found


def same_in(state: RegistryState, subject: str, given: Given, *, deleted: bool = False) -> Version | None:
    """Give the newest version of a subject that is the same schema. Raises `Later`."""
    versions = state.versions(subject, deleted=deleted)
    found, work = None, list[judged.Work]()
    for version in reversed(versions):
        try:
            if version.schema == given.schema or _is_same(state, version.schema, given):
                found = version
                break
        except Later as later:
            work += later.work
    if work:
        raise Later(work)
    return found


def register(state: RegistryState, subject: str, body: Mapping[str, Any], normalize: bool) -> Decision:
    """Register a schema as a version of a subject, unless it is one already."""
    checked_subject(subject)
    given = given_schema(state, body, normalize)
    mode = _writable(state, subject)
    if mode == IMPORT:
        return _imported(state, subject, given)
    same = same_in(state, subject, given)
    if given.schema_id is not None and (same is None or same.id != given.schema_id):
        raise not_permitted(f"Subject '{subject}' takes no schema with an id: it is not in the mode IMPORT.")
    if same is not None:
        return Decision((), _registered(same))
    level = state.level_in_force(subject)
    if messages := differences(state, given, level, state.versions(subject)):
        raise incompatible(subject, level, messages)
    known = state.id_of(given.schema)
    schema_id = state.max_id + 1 if known is None else known
    return _new_version(state, subject, given, schema_id, None)


def differences(state: RegistryState, given: Given, level: str, earlier: Sequence[Version]) -> list[str]:
    """Give why a schema is not compatible with `earlier` versions; empty when it is. Raises `Later`."""
    new = whole(state, given.schema)
    found: list[str] = []
    work: list[judged.Work] = []
    for version in compared(level, earlier):
        reasons = _reasons(state, new, version, level)
        # All work at once: one round of it for each version would be many.
        if isinstance(reasons, Later):
            work += reasons.work
        else:
            found += reasons
    if work:
        raise Later(work)
    return joined(found, 20)


def _reasons(state: RegistryState, new: judged.Whole, version: Version, level: str) -> list[str] | Later:
    found = []
    try:
        old = whole(state, version.schema)
        judged.read(*old)
        if new_reads_old(level):
            found += [
                f"what version {version.version} wrote cannot be read: {each}" for each in judged.why_not(new, old)
            ]
        if old_reads_new(level):
            found += [
                f"version {version.version} cannot read what it writes: {each}" for each in judged.why_not(old, new)
            ]
    except (Refusal, SchemaError) as error:
        return [f"version {version.version} cannot be read: {error}"]
    except Later as later:
        return later
    return found


def delete_subject(state: RegistryState, subject: str, permanent: bool) -> Decision:
    """Delete all versions of a subject."""
    versions = state.versions(subject, deleted=True)
    if not versions:
        raise no_subject(subject)
    _writable(state, subject)
    live = [version for version in versions if not version.deleted]
    settings = tuple(
        (Key(kind, subject), None)
        for kind, value in ((MODE, state.mode(subject)), (CONFIG, state.level(subject)))
        if value is not None
    )
    if permanent:
        if live:
            raise not_soft_deleted(subject)
        return Decision(
            (*_gone(state, versions), *settings),
            [version.version for version in versions],
        )
    if not live:
        raise soft_deleted(subject)
    for version in live:
        _unreferred(state, version)
    mark = (Key(DELETE_SUBJECT, subject), Number(versions[-1].version))
    return Decision((mark, *settings), [version.version for version in live])


def delete_version(state: RegistryState, subject: str, text: str, permanent: bool) -> Decision:
    """Delete one version of a subject."""
    if not state.versions(subject, deleted=True):
        raise no_subject(subject)
    version = found_version(state, subject, text, deleted=text not in ("latest", "-1"))
    _writable(state, subject)
    if permanent:
        if not version.deleted:
            raise not_soft_deleted(subject, version.version)
        return Decision(_gone(state, [version]), version.version)
    if version.deleted:
        raise soft_deleted(subject, version.version)
    _unreferred(state, version)
    return Decision(((_key(version), version._replace(deleted=True)),), version.version)


def set_level(state: RegistryState, subject: str | None, body: Mapping[str, Any]) -> Decision:
    """Set the level of a subject, or of the whole registry."""
    level = read_level(body.get("compatibility"))
    if subject is not None:
        checked_subject(subject)
    _writable(state, subject)
    records = () if state.level(subject) == level else ((Key(CONFIG, subject), Text(level)),)
    return Decision(records, {"compatibility": level})


def delete_level(state: RegistryState, subject: str | None) -> Decision:
    """Let a subject have the level of the registry again, or the registry its default."""
    level = state.level(subject)
    if level is None and subject is not None:
        raise no_level(subject)
    _writable(state, subject)
    before = level or state.level_in_force(None)
    return Decision(() if level is None else ((Key(CONFIG, subject), None),), {"compatibilityLevel": before})


def set_mode(state: RegistryState, subject: str | None, body: Mapping[str, Any], force: bool) -> Decision:
    """Set the mode of a subject, or of the whole registry."""
    mode = read_mode(body.get("mode"))
    if subject is not None:
        checked_subject(subject)
        if mode == READONLY_OVERRIDE:
            raise not_permitted(f"{READONLY_OVERRIDE} is a mode of the whole registry: set it without a subject.")
    if mode == IMPORT and not force and state.mode(subject) != IMPORT:
        there = state.versions(subject) if subject is not None else state.subjects()
        if there:
            raise not_permitted(
                "Only what has no schemas can go into the mode IMPORT, since ids could mean two things otherwise; force=true "
                "does it all the same."
            )
    records = () if state.mode(subject) == mode else ((Key(MODE, subject), Text(mode)),)
    return Decision(records, {"mode": mode})


def delete_mode(state: RegistryState, subject: str | None) -> Decision:
    """Let a subject have the mode of the registry again, or the registry its default."""
    mode = state.mode(subject)
    if mode is None and subject is not None:
        raise no_mode(subject)
    return Decision(() if mode is None else ((Key(MODE, subject), None),), {"mode": mode or DEFAULT_MODE})


def _imported(state: RegistryState, subject: str, given: Given) -> Decision:
    schema_id, version = given.schema_id, given.version
    if schema_id is None:
        known = state.id_of(given.schema)
        schema_id = state.max_id + 1 if known is None else known
    kept = state.schema(schema_id)
    if kept is not None and kept != given.schema and not _is_same(state, kept, given):
        raise other_id(schema_id)
    there = None if version is None else state.version(subject, version)
    if there is not None and not there.deleted:
        if there.id == schema_id:
            return Decision((), _registered(there))
        raise not_permitted(f"Subject '{subject}' has a version {version} already, with the id {there.id}.")
    return _new_version(state, subject, given, schema_id, version)


def _new_version(state: RegistryState, subject: str, given: Given, schema_id: int, version: int | None) -> Decision:
    if version is None:
        version = max((each.version for each in state.versions(subject, deleted=True)), default=0) + 1
    if max(schema_id, version) > NUMBER_MAX:
        raise not_permitted(f"All ids or versions up to {NUMBER_MAX} are used up.")
    # An id means one text: of a schema that is there as another one's version, that text is kept.
    kept = state.schema(schema_id)
    made = Version(subject, version, schema_id, kept or given.schema)
    return Decision(((_key(made), made),), _registered(made))


def _registered(version: Version) -> dict[str, Any]:
    return {"id": version.id, "version": version.version}


def _key(version: Version) -> Key:
    return Key(SCHEMA, version.subject, version.version)


def _gone(state: RegistryState, versions: Sequence[Version]) -> tuple[Record, ...]:
    """Records that delete versions for good, and keep in mind the highest id."""
    return (*((_key(version), None) for version in versions), (Key(NOOP), Number(state.max_id)))


def _writable(state: RegistryState, subject: str | None) -> str:
    mode = state.mode_in_force(subject)
    if mode in (READONLY, READONLY_OVERRIDE):
        what = "The registry" if subject is None else f"Subject '{subject}'"
        raise not_permitted(f"{what} is in the mode {mode}: nothing can be changed.")
    return mode


def _unreferred(state: RegistryState, version: Version) -> None:
    if by := state.referring(version.subject, version.version):
        raise referred_to(version.subject, version.version, by)


def _is_same(state: RegistryState, kept: Schema, given: Given) -> bool:
    """Whether a stored schema, which another program may have written, is the given one."""
    if (kept.schema_type, kept.references) != (given.schema.schema_type, given.schema.references):
        return False
    try:
        return given.schema.text in _texts(state, kept)
    except Refusal:
        return False


def _references(state: RegistryState, given: object) -> tuple[Reference, ...]:
    if not isinstance(given, list | tuple) or len(given) > REFERENCES_MAX:
        raise invalid_schema(f"the attribute references is a list of at most {REFERENCES_MAX} references.")
    found = []
    for each in given:
        if not isinstance(each, dict) or not all(isinstance(each.get(name), str) for name in ("name", "subject")):
            raise invalid_schema("a reference has the texts name and subject, and the number version.")
        version = each.get("version")
        if isinstance(version, bool) or not isinstance(version, int):
            raise invalid_schema("a reference has the number version.")
        try:
            referred = found_version(state, each["subject"], str(version))
        except Refusal as refusal:
            raise invalid_schema(f"the reference {each['name'][:100]!r} leads nowhere: {refusal.sentence}") from None
        found.append(Reference(each["name"], each["subject"], referred.version))
    return tuple(found)


def _resolve(state: RegistryState, schema: Schema, found: dict[str, str], depth: int) -> None:
    for reference in schema.references:
        if reference.name in found:
            continue
        if depth > REFERENCES_MAX // 10 or len(found) >= REFERENCES_MAX:
            raise invalid_schema(f"it refers to more than {REFERENCES_MAX} schemas, or too deep.")
        referred = state.version(reference.subject, reference.version)
        if referred is None:
            raise no_schema()
        _resolve(state, referred.schema, found, depth + 1)
        found[reference.name] = referred.schema.text


def _number(body: Mapping[str, Any], name: str) -> int | None:
    """An id or a version of a request; what clients give for none is none."""
    given = body.get(name)
    if given in (None, -1, 0):
        return None
    if isinstance(given, bool) or not isinstance(given, int) or not 1 <= given <= NUMBER_MAX:
        raise malformed(f"The attribute {name} is a number from 1 to {NUMBER_MAX}.")
    return given
