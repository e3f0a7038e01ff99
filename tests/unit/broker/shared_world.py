"""A shared store in memory, and brokers on it without processes, sockets or time: each step is called by the test."""

import itertools
import json
import time

from pylog_spark.broker import requests
from pylog_spark.broker.clustered import ChangeQueue, Clustered, agreed_cluster_id
from pylog_spark.broker.config import broker_config
from pylog_spark.broker.listeners import read_listeners
from pylog_spark.broker.registry import TopicRegistry
from pylog_spark.cluster import documents
from pylog_spark.cluster.store import OutcomeUnknown, RevisionConflict, Session, Stored, StoreError

SESSION_MS = 2_000


class World:
    """What a ZooKeeper keeps."""

    def __init__(self):
        self.documents = {}
        self.owners = {}
        self.watches = []
        self.created = itertools.count(1)
        self.sessions = itertools.count(1)
        self.notifications = itertools.count()

    def put(self, path, data, revision):
        known = self.documents.get(path)
        self.documents[path] = Stored(data, revision + 1, known.created if known else next(self.created))
        self.notify(path, children=known is None)

    def remove(self, path):
        del self.documents[path]
        self.owners.pop(path, None)
        self.notify(path, children=True)

    def notify(self, path, children):
        parent = path.rpartition("/")[0] + "/"
        hit = [watch for watch in self.watches if watch[1] == path or (children and watch[1] == parent)]
        self.watches = [watch for watch in self.watches if watch not in hit]
        for store, watched in hit:
            store.heard(watched)

    def end(self, session):
        for path in [path for path, owner in self.owners.items() if owner == session]:
            if path in self.documents:
                self.remove(path)


class MemoryStore:
    """One broker's access to a `World`. `away` fails everything; `unknown` fails the next write after it happened, or not."""

    def __init__(self, world, heard):
        self.world, self.heard = world, heard
        self.number = next(world.sessions)
        self.away = False
        self.unknown = None

    def expire(self):
        old, self.number = self.number, next(self.world.sessions)
        self.world.watches = [watch for watch in self.world.watches if watch[0] is not self]
        self.world.end(old)
        self.heard("session")

    def check(self):
        if self.away:
            raise StoreError("away")

    def session(self):
        return None if self.away else self.number

    def renew(self):
        self.check()
        return Session(self.number, time.monotonic() + SESSION_MS / 1000)

    def sync(self):
        self.check()

    def close(self):
        self.world.end(self.number)

    def get(self, path):
        return self.get_all([path])[0]

    def get_all(self, paths):
        self.check()
        return [self.world.documents.get(path) for path in paths]

    def paths(self, prefix):
        self.check()
        return sorted(path for path in self.world.documents if path.startswith(prefix))

    def watch_children(self, path):
        self.world.watches.append((self, path))
        return [child.removeprefix(path) for child in self.paths(path)]

    def watch(self, path):
        self.world.watches.append((self, path))
        return self.get(path)

    def compare_and_set(self, path, data, revision):
        self.expect(path, revision)
        self.world.put(path, data, revision)
        return revision + 1

    def delete(self, path, revision):
        self.expect(path, revision)
        self.world.remove(path)

    def expect(self, path, revision):
        self.check()
        known = self.world.documents.get(path)
        if (known.revision if known else 0) != revision:
            raise RevisionConflict(path)

    def write_all(self, writes, guard=None, notification=None):
        unknown, self.unknown = self.unknown, None
        if unknown == "lost":
            raise OutcomeUnknown("lost")
        for path, revision in [
            *((write.path, write.revision) for write in writes),
            *([(guard.path, guard.revision)] if guard else []),
        ]:
            self.expect(path, revision)
        for write in writes:
            if write.data is None:
                self.world.remove(write.path)
            else:
                self.world.put(write.path, write.data, write.revision)
        if notification is not None:
            self.world.put(f"{documents.CHANGES}c-{next(self.world.notifications):010}", notification, 0)
        if unknown == "carried out":
            raise OutcomeUnknown("carried out")
        return [0 if write.data is None else write.revision + 1 for write in writes]

    def claim(self, path, data, *writes):
        for known, revision in [(path, 0), *((write.path, write.revision) for write in writes)]:
            self.expect(known, revision)
        self.world.owners[path] = self.number
        self.world.put(path, data, 0)
        for write in writes:
            self.compare_and_set(write.path, write.data, write.revision)
        return self.world.documents[path].created

    def release(self, path):
        self.check()
        if self.world.owners.get(path) == self.number:
            self.world.remove(path)


class Native:
    """The calls that a native server got."""

    def __init__(self):
        self.topics, self.view, self.lease, self.answers, self.groups = {}, None, 0, {}, {}

    def expect_topics(self, topics_json):
        self.expected = [topic["name"] for topic in json.loads(topics_json)]

    def offline_partitions(self):
        return []

    def apply_topics(self, topics_json):
        self.topics.update({topic["name"]: topic for topic in json.loads(topics_json)})

    def apply_security(self, security_json):
        self.security = json.loads(security_json)

    def set_cleaner_backoff(self, backoff_ms):
        self.cleaner_backoff_ms = backoff_ms

    def apply_group_configs(self, configs_json):
        self.groups = json.loads(configs_json)

    def remove_topic(self, name):
        self.topics.pop(name, None)

    def apply_cluster(self, view_json):
        self.view = json.loads(view_json)

    def lease_clock_ms(self):
        return int(time.monotonic() * 1000)

    def lease_until(self, clock_ms):
        self.lease = clock_ms

    def may_lead(self):
        return self.lease > self.lease_clock_ms()

    def set_throttles(self, leader, follower):
        self.throttles = (leader, follower)

    def was_clean(self):
        return False

    def wake(self):
        pass

    def complete(self, event_id, answer_json):
        self.answers[event_id] = json.loads(answer_json)


class Member:
    """A broker of the world, started."""

    def __init__(self, world, broker_id, data_dir, **settings):
        given = {
            "node.id": str(broker_id),
            "zookeeper.connect": "memory:1",
            "zookeeper.session.timeout.ms": str(SESSION_MS),
        }
        broker = broker_config({**given, **settings}.items())
        heard = ChangeQueue()
        self.native, self.store = Native(), MemoryStore(world, heard)
        self.cluster_id = agreed_cluster_id(self.store)
        self.registry = TopicRegistry(self.store, self.native, broker, shared=True)
        data_dir.mkdir(exist_ok=True)
        self.clustered = Clustered(
            self.store, heard, self.native, self.registry, broker, str(data_dir), self.cluster_id
        )
        self.clustered.prepare()
        self.clustered.join(read_listeners(broker_config([("listeners", f"127.0.0.1:{9000 + broker_id}")])))
        self.turn()

    def turn(self, times=3):
        for _ in range(times):
            self.clustered.turn()

    def partitions(self, topic):
        return {partition["partition"]: partition for partition in self.native.topics[topic]["partitions"]}

    def close(self):
        self.clustered.close()


def turn(members):
    for _ in range(3):
        for member in members:
            member.turn()


def create(member, name, partitions=3, factor=3, configs=()):
    topic = {"name": name, "num_partitions": partitions, "replication_factor": factor, "assignments": []}
    topic["configs"] = list(configs)
    answer = requests.create_topics(member.registry, {"topics": [topic], "validate_only": False})
    return answer["topics"][0]
