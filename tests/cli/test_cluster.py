"""``pylog cluster`` with one broker: what it shows, and what cannot be done with one."""

import json

import pytest


@pytest.fixture(scope="module")
def topic(broker):
    from pylog_spark.client.admin import Admin

    with Admin(broker.bootstrap_servers) as admin:
        admin.create_topic("flights", partitions=2)
    return "flights"


def test_describe_names_the_broker_that_controls_and_what_it_leads(pylog, broker, topic):
    shown = pylog("cluster", "describe")
    assert shown.returncode == 0, shown.stderr
    assert broker.bootstrap_servers in shown.stdout
    assert "not in sync" not in shown.stdout
    as_json = json.loads(pylog("cluster", "describe", "--json").stdout)
    (broker_row,) = as_json["brokers"]
    assert broker_row["controller"]
    assert broker_row["leads"] == broker_row["in_sync"] == broker_row["replicas"] >= 2
    assert as_json["not_in_sync"] == []


def test_a_plan_that_changes_nothing_moves_nothing(pylog, topic):
    done = pylog("cluster", "reassign", topic, "--execute")
    assert (done.returncode, done.stdout) == (0, "")
    assert "where it should be" in done.stderr


def test_more_replicas_than_brokers_are_refused_before_anything_is_asked(pylog, topic):
    done = pylog("cluster", "reassign", topic, "--replication-factor", "2", "--execute")
    assert done.returncode == 2
    assert "name more brokers" in done.stderr


def test_the_brokers_refusal_of_a_plan_is_one_sentence(pylog, topic, tmp_path):
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({"version": 1, "partitions": [{"topic": topic, "partition": 0, "replicas": [7]}]}))
    shown = pylog("cluster", "reassign", "--plan", str(plan))
    assert shown.returncode == 0
    assert "--execute" in shown.stderr
    done = pylog("cluster", "reassign", "--plan", str(plan), "--execute")
    assert done.returncode == 1
    assert "broker 7" in done.stderr
    plan.write_text("{}")
    assert pylog("cluster", "reassign", "--plan", str(plan)).returncode == 2


def test_without_moves_there_is_nothing_to_list_or_to_end(pylog, topic):
    assert "No replica is being moved" in pylog("cluster", "moves").stderr
    assert "0 moves" in pylog("cluster", "cancel", topic, "--execute").stdout


def test_a_broker_that_is_alone_shows_kafkas_features_and_has_no_level_to_raise(pylog, broker):
    shown = pylog("cluster", "features")
    assert shown.returncode == 0, shown.stderr
    assert "transaction.version" in shown.stdout
    assert "pylog.version" not in shown.stdout
    assert {
        feature["feature"]: feature["level"] for feature in json.loads(pylog("cluster", "features", "--json").stdout)
    }["transaction.version"] == 2
    refused = pylog("cluster", "features", "--level", "2", "--execute")
    assert refused.returncode == 1
    assert "This broker is alone" in refused.stderr


def test_elections_that_are_not_needed_are_no_error_and_unclean_ones_need_a_word(pylog, topic):
    assert pylog("cluster", "elect", topic).stdout == "Elected 0 leaders.\n"
    assert pylog("cluster", "elect").returncode == 0
    assert pylog("cluster", "elect", topic, "--unclean").returncode == 2


def test_a_broker_that_lives_or_is_not_known_is_not_forgotten(pylog, broker, topic):
    shown = pylog("cluster", "unregister", "7")
    assert (shown.returncode, shown.stdout) == (0, "Broker 7 would be unregistered; add --execute to do it.\n")
    done = pylog("cluster", "unregister", "7", "--execute")
    assert done.returncode == 1
    assert "Broker 7 is not registered." in done.stderr
    (alive,) = json.loads(pylog("cluster", "describe", "--json").stdout)["brokers"]
    done = pylog("cluster", "unregister", str(alive["node_id"]), "--execute")
    assert "lives: stop it" in done.stderr
