"""What a shell completes: names of settings, from the tables."""

import pytest


@pytest.mark.parametrize(
    ("words", "begun", "names"),
    [
        ("broker --config", "num.part", ["num.partitions="]),
        ("cluster start --config", "zookeeper.session", ["zookeeper.session.timeout.ms="]),
        ("topic create t --config", "max.", ["max.compaction.lag.ms=", "max.message.bytes="]),
        ("topic alter t --delete-config", "retention.b", ["retention.bytes"]),
        ("config alter topic t --set", "log.preal", ["log.preallocate="]),
        ("config alter broker 1 --delete", "log.retention.m", ["log.retention.minutes", "log.retention.ms"]),
        ("consume t --client-config", "fetch.max", ["fetch.max.bytes=", "fetch.max.wait.ms="]),
    ],
)
def test_names_of_settings_are_completed(pylog, environment, words, begun, names):
    asked = f"pylog {words} {begun}"
    shell = {"_PYLOG_COMPLETE": "zsh_complete", "COMP_WORDS": asked, "COMP_CWORD": str(len(asked.split()) - 1)}
    lines = pylog(env={**environment, **shell}).stdout.splitlines()
    assert lines[1::3] == names
    assert all(meaning.endswith(".") for meaning in lines[2::3])
