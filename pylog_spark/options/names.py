"""Which option names are known; the values of the options; which options are settings of the native client."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pylog_spark.errors import PylogError, native
from pylog_spark.login import endpoint
from pylog_spark.offsets.limits import LimitError
from pylog_spark.offsets.pattern import PatternError
from pylog_spark.options import java
from pylog_spark.options.secrets import ClientSettings, shown_key
from pylog_spark.options.table import OPTIONS, Option
from pylog_spark.registry import settings as registry_settings
from pylog_spark.typed.registered import Registry

#: The topic in which the sink keeps its decisions. No pattern matches it, although for the brokers it is not an internal topic.
SINK_TOPIC = "__pylog_sink"

#: What the topics of ledgers with a name begin with (the option `ledger`).
SINK_PREFIX = f"{SINK_TOPIC}."

BY_KEY = {option.name.lower(): option for option in OPTIONS}

#: Names of Spark's own among the options that it hands over.
_SPARKS_OWN = frozenset({"checkpointlocation", "provider", "queryname"})

#: Names that a user may well try, and why they are refused.
_REFUSED = {
    **{f"kafka.{name}": reason for name, reason in java.REFUSED.items()},
}

#: Settings that are not passed on to the native client: those of the Java client that have no effect here, and those that this
#: package reads itself.
_NOT_NATIVE = frozenset({*java.IGNORED, "group.id"})
_CLIENT_PREFIX = "kafka."
_REGISTRY_URL = "schema.registry.url"
_OF_REGISTRY = frozenset(registry_settings.PREFIX + name for name in registry_settings.NAMES)
_ENDPOINT = _CLIENT_PREFIX + endpoint.SETTING

#: What Spark puts before the names of a table's OPTIONS. It passes them on only when it asks for the table's columns.
_TABLE_PREFIX = "option."
_TABLE = (
    "Spark gives a table of CREATE TABLE ... USING pylog none of its OPTIONS when it is read or written: name them in each statement "
    "(SELECT * FROM t WITH (...), INSERT INTO t WITH (...)), or use a view that has them (CREATE TEMPORARY VIEW ... USING pylog OPTIONS (...))"
)


def check_names(given: Mapping[str, str]) -> None:
    """Check that every option is known, for a batch read, a stream or a write. Spark calls this before it knows which it will be.

    Raises
    ------
    PylogError
        For an unknown option, with the nearest known name; for a refused one, with the reason. One that would be shown by Spark or
        by ``repr``, and has a secret in it, is refused here, before anybody has it.
    """
    for key, text in given.items():
        name = key.lower()
        if (why := shown_key(name, text)) is not None:
            raise PylogError("PYLOG_INVALID_OPTION", f"The option {key} cannot be used so: {why}.")
        if name == _ENDPOINT and text.strip() and (why := endpoint.refused(text)) is not None:
            raise PylogError("PYLOG_INVALID_OPTION", f"The option {key} {why}.")
        if name in _REFUSED:
            raise PylogError("PYLOG_UNSUPPORTED_OPTION", f"The option {key} is not supported: {_REFUSED[name]}.")
        if name.startswith(_TABLE_PREFIX):
            raise PylogError("PYLOG_UNSUPPORTED_OPTION", f"{_TABLE}; give such a table its columns and no OPTIONS.")
        known = name in BY_KEY or name in _SPARKS_OWN or name == "bootstrap.servers" or name in _OF_REGISTRY
        if not known and not name.startswith(_CLIENT_PREFIX):
            raise PylogError("PYLOG_UNKNOWN_OPTION", f"There is no option {key!r}; {_nearest(name)}")


def option_values(given: Mapping[str, str], scope: str) -> dict[str, Any]:
    """Give the value of every option of the table by its name; None where there is no text and no default."""
    check_names(given)
    said = {key.lower(): text for key, text in given.items()}
    for key in said:
        option = BY_KEY.get(key)
        if option and scope not in option.scopes + option.ignored_in:
            where = " or ".join(f"a {name}" for name in option.scopes)
            raise PylogError(
                "PYLOG_INVALID_OPTION",
                f"The option {option.name} has no meaning in a {scope}, only in {where}; leave it out.",
            )
    return {option.name: _value(option, said.get(option.name.lower(), option.default)) for option in OPTIONS}


def _value(option: Option, text: str) -> Any:
    if text == "" and option.default == "":
        return None
    try:
        return option.parse(text)
    except (LimitError, PatternError) as error:
        raise PylogError("PYLOG_INVALID_OPTION", f"The option {option.name} cannot be used: {error}.") from None
    except ValueError as error:
        raise PylogError("PYLOG_INVALID_OPTION", f"The option {option.name} {error}.") from None


def client_settings(given: Mapping[str, str], *, needs_brokers: bool = True) -> ClientSettings:
    """Give the settings of the native client, which knows their names and values. A read of a directory needs no brokers."""
    settings: dict[str, str] = {}
    for key, text in given.items():
        name = key.lower()
        if name == "bootstrap.servers":
            name = _CLIENT_PREFIX + name
        if name.startswith(_CLIENT_PREFIX):
            settings[name.removeprefix(_CLIENT_PREFIX)] = text
    if needs_brokers and not settings.get("bootstrap.servers", "").strip():
        sentence = 'The option kafka.bootstrap.servers is missing; give the brokers as "host:port[,host:port...]".'
        has_any = bool(settings) or any(key.lower() in BY_KEY for key in given)
        raise PylogError("PYLOG_INVALID_OPTION", sentence if has_any else f"{sentence} {_TABLE}.")
    return ClientSettings((name, text) for name, text in settings.items() if name not in _NOT_NATIVE)


def registry(given: Mapping[str, str]) -> Registry | None:
    """Give how a schema registry is asked; None where no option names one.

    Raises
    ------
    PylogError
        There are settings without a registry, or a setting that cannot be used.
    """
    said = {key.lower(): text.strip() for key, text in given.items()}
    settings = {name.removeprefix(registry_settings.PREFIX): said[name] for name in _OF_REGISTRY if name in said}
    url = said.get(_REGISTRY_URL, "")
    if not url:
        if settings:
            raise PylogError(
                "PYLOG_INVALID_OPTION", f"Settings of a schema registry need the option {_REGISTRY_URL} beside them."
            )
        return None
    registry_settings.read_settings(settings)
    return Registry(url, settings)


def _nearest(name: str) -> str:
    known = {option.name.lower(): option.name for option in OPTIONS}
    known |= {name: name for name in _OF_REGISTRY}
    candidates = {**known, **{key.removeprefix(_CLIENT_PREFIX): full for key, full in known.items()}}
    found = native().nearest(name, list(candidates))
    if found is not None:
        return f"did you mean {candidates[found]}?"
    return f"the options are {', '.join(option.name for option in OPTIONS)}, and kafka.* for the client."
