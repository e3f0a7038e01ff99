"""Every (producer x codec x consumer) pair by name: what one client writes through a pylog broker, every other reads."""

import shutil

import pytest

from tests.harness.runs import mostly_long
from tests.interop.clients import CLIENTS, CODECS, Record, create_topic

pytestmark = pytest.mark.cluster

# Long and repetitive enough that every codec really compresses, and more than one batch for clients that batch small.
RECORDS = [Record(b"key-%d" % (n % 17), b"%d: " % n + b"all work and no play " * (1 + n % 12)) for n in range(300)]


class Written:
    """Topics of the matrix, each written once, when the first consumer asks for it."""

    def __init__(self, servers: str) -> None:
        self.servers = servers
        self._topics: dict[tuple[str, str], str] = {}

    def topic(self, producer: str, codec: str) -> str:
        """The topic that `producer` has filled with RECORDS, compressed by `codec`."""
        if (producer, codec) not in self._topics:
            topic = f"matrix-{producer}-{codec}"
            create_topic(self.servers, topic)
            CLIENTS[producer].produce(self.servers, topic, RECORDS, codec)
            self._topics[producer, codec] = topic
        return self._topics[producer, codec]


@pytest.fixture(scope="module")
def written(servers: str) -> Written:
    """The topics of the matrix."""
    return Written(servers)


LACKS = {"kafkajs": ("lz4", "zstd")}
PAIRS = [
    (producer, codec, consumer)
    for producer in CLIENTS
    for codec in CODECS
    for consumer in CLIENTS
    if codec not in (*LACKS.get(producer, ()), *LACKS.get(consumer, ()))
]


#: Those of `make test`: each client writes and reads each codec, with librdkafka at the other end.
OFTEN = [pair for pair in PAIRS if "confluent-kafka" in (pair[0], pair[2])]


@pytest.mark.peers
@pytest.mark.parametrize(("producer", "codec", "consumer"), mostly_long(PAIRS, *OFTEN))
def test_what_one_client_writes_another_reads(written: Written, producer: str, codec: str, consumer: str) -> None:
    assert shutil.which("kcat"), "kcat is missing: apt install kcat"
    topic = written.topic(producer, codec)
    assert CLIENTS[consumer].consume(written.servers, topic, len(RECORDS)) == RECORDS
