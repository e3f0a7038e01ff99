"""Records and transactions written to a source through all that is done to it."""

import threading

from confluent_kafka import KafkaException, Producer

_PATIENCE_MS = 120_000


class Load:
    """Idempotent records and transactions, some of them aborted, through every kill, until it is ended.

    `pause_s` is what lies between fifty records and the next: where a round waits long for a start, what is to be compared would grow with it.
    """

    def __init__(self, servers: str, topic: str, pause_s: float = 0.0) -> None:
        self._servers, self._topic, self._pause_s = servers, topic, pause_s
        self._ending = threading.Event()
        self._threads = [threading.Thread(target=work) for work in (self._records, self._transactions)]
        self.transactions = 0
        self.failed: list[str] = []

    def __enter__(self) -> "Load":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._ending.set()
        for thread in self._threads:
            thread.join()

    def _producer(self, **more: object) -> Producer:
        return Producer({"bootstrap.servers": self._servers, "enable.idempotence": True, "linger.ms": 2,
                         "message.timeout.ms": _PATIENCE_MS, "reconnect.backoff.max.ms": 200, **more})  # fmt: skip

    def _records(self) -> None:
        producer, number = self._producer(**{"compression.type": "lz4"}), 0
        while not self._ending.is_set():
            for _ in range(50):
                producer.produce(self._topic, f"record-{number}-{'x' * 50}", key=str(number % 11))
                number += 1
            producer.flush(120)
            self._ending.wait(self._pause_s)
        if producer.flush(120):
            self.failed.append("records were not acknowledged")

    def _transactions(self) -> None:
        settings = {"transactional.id": "killed", "message.timeout.ms": 50_000, "transaction.timeout.ms": 60_000}
        while not self._ending.is_set():
            producer = self._producer(**settings)
            try:
                producer.init_transactions(60)
                while not self._ending.is_set():
                    producer.begin_transaction()
                    for each in range(10):
                        producer.produce(self._topic, f"transaction-{self.transactions}-{each}", key=str(each))
                    if self.transactions % 3:
                        producer.commit_transaction(60)
                    else:
                        producer.flush(60)
                        producer.abort_transaction(60)
                    self.transactions += 1
            except KafkaException:
                # A kill: the next producer of that name ends what this one left.
                continue
