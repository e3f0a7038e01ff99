"""The settings of Kafka's Java clients (consumer, producer, admin; kafka-clients 4.4) that the native client does not have:
which ones are accepted and do nothing, and which ones are refused, each with its reason. Together with the native client's own
settings they are all the names that the Java clients know; a test compares them.
"""

from __future__ import annotations

#: Reasons that several settings share.
_NO_GROUP = "pylog reads without joining a group"
_NO_METRICS = "this client keeps no Java metrics; Spark's query progress and the brokers' metrics show the same"
_METADATA = "metadata is requested when it is needed: at every trigger, and when a leader has moved"
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
    "session.timeout.ms": _NO_GROUP,
    "share.acknowledgement.mode": _SHARE,
    "share.acquire.mode": _SHARE,
    "socket.connection.setup.timeout.max.ms": "every connection attempt has the same time, kafka.socket.connection.setup.timeout.ms",
}

_NO_CLASSES = "there are no Java classes in this client; leave it out"
_NO_TLS = "TLS is not built yet: this client speaks to PLAINTEXT listeners only; leave it out and use such a listener"
_NO_SASL = "SASL is not built yet: this client speaks to PLAINTEXT listeners only; leave it out and use such a listener"

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
    "transactional.id": "exactly-once writing gives every task a transactional id of its own; leave it out, and use txnAppId and txnVersion to name a batch write",
}

_SASL = """client.callback.handler.class jaas.config kerberos.kinit.cmd kerberos.min.time.before.relogin kerberos.service.name
kerberos.ticket.renew.jitter kerberos.ticket.renew.window.factor login.callback.handler.class login.class
login.connect.timeout.ms login.read.timeout.ms login.refresh.buffer.seconds login.refresh.min.period.seconds
login.refresh.window.factor login.refresh.window.jitter login.retry.backoff.max.ms login.retry.backoff.ms mechanism
oauthbearer.allow.unverified.audience oauthbearer.allow.unverified.issuer
oauthbearer.assertion.algorithm oauthbearer.assertion.claim.aud oauthbearer.assertion.claim.exp.seconds
oauthbearer.assertion.claim.iss oauthbearer.assertion.claim.jti.include oauthbearer.assertion.claim.nbf.seconds
oauthbearer.assertion.claim.sub oauthbearer.assertion.file oauthbearer.assertion.private.key.file
oauthbearer.assertion.private.key.passphrase oauthbearer.assertion.template.file oauthbearer.client.credentials.client.id
oauthbearer.client.credentials.client.secret oauthbearer.clock.skew.seconds oauthbearer.expected.audience
oauthbearer.expected.issuer oauthbearer.header.urlencode oauthbearer.jwks.endpoint.refresh.ms
oauthbearer.jwks.endpoint.retry.backoff.max.ms oauthbearer.jwks.endpoint.retry.backoff.ms oauthbearer.jwks.endpoint.url
oauthbearer.jwt.retriever.class oauthbearer.jwt.validator.class oauthbearer.scope oauthbearer.scope.claim.name
oauthbearer.sub.claim.name oauthbearer.token.endpoint.url"""

_SSL = """cipher.suites enabled.protocols endpoint.identification.algorithm engine.factory.class key.password
keymanager.algorithm keystore.certificate.chain keystore.key keystore.location keystore.password keystore.type protocol
provider secure.random.implementation trustmanager.algorithm truststore.certificates truststore.location truststore.password
truststore.type"""

REFUSED.update({f"sasl.{name}": _NO_SASL for name in _SASL.split()})
REFUSED.update({f"ssl.{name}": _NO_TLS for name in _SSL.split()})
