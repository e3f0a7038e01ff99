"""Makes and deletes users, ACLs and quotas without end, until it is killed: ``python -m tests.crash.secured_writer STORE SEED``.

STORE is a data directory or ``zk:CONNECT``. After each request that is answered, one line on standard output: its number. What a request
does depends on its number alone (`request`), so who counts the lines knows what must be stored.
"""

import random
import sys
from collections.abc import Iterator
from typing import Any

from pylog_spark.broker import requests
from pylog_spark.broker.config import broker_config
from pylog_spark.broker.registry import TopicRegistry
from pylog_spark.cluster.store.file import FileStore

NAMES = [f"name-{number}" for number in range(6)] + ["*", "../x", "ü" * 300]
ALLOW, DENY = 3, 2
LITERAL, PREFIXED = 3, 4
TOPIC = 2


class Nobody:
    """Stands for the native server."""

    def apply_security(self, security_json: str) -> None:
        """Do nothing."""


def opened(store: str) -> TopicRegistry:
    """The registry of a broker that keeps its documents in `store`, with what is there."""
    kept: Any
    if store.startswith("zk:"):
        from pylog_spark.cluster.store.zookeeper import ZooKeeperStore

        kept = ZooKeeperStore(store.removeprefix("zk:"), 5_000, 20_000, lambda _: None)
    else:
        kept = FileStore(store)
    native: Any = Nobody()
    registry = TopicRegistry(kept, native, broker_config(), shared=store.startswith("zk:"))
    registry.security.read_all()
    return registry


def request(number: int) -> tuple[str, dict[str, Any]]:
    """The request with this number: its kind and the JSON."""
    draw = random.Random(number)
    kind = draw.choice(["user", "no user", "acls", "acls", "no acls", "quota", "no quota"])
    name = draw.choice(NAMES)
    if kind == "user":
        upsertion = {"name": name, "mechanism": draw.choice([1, 1]), "iterations": 4096 + number % 1000,
                     "salt": "00ff", "salted_password": "ab" * 32}  # fmt: skip
        return "alter_user_scram_credentials", {"deletions": [], "upsertions": [upsertion]}
    if kind == "no user":
        return "alter_user_scram_credentials", {"deletions": [{"name": name, "mechanism": 1}], "upsertions": []}
    if kind == "acls":
        creations = [
            {
                "resource_type": TOPIC,
                "resource_name": name,
                "resource_pattern_type": draw.choice([LITERAL, PREFIXED]),
                "principal": f"User:{draw.choice(NAMES)}",
                "host": "*",
                "operation": draw.randrange(2, 9),
                "permission_type": draw.choice([ALLOW, DENY]),
            }
            for name in draw.sample(NAMES, 3)
        ]
        return "create_acls", {"creations": creations}
    if kind == "no acls":
        anything = {"resource_type_filter": 1, "pattern_type_filter": draw.choice([1, 2, LITERAL]), "principal_filter": None,
                    "host_filter": None, "operation": 1, "permission_type": draw.choice([1, ALLOW])}  # fmt: skip
        return "delete_acls", {"filters": [{**anything, "resource_name_filter": name}]}
    op = {"key": "producer_byte_rate", "value": float(number + 1), "remove": kind == "no quota"}
    entity = [{"entity_type": "user", "entity_name": draw.choice([name, None])}]
    return "alter_client_quotas", {"entries": [{"entity": entity, "ops": [op]}], "validate_only": False}


def ask(registry: TopicRegistry, number: int) -> None:
    """Carry out the request with this number."""
    kind, body = request(number)
    requests.HANDLERS[kind](registry, body)


def numbers(first: int) -> Iterator[int]:
    """All numbers from the first."""
    while True:
        yield first
        first += 1


if __name__ == "__main__":
    running = opened(sys.argv[1])
    print("ready", flush=True)
    for each in numbers(int(sys.argv[2])):
        ask(running, each)
        print(each, flush=True)
