"""Every row of the table, declared once: what is measured, its unit, and the target that it is held against.

Each row can run alone.
"""

from functools import partial

from benchmarks import (
    archives,
    audit,
    clusters,
    cpu_of_rows,
    failover,
    frames,
    measures,
    planning,
    secured,
    streams,
    tables,
    typed,
    web,
)
from benchmarks.coordination import commits, transactions
from benchmarks.row import Row, at_most, part, ratio_at_least, ratio_at_most

_MANY_PARTITIONS = 1_000
_THOUSANDS = 5_000

_ONE: dict[str, object] = {"batch.num.messages": 1, "linger.ms": 0}
_FIFTY: dict[str, object] = {"batch.num.messages": 50, "linger.ms": 5}
_FULL: dict[str, object] = {"batch.num.messages": 10_000, "linger.ms": 50}

_BROKER_ROWS = (
    Row("start-empty", "start to first answer, empty", "s", False, at_most(0.3, "s"), partial(measures.start_time, partitions=0)),
    Row("start-1000", "start to first answer, 1,000 partitions", "s", False, at_most(1.0, "s"),
        partial(measures.start_time, partitions=_MANY_PARTITIONS)),
    Row("rss-idle", "memory, idle", "MiB", False, at_most(64, "MiB"), measures.rss_idle),
    Row("produce-1", "produce 200 B, one record a batch", "CPU s/M", False, ratio_at_most(0.5),
        partial(measures.produce_cpu, records=100_000, value_bytes=200, settings=_ONE)),
    Row("produce-50", "produce 200 B, batches of 50", "CPU s/M", False, ratio_at_most(0.5),
        partial(measures.produce_cpu, records=1_000_000, value_bytes=200, settings=_FIFTY)),
    *(
        Row(key + suffix, title, "CPU s/M", False, target,
            partial(measures.produce_cpu, records=records, value_bytes=value_bytes, settings=_FULL, part=figure, has_floor=True))
        for key, size, records, value_bytes in (("produce-full", "200 B", 3_000_000, 200), ("produce-1kb", "1 kB", 600_000, 1_000))
        for suffix, title, target, figure in (
            ("", f"produce {size}, full batches", ratio_at_most(0.5), "whole"),
            ("-user", "  of it: the program's own", part(), "user"),
            ("-system", "  of it: in the kernel", part(), "system"),
        )
    ),
    Row("consume-200b", "consume 200 B", "CPU s/M", False, ratio_at_most(1.0),
        partial(measures.consume_cpu, records=3_000_000, value_bytes=200)),
    Row("consume-1kb", "consume 1 kB", "CPU s/M", False, ratio_at_most(1.0),
        partial(measures.consume_cpu, records=1_000_000, value_bytes=1_000)),
    Row("p50", "end to end 200 B, median", "ms", False, ratio_at_most(1.0), partial(measures.round_trip, percentile=0.5)),
    Row("p99", "end to end 200 B, 99th percentile", "ms", False, ratio_at_most(1.0), partial(measures.round_trip, percentile=0.99)),
    Row("rss-after", "memory after these loads", "MiB", False, at_most(150, "MiB"), measures.rss_after),
)  # fmt: skip

_CODECS = ("lz4", "zstd")
# The producer compresses; the broker opens each batch to look at its records. Both brokers do, and most of that is the codec's.
_COMPRESSED_ROWS = tuple(
    Row(f"produce-{codec}{key}", f"produce 200 B, full batches of {codec}", unit, is_speed, target,
        partial(measure, records=3_000_000, value_bytes=200, settings={**_FULL, "compression.type": codec}))
    for codec in _CODECS
    for key, unit, is_speed, target, measure in (
        ("", "CPU s/M", False, ratio_at_most(1.0), measures.produce_cpu),
        ("-rate", "M records/s", True, ratio_at_least(1.0), measures.produce_rate),
    )
)  # fmt: skip

_IDEMPOTENT: dict[str, object] = {**_FULL, "enable.idempotence": True, "acks": "all"}
_ONE_RECORD, _MANY_RECORDS = partial(transactions, records=1), partial(transactions, records=100)

_COORDINATION_ROWS = (
    Row("idempotent-cpu", "produce 200 B idempotent, full batches", "CPU s/M", False, ratio_at_most(0.5),
        partial(measures.produce_cpu, records=3_000_000, value_bytes=200, settings=_IDEMPOTENT)),
    Row("plain-rate", "produce 200 B, full batches", "M records/s", True, ratio_at_least(1.0),
        partial(measures.produce_rate, records=3_000_000, value_bytes=200, settings=_FULL)),
    Row("idempotent-rate", "produce 200 B idempotent, full batches", "M records/s", True, ratio_at_least(1.0),
        partial(measures.produce_rate, records=3_000_000, value_bytes=200, settings=_IDEMPOTENT)),
    Row("txn-1", "transactions of 1 record", "1/s", True, ratio_at_least(1.0),
        partial(measures.per_second, number=200, load=_ONE_RECORD)),
    Row("txn-1-cpu", "a transaction of 1 record", "CPU ms", False, ratio_at_most(0.5),
        partial(measures.cpu_per_operation, number=200, load=_ONE_RECORD)),
    Row("txn-100", "transactions of 100 records", "1/s", True, ratio_at_least(1.0),
        partial(measures.per_second, number=200, load=_MANY_RECORDS)),
    Row("txn-100-cpu", "a transaction of 100 records", "CPU ms", False, ratio_at_most(0.5),
        partial(measures.cpu_per_operation, number=200, load=_MANY_RECORDS)),
    Row("commit", "commits of an offset, one by one", "1/s", True, ratio_at_least(1.0),
        partial(measures.per_second, number=5_000, load=commits)),
    Row("commit-cpu", "a commit of an offset", "CPU ms", False, ratio_at_most(0.5),
        partial(measures.cpu_per_operation, number=5_000, load=commits)),
    Row("join-50", "50 members join a classic group", "s", False, ratio_at_most(1.0),
        partial(measures.join_seconds, members=50, protocol="classic")),
    Row("join-50-kip848", "50 members join a KIP-848 group", "s", False, ratio_at_most(1.0),
        partial(measures.join_seconds, members=50, protocol="consumer")),
    Row("compact", "compaction, 1 kB, 1,000 keys", "MiB/s", True, ratio_at_least(1.0),
        partial(measures.compacted, records=300_000, figure="mib_per_second")),
    Row("compact-cpu", "compaction of a GiB", "CPU s", False, ratio_at_most(0.5),
        partial(measures.compacted, records=300_000, figure="cpu_per_gib")),
    Row("compact-memory", "memory that compaction adds", "MiB", False, at_most(150, "MiB"),
        partial(measures.compacted, records=300_000, figure="grown_mib")),
)  # fmt: skip

_SPARK_ROWS = (
    Row("read-100b", "Spark batch read 100 B, all columns", "M rows/s", True, ratio_at_least(2.5),
        partial(measures.spark_read, records=4_000_000, value_bytes=100, columns="all")),
    Row("read-100b-value", "Spark batch read 100 B, value only", "M rows/s", True, ratio_at_least(4.0),
        partial(measures.spark_read, records=4_000_000, value_bytes=100, columns="value")),
    Row("read-1kb", "Spark batch read 1 kB, all columns", "M rows/s", True, ratio_at_least(3.0),
        partial(measures.spark_read, records=1_000_000, value_bytes=1_000, columns="all")),
    *(
        Row(f"{key}-{way}", f"  {what}, {how}", "M rows/s", True, target,
            partial(measures.spark_read, records=records, value_bytes=size, columns=columns, way=way))
        for way, how, target in (
            ("local", "from the broker's files", ratio_at_least(0.95, "ceiling")),
            ("files", "from a data directory, no broker", ratio_at_least(3.0)),
        )
        for key, what, records, size, columns in (
            ("read-100b", "100 B, all columns", 4_000_000, 100, "all"),
            ("read-100b-value", "100 B, value only", 4_000_000, 100, "value"),
            ("read-1kb", "1 kB, all columns", 1_000_000, 1_000, "all"),
        )
    ),
    Row("write-100b", "Spark batch write 100 B", "M rows/s", True, ratio_at_least(2.8),
        partial(measures.spark_write, records=3_000_000, value_bytes=100, beside="ceiling")),
    Row("write-100b-drained", "  the same bytes to a process that drops them", "M rows/s", True, ratio_at_least(0.8, measures.DRAINED),
        partial(measures.spark_write, records=3_000_000, value_bytes=100, beside=measures.DRAINED)),
)  # fmt: skip

_ARCHIVE_ROWS = (
    Row("archive-read-1kb", "Spark batch read of 1 kB from an archive", "M rows/s", True, ratio_at_least(3.0),
        partial(archives.read, records=1_000_000)),
    Row("archive-scale", "  1 kB that a broker has archived, by two executors, a core each", "M rows/s", True,
        ratio_at_least(1.6, archives.ONE_EXECUTOR), partial(archives.scale, records=1_000_000, figure="rate")),
    Row("archive-scale-cpu", "  CPU of the broker meanwhile", "CPU s", False, ratio_at_most(0.1, archives.BY_BROKER),
        partial(archives.scale, records=1_000_000, figure="cpu")),
    Row("archive-copy", "copy of 1 kB into an archive", "MiB/s", True, ratio_at_least(0.5, "ceiling"),
        partial(archives.copy, records=1_000_000, figure="rate")),
    Row("archive-copy-cpu", "  CPU of copy and broker, a GiB", "CPU s", False, ratio_at_most(2.0, "ceiling"),
        partial(archives.copy, records=1_000_000, figure="cpu")),
    Row("cold-scan", "old records that only the archive has, read by librdkafka", "MiB/s", True, part(),
        partial(archives.scan, records=1_000_000, figure="rate")),
    Row("cold-p99", "end to end 200 B, 99th percentile, during such a read", "ms", False, ratio_at_most(1.2, archives.UNDISTURBED),
        partial(archives.round_trip, records=1_000_000, percentile=0.99)),
    Row("cold-p99-idle", "  a reader that takes what others leave of the processors", "ms", False, ratio_at_most(1.2, archives.UNDISTURBED),
        partial(archives.round_trip, records=1_000_000, percentile=0.99, reader=archives.WHEN_IDLE)),
    Row("cold-p50", "  median", "ms", False, ratio_at_most(1.2, archives.UNDISTURBED),
        partial(archives.round_trip, records=1_000_000, percentile=0.5)),
    Row("cold-memory", "  most memory of the broker", "MiB", False, at_most(100, "MiB"),
        partial(archives.scan, records=1_000_000, figure="memory")),
)  # fmt: skip

_TYPED_ROWS = tuple(
    row
    for form, word in (("json", "JSON"), ("avro", "Avro"))
    for row in (
        *(
            Row(key, f"Spark batch read of {word}, {what} as columns", "M rows/s", True, ratio_at_least(factor),
                partial(typed.read, records=500_000, columns=columns, form=form))
            for key, what, factor, columns in ((f"typed-{form}", "20 fields", 3.0, 20), (f"typed-{form}-2", "2 of 20 fields", 5.0, 2))
        ),
        *(
            Row(f"cpu-{key}", f"  CPU of Spark and broker, {what}", "CPU s/M", False, ratio_at_most(1.0),
                partial(cpu_of_rows.read_typed, records=500_000, columns=columns, form=form, part="sum"))
            for key, what, columns in ((f"typed-{form}", "20 fields", 20), (f"typed-{form}-2", "2 of 20 fields", 2))
        ),
    )
)  # fmt: skip

_FRAME_ROWS = tuple(
    Row(f"frame-{client}", f"100 B into a pandas frame; reference: {client}", "M rows/s", True, ratio_at_least(20, client),
        partial(frames.into_frame, client=client, records=records, value_bytes=100))
    for client, records in ((frames.CONFLUENT, 1_000_000), (frames.AIOKAFKA, 1_000_000), (frames.KAFKA_PYTHON, 200_000))
)  # fmt: skip

_PLANNING_ROWS = (
    Row("plan-10000", "planning of a micro-batch, 10,000 partitions", "ms", False, at_most(50, "ms"),
        partial(planning.planned, partitions=10_000)),
)  # fmt: skip

_WEB_ROWS = (
    Row("start-all", "start to first answer, with TLS, page and metrics", "s", False, at_most(0.12, "s"), web.start_time),
    Row("rss-all", "memory, idle, with TLS, page and metrics", "MiB", False, at_most(21, "MiB"), web.memory),
    Row("page-10000", "the page's list of 10,000 topics in a browser", "ms", False, at_most(1_000, "ms"),
        partial(web.page, topics=10_000, figure="ms")),
    Row("page-10000-kib", "  what the broker answers for it", "KiB", False, part(), partial(web.page, topics=10_000, figure="kib")),
)  # fmt: skip

_AUDIT_ROWS = (
    Row("audit-write", "Spark batch write 100 B, counted for an audit", "M rows/s", True, ratio_at_least(0.99, audit.UNCOUNTED),
        partial(audit.spark_write, records=3_000_000, value_bytes=100)),
    Row("audit-cpu", "  CPU of Spark and broker for it", "CPU s/M", False, ratio_at_most(1.01, audit.UNCOUNTED),
        partial(audit.spark_write_cpu, records=3_000_000, value_bytes=100)),
    Row("audit-produce", "pylog produce, lines of 100 B, counted for an audit", "M records/s", True,
        ratio_at_least(0.99, audit.UNCOUNTED), partial(audit.command_line, records=2_000_000, value_bytes=100)),
)  # fmt: skip

_CPU_ROWS = tuple(
    Row(key + ("" if figure == "sum" else f"-{figure}"), title if figure == "sum" else f"  of it: {words}", "CPU s/M", False,
        ratio_at_most(1.0) if figure == "sum" else part(), partial(measure, part=figure))
    for key, title, measure in (
        ("cpu-read-100b", "CPU of Spark and broker, batch read 100 B", partial(cpu_of_rows.read, records=4_000_000, value_bytes=100)),
        ("cpu-read-1kb", "CPU of Spark and broker, batch read 1 kB", partial(cpu_of_rows.read, records=1_000_000, value_bytes=1_000)),
        ("cpu-write-100b", "CPU of Spark and broker, batch write 100 B", partial(cpu_of_rows.write, records=3_000_000, value_bytes=100)),
        ("cpu-stream-1m", "CPU of Spark and broker, micro-batches of 1 M of 100 B", cpu_of_rows.stream),
    )
    for figure, words in (("sum", ""), ("jvm", "Spark's JVM"), ("python", "Python"), ("broker", "the broker"))
)  # fmt: skip

_TLS_ROWS = (
    Row("tls-produce", "produce 200 B over TLS, full batches", "CPU s/M", False, ratio_at_most(0.5),
        partial(secured.produced, records=3_000_000, value_bytes=200, settings=_FULL, figure="cpu")),
    Row("tls-produce-rate", "  of it", "M records/s", True, ratio_at_least(1.0),
        partial(secured.produced, records=3_000_000, value_bytes=200, settings=_FULL, figure="rate")),
    Row("tls-produce-1kb", "produce 1 kB over TLS, full batches", "CPU s/M", False, ratio_at_most(0.5),
        partial(secured.produced, records=600_000, value_bytes=1_000, settings=_FULL, figure="cpu")),
    Row("tls-consume-200b", "consume 200 B over TLS", "CPU s/M", False, ratio_at_most(0.5),
        partial(secured.consumed, records=3_000_000, value_bytes=200, figure="cpu")),
    Row("tls-consume-rate", "  of it", "M records/s", True, ratio_at_least(1.0),
        partial(secured.consumed, records=3_000_000, value_bytes=200, figure="rate")),
    Row("tls-consume-1kb", "consume 1 kB over TLS", "CPU s/M", False, ratio_at_most(0.5),
        partial(secured.consumed, records=1_000_000, value_bytes=1_000, figure="cpu")),
    Row("tls-connect", "connections with TLS, one by one", "1/s", True, ratio_at_least(1.0),
        partial(secured.connections, number=300, figure="rate")),
    Row("tls-connect-cpu", "a connection with TLS", "CPU ms", False, ratio_at_most(0.5),
        partial(secured.connections, number=300, figure="cpu")),
    Row("tls-read-100b", "Spark batch read 100 B over TLS, all columns", "M rows/s", True, ratio_at_least(2.5),
        partial(secured.spark_read, records=4_000_000, value_bytes=100)),
    Row("tls-sink-small", "micro-batch log to log over TLS, few records", "ms", False, ratio_at_most(1.2), secured.sink),
)  # fmt: skip

_STREAM_ROWS = (
    *(
        Row(f"floor-{partitions}", f"micro-batch of few records, {partitions} partitions", "ms", False, ratio_at_most(most),
            partial(streams.floor, partitions=partitions, part="whole"))
        for partitions, most in ((1, 1.0), (4, 0.9), (8, 0.8))
    ),
    *(
        Row(f"floor-4-{part}", f"  of it (4 partitions): {what}", "ms", False, ratio_at_most(1.0),
            partial(streams.floor, partitions=4, part=part))
        for part, what in (("plan", "offsets and planning"), ("run", "tasks"), ("log", "Spark's two files"))
    ),
    *(
        Row(f"floor-4-tuned{part and '-' + part}", f"  4 partitions, no readlink for the checkpoint (a setting){what}", "ms", False,
            ratio_at_most(1.0), partial(streams.floor, partitions=4, part=part or "whole", is_tuned=True))
        for part, what in (("", ""), ("log", ": Spark's two files"))
    ),
    Row("floor-8-by-tasks", "  8 partitions, read by a Python worker (an option)", "ms", False, ratio_at_most(1.0),
        partial(streams.floor, partitions=8, part="whole", is_by_tasks=True)),
    *(
        Row(f"driver-{thousands}k", f"micro-batch of {thousands},000 records of 100 B, read by the driver", "ms", False,
            ratio_at_most(1.0, streams.BY_TASKS), partial(streams.by_driver, rows=1_000 * thousands))
        for thousands in (4, 16, 64, 256)
    ),
    Row("stream-1m", "micro-batch of 1 M records of 100 B", "ms", False, ratio_at_most(1.05, "ceiling"), streams.large),
    Row("sink-1m", "micro-batch log to log, 1 M records of 100 B", "ms", False, ratio_at_most(1.3, streams.AT_LEAST_ONCE),
        partial(streams.sink, is_large=True)),
    Row("sink-small", "micro-batch log to log, few records", "ms", False, ratio_at_most(1.2),
        partial(streams.sink, is_large=False)),
    Row("sink-small-tuned", "  no readlink for the checkpoint (a setting)", "ms", False, ratio_at_most(1.2),
        partial(streams.sink, is_large=False, is_tuned=True)),
    *(
        Row(f"{key}-fresh{end}", title, "ms", False, target, partial(tables.freshness, table_format=key, figure=figure))
        for key, words in (("parquet", "Parquet row"), ("delta", "row of a Delta table"))
        for figure, end, title, target in (
            ("p95", "", f"from produce to a committed {words}, 95th percentile", at_most(1000, "ms")),
            ("p50", "-p50", "  median", at_most(1000, "ms")),
        )
    ),
)  # fmt: skip

_CLUSTER_ROWS = (
    Row("replicated-rate", "produce 200 B to 3 replicas, acks=all", "M records/s", True, ratio_at_least(1.0),
        partial(clusters.replicated, records=1_000_000, value_bytes=200, figure="rate")),
    Row("replicated-cpu", "  all brokers", "CPU s/M", False, ratio_at_most(0.5),
        partial(clusters.replicated, records=1_000_000, value_bytes=200, figure="cpu")),
    Row("replicated-1kb", "produce 1 kB to 3 replicas, acks=all", "M records/s", True, ratio_at_least(1.0),
        partial(clusters.replicated, records=300_000, value_bytes=1_000, figure="rate")),
    Row("back-to-back", "transactions of 9 records on 3 brokers", "1/s", True, ratio_at_least(1.0),
        partial(clusters.back_to_back, transactions=1_000)),
    Row("acked-p50", "acknowledged by 3 replicas, median", "ms", False, ratio_at_most(1.0),
        partial(clusters.acknowledged, percentile=0.5)),
    Row("acked-p99", "acknowledged by 3 replicas, 99th percentile", "ms", False, ratio_at_most(1.0),
        partial(clusters.acknowledged, percentile=0.99)),
    Row("no-leader-kill", "without a leader after kill -9, session less", "ms", False, at_most(500, "ms"),
        partial(failover.without_leader, how="kill", seen_by="eager")),
    Row("no-leader-kill-told", "  until the brokers left tell who leads", "ms", False, at_most(500, "ms"),
        partial(failover.without_leader, how="kill", seen_by="told")),
    Row("no-leader-kill-plain", "  a client without settings", "ms", False, ratio_at_most(1.0),
        partial(failover.without_leader, how="kill", seen_by="plain")),
    Row("no-leader-stop", "without a leader around a clean stop", "ms", False, at_most(100, "ms"),
        partial(failover.without_leader, how="terminate", seen_by="eager")),
    Row("made-5000", "5,000 partitions of 3 replicas made", "s", False, ratio_at_most(1.0),
        partial(failover.many_partitions, partitions=_THOUSANDS, figure="made")),
    Row("moved-5000", "  leaders of the killed controller moved, session less", "s", False, at_most(2.0, "s"),
        partial(failover.many_partitions, partitions=_THOUSANDS, figure="moved")),
)  # fmt: skip

ROWS: tuple[Row, ...] = (
    _BROKER_ROWS
    + _COMPRESSED_ROWS
    + _COORDINATION_ROWS
    + _SPARK_ROWS
    + _ARCHIVE_ROWS
    + _TYPED_ROWS
    + _FRAME_ROWS
    + _PLANNING_ROWS
    + _WEB_ROWS
    + _AUDIT_ROWS
    + _CPU_ROWS
    + _TLS_ROWS
    + _STREAM_ROWS
    + _CLUSTER_ROWS
)
