"""``pylog config``: what is shown, what is changed, what is refused."""

import json
import re

import pytest

from pylog_spark._native import settings


def test_settings_of_a_topic_are_changed_and_shown_with_their_source(pylog):
    pylog("topic", "create", "set")
    unset = pylog("config", "describe", "topic", "set")
    assert (unset.returncode, unset.stdout) == (
        0,
        "Topic set\nAll settings have their defaults; --all shows them.\n",
    )
    changed = pylog("config", "alter", "topic", "set", "--set", "retention.ms=60000", "-s", "flush.ms=5")
    assert (changed.returncode, changed.stdout, changed.stderr) == (0, "Changed topic set.\n", "")
    shown = pylog("config", "describe", "topic", "set").stdout
    assert re.search(r"^retention\.ms +60000 +DYNAMIC_TOPIC_CONFIG$", shown, re.MULTILINE)
    assert "segment.bytes" not in shown
    assert re.search(
        r"^segment\.bytes +1073741824 +DEFAULT_CONFIG$",
        pylog("config", "describe", "topic", "set", "--all").stdout,
        re.MULTILINE,
    )
    assert pylog("config", "alter", "topic", "set", "--delete", "retention.ms").returncode == 0
    (described,) = json.loads(pylog("config", "describe", "topic", "set", "--json").stdout)
    assert [config["name"] for config in described["configs"]] == ["flush.ms"]


def test_a_dry_run_says_whether_the_broker_would_take_it_and_changes_nothing(pylog):
    pylog("topic", "create", "dry")
    taken = pylog("config", "alter", "topic", "dry", "--set", "retention.ms=1", "--dry-run")
    assert (taken.returncode, taken.stdout) == (0, "Would have changed topic dry.\n")
    assert "retention.ms" not in pylog("config", "describe", "topic", "dry").stdout
    refused = pylog("config", "alter", "topic", "dry", "--set", "retention.ms=soon", "--dry-run")
    assert (refused.returncode, refused.stderr.count("\n")) == (1, 1)


def test_settings_of_the_broker_are_shown_without_naming_it_and_changed_while_it_runs(pylog):
    described = json.loads(pylog("config", "describe", "broker", "--all", "--json").stdout)
    assert [broker_row["name"] for broker_row in described] == ["1"]
    values = {config["name"]: config["value"] for config in described[0]["configs"]}
    assert values["num.partitions"] == "1"
    assert values["auto.create.topics.enable"] == "true"
    assert pylog("config", "alter", "broker", "1", "--set", "log.retention.ms=86400000").returncode == 0
    shown = pylog("config", "describe", "broker", "1").stdout
    assert re.search(r"^log\.retention\.ms +86400000 +DYNAMIC_BROKER_CONFIG$", shown, re.MULTILINE)
    assert pylog("config", "alter", "broker", "1", "--delete", "log.retention.ms").returncode == 0


def test_levels_of_a_brokers_loggers_are_shown_and_changed(pylog):
    shown = pylog("config", "describe", "broker-logger").stdout
    assert shown.startswith("Loggers of broker 1\n")
    assert re.search(r"^root +INFO +DYNAMIC_BROKER_LOGGER_CONFIG$", shown, re.MULTILINE)
    changed = pylog("config", "alter", "broker-logger", "1", "--set", "pylog.broker.request=TRACE")
    assert (changed.returncode, changed.stdout) == (0, "Changed broker-logger 1.\n")
    (described,) = json.loads(pylog("config", "describe", "broker-logger", "1", "--json").stdout)
    levels = {one["name"]: one["value"] for one in described["configs"]}
    assert (levels["pylog.broker.request"], levels["pylog.broker"]) == ("TRACE", "INFO")
    assert pylog("config", "alter", "broker-logger", "1", "--delete", "pylog.broker.request").returncode == 0
    shown = pylog("config", "describe", "broker-logger", "1").stdout
    assert re.search(r"^pylog\.broker\.request +INFO ", shown, re.MULTILINE)


def test_what_cannot_be_is_one_sentence(pylog, make_topic):
    make_topic("there")
    for words, code, part in (
        (["describe", "topic", "none"], 1, "Topic 'none' does not exist"),
        (["describe", "topic"], 2, "Name the topics"),
        (["describe", "broker", "x"], 1, "named by its number"),
        (["describe", "queue", "x"], 2, "'queue' is not one of"),
        (["alter", "topic", "none"], 2, "Nothing to change"),
        (["alter", "topic", "none", "--set", "flush.ms=1"], 1, "Topic 'none' does not exist"),
        (["alter", "topic", "none", "--delete", "flush.ms"], 1, "Topic 'none' does not exist"),
        (
            ["alter", "topic", "there", "--delete", "retenton.ms"],
            2,
            "has no setting retenton.ms; did you mean retention.ms?",
        ),
        (["alter", "topic", "there", "--delete", "no.such"], 2, "'pylog config describe topic there --all' shows"),
        (["alter", "broker", "1", "--delete", "no.such"], 2, "The broker 1 has no setting no.such"),
        (["alter", "broker", "1", "--set", "num.partitions=2"], 1, "cannot change while the broker runs"),
        (["alter", "broker", "1", "--set", "no.such=2"], 1, "is not a broker setting"),
        (["alter", "broker-logger", "1", "--set", "no.such=INFO"], 1, "There is no logger no.such"),
        (["alter", "broker-logger", "1", "--delete", "root"], 1, "can be set, not deleted"),
        (["describe", "broker-logger", "x"], 1, "named by its number"),
    ):
        done = pylog("config", *words)
        assert (done.returncode, part in done.stderr) == (code, True), (words, done.stderr)


@pytest.mark.parametrize("owner", ["client", "broker", "topic", "group"])
def test_all_settings_are_listed_with_their_defaults_and_meanings_without_a_broker(pylog, owner):
    listed = json.loads(pylog("config", "list", owner, "--json").stdout)
    assert [row["name"] for row in listed] == [row.name for row in settings(owner)]
    assert all(row["doc"].endswith(".") for row in listed)
    lines = pylog("config", "list", owner).stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["NAME", *(row["name"] for row in listed)]


def test_the_help_of_a_command_names_the_settings_that_it_takes(pylog):
    of_topics = " ".join(pylog("topic", "create", "--help").stdout.split())
    assert all(f" {row.name}" in of_topics for row in settings("topic"))
    assert "See 'pylog config list client'." in of_topics
    of_both = " ".join(pylog("config", "alter", "--help").stdout.split())
    assert "See 'pylog config list broker' and 'pylog config list topic'." in of_both
