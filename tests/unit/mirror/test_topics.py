"""Which topics are mirrored, and what they should be in the target."""

import re

from pylog_spark.mirror.topics import Topic, changes, copy_of, is_wanted
from pylog_spark.results.topics import TopicDescription


def topic(replication_factor: int = 3, **configs: str) -> Topic:
    given = {name.replace("_", "."): value for name, value in configs.items()}
    return Topic("orders", "id", (1, 2), replication_factor, given)


def described(name: str, *, is_internal: bool = False) -> TopicDescription:
    return TopicDescription(name, "id", is_internal, None, ())


def test_that_whole_names_match_and_topics_of_brokers_and_of_the_sink_are_left_out() -> None:
    pattern = re.compile("orders|.*s")
    wanted = [described(name) for name in ("orders", "orders2", "items", "__pylog_sinks")]
    wanted.append(described("offsets", is_internal=True))
    assert [each.name for each in wanted if is_wanted(each, pattern)] == ["orders", "items"]


def test_that_a_copy_has_the_sources_settings_but_for_what_is_about_one_cluster_or_given() -> None:
    given = topic(retention_ms="1", mirror_source="x", leader_replication_throttled_replicas="*", flush_ms="2")
    copy = copy_of(given, {"flush.ms": "3"}, brokers=3)
    assert (copy.configs, copy.replication_factor, copy.notes) == ({"retention.ms": "1", "flush.ms": "3"}, 3, ())


def test_that_settings_which_name_something_else_are_not_copied_from_a_cluster_or_a_file_but_set_where_somebody_says_so() -> (
    None
):
    letters = {
        "schema.validation.dead.letter.topic": "payments",
        "schema.validation.dead.letter.owner": "127.0.0.1 User:a",
    }
    given = Topic("orders", "id", (1,), 1, {**letters, "retention.until.checkpointed": "g", "retention.ms": "1"})
    copy = copy_of(given, {}, brokers=1)
    assert (copy.configs, len(copy.notes)) == ({"retention.ms": "1"}, 2)
    own = {"retention.ms": "1", **letters}
    assert changes(copy.configs, own) == {}
    wanted = copy_of(given, {"retention.until.checkpointed": "mine"}, brokers=1)
    assert (wanted.configs["retention.until.checkpointed"], len(wanted.notes)) == ("mine", 1)
    assert changes(wanted.configs, {**own, "retention.until.checkpointed": "mine"}) == {}


def test_that_fewer_brokers_have_fewer_replicas_and_that_is_said() -> None:
    copy = copy_of(topic(min_insync_replicas="2"), {}, brokers=1)
    assert (copy.replication_factor, copy.configs["min.insync.replicas"], len(copy.notes)) == (1, "1", 2)
    assert copy_of(topic(), {}, brokers=1, replication_factor=2).replication_factor == 2
    assert copy_of(topic(), {}, brokers=1, replication_factor=3).notes == ()


def test_that_only_what_differs_changes_and_what_the_source_does_not_have_goes() -> None:
    present = {"mirror.source": "x", "retention.ms": "1", "flush.ms": "2"}
    assert changes({"retention.ms": "1"}, present) == {"flush.ms": None}
    assert changes({"retention.ms": "5"}, {"mirror.source": "x"}) == {"retention.ms": "5"}
    assert changes({}, {"mirror.source": "x"}) == {}
