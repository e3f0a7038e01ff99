"""What the records of the topic come to: every broker that has read as far has the same. Pure; not thread-safe.

A record that compaction leaves out changes nothing: of each key the last one decides, and what one key says of another (`DELETE_SUBJECT`)
says it only of versions that stood before it.
"""

from __future__ import annotations

from collections.abc import Iterator

from pylog_spark.registry.levels import DEFAULT_LEVEL, DEFAULT_MODE, LEVELS, MODES, READONLY_OVERRIDE
from pylog_spark.registry.model import Reference, Schema
from pylog_spark.registry.stored import (
    CLEAR_SUBJECT,
    CONFIG,
    DELETE_SUBJECT,
    MODE,
    Key,
    Number,
    Record,
    Text,
    Version,
)


class RegistryState:
    """Subjects, versions, levels and modes.

    Attributes
    ----------
    max_id : int
        The highest id that was ever given; 0 at the beginning.
    """

    def __init__(self) -> None:
        self._subjects: dict[str, dict[int, Version]] = {}
        self._by_id: dict[int, dict[tuple[str, int], Version]] = {}
        self._ids: dict[Schema, dict[int, int]] = {}
        self._referring: dict[tuple[str, int], dict[tuple[str, int], Version]] = {}
        self._levels: dict[str | None, str] = {}
        self._modes: dict[str | None, str] = {}
        self.max_id = 0

    def apply(self, record: Record) -> None:
        """Take the next record of the topic."""
        key, value = record
        if key.kind in (CONFIG, MODE):
            known, words = (self._levels, LEVELS) if key.kind == CONFIG else (self._modes, MODES)
            known.pop(key.subject, None)
            if isinstance(value, Text) and value.text in words:
                known[key.subject] = value.text
        elif isinstance(value, Number):
            self._apply_number(key, value.number)
        elif key.subject is not None and key.version is not None:
            self._forget(key.subject, key.version)
            if isinstance(value, Version):
                self._keep(value)

    def subjects(self, *, deleted: bool = False, deleted_only: bool = False) -> list[str]:
        """Give the names of subjects that have versions, in their order."""
        # Confluent's: with `deleted_only` those of which nothing else is left.
        wanted = all if deleted_only else any
        return sorted(
            subject
            for subject, versions in self._subjects.items()
            if wanted(_wanted(each, deleted, deleted_only) for each in versions.values())
        )

    def versions(self, subject: str, *, deleted: bool = False, deleted_only: bool = False) -> list[Version]:
        """Give the versions of a subject, the oldest first."""
        kept = self._subjects.get(subject, {})
        return [kept[number] for number in sorted(kept) if _wanted(kept[number], deleted, deleted_only)]

    def version(self, subject: str, number: int) -> Version | None:
        """Give this version, deleted or not."""
        return self._subjects.get(subject, {}).get(number)

    def schema(self, schema_id: int) -> Schema | None:
        """Give the schema with this id; of a deleted version, too, since records that were written with it are still read."""
        return next((each.schema for each in self._by_id.get(schema_id, {}).values()), None)

    def having(self, schema_id: int, *, deleted: bool = False) -> list[Version]:
        """Give the versions that are this schema, by subject."""
        found = self._by_id.get(schema_id, {})
        return [found[place] for place in sorted(found) if deleted or not found[place].deleted]

    def id_of(self, schema: Schema) -> int | None:
        """Give the id that this very schema has."""
        return min(self._ids.get(schema, {}), default=None)

    def referring(self, subject: str, version: int) -> list[int]:
        """Give the ids of schemas that refer to this version and are not deleted."""
        found = self._referring.get((subject, version), {})
        return sorted({each.id for each in found.values() if not each.deleted})

    def level(self, subject: str | None) -> str | None:
        """Give the level that is set for a subject, or, with None, for the whole registry."""
        return self._levels.get(subject)

    def mode(self, subject: str | None) -> str | None:
        """The same of the mode."""
        return self._modes.get(subject)

    def level_in_force(self, subject: str | None) -> str:
        """Give the level by which schemas of a subject are compared."""
        return self._levels.get(subject) or self._levels.get(None) or DEFAULT_LEVEL

    def mode_in_force(self, subject: str | None) -> str:
        """Give the mode in which a subject is."""
        whole = self._modes.get(None) or DEFAULT_MODE
        return whole if whole == READONLY_OVERRIDE else self._modes.get(subject) or whole

    def ids(self) -> Iterator[int]:
        """Iterate over all ids that stand for a schema."""
        return iter(self._by_id)

    def _apply_number(self, key: Key, number: int) -> None:
        if key.kind == DELETE_SUBJECT and key.subject is not None:
            for version in self.versions(key.subject):
                if version.version <= number:
                    self._keep(version._replace(deleted=True))
        elif key.kind == CLEAR_SUBJECT and key.subject is not None:
            for version in self.versions(key.subject, deleted=True):
                self._forget(version.subject, version.version)
        else:
            self.max_id = max(self.max_id, number)

    def _keep(self, version: Version) -> None:
        place = (version.subject, version.version)
        self._forget(*place)
        self._subjects.setdefault(version.subject, {})[version.version] = version
        self._by_id.setdefault(version.id, {})[place] = version
        counts = self._ids.setdefault(version.schema, {})
        counts[version.id] = counts.get(version.id, 0) + 1
        for reference in version.schema.references:
            self._referring.setdefault(_referred(reference), {})[place] = version
        self.max_id = max(self.max_id, version.id)

    def _forget(self, subject: str, number: int) -> None:
        version = self._subjects.get(subject, {}).pop(number, None)
        if version is None:
            return
        place = (subject, number)
        if not self._subjects[subject]:
            del self._subjects[subject]
        del self._by_id[version.id][place]
        if not self._by_id[version.id]:
            del self._by_id[version.id]
        counts = self._ids[version.schema]
        counts[version.id] -= 1
        if not counts[version.id]:
            del counts[version.id]
        if not counts:
            del self._ids[version.schema]
        for reference in version.schema.references:
            # Twice the same reference is there once.
            self._referring.get(_referred(reference), {}).pop(place, None)


def _referred(reference: Reference) -> tuple[str, int]:
    return reference.subject, reference.version


def _wanted(version: Version, deleted: bool, deleted_only: bool) -> bool:
    return version.deleted if deleted_only else deleted or not version.deleted
