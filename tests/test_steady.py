"""No test fails by chance: what the rules of `tests/harness/steadiness.py` find in the tests, and each rule's own sample of what it finds."""

import functools
import textwrap
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.harness import steadiness

pytestmark = pytest.mark.check

ROOT = Path(__file__).parent.parent
#: Where a rule does not hold, by rule and file, and why.
NOT_HERE = {
    "bare_ports": {
        "tests/broker/test_listeners.py": "limits of connections by host",
        "tests/cluster/test_intruders.py": "lines of a log, of nobody",
        "tests/docs/test_security_cluster.py": "what a page says, and what is run in its place",
        "tests/docs/test_snippets.py": "what a page says, and what is run in its place",
        "tests/test_steady.py": "samples of what is found",
        "tests/unit/broker/test_clustered.py": "no sockets",
        "tests/unit/broker/test_jwks.py": "addresses that are never asked",
        "tests/unit/broker/test_listeners.py": "no sockets",
        "tests/unit/broker/test_process.py": "no sockets",
        "tests/unit/cli/test_log_lines.py": "no sockets",
        "tests/unit/login/test_servers.py": "addresses that are never asked",
        "tests/unit/spark/test_datasource.py": "no sockets",
        "tests/unit/spark/test_secret_settings.py": "no sockets",
        "tests/web/test_console_guard.py": "an origin that is refused for its name",
    },
    "lucky_draws": {
        "tests/hostile/attack.py": "prints its seed, and takes one",
        "tests/hostile/fuzz.py": "prints its seed, and takes one",
    },
    "short_deadlines": {
        "tests/harness/load.py": "what is not answered in time, under faults, is tried again and noted",
        "tests/unit/test_harness.py": "tests of the waits themselves",
    },
    "unread_pipes": {
        "tests/peers/tools.py": "answers in frames: whoever asks reads them to the end, by a deadline",
    },
    "waits_by_hand": {
        "tests/harness/watch.py": "looks at what changes, and by the clock at all",
        "tests/cluster/test_spark.py": "runs in Spark's workers, which have no tests to import",
        "tests/crash/steps/sink_steps.py": "runs in Spark's workers, which have no tests to import",
        "tests/spark/test_foreach_stop.py": "runs in Spark's workers, which have no tests to import",
    },
}


def files() -> Sequence[Path]:
    """All Python files of the tests but the helpers that are to be used, and the simulation, which has a clock of its own."""
    helpers = {ROOT / "tests/harness" / f"{name}.py" for name in ("children", "ports", "runs", "waiting")}
    others = set((ROOT / "tests").rglob("*.py")) - helpers
    return sorted(file for file in others if not file.is_relative_to(ROOT / "tests/simulation"))


@functools.cache
def found() -> dict[str, dict[str, list[str]]]:
    """By rule and file what is found."""
    by_rule: dict[str, dict[str, list[str]]] = {rule: {} for rule in steadiness.RULES}
    for path in files():
        source, file = steadiness.Source(path.read_text(), ROOT), str(path.relative_to(ROOT))
        for name, rule in steadiness.RULES.items():
            findings = [f"{file}:{finding.line}: {finding.says}" for finding in rule(source)]
            if findings:
                by_rule[name][file] = findings
    return by_rule


@pytest.mark.parametrize("rule", steadiness.RULES)
def test_no_test_fails_by_chance(rule: str) -> None:
    lines = [line for file, lines in found()[rule].items() if file not in NOT_HERE.get(rule, {}) for line in lines]
    assert lines == [], "\n".join(lines)


def test_every_exception_is_still_one() -> None:
    assert {rule: named.keys() - found()[rule].keys() for rule, named in NOT_HERE.items()} == {
        rule: set() for rule in NOT_HERE
    }


def test_drawn_cases_have_no_deadline_and_may_be_slow() -> None:
    profile = settings.get_profile("pylog")
    assert profile.deadline is None
    assert HealthCheck.too_slow in profile.suppress_health_check


def lines(rule: str, code: str) -> list[int]:
    """The lines in which a rule finds something."""
    return sorted(finding.line for finding in steadiness.RULES[rule](steadiness.Source(textwrap.dedent(code), ROOT)))


@pytest.mark.parametrize("code", [
    "until(ready, 'it is ready', 5)",
    "until(ready, 'it is ready', deadline_s=29.9)",
    "waiting.seconds_until(ready, 'it is ready', 5)",
    "SOON_S = 2 * 5\nuntil(ready, 'it is ready', SOON_S)",
    "from tests.harness.steadiness import STEP_MAX_S as soon\nrunning.wait(60 if slow else soon)",
    "subprocess.run(['x'], timeout=10)",
    "running.communicate(timeout=10)",
    "event.wait(0.5)",
    "thread.join(20)",
    "events.get(timeout=3)",
    "future.result(10)",
    "assert producer.flush(10) == 0",
    "wire.settimeout(1)",
    "message = consumer.poll(2)",
    "records = member.poll(2_000)",
    "consumer.consume(1, 20)",
    "urlopen(url, timeout=3)",
    "query.awaitTermination(10)",
    "await asyncio.wait_for(answer, 5)",
    "def wait(deadline_s: float = 10): ...",
    "def wait(*, timeout_s=10): ...",
])  # fmt: skip
def test_a_short_deadline_is_found(code: str) -> None:
    assert lines("short_deadlines", code) == [code.count("\n") + 1]


@pytest.mark.parametrize("code", [
    "until(ready, 'it is ready')",
    "until(ready, 'it is ready', 30)",
    "from tests.harness.waiting import DEADLINE_S\nuntil(ready, 'it is ready', DEADLINE_S)",
    "from tests.harness import waiting\nuntil(ready, 'it is ready', 0.5 * waiting.DEADLINE_S)",
    "script.until(is_good, 'JoinGroup', 3)",
    "happens(ready, 0.5)",
    "stays(ready, 'it is', 2)",
    "pause(ended, 0.1)",
    "', '.join(words)",
    "until(lambda: consumer.poll(0.1), 'a record')",
    "member.poll(500)",
    "producer.flush()",
    "with pytest.raises(KafkaException):\n    client.list_topics(timeout=1)",
    "def wait(deadline_s: float = 60): ...",
])  # fmt: skip
def test_a_long_deadline_a_step_and_a_time_that_is_to_pass_are_none(code: str) -> None:
    assert lines("short_deadlines", code) == []


def test_a_wait_by_hand_is_found() -> None:
    code = """
        while not ready():
            time.sleep(0.1)
        while time.monotonic() < deadline:
            look()
        while True:
            assert time.perf_counter() - began < 60
        began = time.monotonic()
        let_pass(1)
    """
    assert lines("waits_by_hand", code) == [3, 4, 7]
    assert lines("waits_by_hand", "from time import sleep\nsleep(1)") == [2]
    assert lines("waits_by_hand", "def sleep(broker): ...\nsleep(broker)") == []
    assert lines("waits_by_hand", "await asyncio.sleep(0)") == []


def test_a_pipe_that_nothing_reads_is_found() -> None:
    code = """
        Popen(words, stdout=PIPE)
        subprocess.Popen(words, stdin=subprocess.PIPE, stdout=log)
        subprocess.run(words, stdout=subprocess.PIPE)
        subprocess.Popen(words, stdin=subprocess.PIPE, stderr=subprocess.PIPE)
        pipe = subprocess.PIPE
    """
    assert lines("unread_pipes", code) == [2, 5, 6]


def test_a_line_of_a_log_that_is_not_waited_for_is_found() -> None:
    code = """
        def test():
            assert "it is away" in broker.logs()
            assert broker.logs().count("it is away") == 1
            said = broker.logs()[10:]
            assert "it is away" in said
            assert re.search("away", broker.logs())
            assert "it is away" not in said
            assert [line for line in broker.logs().splitlines() if "panic" in line] == []
            assert not re.search("panic", said)
            assert "it is away" in said_of(broker)
            assert 1 == 1, broker.logs()
            waiting.said(broker, "it is away")
    """
    assert lines("hurried_lines", code) == [3, 4, 6, 7]


def test_what_another_thread_logs_is_waited_for_and_what_this_one_logs_is_there() -> None:
    code = "assert 'it is away' in caplog.text"
    assert lines("hurried_lines", code) == []
    assert lines("hurried_lines", f"threading.Thread(target=away).start()\n{code}") == [2]


def test_a_port_that_may_be_somebody_elses_is_found() -> None:
    code = '''
        """Connects to 127.0.0.1:1."""
        Client({"bootstrap.servers": "127.0.0.1:1"})
        Client({"bootstrap.servers": f"localhost:9092,{other}"})
        LocalBroker(data, listeners="PLAINTEXT://127.0.0.1:0")
        Client({"bootstrap.servers": "log.example:9092"})
        socket.create_connection(("127.0.0.1", 9092), 60)
        socket.create_server(("127.0.0.1", 0))
        Client({"bootstrap.servers": nowhere()})
    '''
    assert lines("bare_ports", code) == [3, 4, 7]


def test_a_draw_without_a_seed_is_found() -> None:
    code = """
        import random
        value = random.random()
        one = random.Random()
        other = random.Random(SEED).random()
        def move(random):
            return random.choice([1, 2])
        self.random.shuffle(words)
    """
    assert lines("lucky_draws", code) == [3, 4]


def test_a_deadline_of_a_drawn_case_is_found() -> None:
    code = (
        "@settings(deadline=200)\ndef test_one(): ...\n@settings(deadline=None, max_examples=5)\ndef test_other(): ..."
    )
    assert lines("hypothesis_deadlines", code) == [1]


def test_a_bound_of_elapsed_time_is_found_unless_nothing_runs_beside_its_test() -> None:
    code = """
        def test_quick():
            began = time.monotonic()
            work()
            assert time.monotonic() - began < 5
            took = time.monotonic() - began
            assert took <= SOON_S
            assert 5 > took
            assert took >= 5
            assert took < 30
            assert seconds_until(ready, "it is") < 2
            assert count < 5
    """
    assert lines("elapsed_times", code) == [5, 7, 8, 11]
    marked = code.replace("def test", "@pytest.mark.alone\n        def test")
    assert lines("elapsed_times", marked) == []
    assert lines("elapsed_times", f"pytestmark = pytest.mark.alone\n{textwrap.dedent(code)}") == []
