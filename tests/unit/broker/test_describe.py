"""Entries of DescribeConfigs: what they show of a password."""

from pylog_spark.broker.describe import SettingSource, _entry
from pylog_spark.broker.setting import Setting, Type


def test_the_value_of_a_password_is_never_shown() -> None:
    setting = Setting("ssl.keystore.password", Type.PASSWORD, "", "What opens the key store.")
    layers = [
        (setting.name, "planted", SettingSource.STATIC_BROKER_CONFIG),
        (setting.name, "", SettingSource.DEFAULT_CONFIG),
    ]
    entry = _entry(setting, "planted", layers, True, True, True)
    assert entry["is_sensitive"]
    assert (entry["value"], entry["config_type"]) == (None, 9)
    assert "planted" not in str(entry)
    assert [synonym["value"] for synonym in entry["synonyms"]] == [None, None]
