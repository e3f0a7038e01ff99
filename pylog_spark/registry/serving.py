"""A schema registry beside a broker of this process: what it needs, put together (`web.beside` says where and how)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from pylog_spark.broker.process import Broker
from pylog_spark.broker.setting import ConfigError
from pylog_spark.registry.dead_letters import DeadLetters
from pylog_spark.registry.known_ids import KnownIds
from pylog_spark.registry.server import RegistryServer, start_server
from pylog_spark.registry.stored import TOPIC
from pylog_spark.registry.topic import SchemasTopic
from pylog_spark.web.access import Access, Rights
from pylog_spark.web.beside import HttpOptions, Server, place
from pylog_spark.web.refusal import Refusal

if TYPE_CHECKING:
    from pylog_spark._native import RawConnection

_REGISTRY = Server("schema registry", "--schema-registry", needs_client=True)
_METADATA_VERSION = 12


def open_registry(broker: Broker, options: HttpOptions) -> RegistryServer:
    """Start the registry of a broker that serves.

    Raises
    ------
    ConfigError
        The options and the broker's settings do not fit together, or the address cannot be had.
    """
    host, port, tls, client, asks, hosts = place(broker, options, _REGISTRY)
    topic = SchemasTopic(client)
    known, letters = KnownIds(topic, broker.schema_ids), DeadLetters(client, broker.schema_ids)

    def close() -> None:
        known.close()
        letters.close()

    known.start()
    letters.start()
    try:
        return start_server(host, port, topic, Access(client, _rights(topic)) if asks else None, tls, close, hosts)
    except OSError as error:
        close()
        topic.close()
        raise ConfigError(f"The schema registry cannot listen on {host}:{port}: {error.strerror or error}.") from error
    except Refusal as refusal:
        close()
        topic.close()
        raise ConfigError(refusal.sentence) from refusal


def _rights(topic: SchemasTopic) -> Rights:
    """What a user may do with the topic."""

    def asked(connection: RawConnection) -> int:
        # The broker says nothing of rights to a topic that does not exist.
        topic.make_topic()
        wanted = {"topics": [{"name": TOPIC}], "include_topic_authorized_operations": True}
        answer = json.loads(connection.call("Metadata", _METADATA_VERSION, json.dumps(wanted), "pylog-registry"))
        operations: int = answer["topics"][0]["topic_authorized_operations"]
        return operations

    return Rights(f"the topic {TOPIC} of the brokers", asked)
