"""The options of format("pylog"): each known, each refused with a sentence that says what to do."""

import pickle
from pathlib import Path

import pytest

from pylog_spark._native import settings
from pylog_spark.errors import PylogError
from pylog_spark.offsets import TopicPartition
from pylog_spark.offsets.limits import Ago, AtTimestamp, Back, Earliest, Latest, Specific
from pylog_spark.options import BATCH, OPTIONS, STREAM, check_names, options_table, page, read_options, write_options
from pylog_spark.options.java import IGNORED, REFUSED

BASE = {"kafka.bootstrap.servers": "b:9092", "subscribe": "t"}
T0 = TopicPartition("t", 0)


def refusal(given: dict[str, str], scope: str = BATCH) -> PylogError:
    with pytest.raises(PylogError) as caught:
        read_options(given, scope)
    return caught.value


def test_names_are_read_in_any_case_as_spark_delivers_them() -> None:
    options = read_options(
        {"KAFKA.BOOTSTRAP.SERVERS": "b:1", "subscribepattern": "a.*", "FAILONDATALOSS": "False"}, BATCH
    )
    assert options.subscription.pattern == "a.*"
    assert options.fail_on_data_loss is False
    assert options.client == {"bootstrap.servers": "b:1", "isolation.level": "read_committed"}


def test_batch_starts_at_earliest_and_a_stream_at_latest_when_nothing_is_said() -> None:
    assert read_options(BASE, BATCH).start == Earliest()
    assert read_options(BASE, BATCH).end == Latest()
    assert read_options(BASE, STREAM).start == Latest()


@pytest.mark.parametrize("name", ["subscrieb", "startingOffset", "maxOffsetPerTrigger", "fail_on_data_loss"])
def test_an_unknown_option_is_refused_with_the_nearest_name(name: str) -> None:
    with pytest.raises(PylogError) as caught:
        check_names({**BASE, name: "x"})
    assert caught.value.condition == "PYLOG_UNKNOWN_OPTION"
    nearest = {
        "subscrieb": "subscribe",
        "startingOffset": "startingOffsets",
        "maxOffsetPerTrigger": "maxOffsetsPerTrigger",
        "fail_on_data_loss": "failOnDataLoss",
    }[name]
    assert str(caught.value).endswith(f"did you mean {nearest}?")


@pytest.mark.parametrize(
    "name",
    [
        "kafka.auto.offset.reset",
        "kafka.enable.auto.commit",
        "kafka.interceptor.classes",
        "kafka.key.deserializer",
        "kafka.value.deserializer",
        "kafka.key.serializer",
        "kafka.value.serializer",
    ],
)
def test_the_client_settings_that_sparks_connector_refuses_are_refused_with_the_reason(name: str) -> None:
    error = refusal({**BASE, name: "x"})
    assert error.condition == "PYLOG_UNSUPPORTED_OPTION"
    assert f"The option {name} is not supported: " in error.sentence


def test_client_settings_pass_through_without_their_prefix_and_java_only_ones_are_left_out() -> None:
    given = {**BASE, "kafka.fetch.max.bytes": "1000", "kafka.max.poll.records": "5", "kafka.group.id": "g"}
    settings = {"bootstrap.servers": "b:9092", "fetch.max.bytes": "1000", "isolation.level": "read_committed"}
    assert read_options(given, BATCH).client == settings


def test_bootstrap_servers_may_be_said_without_the_prefix() -> None:
    assert read_options({"bootstrap.servers": "b:1", "subscribe": "t"}, BATCH).client["bootstrap.servers"] == "b:1"


def test_missing_brokers_are_named() -> None:
    assert "kafka.bootstrap.servers is missing" in refusal({"subscribe": "t"}).sentence


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "none is given"),
        ({"subscribe": "t", "assign": '{"t":[0]}'}, "subscribe and assign are given"),
    ],
)
def test_exactly_one_subscription_is_needed(given: dict[str, str], said: str) -> None:
    error = refusal({"kafka.bootstrap.servers": "b:1", **given})
    assert said in error.sentence


def test_subscribe_drops_blanks_and_repetitions() -> None:
    assert read_options({**BASE, "subscribe": " a, b ,,a"}, BATCH).subscription.topics == ("a", "b")


def test_starting_times_win_in_sparks_order() -> None:
    offsets = {"startingOffsets": '{"t":{"0":5}}'}
    by_partition = {"startingOffsetsByTimestamp": '{"t":{"0":7}}'}
    overall = {"startingTimestamp": "9"}
    assert read_options({**BASE, **offsets}, BATCH).start == Specific({T0: 5})
    assert read_options({**BASE, **offsets, **by_partition}, BATCH).start == AtTimestamp(None, {T0: 7}, False)
    assert read_options({**BASE, **offsets, **by_partition, **overall}, BATCH).start == AtTimestamp(9, {}, False)


def test_an_ending_time_without_a_record_means_latest_and_a_starting_one_an_error_by_default() -> None:
    given = {**BASE, "startingTimestamp": "9", "endingTimestamp": "10"}
    options = read_options(given, BATCH)
    assert (options.start, options.end) == (AtTimestamp(9, {}, False), AtTimestamp(10, {}, True))
    lenient = read_options({**given, "startingOffsetsByTimestampStrategy": "LATEST"}, BATCH)
    assert lenient.start == AtTimestamp(9, {}, True)


@pytest.mark.parametrize(
    ("option", "text"),
    [
        ("startingOffsets", "latest"),
        ("startingOffsets", '{"t":{"0":-1}}'),
        ("endingOffsets", "earliest"),
        ("endingOffsets", '{"t":{"0":-2}}'),
    ],
)
def test_a_batch_cannot_start_at_its_end_nor_end_at_its_start(option: str, text: str) -> None:
    error = refusal({**BASE, option: text})
    assert f"The option {option} cannot be " in error.sentence


@pytest.mark.parametrize("option", ["endingOffsets", "endingOffsetsByTimestamp", "endingTimestamp"])
def test_a_stream_has_no_end(option: str) -> None:
    text = {"endingOffsets": "latest", "endingOffsetsByTimestamp": '{"t":{"0":1}}', "endingTimestamp": "1"}[option]
    assert f"The option {option} has no meaning in a stream read" in refusal({**BASE, option: text}, STREAM).sentence


def test_trigger_limits_are_accepted_and_ignored_in_a_batch_as_in_sparks_connector() -> None:
    given = {**BASE, "maxOffsetsPerTrigger": "5", "minOffsetsPerTrigger": "2", "maxTriggerDelay": "3m"}
    assert read_options(given, BATCH).max_offsets == 5
    stream = read_options(given, STREAM)
    assert (stream.max_offsets, stream.min_offsets, stream.max_delay_ms) == (5, 2, 180_000)


def test_a_fewest_above_the_most_is_refused() -> None:
    error = refusal({**BASE, "maxOffsetsPerTrigger": "5", "minOffsetsPerTrigger": "6"}, STREAM)
    assert "minOffsetsPerTrigger (6) must not be above maxOffsetsPerTrigger (5)" in error.sentence


@pytest.mark.parametrize(
    ("option", "text", "said"),
    [
        ("failOnDataLoss", "yes", "must be true or false, not 'yes'"),
        ("minPartitions", "0", "must be a whole number of at least 1, not '0'"),
        ("maxRecordsPerPartition", "many", "must be a whole number of at least 1, not 'many'"),
        ("startingTimestamp", "-5", "must be a time in ms"),
        ("startingOffsets", "newest", "neither earliest, latest, a distance such as"),
        ("startingOffsets", '{"t":{"0":-3}}', "nothing is lower"),
        ("startingOffsets", "-10 parsecs", "has no unit of milliseconds, seconds, minutes"),
        ("startingOffsets", "10 minutes", "lies in the future; a distance begins with a minus: '-10 minutes'"),
        ("startingOffsets", '{"t":"newest"}', "'newest' is neither earliest, latest nor a distance"),
        ("startingOffsetsByTimestamp", '{"t":{"0":-3}}', "nothing is lower"),
        ("maxBytesPerTrigger", "64 parsecs", "must be a size such as 64m"),
        ("fetchOffset.numRetries", "-1", "must be a whole number, 0 or more"),
        ("startingOffsets", '{"t":[1]}', "must have an object of partition numbers"),
        ("startingOffsets", '{"t":{"0":true}}', "cannot be used"),
        ("subscribe", " , ", "must name at least one topic"),
        ("subscribePattern", "a(b", "is not a regular expression"),
        ("assign", '{"t":[-1]}', "must have a list of partition numbers"),
        ("assign", "{}", "no partition is named"),
    ],
)
def test_a_bad_value_is_refused_with_what_is_allowed(option: str, text: str, said: str) -> None:
    error = refusal({"kafka.bootstrap.servers": "b:1", option: text})
    assert error.condition == "PYLOG_INVALID_OPTION"
    assert option in error.sentence
    assert said in error.sentence


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        (" Earliest ", Earliest()),
        ("-1000 offsets", Back(1000)),
        ("-1 offset", Back(1)),
        ("-10 minutes", Ago(600_000)),
        ("- 2h", Ago(7_200_000)),
        ("-500ms", Ago(500)),
        ("-1 week", Ago(604_800_000)),
        ('{"t":"earliest"}', Specific({}, {"t": Earliest()})),
        ('{"t":{"0":"5"},"u":"LATEST","v":"-3 offsets"}', Specific({T0: 5}, {"u": Latest(), "v": Back(3)})),
    ],
)
def test_a_start_is_a_word_a_distance_or_json_of_offsets_and_words(text: str, meant: object) -> None:
    assert read_options({**BASE, "startingOffsets": text}, STREAM).start == meant


@pytest.mark.parametrize(("option", "word"), [("startingOffsets", "latest"), ("endingOffsets", "earliest")])
def test_a_word_for_a_topic_is_refused_where_it_is_refused_for_all(option: str, word: str) -> None:
    error = refusal({**BASE, option: f'{{"t":"{word}"}}'})
    assert f"The option {option} cannot be {word} in a batch read" in error.sentence


@pytest.mark.parametrize(
    "given",
    [
        {"startingOffsets": '{"t":{"0":5}}', "endingOffsets": '{"t":{"0":4}}'},
        {"startingOffsetsByTimestamp": '{"t":{"0":5}}', "endingOffsetsByTimestamp": '{"t":{"0":4}}'},
        {"startingTimestamp": "5", "endingTimestamp": "4"},
    ],
)
def test_a_batch_cannot_start_after_its_end(given: dict[str, str]) -> None:
    error = refusal({**BASE, **given})
    assert error.condition == "PYLOG_START_AFTER_END"
    assert f"{next(iter(given))} is 5" in error.sentence


@pytest.mark.parametrize("end", ['{"t":{"0":5}}', '{"t":{"0":-1}}'])
def test_a_batch_may_end_where_it_starts_and_at_latest(end: str) -> None:
    assert read_options({**BASE, "startingOffsets": '{"t":{"0":5}}', "endingOffsets": end}, BATCH).start == Specific(
        {T0: 5}
    )


def test_every_setting_of_the_java_clients_is_ignored_or_refused_with_a_reason_or_the_native_clients() -> None:
    native = {row.name for row in settings("client")}
    for name in (*IGNORED, *REFUSED):
        assert name not in native
    assert not IGNORED.keys() & REFUSED.keys()
    for name in IGNORED:
        assert read_options({**BASE, f"kafka.{name}": "x"}, BATCH).client == read_options(BASE, BATCH).client
    for name, reason in REFUSED.items():
        assert reason in refusal({**BASE, f"kafka.{name}": "x"}).sentence


def test_the_group_that_shows_progress_is_no_setting_of_the_client() -> None:
    options = read_options({**BASE, "kafka.group.id": "g", "groupIdPrefix": "p"}, STREAM)
    assert (options.group_id, options.client) == ("g", read_options(BASE, STREAM).client)


@pytest.mark.parametrize("name", ["clientRack", "kafka.client.rack"])
def test_the_rack_of_the_tasks_is_said_by_either_name_and_is_no_setting_of_the_drivers_client(name: str) -> None:
    options = read_options({**BASE, name: "env:RACK"}, BATCH)
    assert (options.rack, options.client) == ("env:RACK", read_options(BASE, BATCH).client)


def test_a_rack_said_twice_or_of_a_variable_without_a_name_is_refused() -> None:
    assert "clientRack (a)" in refusal({**BASE, "clientRack": "a", "kafka.client.rack": "b"}).sentence
    assert "env:RACK" in refusal({**BASE, "clientRack": "env:"}).sentence


def test_limits_of_a_trigger_may_all_be_given() -> None:
    given = {"maxOffsetsPerTrigger": "5", "maxRecordsPerTrigger": "6", "maxBytesPerTrigger": "2k"}
    options = read_options({**BASE, **given}, STREAM)
    assert (options.max_offsets, options.trigger_records, options.trigger_bytes) == (5, 6, 2048)


def test_an_offset_of_a_checkpoint_can_be_pasted_as_a_start() -> None:
    text = '{"@pylog": {"topic_ids": {"t": "x"}, "version": 1}, "t": {"0": 12}}'
    assert read_options({**BASE, "startingOffsets": text}, STREAM).start == Specific({T0: 12})


def test_an_option_for_writing_is_refused_in_a_read_and_the_other_way_round() -> None:
    assert (
        "The option topic has no meaning in a batch read, only in a write" in refusal({**BASE, "topic": "t"}).sentence
    )
    with pytest.raises(PylogError, match="The option subscribe has no meaning in a write"):
        write_options({**BASE, "topic": "t"})


def test_sparks_own_options_are_left_alone() -> None:
    given = {"kafka.bootstrap.servers": "b:1", "topic": "t", "checkpointLocation": "/c", "queryName": "q"}
    assert write_options(given).topic == "t"


def test_compression_is_the_producers_setting_and_may_not_be_said_twice_differently() -> None:
    base = {"kafka.bootstrap.servers": "b:1", "topic": "t", "compression": "zstd"}
    assert write_options(base).client["compression.type"] == "zstd"
    with pytest.raises(PylogError, match="say different things"):
        write_options({**base, "kafka.compression.type": "lz4"})


WRITE_BASE = {"kafka.bootstrap.servers": "b:1", "topic": "t"}
ONCE = {**WRITE_BASE, "delivery": "Exactly-Once"}


def write_refusal(given: dict[str, str], **how: bool) -> str:
    with pytest.raises(PylogError) as caught:
        write_options(given, **how)
    assert caught.value.condition == "PYLOG_INVALID_OPTION"
    return caught.value.sentence


@pytest.mark.parametrize("given", [{"kafka.acks": "1"}, {"kafka.acks": "0"}, {"kafka.enable.idempotence": "false"}])
def test_exactly_once_refuses_client_settings_that_transactions_cannot_live_with(given: dict[str, str]) -> None:
    (name,) = given
    sentence = write_refusal({**ONCE, **given})
    assert name in sentence
    assert "set delivery to at-least-once" in sentence
    assert write_options({**WRITE_BASE, **given, "delivery": "at-least-once"}).delivery == "at-least-once"
    assert write_options({**ONCE, "kafka.acks": "-1", "kafka.enable.idempotence": "true"}).delivery == "exactly-once"


def test_a_transactional_id_of_the_users_own_is_refused_with_what_to_use() -> None:
    with pytest.raises(PylogError, match="use txnAppId and txnVersion") as caught:
        write_options({**WRITE_BASE, "kafka.transactional.id": "mine"})
    assert caught.value.condition == "PYLOG_UNSUPPORTED_OPTION"


def test_a_batch_is_named_by_both_options_or_none() -> None:
    named = {**ONCE, "txnAppId": "orders", "txnVersion": "7"}
    assert write_options(named).named == ("orders", 7)
    assert write_options(ONCE).named is None
    assert "txnAppId needs txnVersion beside it" in write_refusal({**ONCE, "txnAppId": "orders"})
    assert "txnVersion needs txnAppId beside it" in write_refusal({**ONCE, "txnVersion": "0"})
    assert "have no meaning with delivery=at-least-once" in write_refusal({**named, "delivery": "at-least-once"})
    assert "name a batch write" in write_refusal(named, streaming=True)


@pytest.mark.parametrize(
    ("option", "text"),
    [("txnVersion", "-1"), ("txnVersion", "1.5"), ("txnAppId", " "), ("txnAppId", "a\nb"), ("txnAppId", "x" * 201)],
)
def test_a_name_that_cannot_be_part_of_a_transactional_id_is_refused(option: str, text: str) -> None:
    given = {**ONCE, "txnAppId": "orders", "txnVersion": "0", option: text}
    assert f"The option {option} must be" in write_refusal(given)


def test_options_of_a_table_are_refused_with_where_to_name_them() -> None:
    for refused in (
        lambda: check_names({"option.kafka.bootstrap.servers": "b:1"}),
        lambda: read_options({}, BATCH),
        lambda: write_options({"provider": "pylog"}),
    ):
        with pytest.raises(PylogError, match=r"INSERT INTO t WITH \(\.\.\.\)"):
            refused()
    assert "CREATE TABLE" not in refusal({"subscribe": "t"}).sentence


def test_a_write_counts_as_abandoned_five_minutes_after_its_tasks_time_out_unless_it_says_so() -> None:
    assert write_options(ONCE).abandoned_after_ms == 1_200_000
    assert write_options({**ONCE, "kafka.transaction.timeout.ms": "60000"}).abandoned_after_ms == 360_000
    assert write_options({**ONCE, "abandonedAfter": "2h"}).abandoned_after_ms == 7_200_000
    assert "has no meaning" in write_refusal({**ONCE, "delivery": "at-least-once", "abandonedAfter": "2h"})


@pytest.mark.parametrize("text", ["0", "999", "366d", "soon", "-1s", "1.5h"])
def test_a_write_is_abandoned_after_a_second_to_a_year(text: str) -> None:
    assert "The option abandonedAfter must be a duration" in write_refusal({**ONCE, "abandonedAfter": text})


def test_delivery_is_one_of_two_words() -> None:
    assert "must be exactly-once or at-least-once, not 'twice'" in write_refusal({**WRITE_BASE, "delivery": "twice"})


def test_no_pattern_finds_the_topic_of_the_sink() -> None:
    subscription = read_options({"kafka.bootstrap.servers": "b:1", "subscribePattern": ".*"}, BATCH).subscription
    assert (subscription.matches("__pylog_sink"), subscription.matches("__mine")) == (False, True)


@pytest.mark.parametrize(
    ("given", "driver", "tasks"),
    [
        ({}, None, "120000"),
        ({"kafka.default.api.timeout.ms": "9"}, "9", "9"),
        ({"kafkaConsumer.pollTimeoutMs": "7"}, None, "7"),
        ({"kafkaConsumer.pollTimeoutMs": "7", "kafka.default.api.timeout.ms": "9"}, "9", "7"),
    ],
)
def test_a_task_waits_as_long_as_with_sparks_connector_or_as_it_was_given(
    given: dict[str, str], driver: str | None, tasks: str
) -> None:
    options = read_options({**BASE, **given}, STREAM)
    found = [client.get("default.api.timeout.ms") for client in (options.client, options.task_client)]
    assert found == [driver, tasks]


def test_all_of_a_write_waits_as_long_as_its_records_do() -> None:
    def waits(**given: str) -> str:
        return write_options({**WRITE_BASE, **given}).client["default.api.timeout.ms"]

    assert waits() == "120000"
    assert waits(**{"kafka.delivery.timeout.ms": "5000"}) == "5000"
    assert waits(**{"kafka.delivery.timeout.ms": "5000", "kafka.default.api.timeout.ms": "9"}) == "9"


def test_options_can_be_pickled_as_spark_does() -> None:
    options = read_options({**BASE, "startingOffsets": '{"t":{"0":5}}'}, BATCH)
    assert pickle.loads(pickle.dumps(options)) == options


def test_the_table_of_the_documentation_names_every_option_once() -> None:
    table = options_table()
    assert all(table.count(f"| `{option.name}` |") == 1 for option in OPTIONS)


def test_every_default_is_a_text_that_its_option_reads() -> None:
    read = {option.name: option.parse(option.default) for option in OPTIONS if option.default}
    assert read["maxTriggerDelay"] == 15 * 60 * 1000
    assert read["failOnDataLoss"] is True


def test_the_options_page_is_written_from_the_declarations() -> None:
    text = (Path(__file__).parents[3] / "docs" / "options.md").read_text()
    assert text == page(), "run: python -m pylog_spark.options > docs/options.md"
