//! Settings of clients. All roles (metadata, reader, writer) accept all of them: a Spark job passes the same `kafka.*` options to each.
use crate::client_security;
use crate::declare::settings;
pub use crate::share::Isolation;
use crate::typed::words;

words! {
    /// Which acknowledgement a produce request waits for.
    pub enum Acks {
        /// All in-sync replicas.
        All = "all" | "-1",
        /// The leader's page cache.
        Leader = "1",
        /// No answer at all: nothing is promised.
        None = "0",
    }
}

impl Acks {
    /// The value in a produce request.
    pub fn code(self) -> i16 {
        match self {
            Self::None => 0,
            Self::Leader => 1,
            Self::All => -1,
        }
    }
}

impl Isolation {
    /// The value in requests.
    pub fn code(self) -> i8 {
        match self {
            Self::ReadUncommitted => 0,
            Self::ReadCommitted => 1,
        }
    }
}

words! {
    /// Codec of written batches.
    pub enum CompressionType {
        /// As they are.
        None = "none",
        /// gzip.
        Gzip = "gzip",
        /// Snappy.
        Snappy = "snappy",
        /// LZ4.
        Lz4 = "lz4",
        /// Zstandard.
        Zstd = "zstd",
    }
}

settings! {
    /// What a client reads.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Settings {
        /// Comma-separated `host:port` addresses of brokers, tried in turn; one that answers is enough.
        "bootstrap.servers" STRING bootstrap_servers: String = String::new();
        /// Name of this client in the brokers' logs and metrics.
        "client.id" STRING client_id: String = "pylog".to_owned();
        /// The rack that this client is in. Brokers whose `replica.selector.class` is set send a reader to a replica in
        /// the same rack.
        "client.rack" STRING client_rack: String = String::new();
        /// How long a reader stays with a replica that is not the leader before it asks the leader again.
        "metadata.max.age.ms" INT metadata_max_age_ms: i64 = 300_000, at_least(0);
        /// How long to wait for the response to one request.
        "request.timeout.ms" INT request_timeout_ms: i64 = 30_000, at_least(1);
        /// How long to wait until one TCP connection is open.
        "socket.connection.setup.timeout.ms" INT socket_connection_setup_timeout_ms: i64 = 10_000, at_least(1);
        /// How long an operation may take in all, retries included.
        "default.api.timeout.ms" INT default_api_timeout_ms: i64 = 60_000, at_least(1);
        /// First pause before a retry; it doubles up to `retry.backoff.max.ms`.
        "retry.backoff.ms" INT retry_backoff_ms: i64 = 50, between(0, 60_000);
        /// Longest pause before a retry.
        "retry.backoff.max.ms" INT retry_backoff_max_ms: i64 = 1_000, between(0, 60_000);
        /// Size of the socket's receive buffer in bytes; -1 leaves it to the operating system.
        "receive.buffer.bytes" INT receive_buffer_bytes: i64 = -1, at_least(-1);
        /// Size of the socket's send buffer in bytes; -1 leaves it to the operating system.
        "send.buffer.bytes" INT send_buffer_bytes: i64 = -1, at_least(-1);
        /// Largest response in bytes that is accepted from a broker.
        "receive.message.max.bytes" INT receive_message_max_bytes: i64 = 134_217_728, at_least(1024);
        /// Whether the CRC of every fetched batch is checked.
        "check.crcs" BOOLEAN check_crcs: bool = true;
        /// Whether records of open and aborted transactions are read.
        "isolation.level" STRING isolation_level: Isolation = Isolation::ReadUncommitted;
        /// Bytes of records that a broker waits for before it answers a fetch, though no longer than
        /// `fetch.max.wait.ms`.
        "fetch.min.bytes" INT fetch_min_bytes: i64 = 1, at_least(1);
        /// How long a broker may wait for `fetch.min.bytes` before it answers a fetch.
        "fetch.max.wait.ms" INT fetch_max_wait_ms: i64 = 500, at_least(0);
        /// Largest response to a fetch in bytes. A first batch that is larger is sent all the same.
        "fetch.max.bytes" INT fetch_max_bytes: i64 = 52_428_800, at_least(1);
        /// Most bytes of one partition in a response to a fetch. A reader holds at most two such parts.
        "max.partition.fetch.bytes" INT max_partition_fetch_bytes: i64 = 4_194_304, at_least(1);
        /// Largest size in bytes that a batch may have after decompression.
        "decompressed.batch.max.bytes" INT decompressed_batch_max_bytes: i64 = 268_435_456, at_least(1024);
        /// What a write waits for: all in-sync replicas (all or -1), the leader (1), nothing (0).
        "acks" STRING acks: Acks = Acks::All;
        /// Whether retries can neither duplicate nor reorder records; needs `acks=all`.
        "enable.idempotence" BOOLEAN enable_idempotence: bool = true;
        /// Codec that batches are compressed with when they are written.
        "compression.type" STRING compression_type: CompressionType = CompressionType::None;
        /// Largest batch in bytes before compression; a record that is larger gets a batch of its own.
        "batch.size" INT batch_size: i64 = 1_048_576, between(1, 1 << 30);
        /// How long a batch may wait for more records while the writer is given some; `flush` sends all at once.
        "linger.ms" INT linger_ms: i64 = 100, at_least(0);
        /// Largest produce request in bytes, and so the largest record.
        "max.request.size" INT max_request_size: i64 = 8_388_608, between(1024, 1 << 30);
        /// Bytes of records that may wait for acknowledgement before `write` blocks.
        "buffer.memory" LONG buffer_memory: i64 = 33_554_432, at_least(65_536);
        /// How long `write` may block for metadata or memory.
        "max.block.ms" INT max_block_ms: i64 = 60_000, at_least(1);
        /// How long a record may take to be acknowledged, retries included; counted from the moment at which its batch
        /// is complete.
        "delivery.timeout.ms" INT delivery_timeout_ms: i64 = 120_000, at_least(1);
        /// How often a batch is sent again; rather limit the time, with `delivery.timeout.ms`.
        "retries" INT retries: i64 = i32::MAX.into(), at_least(0);
        /// Most produce requests to one broker that wait for their responses.
        "max.in.flight.requests.per.connection" INT max_in_flight: i64 = 5, between(1, 5);
        /// How long a transaction that is not prepared may stay open before the broker aborts it. At most the broker's
        /// `transaction.max.timeout.ms`, which has the same default.
        "transaction.timeout.ms" INT transaction_timeout_ms: i64 = 900_000, at_least(1);
        /// Whether a writer lets the broker create a topic that does not exist.
        "allow.auto.create.topics" BOOLEAN allow_auto_create_topics: bool = true;
    }
    parts {
        /// How it reaches secured brokers.
        security: client_security::Settings;
    }
}
