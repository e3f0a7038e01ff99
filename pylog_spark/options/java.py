"""The settings of Kafka's Java clients (consumer, producer, admin; kafka-clients 4.4) that the native client does not have:
which ones are accepted and do nothing, and which ones are refused, each with its reason. Together with the native client's own
settings they are all the names that the Java clients know; a test compares them.
"""

from __future__ import annotations

#: Reasons that several settings share.
_NO_GROUP = "pylog reads without joining a group"
_NO_METRICS = "this client keeps no Java metrics; Spark's query progress and the brokers' metrics show the same"
_METADATA = "metadata is requested when it is needed: at every trigger, and when a leader has moved"
_TOKENS = "a token is replaced by the first login that finds it old, not by a thread of its own"
_ONE_WAY = "certificates are judged in one way here, by rustls"
_SHARE = "Spark's driver decides what each task reads; a share group would divide the records itself"

#: Accepted, so that a format("kafka") query runs unchanged, and without effect: name -> why that is right.
IGNORED: dict[str, str] = {
    "auto.commit.interval.ms": "offsets are kept in Spark's checkpoint",
    "bootstrap.resolve.timeout.ms": "a name is looked up for each connection; a look-up that fails is tried again, as a refused connection is",
    "buffer.memory.allocation.strategy": "kafka.buffer.memory bounds the records, however their memory is allocated",
    "client.dns.lookup": "all addresses of a name are tried",
    "compression.gzip.level": "each codec is used at its default level",
    "compression.lz4.level": "each codec is used at its default level",
    "compression.zstd.level": "each codec is used at its default level",
    "connections.max.idle.ms": "a connection lives as long as the task or the query; one that the broker closed is opened again",
    "enable.metrics.push": _NO_METRICS,
    "exclude.internal.topics": "a pattern never matches the brokers' internal topics",
    "group.instance.id": _NO_GROUP,
    "group.protocol": _NO_GROUP,
    "group.remote.assignor": _NO_GROUP,
    "heartbeat.interval.ms": _NO_GROUP,
    "internal.throw.on.fetch.stable.offset.unsupported": "no committed offset is read",
    "max.poll.interval.ms": _NO_GROUP,
    "max.poll.records": "rows come as Arrow batches, whose size is batchBytes",
    "metadata.cluster.check.enable": "requests do not name the broker that they are meant for",
    "metadata.max.idle.ms": _METADATA,
    "metadata.recovery.rebootstrap.trigger.ms": "the addresses of kafka.bootstrap.servers are always tried as well",
    "metadata.recovery.strategy": "the addresses of kafka.bootstrap.servers are always tried as well",
    "metric.reporters": _NO_METRICS,
    "metrics.num.samples": _NO_METRICS,
    "metrics.recording.level": _NO_METRICS,
    "metrics.sample.window.ms": _NO_METRICS,
    "partition.assignment.strategy": _NO_GROUP,
    "partitioner.adaptive.partitioning.enable": "rows without a key go to one partition after the other, a batch at a time",
    "partitioner.availability.timeout.ms": "rows without a key go to one partition after the other, a batch at a time",
    "partitioner.rack.aware": "rows without a key go to one partition after the other, a batch at a time",
    "reconnect.backoff.max.ms": "see kafka.retry.backoff.max.ms",
    "reconnect.backoff.ms": "see kafka.retry.backoff.ms",
    "sasl.login.refresh.min.period.seconds": _TOKENS,
    "sasl.login.refresh.window.jitter": _TOKENS,
    "session.timeout.ms": _NO_GROUP,
    "share.acknowledgement.mode": _SHARE,
    "share.acquire.mode": _SHARE,
    "ssl.keymanager.algorithm": _ONE_WAY,
    "ssl.secure.random.implementation": "random bytes are the operating system's",
    "ssl.trustmanager.algorithm": _ONE_WAY,
    "socket.connection.setup.timeout.max.ms": "every connection attempt has the same time, kafka.socket.connection.setup.timeout.ms",
}

_NO_CLASSES = "there are no Java classes in this client; leave it out"
_NO_KERBEROS = (
    "GSSAPI (Kerberos) is not spoken by this client; use a listener of the brokers with SCRAM-SHA-512 or OAUTHBEARER, or one of SSL "
    "with a client's certificate"
)
_NO_ASSERTION = (
    "a client that proves itself to the server of tokens by an assertion needs a Python function for it; name it in "
    "kafka.sasl.oauthbearer.token.provider"
)

#: Refused, because ignoring them would do something else than the user asked for: name -> why, and what to do.
REFUSED: dict[str, str] = {
    "auto.offset.reset": "use startingOffsets to say where to begin",
    "bootstrap.controllers": "this client speaks to brokers; give kafka.bootstrap.servers",
    "config.providers": "values are used as they are written; give the values themselves",
    "enable.auto.commit": "offsets are kept in Spark's checkpoint and never committed; leave it out",
    "interceptor.classes": _NO_CLASSES,
    "key.deserializer": "keys are read as binary; cast the column in Spark",
    "value.deserializer": "values are read as binary; cast the column in Spark",
    "key.serializer": "cast the column to string or binary in Spark",
    "value.serializer": "cast the column to string or binary in Spark",
    "partitioner.class": f"{_NO_CLASSES} (rows with a key go where Kafka's own partitioner puts them; a column partition chooses one for each row)",
    "partitioner.ignore.keys": "rows with a key go where Kafka's own partitioner puts them; leave it out, or drop the column key",
    "security.providers": _NO_CLASSES,
    "transaction.two.phase.commit.enable": "the sink prepares its transactions wherever the brokers can; leave it out",
    "sasl.client.callback.handler.class": f"{_NO_CLASSES}, and name a Python function that gives tokens in kafka.sasl.oauthbearer.token.provider",
    "sasl.login.class": _NO_CLASSES,
    "sasl.oauthbearer.jwt.retriever.class": f"{_NO_CLASSES}: kafka.sasl.oauthbearer.token.endpoint.url says where tokens come from",
    "ssl.engine.factory.class": _NO_CLASSES,
    "ssl.provider": _NO_CLASSES,
    "transactional.id": "exactly-once writing gives every task a transactional id of its own; leave it out, and use txnAppId and txnVersion to name a batch write",
}

_ASSERTION = """algorithm claim.aud claim.exp.seconds claim.iss claim.jti.include claim.nbf.seconds claim.sub file private.key.file
private.key.passphrase template.file"""
_KERBEROS = "kinit.cmd min.time.before.relogin service.name ticket.renew.jitter ticket.renew.window.factor"
REFUSED.update({f"sasl.oauthbearer.assertion.{name}": _NO_ASSERTION for name in _ASSERTION.split()})
REFUSED.update({f"sasl.kerberos.{name}": _NO_KERBEROS for name in _KERBEROS.split()})

#: Of the Java brokers, or of how Java's classes find each other.
_OF_BROKERS = """allow.unverified.audience allow.unverified.issuer clock.skew.seconds expected.audience expected.issuer
jwks.endpoint.refresh.ms jwks.endpoint.retry.backoff.max.ms jwks.endpoint.retry.backoff.ms jwks.endpoint.url jwt.validator.class
scope.claim.name sub.claim.name"""
IGNORED.update(
    {
        f"sasl.oauthbearer.{name}": "brokers judge tokens, a client sends them as it gets them"
        for name in _OF_BROKERS.split()
    }
)
