"""Exactly-once into three brokers while one dies: the short part of the kill matrix of `tests/crash/test_sink.py`."""

from pathlib import Path

import pytest

from tests.crash.sink_bench import Bench
from tests.crash.steps.sink_steps import BETWEEN_ENDS, DECIDED, FLUSHED


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_each_row_is_seen_once_though_the_coordinator_dies_after_writing_deciding_and_between_two_ends(
    tmp_path: Path,
) -> None:
    one = Bench(tmp_path, (FLUSHED, DECIDED, BETWEEN_ENDS), brokers=3)
    try:
        one.stop_everywhere()
        one.kill("coordinator")
        one.control.release()
        one.idle()
        one.broker.start()
        one.finish()
        assert one.driver.failures() == []
    finally:
        one.close()
