"""Entries of DescribeConfigs: what is told of a password."""

from pylog_spark.broker.describe import Source, _entry
from pylog_spark.broker.setting import Setting, Type


def test_of_a_password_only_that_there_is_one_is_told() -> None:
    setting = Setting("ssl.keystore.password", Type.PASSWORD, "", "What opens the key store.")
    layers = [(setting.name, "planted", Source.STATIC_BROKER_CONFIG), (setting.name, "", Source.DEFAULT_CONFIG)]
    entry = _entry(setting, "planted", layers, True, True, True)
    assert entry["is_sensitive"]
    assert (entry["value"], entry["config_type"]) == (None, 9)
    assert "planted" not in str(entry)
    assert [synonym["value"] for synonym in entry["synonyms"]] == [None, None]
