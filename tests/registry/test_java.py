"""The registry with Java's clients: Apache Kafka's producer and consumer, Apache Avro, and the registry's interface by Java's HTTP client.

Confluent's own Java serializers are not in Maven Central; what they do is done by hand in `JavaAvro.java`.
"""

import subprocess
from pathlib import Path

import pyspark
import pytest

from pylog_spark.client import Admin
from pylog_spark.testing import LocalBroker
from tests.peers.jars import classpath
from tests.peers.tools import QUICK

pytestmark = pytest.mark.long  # confluent-kafka's: test_avro.py


@pytest.mark.peers
@pytest.mark.slow
def test_java_writes_and_reads_avro_by_the_registry_and_is_told_which_record_is_refused(
    broker: LocalBroker, new_topic: str
) -> None:
    with Admin(broker.bootstrap_servers) as admin:
        admin.create_topic(new_topic, 1, 1, {"confluent.value.schema.validation": "true"})
    jars = f"{classpath('kafka')}:{Path(pyspark.__file__).parent / 'jars'}/*"
    program = str(Path(__file__).parent / "JavaAvro.java")
    command = ["java", *QUICK, "-cp", jars, program, broker.bootstrap_servers, broker.schema_registry_url, new_topic]
    run = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert run.returncode == 0, run.stderr[-3000:]
    first, second, lost, refused, third, *read = (line for line in run.stdout.splitlines() if not line.startswith("["))
    assert [first, second, third] == ["written"] * 3
    assert lost.startswith("KafkaException")
    assert refused.startswith("InvalidRecordException")
    assert f"does not begin with the id of a schema of subject {new_topic}-value" in refused
    assert [line.split('"')[3] for line in read] == ["Ada", "Grace", "Edsger"]
