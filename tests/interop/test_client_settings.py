"""Every setting of Kafka's Java clients has an answer here: the native client has it, or it is ignored or refused with a reason."""

import pytest

from pylog_spark._native import settings
from pylog_spark.options.java import IGNORED, REFUSED
from pylog_spark.options.table import OPTIONS
from tests.peers.tools import java

pytestmark = pytest.mark.peers


def test_the_names_are_those_that_the_java_clients_know() -> None:
    names = {line for line in java("ClientSettings").splitlines() if line and " " not in line}
    assert len(names) > 130
    native = {row.name for row in settings("client")}
    ours = {option.name.removeprefix("kafka.") for option in OPTIONS if option.name.startswith("kafka.")}
    assert names - native - ours - IGNORED.keys() - REFUSED.keys() == set()
    assert (IGNORED.keys() | REFUSED.keys()) - names == set()
