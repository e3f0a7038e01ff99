"""Exactly-once writes of two teams that do not trust each other: who has a ledger of their own is decided for by nobody else."""

from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

from pylog_spark.client import Admin, Consumer, Producer
from pylog_spark.client.errors import LogError
from pylog_spark.errors import PylogError
from pylog_spark.results.security import AclBinding
from pylog_spark.sink import commit
from pylog_spark.sink.decision import TOPIC, Decision, encode, topic_of
from pylog_spark.sink.identity import BATCH, Write, batch_write
from pylog_spark.sink.ledger import Ledger
from pylog_spark.testing import LocalBroker
from tests.harness.security import AUTHORIZER
from tests.spark.once import Job

#: What docs/security-clients.md says of a job with a ledger, and of one without: kind, name, how the name counts, operations.
RIGHTS = {
    "alice": [
        ("TOPIC", f"{TOPIC}.team-a", "LITERAL", ("CREATE", "READ", "WRITE")),
        ("TRANSACTIONAL_ID", "pylog-sink.team-a:", "PREFIXED", ("WRITE", "TWO_PHASE_COMMIT")),
        ("TRANSACTIONAL_ID", "pylog-once.team-a:", "PREFIXED", ("WRITE", "TWO_PHASE_COMMIT")),
        ("TOPIC", "payments", "LITERAL", ("READ", "WRITE")),
    ],
    "mallory": [
        ("TOPIC", TOPIC, "LITERAL", ("CREATE", "READ", "WRITE")),
        ("TRANSACTIONAL_ID", "pylog-sink.team-b:", "PREFIXED", ("WRITE", "TWO_PHASE_COMMIT")),
        ("TRANSACTIONAL_ID", "pylog-once.team-b:", "PREFIXED", ("WRITE", "TWO_PHASE_COMMIT")),
    ],
}
MakeJob = Callable[[int], Job]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalBroker]:
    """A broker with both, and the topic that alice writes to."""
    folder = tmp_path_factory.mktemp("broker") / "data"
    with (
        LocalBroker(folder, sasl="SCRAM-SHA-256", authorizer_class_name=AUTHORIZER) as broker,
        Admin(broker.bootstrap_servers, broker.security_settings) as admin,
    ):
        for user, rights in RIGHTS.items():
            admin.set_user_scram_credential(user, "secret", "SCRAM-SHA-256")
            admin.create_acls(
                [
                    AclBinding(kind, name, pattern, f"User:{user}", "*", operation, "ALLOW")
                    for kind, name, pattern, operations in rights
                    for operation in operations
                ]
            )
        admin.create_topic("payments", 2, 1)
        yield broker


def settings_of(broker: LocalBroker, user: str) -> dict[str, str]:
    """What a client of a user says."""
    own = {name: text for name, text in broker.security_settings.items() if name != "sasl.jaas.config"}
    return {**own, "sasl.username": user, "sasl.password": "secret"}


@pytest.fixture
def make_job(broker: LocalBroker) -> MakeJob:
    """Makes versions of alice's write."""

    def make(version: int) -> Job:
        write = batch_write(("daily", version), "payments", "team-a")
        return Job(broker.bootstrap_servers, "payments", write, settings=settings_of(broker, "alice"))

    return make


def read(broker: LocalBroker) -> list[bytes | None]:
    """All values of alice's topic that are committed."""
    config = {**broker.security_settings, "isolation.level": "read_committed"}
    with Consumer(broker.bootstrap_servers, "payments", start="earliest", follow=False, config=config) as consumer:
        return sorted((record.value for record in consumer), key=lambda value: value or b"")


def test_nobody_else_decides_what_a_team_has_written(broker: LocalBroker, make_job: MakeJob) -> None:
    mallory = settings_of(broker, "mallory")
    key = make_job(0).write.key
    assert key == "team-a:payments/daily"
    # A decision about all versions that alice will ever write, where mallory may write, and where alice looks.
    forged = Decision(Write(BATCH, key, 2**53), (), 0)
    with closing(Ledger({"bootstrap.servers": broker.bootstrap_servers, **mallory})) as ledger:
        ledger.ensure()
        for partition in range(8):
            with Producer(broker.bootstrap_servers, TOPIC, mallory) as producer:
                producer.send(encode(forged), key.encode(), partition=partition)
        assert ledger.decision(key, until_stable=True) is None
        with pytest.raises(PylogError):
            ledger.driver(Write(BATCH, key, 0))
    with pytest.raises(LogError), Producer(broker.bootstrap_servers, topic_of(key), mallory) as producer:
        producer.send(encode(forged), key.encode())
    for version, value in enumerate((b"one", b"two")):
        job = make_job(version)
        job.task(0, value.decode())
        job.commit()
    assert read(broker) == [b"one", b"two"]
    # In another's ledger a record about a key of alice's is passed over, and in hers one of another's.
    chief = broker.security_settings
    with Producer(broker.bootstrap_servers, topic_of(key), chief) as producer:
        for partition in range(8):
            producer.send(b"[" * 100_000, b"team-b:payments/daily", partition=partition)
    job = make_job(2)
    job.task(0, "three")
    job.commit()
    assert read(broker) == [b"one", b"three", b"two"]


def test_a_write_that_was_written_before_can_be_an_error(
    broker: LocalBroker, make_job: MakeJob, caplog: pytest.LogCaptureFixture
) -> None:
    first = make_job(10)
    first.task(0, "version-10")
    first.commit()
    for version in (9, 10):
        job = make_job(version)
        job.task(0, f"version-{version} again")
        with pytest.raises(PylogError) as refused:
            commit.commit(job.client, job.write, job.outcomes, fails_when_written=True)
        assert refused.value.condition == "PYLOG_ALREADY_WRITTEN"
        caplog.clear()
        job.commit()
        assert [each.getMessage()[-40:] for each in caplog.records] == [
            "was written before and is not written again"[-40:]
        ]
    assert [value for value in read(broker) if (value or b"").startswith(b"version")] == [b"version-10"]
