//! Every setting of the client, once: field, type, default, name, meaning.
//!
//! Names are Kafka's. A name that is not in the table is refused, so that a typing error cannot pass unseen. All roles
//! (metadata, reader, writer) accept the whole table: a Spark job passes the same `kafka.*` options to each.
use crate::error::{ClientError, Result};
use pylog_record::compression::Codec;
use std::time::Duration;

/// Which acknowledgement a produce request waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Acks {
    /// No answer at all: nothing is promised.
    None,
    /// The leader's page cache.
    Leader,
    /// All in-sync replicas.
    All,
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

/// Which records a fetch sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Isolation {
    /// Everything below the high watermark.
    ReadUncommitted,
    /// Only what is committed, up to the last stable offset.
    ReadCommitted,
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

/// A setting's type: how its text is read.
pub trait Setting: Sized {
    /// The type in the documentation.
    const TYPE: &'static str;
    /// The value, or what is allowed instead.
    ///
    /// # Errors
    /// The second half of the sentence "`name` must be ...".
    fn parse(text: &str, lowest: i64, highest: i64) -> std::result::Result<Self, String>;
}

impl Setting for String {
    const TYPE: &'static str = "string";
    fn parse(text: &str, _: i64, _: i64) -> std::result::Result<Self, String> {
        Ok(text.to_owned())
    }
}

impl Setting for i64 {
    const TYPE: &'static str = "number";
    fn parse(text: &str, lowest: i64, highest: i64) -> std::result::Result<Self, String> {
        let value = text.trim().parse().ok().filter(|value| (lowest..=highest).contains(value));
        value.ok_or_else(|| format!("a whole number from {lowest} to {highest}"))
    }
}

impl Setting for bool {
    const TYPE: &'static str = "boolean";
    fn parse(text: &str, _: i64, _: i64) -> std::result::Result<Self, String> {
        choose(text, &[("true", true), ("false", false)])
    }
}

impl Setting for Acks {
    const TYPE: &'static str = "all, 1 or 0";
    fn parse(text: &str, _: i64, _: i64) -> std::result::Result<Self, String> {
        choose(text, &[("all", Self::All), ("1", Self::Leader), ("0", Self::None), ("-1", Self::All)])
    }
}

impl Setting for Isolation {
    const TYPE: &'static str = "read_uncommitted or read_committed";
    fn parse(text: &str, _: i64, _: i64) -> std::result::Result<Self, String> {
        choose(text, &[("read_uncommitted", Self::ReadUncommitted), ("read_committed", Self::ReadCommitted)])
    }
}

impl Setting for Codec {
    const TYPE: &'static str = "none, gzip, snappy, lz4 or zstd";
    fn parse(text: &str, _: i64, _: i64) -> std::result::Result<Self, String> {
        choose(
            text,
            &[
                ("none", Self::None),
                ("gzip", Self::Gzip),
                ("snappy", Self::Snappy),
                ("lz4", Self::Lz4),
                ("zstd", Self::Zstd),
            ],
        )
    }
}

/// The value whose word is `text`, or the list of words.
fn choose<T: Copy>(text: &str, words: &[(&str, T)]) -> std::result::Result<T, String> {
    let found = words.iter().find(|(word, _)| word.eq_ignore_ascii_case(text.trim()));
    found.map(|(_, value)| *value).ok_or_else(|| {
        let words: Vec<_> = words.iter().map(|(word, _)| *word).collect();
        format!("one of {}", words.join(", "))
    })
}

/// One row of the table, for documentation.
#[derive(Debug, Clone, Copy)]
pub struct Def {
    /// Kafka's name.
    pub name: &'static str,
    /// How the text is read.
    pub kind: &'static str,
    /// The text that stands when nothing is given.
    pub default: &'static str,
    /// What it means.
    pub doc: &'static str,
}

macro_rules! settings {
    ($($(#[doc = $doc:literal])+ $field:ident: $type:ty = $name:literal, $default:literal
        $(, $lowest:literal ..= $highest:expr)?;)+) => {
        /// All settings, checked.
        #[derive(Debug, Clone)]
        pub struct Settings {
            $($(#[doc = $doc])+ pub $field: $type,)+
            given: Vec<String>,
        }

        /// The table.
        pub const TABLE: &[Def] = &[$(Def {
            name: $name, kind: <$type as Setting>::TYPE, default: $default, doc: concat!($($doc),+),
        }),+];

        impl Settings {
            /// Reads and checks every setting.
            ///
            /// # Errors
            /// `INVALID_ARGUMENT` for an unknown name (with the nearest known one) or a bad value.
            pub fn new<'a>(given: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self> {
                let given: std::collections::BTreeMap<&str, &str> = given.into_iter().collect();
                if let Some(name) = given.keys().find(|name| !TABLE.iter().any(|def| def.name == **name)) {
                    return Err(unknown(name));
                }
                let settings = Self {
                    $($field: read::<$type>($name, given.get($name).copied().unwrap_or($default),
                        settings!(@low $($lowest)?), settings!(@high $($highest)?))?,)+
                    given: given.keys().map(|name| (*name).to_owned()).collect(),
                };
                settings.check()?;
                Ok(settings)
            }
        }
    };
    (@low) => { 0 };
    (@low $value:literal) => { $value };
    (@high) => { i64::MAX };
    (@high $value:expr) => { $value };
}

settings! {
    /// Comma-separated `host:port` addresses of brokers, tried in turn; one that answers is enough.
    bootstrap_servers: String = "bootstrap.servers", "";
    /// Name that brokers show in their logs and metrics.
    client_id: String = "client.id", "pylog";
    /// Where this client is: with it, brokers that read from the closest replica (`replica.selector.class`) send a
    /// reader to one in the same rack.
    client_rack: String = "client.rack", "";
    /// How long a reader stays with a replica that is not the leader before it asks the leader again.
    metadata_max_age_ms: i64 = "metadata.max.age.ms", "300000", 0 ..= i32::MAX as i64;
    /// Only PLAINTEXT is supported.
    security_protocol: String = "security.protocol", "PLAINTEXT";
    /// How long to wait for the answer to one request.
    request_timeout_ms: i64 = "request.timeout.ms", "30000", 1 ..= i32::MAX as i64;
    /// How long to wait for one TCP connection.
    socket_connection_setup_timeout_ms: i64 =
        "socket.connection.setup.timeout.ms", "10000", 1 ..= i32::MAX as i64;
    /// How long an operation may take in all, retries included.
    default_api_timeout_ms: i64 = "default.api.timeout.ms", "60000", 1 ..= i32::MAX as i64;
    /// First pause before a retry; it doubles up to `retry.backoff.max.ms`.
    retry_backoff_ms: i64 = "retry.backoff.ms", "50", 0 ..= 60_000;
    /// Longest pause before a retry.
    retry_backoff_max_ms: i64 = "retry.backoff.max.ms", "1000", 0 ..= 60_000;
    /// Size of the socket's receive buffer in bytes; -1 leaves it to the system.
    receive_buffer_bytes: i64 = "receive.buffer.bytes", "-1", -1 ..= i32::MAX as i64;
    /// Size of the socket's send buffer in bytes; -1 leaves it to the system.
    send_buffer_bytes: i64 = "send.buffer.bytes", "-1", -1 ..= i32::MAX as i64;
    /// Largest answer in bytes that is accepted from a broker.
    receive_message_max_bytes: i64 = "receive.message.max.bytes", "134217728", 1024 ..= i32::MAX as i64;
    /// Whether the CRC of every fetched batch is checked.
    check_crcs: bool = "check.crcs", "true";
    /// Whether records of open and aborted transactions are read.
    isolation_level: Isolation = "isolation.level", "read_uncommitted";
    /// Bytes a broker collects before it answers a fetch, `fetch.max.wait.ms` permitting.
    fetch_min_bytes: i64 = "fetch.min.bytes", "1", 1 ..= i32::MAX as i64;
    /// How long a broker may wait for `fetch.min.bytes`.
    fetch_max_wait_ms: i64 = "fetch.max.wait.ms", "500", 0 ..= i32::MAX as i64;
    /// Largest fetch answer in bytes; a first batch that is larger still comes.
    fetch_max_bytes: i64 = "fetch.max.bytes", "52428800", 1 ..= i32::MAX as i64;
    /// Largest part of one partition in a fetch answer in bytes; a reader holds at most two of them.
    max_partition_fetch_bytes: i64 = "max.partition.fetch.bytes", "4194304", 1 ..= i32::MAX as i64;
    /// Largest size in bytes of a batch after decompression.
    decompressed_batch_max_bytes: i64 = "decompressed.batch.max.bytes", "268435456", 1024 ..= i32::MAX as i64;
    /// What a write waits for: all in-sync replicas, the leader (1), nothing (0).
    acks: Acks = "acks", "all";
    /// Whether retries can neither duplicate nor reorder records; needs `acks=all`.
    enable_idempotence: bool = "enable.idempotence", "true";
    /// Codec of written batches.
    compression_type: Codec = "compression.type", "none";
    /// Largest batch in bytes before compression; a record that is larger gets a batch of its own.
    batch_size: i64 = "batch.size", "1048576", 1 ..= 1 << 30;
    /// How long a batch may wait for more records while the writer is being fed; `flush` sends all at once.
    linger_ms: i64 = "linger.ms", "100", 0 ..= i32::MAX as i64;
    /// Largest produce request in bytes, and so the largest record.
    max_request_size: i64 = "max.request.size", "8388608", 1024 ..= 1 << 30;
    /// Bytes of records that may wait for acknowledgement before `write` blocks.
    buffer_memory: i64 = "buffer.memory", "33554432", 65_536 ..= i64::MAX;
    /// How long `write` may block for metadata or memory.
    max_block_ms: i64 = "max.block.ms", "60000", 1 ..= i32::MAX as i64;
    /// How long a record may take from its batch's closing to its acknowledgement, retries included.
    delivery_timeout_ms: i64 = "delivery.timeout.ms", "120000", 1 ..= i32::MAX as i64;
    /// How often a batch is sent again; `delivery.timeout.ms` is the better bound.
    retries: i64 = "retries", "2147483647", 0 ..= i32::MAX as i64;
    /// Produce requests on their way to one broker.
    max_in_flight: i64 = "max.in.flight.requests.per.connection", "5", 1 ..= 5;
    /// How long a transaction that is not prepared may stay open before the broker aborts it; the broker's
    /// `transaction.max.timeout.ms` is its limit, whose default this is.
    transaction_timeout_ms: i64 = "transaction.timeout.ms", "900000", 1 ..= i32::MAX as i64;
    /// Whether a writer lets the broker create a topic that does not exist.
    allow_auto_create_topics: bool = "allow.auto.create.topics", "true";
}

impl Settings {
    /// Whether the user set `name`.
    pub fn is_given(&self, name: &str) -> bool {
        self.given.iter().any(|given| given == name)
    }

    /// The bootstrap addresses, in order.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` when there is none or one is not `host:port`.
    pub fn bootstrap(&self) -> Result<Vec<(String, u16)>> {
        let addresses = self.bootstrap_servers.split(',').map(str::trim).filter(|text| !text.is_empty());
        let addresses: Vec<_> = addresses.map(address).collect::<Result<_>>()?;
        if addresses.is_empty() {
            return Err(ClientError::invalid(
                "bootstrap.servers is missing; give it as host:port[,host:port...]",
            ));
        }
        Ok(addresses)
    }

    /// The whole operation's time.
    pub fn api_timeout(&self) -> Duration {
        millis(self.default_api_timeout_ms)
    }

    /// One request's time.
    pub fn request_timeout(&self) -> Duration {
        millis(self.request_timeout_ms)
    }

    /// The pause before retry number `attempt`, counted from 0.
    pub fn backoff(&self, attempt: u32) -> Duration {
        let pause = self.retry_backoff_ms.saturating_mul(1 << attempt.min(16));
        millis(pause.min(self.retry_backoff_max_ms))
    }

    fn check(&self) -> Result<()> {
        self.bootstrap()?;
        if !self.security_protocol.eq_ignore_ascii_case("PLAINTEXT") {
            return Err(ClientError::invalid(
                "security.protocol must be PLAINTEXT: TLS and SASL are not supported yet",
            ));
        }
        if self.enable_idempotence && self.is_given("enable.idempotence") && self.acks != Acks::All {
            return Err(ClientError::invalid(
                "enable.idempotence=true needs acks=all; set acks=all or enable.idempotence=false",
            ));
        }
        Ok(())
    }
}

/// A number of milliseconds from the table, which allows no negative one.
pub fn millis(value: i64) -> Duration {
    Duration::from_millis(u64::try_from(value).unwrap_or(0))
}

fn address(text: &str) -> Result<(String, u16)> {
    let text = text.rsplit("://").next().unwrap_or(text);
    let parts = text.rsplit_once(':').and_then(|(host, port)| Some((host, port.parse().ok()?)));
    let (host, port) = parts.ok_or_else(|| {
        ClientError::invalid(format!(
            "bootstrap.servers: {text:?} is not host:port, for example localhost:9092"
        ))
    })?;
    Ok((host.trim_matches(['[', ']']).to_owned(), port))
}

fn read<T: Setting>(name: &str, text: &str, lowest: i64, highest: i64) -> Result<T> {
    T::parse(text, lowest, highest)
        .map_err(|allowed| ClientError::invalid(format!("{name} must be {allowed}, not {text:?}")))
}

fn unknown(name: &str) -> ClientError {
    let nearest = TABLE.iter().map(|def| def.name).min_by_key(|known| distance(known, name));
    let nearest = nearest.filter(|known| distance(known, name) <= 3);
    let hint = nearest
        .map_or("see the table of client settings".to_owned(), |known| format!("did you mean {known}?"));
    ClientError::invalid(format!("unknown client setting {name:?}; {hint}"))
}

/// Levenshtein distance.
fn distance(left: &str, right: &str) -> usize {
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (i, a) in left.bytes().enumerate() {
        let mut diagonal = i;
        let mut previous = i + 1;
        for (cell, b) in row.iter_mut().skip(1).zip(right.bytes()) {
            let value = (diagonal + usize::from(a != b)).min(previous + 1).min(*cell + 1);
            diagonal = *cell;
            *cell = value;
            previous = value;
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(given: &[(&str, &str)]) -> Result<Settings> {
        let base = [("bootstrap.servers", "a:1, [::1]:2")];
        Settings::new(base.iter().chain(given).copied())
    }

    #[test]
    fn defaults_of_the_table_are_valid() {
        let settings = settings(&[]).unwrap();
        assert_eq!(settings.acks, Acks::All);
        assert_eq!(settings.bootstrap().unwrap(), [("a".to_owned(), 1), ("::1".to_owned(), 2)]);
        assert!(!settings.is_given("acks"));
    }

    #[test]
    fn an_unknown_name_is_refused_with_the_nearest_known_one() {
        let error = settings(&[("batch.sise", "1")]).unwrap_err();
        assert_eq!(error.kind, "INVALID_ARGUMENT");
        assert!(error.message.contains("did you mean batch.size?"), "{}", error.message);
    }

    #[test]
    fn a_bad_value_is_refused_with_what_is_allowed() {
        for (name, value, allowed) in [
            ("acks", "2", "one of all, 1, 0"),
            ("linger.ms", "-1", "from 0 to"),
            ("compression.type", "brotli", "one of none, gzip, snappy, lz4, zstd"),
            ("check.crcs", "yes", "one of true, false"),
            ("security.protocol", "SSL", "must be PLAINTEXT"),
        ] {
            let error = settings(&[(name, value)]).unwrap_err();
            assert!(error.message.contains(name) && error.message.contains(allowed), "{}", error.message);
        }
    }

    #[test]
    fn idempotence_asked_for_needs_acks_all_and_the_default_gives_way() {
        assert!(settings(&[("enable.idempotence", "true"), ("acks", "1")]).is_err());
        assert!(settings(&[("acks", "1")]).is_ok());
    }

    #[test]
    fn an_address_without_a_port_is_refused() {
        assert!(Settings::new([("bootstrap.servers", "localhost")]).is_err());
        assert!(Settings::new([]).is_err());
    }

    #[test]
    fn backoff_doubles_up_to_its_maximum() {
        let settings = settings(&[("retry.backoff.ms", "10"), ("retry.backoff.max.ms", "35")]).unwrap();
        let pauses: Vec<_> = (0..4).map(|attempt| settings.backoff(attempt).as_millis()).collect();
        assert_eq!(pauses, [10, 20, 35, 35]);
    }
}
