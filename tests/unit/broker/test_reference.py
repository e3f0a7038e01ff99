"""The settings page is written from the declarations."""

from pathlib import Path

from pylog_spark.broker.config import BROKER_SETTINGS, TOPIC_SETTINGS
from pylog_spark.broker.reference import page

PAGE = Path(__file__).parents[3] / "docs" / "settings.md"


def test_the_page_in_docs_is_what_the_declarations_say():
    assert PAGE.read_text() == page(), "run: pylog broker --list-settings > docs/settings.md"


def test_every_setting_has_its_line():
    lines = page().splitlines()
    for setting in (*BROKER_SETTINGS, *TOPIC_SETTINGS):
        assert any(line.startswith(f"| `{setting.name}` | {setting.type.name} | ") for line in lines)
