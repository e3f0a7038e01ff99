"""Brokers as the mirror's tests have them: a source of either kind, and a pylog in which topics are restored."""

from tests.mirror.conftest import admin, copies, name, source, target

__all__ = ["admin", "copies", "name", "source", "target"]
