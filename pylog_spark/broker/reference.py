"""The reference of all settings, written from their declarations: what `docs/settings.md` and ``--list-settings`` show."""

from collections.abc import Iterator

from pylog_spark.broker.config import BROKER_SETTINGS, TOPIC_SETTINGS
from pylog_spark.broker.group_config import GROUP_SETTINGS
from pylog_spark.broker.setting import INT_MAX, LONG_MAX, Setting, show
from pylog_spark.markdown import table

_INTRODUCTION = """\
# Settings

Names, types and defaults are Apache Kafka's, unless the meaning says otherwise. This page is written by `pylog broker --list-settings`
from the declarations in `broker_native/settings`; a test keeps it equal to them.

A broker's settings are given with `--config NAME=VALUE`, in a `--config-file`, or as keywords of `start_broker`
(`num_partitions=4`). Those marked "while running" can also be changed by Kafka's tools without a restart.
`pylog config list broker` shows them in a terminal, as it does for `topic`, `group` and `client`. After
`eval "$(_PYLOG_COMPLETE=bash_source pylog)"` bash completes their names after `--config`; zsh and fish can do so as well.
"""


_OF_TOPICS = "Set when a topic is created, or later with `pylog topic alter`. A setting that is not set falls back to the broker setting that is named.\n"
_OF_GROUPS = (
    "Of one share group, set with `kafka-configs.sh --alter --group NAME --add-config NAME=VALUE`. A setting that is not set falls back "
    "to the broker setting that is named.\n"
)


def page() -> str:
    """The whole reference as Markdown."""
    return "\n".join(
        [
            _INTRODUCTION,
            *_section("Broker", BROKER_SETTINGS, ""),
            *_section("Topic", TOPIC_SETTINGS, _OF_TOPICS),
            *_section("Group", GROUP_SETTINGS, _OF_GROUPS),
        ]
    )


def _section(title: str, settings: tuple[Setting, ...], introduction: str) -> Iterator[str]:
    yield f"## {title} settings\n"
    if introduction:
        yield introduction
    last = "falls back to" if introduction else "while running"
    rows = [_row(setting, bool(introduction)) for setting in settings]
    yield table(("name", "type", "default", "valid", last, "meaning"), rows)


def _row(setting: Setting, falls_back: bool) -> tuple[str, ...]:
    fallback = ", ".join(f"`{synonym.name}`" for synonym in setting.synonyms)
    last = fallback if falls_back else "yes" if setting.dynamic else ""
    valid = str(setting.valid) if setting.valid is not None else ""
    return f"`{setting.name}`", setting.type.name, _default(setting), valid, last, setting.doc


def _default(setting: Setting) -> str:
    special = {INT_MAX: "2^31-1", LONG_MAX: "2^63-1"}
    if setting.default is None:
        return "not set"
    if isinstance(setting.default, int) and setting.default in special:
        return special[setting.default]
    shown = show(setting.default)
    return f"`{shown}`" if shown else "empty"
