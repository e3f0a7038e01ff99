"""Names and levels of loggers, and which broker a line is from."""

import contextvars
import logging
import threading

import pytest

from pylog_spark.broker import logger_requests, loggers, native_log
from pylog_spark.broker.setting import ConfigError
from pylog_spark.cluster.errors import ErrorCode, Refusal

NETWORK = "pylog.broker.network"
SET, DELETE, APPEND, SUBTRACT = range(4)


@pytest.fixture(autouse=True)
def levels_as_before():
    every = {name: loggers.named(name).level for name in (loggers.ROOT, *loggers.LOGGERS)}
    loggers.set_level(loggers.ROOT, "INFO")
    yield
    for name, level in every.items():
        loggers.named(name).setLevel(level)


def test_a_level_for_all_and_levels_of_single_loggers_are_read():
    assert loggers.parse_levels("info") == {"root": logging.INFO}
    assert loggers.parse_levels("warning") == loggers.parse_levels("WARN") == {"root": logging.WARNING}
    assert loggers.parse_levels(f"info, {NETWORK}=debug,root=off") == {"root": 60, NETWORK: logging.DEBUG}


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("loud", "There is no log level 'loud': the levels are fatal, error, warn, info, debug, trace, off."),
        (
            "info,pylog.broker.net=debug",
            "There is no logger pylog.broker.net: the loggers are root, pylog.broker.archive, pylog.broker.authorizer, ",
        ),
        ("", "There is no log level ''"),
        (f"{NETWORK}=", "There is no log level ''"),
    ],
)
def test_a_level_or_logger_that_does_not_exist_is_refused_with_those_that_do(text, part):
    with pytest.raises(ConfigError) as refused:
        loggers.parse_levels(text)
    assert part in str(refused.value)


def test_a_logger_without_a_level_has_that_of_the_nearest_one_above():
    loggers.set_level("pylog.broker", "ERROR")
    assert loggers.levels()[NETWORK] == "ERROR"
    loggers.set_level(NETWORK, "TRACE")
    assert (loggers.levels()[NETWORK], loggers.levels()["pylog.broker.storage"]) == ("TRACE", "ERROR")
    loggers.set_level(NETWORK, None)
    loggers.set_level("pylog.broker", None)
    assert loggers.levels()[NETWORK] == "INFO"


def test_every_level_has_kafkas_word():
    shown = {}
    for number in (5, 10, 11, 20, 25, 30, 40, 50, 60):
        loggers.named(NETWORK).setLevel(number)
        shown[number] = loggers.levels()[NETWORK]
    assert shown == {5: "TRACE", 10: "DEBUG", 11: "INFO", 20: "INFO", 25: "WARN", 30: "WARN", 40: "ERROR", 50: "FATAL", 60: "OFF"}  # fmt: skip
    words = {number: loggers.severity(number) for number in (1, 5, 10, 20, 25, 30, 40, 50, 60)}
    assert words == {1: "TRACE", 5: "TRACE", 10: "DEBUG", 20: "INFO", 25: "INFO", 30: "WARN", 40: "ERROR", 50: "FATAL", 60: "FATAL"}  # fmt: skip


def test_the_native_half_gets_the_levels_that_logging_would_write():
    def native_level():
        return native_log._most_detailed(logging.getLogger(NETWORK))

    assert native_level() == 3
    loggers.set_level(NETWORK, "FATAL")
    assert native_level() == 0
    loggers.set_level(NETWORK, "TRACE")
    assert native_level() == 5
    logging.disable(logging.WARNING)
    try:
        assert native_level() == 1
    finally:
        logging.disable(logging.NOTSET)


def test_a_line_has_the_broker_of_the_thread_that_logs_it(caplog):
    loggers.name_brokers()
    log = logging.getLogger("pylog.broker")
    with caplog.at_level(logging.INFO):
        log.info("nobody's")
        with loggers.serving_as(7):
            log.info("of seven")
            for work in (log.info, contextvars.copy_context().run):
                words = ("of a thread",) if work == log.info else (log.info, "of seven's thread")
                thread = threading.Thread(target=work, args=words)
                thread.start()
                thread.join()
        log.info("nobody's again")
    assert [record.broker for record in caplog.records] == [None, 7, None, 7, None]
    assert all(record.fields == {} for record in caplog.records)


def test_a_native_line_becomes_a_record_with_its_time_and_place(caplog):
    line = {
        "created": 1_700_000_000.25,
        "level": 2,
        "logger": NETWORK,
        "broker": 3,
        "thread": "pylog-server",
        "file": "server/src/network/connection.rs",
        "line": 12,
        "message": "closed 100% of %s {}",
        "fields": {"client": "127.0.0.1"},
    }
    with caplog.at_level(logging.INFO):
        native_log._deliver([line, {**line, "level": 4}])
    (record,) = caplog.records
    assert (record.levelno, record.name, record.getMessage()) == (logging.WARNING, NETWORK, line["message"])
    assert (record.created, record.msecs, record.broker) == (line["created"], 250, 3)
    assert (record.fields, record.threadName) == (line["fields"], "pylog-server")
    assert (record.filename, record.lineno) == ("connection.rs", 12)


def change(*changes, broker="1", dry=False):
    configs = [{"name": name, "config_operation": step, "value": value} for step, name, value in changes]
    resource = {"resource_type": 8, "resource_name": broker, "configs": configs}
    return logger_requests.alter(1, resource, dry)


def test_levels_are_set_and_deleted_by_request():
    assert change((SET, NETWORK, "DEBUG"), (SET, "root", "ERROR")) is None
    shown = {one["name"]: one["value"] for one in logger_requests.entries(1, "1", False)}
    assert (shown[NETWORK], shown["root"], shown["pylog.broker"]) == ("DEBUG", "ERROR", "ERROR")
    assert list(shown) == ["root", *loggers.LOGGERS]
    assert change((DELETE, NETWORK, None)) is None
    assert loggers.levels()[NETWORK] == "ERROR"


def test_entries_have_the_source_of_loggers_and_can_be_changed():
    entry = logger_requests.entries(1, "1", True)[1]
    assert (entry["config_source"], entry["read_only"], entry["synonyms"]) == (6, False, [])
    assert entry["documentation"] == loggers.LOGGERS[entry["name"]]


@pytest.mark.parametrize(
    ("changes", "code", "part"),
    [
        ([(SET, "pylog.nothing", "INFO")], ErrorCode.INVALID_CONFIG, "There is no logger pylog.nothing"),
        ([(DELETE, "pylog.nothing", None)], ErrorCode.INVALID_CONFIG, "There is no logger pylog.nothing"),
        ([(SET, NETWORK, "LOUD")], ErrorCode.INVALID_CONFIG, "the levels are FATAL, ERROR, WARN, INFO, DEBUG, TRACE."),
        ([(SET, NETWORK, "debug")], ErrorCode.INVALID_CONFIG, "debug is no level"),
        ([(SET, NETWORK, "OFF")], ErrorCode.INVALID_CONFIG, "OFF is no level"),
        ([(SET, NETWORK, None)], ErrorCode.INVALID_REQUEST, "is given no level"),
        ([(DELETE, "root", None)], ErrorCode.INVALID_REQUEST, "can be set, not deleted"),
        ([(APPEND, NETWORK, "INFO")], ErrorCode.INVALID_REQUEST, "can only be set or deleted"),
        ([(SUBTRACT, NETWORK, "INFO")], ErrorCode.INVALID_REQUEST, "can only be set or deleted"),
        ([(9, NETWORK, "INFO")], ErrorCode.INVALID_REQUEST, "can only be set or deleted"),
        ([(SET, NETWORK, "INFO"), (DELETE, NETWORK, None)], ErrorCode.INVALID_REQUEST, "more than once"),
        ([(SET, NETWORK, "DEBUG"), (SET, "pylog.nothing", "INFO")], ErrorCode.INVALID_CONFIG, "There is no logger"),
    ],
)
def test_what_cannot_be_is_refused_whole_with_kafkas_error(changes, code, part):
    before = loggers.levels()
    refused = change(*changes)
    assert isinstance(refused, Refusal)
    assert (refused.code, part in refused.message) == (code, True), refused
    assert loggers.levels() == before


def test_a_dry_change_changes_nothing_and_another_brokers_loggers_are_not_here():
    assert change((SET, NETWORK, "DEBUG"), dry=True) is None
    assert loggers.levels()[NETWORK] == "INFO"
    for broker in ("2", "", "one"):
        assert change((SET, NETWORK, "DEBUG"), broker=broker).code is ErrorCode.INVALID_REQUEST
        assert logger_requests.entries(1, broker, False).code is ErrorCode.INVALID_REQUEST
