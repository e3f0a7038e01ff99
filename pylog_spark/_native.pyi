"""The native module, typed. Every blocking call releases the GIL. Nothing starts at import.

Objects that hold sockets or threads (`Client`, `RangeReader`, `RecordWriter`, `NativeBroker`) belong to the process
that made them: they refuse to work after a fork and cannot be pickled. All raise `NativeError`.

Answers are documents: what JSON can say, as Python values. Each names the class of `pylog_spark.results` that has exactly its
fields; `pylog_spark.results.decoding` makes the one of the other, and nobody else looks into a document.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, Protocol, TypedDict, final

__all__ = [
    "BrokerArchives",
    "Client",
    "LogDirectory",
    "Mirror",
    "NativeBroker",
    "NativeError",
    "RangeReader",
    "RawConnection",
    "RecordWriter",
    "SettingRow",
    "TypedRead",
    "__version__",
    "advance_fed",
    "close_log",
    "compile_protobuf",
    "encode",
    "first_record_at",
    "flush_log",
    "log_loggers",
    "murmur2",
    "nearest",
    "open_log",
    "pattern_matches",
    "protobuf_fields",
    "protobuf_file",
    "set_log_levels",
    "settings",
    "survey_batches",
    "throwaway_certificates",
]
__version__: str

_Document = dict[str, object]

class _NewTopic(TypedDict):
    """A topic to create; -1 stands for the broker's default."""

    name: str
    num_partitions: int
    replication_factor: int
    configs: Mapping[str, str]

class _LogLine(TypedDict):
    """A line of a broker's log: when, in seconds since 1970; 1 (error) to 5 (trace); the logger; `node.id`; where in the code."""

    created: float
    level: int
    logger: str
    broker: int | None
    thread: str | None
    file: str
    line: int
    message: str
    fields: dict[str, str]

class _ArrowArray(Protocol):
    """What a batch of Arrow's is, of whichever library: `pyarrow.record_batch` takes it."""

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...

class _Batch(_ArrowArray, Protocol):
    """A batch of records. Its length is how many there are."""

    def __len__(self) -> int: ...

class NativeError(Exception):
    """Raised by everything native. `args == (kind, message)`.

    `kind` is a Kafka error name (``UNKNOWN_TOPIC_OR_PARTITION``, ``OFFSET_OUT_OF_RANGE``, ...) or one of
    ``UNREACHABLE``, ``TIMED_OUT``, ``TOKEN_UNAVAILABLE``, ``SSL_AUTHENTICATION_FAILED``, ``CORRUPT_BATCH``, ``BAD_RECORD``, ``UNKNOWN_WRITERS``, ``LOG_TRUNCATED``, ``INVALID_ARGUMENT``, ``IO``, ``LOCKED``, ``CLOSED``, ``FORKED``.
    `message` is one sentence that names the broker, topic, partition, offset or file concerned.
    """

def encode(
    batch: _ArrowArray,
    *,
    key: str | None = None,
    value: str | None = None,
    key_schema: tuple[str, Sequence[str]] | None = None,
    value_schema: tuple[str, Sequence[str]] | None = None,
    key_id: int | None = None,
    value_id: int | None = None,
    key_message: tuple[bytes, str, bool] | None = None,
    value_message: tuple[bytes, str, bool] | None = None,
) -> _Batch:
    """`batch` with its columns "key" and "value" as the bytes of records in these formats (those of `TypedRead`); the other columns, and
    one without a format, stay. JSON and "protobuf" are made of a struct, "avro" of what its schema (as in `TypedRead`) takes; with an id, "avro" and "protobuf" begin with
    that and what follows it in a registry's serializers."""

def protobuf_fields(descriptors: bytes, name: str) -> str:
    """The fields of the message `name` of a ``FileDescriptorSet`` as DDL, with the types of Spark's `from_protobuf`."""

def protobuf_file(descriptors: bytes, name: str) -> tuple[bytes, list[str]]:
    """The ``FileDescriptorProto`` of a ``FileDescriptorSet`` that has the message `name`, and the names of the files that it imports."""

def murmur2(data: bytes) -> int:
    """Kafka's murmur2 hash of `data` as a signed 32-bit int (org.apache.kafka.common.utils.Utils.murmur2)."""

def survey_batches(
    data: bytes, most: int, opened: Mapping[int, int] = ...
) -> tuple[
    list[tuple[int, int, int, int, int, int]],
    list[tuple[int, int, int]],
    dict[int, int],
    list[tuple[int, int]],
    list[str],
]:
    """Look at stored batches, each with its checksum; `opened`: producer -> first offset of the transactions that are open before them.

    Gives runs of at most `most` bytes, or of one larger batch (end among the bytes, first offset, offset behind, batches, records with markers,
    largest timestamp in ms); the aborted transactions whose markers are among them (producer, first offset, offset of the marker); what is open at their
    end; leader epochs with their first offsets; and the names of codecs. Raises CORRUPT_BATCH."""

def first_record_at(data: bytes, timestamp_ms: int, offset: int) -> tuple[int, int] | None:
    """Offset and timestamp (ms) of the first record in stored batches, from `offset` on, that is not older. Raises CORRUPT_BATCH."""

def advance_fed(
    feed: _Feed, ranges: Sequence[tuple[str, int, int, int, int | None, int | None, bool]]
) -> list[tuple[int, int, int]]:
    """As `Client.advance`, of the batches that `feed` brings."""

def compile_protobuf(name: str, files: Mapping[str, str]) -> tuple[bytes, list[str], bytes, bool]:
    """Read the Protobuf file `name` and what it imports: of `files`, each a text or a ``FileDescriptorProto`` in Base64, or one of Google's own.

    Returns
    -------
    (bytes, list of str, bytes, bool)
        The file's descriptor; as JSON that one and then those of all imports; all of them as a ``FileDescriptorSet``; whether the file is a
        text.

    Raises
    ------
    NativeError
        INVALID_ARGUMENT: one of them is not as Protobuf says, or is not there.
    """

def pattern_matches(pattern: str, text: str) -> bool | None:
    """Whether a regular expression is found in a text, in time that grows with the text alone; None: this library does not know such a pattern."""

def nearest(name: str, known: Sequence[str]) -> str | None:
    """The name of `known` that is written most like `name`; None when even that one is too different."""

def settings(owner: Literal["client", "broker", "topic", "group"]) -> tuple[SettingRow, ...]:
    """Every setting of a client (`Client`, `RangeReader`, `RecordWriter`), a broker, a topic or a group, in the order of their names."""

@final
class SettingRow:
    """One setting, as `broker_native/settings` declares it."""

    @property
    def name(self) -> str:
        """Kafka's name, or ours where Kafka has none."""
    @property
    def kind(self) -> Literal["BOOLEAN", "STRING", "INT", "LONG", "DOUBLE", "LIST", "PASSWORD"]:
        """Kafka's name of its type."""
    @property
    def default(self) -> str | bool | float | None:
        """The value that stands when nobody gives one, of a LIST as text; None: not set."""
    @property
    def doc(self) -> str: ...
    @property
    def importance(self) -> str:
        """high, medium or low."""
    @property
    def low(self) -> int | None:
        """The smallest valid number."""
    @property
    def high(self) -> int | None:
        """The largest valid number."""
    @property
    def words(self) -> tuple[str, ...]:
        """The valid words; empty: all are valid."""
    @property
    def why(self) -> str:
        """Why others than `words` are left out."""
    @property
    def form(self) -> str:
        """Name of the form that its text has and Python checks; empty: none."""
    @property
    def dynamic(self) -> bool:
        """Whether a running broker takes a change."""
    @property
    def per_listener(self) -> bool:
        """Of a broker: whether each listener may have a value of its own."""
    @property
    def field(self) -> str | None:
        """The field that the native half reads it into; None when Python alone reads it."""
    @property
    def synonyms(self) -> tuple[tuple[str, int], ...]:
        """The broker settings that one of a topic or group falls back to, each with the factor of its unit."""
    @property
    def aliases(self) -> tuple[str, ...]:
        """Other names of the same setting."""

def throwaway_certificates(
    authority: str, asked: Sequence[tuple[str, Sequence[str], Literal["server", "client", "both"], int, int]]
) -> tuple[str, list[tuple[str, str]]]:
    """Certificates for tests, as PEM: that of a new authority called `authority`, and (certificate, private key) of each that is `asked`
    for by (common name, hosts, usage, first and last second in which it is valid since 1970)."""

def open_log(deliver: Callable[[list[_LogLine]], None]) -> bool:
    """Let `deliver` be called with the lines of this process's native brokers, some at a time, and once a second with none; always in one
    thread of its own. False, and nothing changes, when the log of this process is open. Before it is, no line is kept."""

def set_log_levels(levels: Sequence[tuple[str, int]]) -> None:
    """How much each logger writes, from 0 (nothing) over 1 (errors) to 5 (everything); 3 at first. Unknown loggers are passed over."""

def flush_log(timeout_ms: int) -> bool:
    """Wait until all that was logged before is delivered, counts of what was left out included; whether it is."""

def close_log(timeout_ms: int) -> bool:
    """`flush_log`, and end the thread. Later lines are lost."""

def log_loggers() -> list[tuple[str, str]]:
    """The loggers that native brokers have: (name, what it is about)."""

@final
class BrokerArchives:
    """What a broker learns of its archive, and asks of it. Topics are named by their ids, as text. Any thread may use it.

    A partition is one that this broker leads in `leader_epoch`; who leads it no longer gets None or False.
    """

    def partitions(
        self,
    ) -> list[tuple[str, str, int, int, int, int | None, int, int, int, tuple[int, int, int] | None, bool]]:
        """Give the partitions that are led here, of topics with `remote.storage.enable`.

        Each as topic, its id, partition, leader epoch, first offset here, the offset up to which it may be copied (None with
        `remote.log.copy.disable`), bytes that only the broker has, `retention.ms`, `retention.bytes`, what groups of `retention.until.checkpointed` need (from an offset on, for so many ms and bytes at
        most; None without groups), whether `set_archived` was called in this epoch.
        """

    def read(
        self, topic_id: str, partition: int, leader_epoch: int, offset: int, max_bytes: int
    ) -> tuple[bytes, int] | None:
        """Give whole batches from an offset on, of one segment and below the last stable offset, and the offset behind them."""

    def epoch_end(self, topic_id: str, partition: int, epoch: int) -> tuple[int, int] | None:
        """Give the largest leader epoch up to this one, and where it ends in the log; None when that is not known."""

    def set_archived(
        self,
        topic_id: str,
        partition: int,
        leader_epoch: int,
        archived: tuple[int, int],
        epochs: Sequence[tuple[int, int]],
    ) -> bool:
        """The archive has the offsets [start, end) that are `archived`: clients read them there, and retention may remove them here."""

    def next_question(self, timeout_ms: int) -> tuple[int, str, str, str, int, int, int] | None:
        """Wait for a client that wants something of the archive: a number, ``batches``, ``time`` or ``delete``, topic, its id, partition,
        an offset or a time, and most bytes. None when there was none for so long."""

    def answer_batches(
        self, number: int, pieces: Sequence[bytes], aborted: Sequence[tuple[int, int, int]], end: int
    ) -> None:
        """Give batches, the one with the offset among them, in whole pieces, and the aborted transactions among them (producer, first offset, marker).

        Batches that begin at offset `end` or behind are left out."""

    def answer_offset(self, number: int, found: tuple[int, int] | None = None) -> None:
        """Give the offset and timestamp of a record, or nothing; also when records are deleted."""

    def refuse(self, number: int, kind: str) -> None:
        """Refuse: OFFSET_OUT_OF_RANGE, NOT_LEADER_OR_FOLLOWER, POLICY_VIOLATION, else KAFKA_STORAGE_ERROR, with which clients try again."""

    def wait(self, timeout_ms: int) -> bool:
        """Wait until `set_archived` is missing for a partition, or a topic has changed; False when that takes longer."""

    def close(self) -> None:
        """Refuse all questions, now and later."""

@final
class NativeBroker:
    """The data path of one broker: log directory, listener, handlers. Decisions come from Python.

    Start order: construct (locks and opens `data_dir`), `apply_topics` with every stored topic, `listen`.
    """

    def __new__(cls, data_dir: str, settings_json: str) -> NativeBroker:
        """`settings_json`: see `pylog_spark.broker.config.native_settings`, which makes it."""
    def apply_topics(self, topics_json: str) -> None:
        """Create or update topics: JSON list of {name, topic_id, internal, config: {what
        `pylog_spark.broker.config.log_config` gives}, partitions: [
        {partition, leader, leader_epoch, replicas, isr, partition_epoch, adding, removing, elr}]}. Opens (recovers) or creates the
        logs of this broker's replicas before it returns, begins to lead or to follow, and removes replicas that moved away."""
    def apply_cluster(self, view_json: str) -> None:
        """Replace what is known of the brokers: {"controller_id" (-1: none), "controller_epoch", "brokers": [{id, endpoints:
        {listener: [host, port]}, rack, epoch}]}, this one included, "dead": [the same of those that belong to the cluster and do not live], "level"}."""
    def expect_topics(self, topics_json: str) -> None:
        """Of these topics (as `apply_topics` takes them) this broker had its replicas in a data directory that is gone: it serves none
        of them before it is put back or given up."""
    def offline_partitions(self) -> list[tuple[str, int]]:
        """The partitions that this broker has a replica of and cannot serve."""
    def lease_clock_ms(self) -> int:
        """What the clock of the lease shows; it is monotonic."""
    def may_lead(self) -> bool:
        """Whether this broker may lead partitions now, see `lease_until`; as in `stats`, without the rest of it."""
    def lease_until(self, clock_ms: int) -> None:
        """This broker may lead until the lease's clock shows `clock_ms`; 0 ends it at once. Without a cluster (setting `clustered`
        false) it always may. In a cluster the lease is over until the first call."""
    def set_throttles(self, leader: int, follower: int) -> None:
        """Bytes a second that leaders here may send to throttled replicas, and followers here may fetch of them; 2^63-1: no limit."""
    def apply_group_configs(self, configs_json: str) -> None:
        """Replace the settings of single groups: {group id: {setting: value}}; what is left out is the broker's."""
    def apply_security(self, security_json: str) -> None:
        """Replace users, ACLs and quotas: {"scram": [{user, mechanism, salt, stored_key, server_key (base64), iterations}], "acls": [
        {resource_type, resource_name, pattern_type, principal, host, operation, permission}], "quotas": [{"entity": {"user",
        "client-id", "ip"}, "values"}], "decoy_key": 64 hexadecimal digits, the same on all brokers, or null before the first user}. Refused as a
        whole when a part is missing, unknown or cannot be used."""
    def apply_jwks(self, jwks_json: str) -> None:
        """Replace the keys (a JWKS, RFC 7517) that the signatures of tokens are checked with."""
    def begin_schema_ids(self) -> None:
        """A schema registry says from now on which schemas there are; nothing so far. Also when it begins anew."""

    def set_schema_ids(self, subject: str, ids: set[int]) -> None:
        """These are the ids of a subject's schemas now; none removes it."""

    def next_schema_question(self, timeout_ms: int) -> int | None:
        """Wait for a record that names a schema which is not known; None when there was none for so long."""

    def answer_schema_question(self, question: int) -> None:
        """All schemas are known that there were when the question came: who waits for that goes on."""

    def next_dead_letters(
        self, timeout_ms: int
    ) -> tuple[int, str, list[tuple[bytes | None, bytes | None, int, list[tuple[str, bytes | None]]]]] | None:
        """Wait for records that go to a dead letter topic: a number to answer by, the topic, and of each key, value, timestamp (ms, -1 for none)
        and headers. None when there were none for so long."""
    def answer_dead_letters(self, number: int, error: str | None = None, again: bool = False) -> None:
        """They are written; or they are not, and why, and whether their producer may try it again."""
    def archives(self) -> BrokerArchives:
        """What is said of the archive (`archive.url`)."""

    def set_cleaner_backoff(self, backoff_ms: int) -> None:
        """How long a thread that compacts waits when it found nothing to do (log.cleaner.backoff.ms)."""
    def was_clean(self) -> bool:
        """Whether the last user of the data directory stopped cleanly; False of a new directory."""
    def remove_topic(self, name: str) -> None:
        """Stop serving the topic and delete its directories."""
    def listen(self, listeners_json: str) -> list[int]:
        """Bind all listeners, start serving, return the port of each (useful with port 0).

        JSON list of {name, protocol, host, port, advertised_host (null: the one that the client dialled), advertised_port
        (null: the one that is bound), settings: {what `pylog_spark.broker.listeners` gives}}."""
    def next_event(self, timeout_ms: int) -> tuple[int, str, str] | None:
        """Wait for a request that needs a decision: (event id, kind, JSON). None after `timeout_ms` or when closed.

        Kinds: create_topics, delete_topics, create_partitions, alter_configs, incremental_alter_configs,
        describe_configs, auto_create_topics, alter_partition, allocate_producer_ids, alter_partition_reassignments,
        list_partition_reassignments, elect_leaders, update_features, unregister_broker, alter_user_scram_credentials,
        describe_user_scram_credentials, create_acls, delete_acls, alter_client_quotas, describe_client_quotas, read_keys. The JSON is the wire request, fields in snake_case
        (for auto_create_topics: {"topics": [names]}; for alter_partition and allocate_producer_ids see `server/decide.rs`). What changes users,
        ACLs and quotas has the "principal" of the client besides."""
    def wake(self) -> None:
        """Let `next_event` return, the one that waits or the next one. Callable from every thread."""
    def complete(self, event_id: int, answer_json: str) -> None:
        """Answer an event: JSON of the wire response body in snake_case (for auto_create_topics: {})."""
    def stats(self) -> dict[str, int]:
        """Counters since the start and gauges: requests, bytes_in, bytes_out, connections, partitions, may_lead (1 or 0), ..."""
    def partition_numbers(self) -> str:
        """JSON: of each partition here {topic, partition, leads, offline, replicas, in_sync, log_start_offset, high_watermark, log_end_offset,
        size_bytes}."""
    def group_numbers(self) -> str:
        """JSON: {offsets: [{group, topic, partition, offset, lag or null}], left_out, groups, loading} of the groups coordinated here."""
    def request_times(self) -> str:
        """JSON: of each API that was asked for {api, buckets: [[bound in microseconds or null, requests]], sum_us}."""
    def close(self, timeout_ms: int) -> None:
        """Stop accepting, answer what is in flight, sync all logs, write the clean-stop marker, unlock. Idempotent."""

@final
class Mirror:
    """Copies partitions of one cluster into another, offset by offset, until it is stopped. Threads of its own, from `assign` on."""

    def __new__(
        cls,
        source: Mapping[str, str],
        target: Mapping[str, str],
        source_id: str,
        bytes_per_second: int | None = None,
    ) -> Mirror:
        """`source_id`: the source's cluster id, which the target's topics have as ``mirror.source``."""
    def assign(self, wanted: Sequence[tuple[str, int, int]]) -> None:
        """Copy these partitions, each with the broker that leads it in the source (-1: none now), and no others."""
    def progress(self) -> list[_Document]:
        """`MirroredPartition`, for each partition."""
    def failures(self) -> list[tuple[str, str]]:
        """What keeps brokers' partitions from going on: (kind, message)."""
    def take_stale(self) -> bool:
        """Whether the source's leaders are to be looked for; asked once for each time."""
    def stop(self) -> None:
        """End all threads, wherever they are."""

@final
class Client:
    """Metadata, offsets and admin requests of one cluster. Thread-safe; connections are opened when needed.

    `config` keys: bootstrap.servers, client.id, request.timeout.ms, socket.connection.setup.timeout.ms,
    default.api.timeout.ms, and others of Kafka's names that the client implements; unknown keys are refused.
    """

    def __new__(cls, config: Mapping[str, str]) -> Client: ...
    def describe_topics(self, names: Sequence[str] | None) -> list[_Document]:
        """`TopicDescription` of each, of all topics when `names` is None. Never creates a topic. topic_id is "" below v10."""
    def list_partitions(self, names: Sequence[str] | None) -> list[tuple[str, str, bool, str | None, list[int]]]:
        """As `describe_topics`, of many partitions: the fields of `ListedTopic`."""
    def describe_cluster(self) -> _Document:
        """`ClusterDescription`."""
    def list_offsets(
        self, wanted: Sequence[tuple[str, int, int]], isolation_level: str = "read_uncommitted"
    ) -> list[tuple[str, int, int, int]]:
        """(topic, partition, timestamp or -1 latest / -2 earliest / -3 max timestamp) -> (topic, partition, offset,
        timestamp), same order; offset -1 when no record is at or after the timestamp."""
    def advance(
        self, ranges: Sequence[tuple[str, int, int, int, int | None, int | None, bool]]
    ) -> list[tuple[int, int, int]]:
        """(topic, partition, start, end, most records, most bytes, take one stored batch at least) -> (offset reached, records,
        bytes of stored batches), same order. Batches are fetched and counted by their headers; only what a reader of the
        client's isolation.level sees counts. Record limits are met exactly; stored batches are not cut by bytes."""
    def read_at_once(
        self,
        ranges: Sequence[tuple[str, int, int, int, str]],
        columns: Sequence[str],
        most_bytes: int,
        *,
        batch_bytes: int = 1_500_000,
        max_rows: int = 10_000,
        timestamps: Sequence[tuple[int, int]] | None = None,
        keys: Sequence[tuple[str, Sequence[bytes | None]]] = ...,
        typed: TypedRead | None = None,
    ) -> tuple[list[_Batch] | None, int, int]:
        """All rows of small ranges (topic, partition, start, end, topic_id), in their order, with one fetch to each leader as a rule:
        (batches, rows, bytes of Arrow data); None instead of the batches when they are more than `most_bytes`. Columns and filters are
        those of `RangeReader`. Nothing is tried again: whatever is in doubt is an error, and `RangeReader` knows what to do."""
    def create_topics(self, topics: Sequence[_NewTopic], validate_only: bool = False) -> list[_Document]:
        """`CreateTopicResult` of each."""
    def delete_topics(self, names: Sequence[str]) -> list[_Document]:
        """`DeleteTopicResult` of each."""
    def create_partitions(self, counts: Mapping[str, int]) -> list[_Document]:
        """`NamedResult` of each topic."""
    def delete_records(self, before: Sequence[tuple[str, int, int]]) -> list[_Document]:
        """(topic, partition, first offset to keep; -1 = high watermark) -> `DeletedRecords` of each."""
    def describe_configs(
        self, resource_type: str, names: Sequence[str], keys: Sequence[str] | None = None
    ) -> list[_Document]:
        """resource_type topic|broker|broker-logger -> `ConfigDescription` of each, with all settings or those named; a broker is named by its number."""
    def alter_configs(
        self, resource_type: str, name: str, changes: Mapping[str, str | None], validate_only: bool = False
    ) -> list[_Document]:
        """Incremental: a value sets, None goes back to the default. One `NamedResult`."""
    def request(self, name: str, arguments_json: str) -> list[_Document]:
        """Groups, their offsets, transactions, replicas, rights: the methods of `pylog_spark.client.groups`, `.transactions`,
        `.replicas` and `.security`, by name and with their arguments as a JSON object; the classes are named there."""
    def end_mirror(self, topic: str, partitions: Sequence[int]) -> None:
        """End the mirror in partitions of a topic whose ``mirror.source`` is ``ended``: open transactions are aborted."""
    def fetch_batches(self, topic: str, partition: int, offset: int, until: int, max_bytes: int) -> tuple[bytes, int]:
        """The stored batches from the one with `offset`, those that begin before `until`, of about `max_bytes`, with checksums that are right;
        and the offset behind them, `until` where there are none."""
    def append_batches(
        self, source_id: str, topic: str, partition: int, start: int, batches: bytes | None = None
    ) -> int:
        """Append stored batches to a topic whose ``mirror.source`` is `source_id`: the end of the log. They are all that the source has from
        offset `start` on; without batches it has nothing before that. What the log has is passed over."""
    def end_transactions(
        self, transactions: Sequence[tuple[str, int, int]], commit: bool, timeout_ms: int
    ) -> list[_Document]:
        """End transactions, each (transactional id, producer id, epoch): `EndTransactionResult` of each, same order.

        Returns when every partition of each knows: a reader of committed data then sees them. A transaction that had
        ended in this way before is a success. An error (a Kafka error name or a kind of `NativeError`) is its
        transaction's alone: INVALID_TXN_STATE or PRODUCER_FENCED when it ended otherwise (its time-out, a newer
        producer), INVALID_PRODUCER_ID_MAPPING when its coordinator does not know it (any more), TIMED_OUT after
        `timeout_ms`, with the last cause. Lost connections, moving coordinators and ends that are under way are retried
        inside. Many at once are pipelined."""
    def close(self) -> None: ...

class _ArrowSchema(Protocol):
    """A schema of Arrow's, of whichever library."""

    def __arrow_c_schema__(self) -> object: ...

@final
class TypedRead:
    """What a typed read gives: columns of `schema`, each from one of `sources`.

    A source is "record:" and the name of a column that a read without formats gives, "key" or "value" (decoded by its format), "field"
    (a field of the value, by the column's name) or "corrupt" (the text of a record that does not parse). A format is "json", "avro", "protobuf", or
    "string", "long", "integer", "short", "float", "double" of Kafka's serializers. `mode` is "PERMISSIVE", "DROPMALFORMED" or
    "FAILFAST" (then reading raises BAD_RECORD). With `keeps_bad` readers keep the records that do not parse for `take_bad`, and may give
    batches without rows.

    `key_schema` and `value_schema` are what "avro" is read as: the text of a schema and those of the schemas that it refers to, each behind those
    that it refers to itself. With `registered`, keys and values begin with the id of the schema that wrote them: reading raises UNKNOWN_WRITERS where
    one is not known, `missing_writers` says which, and a new reader reads on once each was given to `add_writer`. Without a schema to be read
    as, the columns are taken from each writer's by their names.

    `key_message` and `value_message` are what "protobuf" is: a ``FileDescriptorSet``, the name of a message in it, and whether an id that is not
    looked up and the message's place in that set stand before each; with `registered` it is looked up, for the message's place in its schema.

    `numbers` and `texts` are conditions that must be true of rows, each with the number of a column that is decoded: spans (first, last) of which one must
    hold its number (of a time microseconds, of a date days, of a float its place among all as Spark orders them), and whether null is wanted; or how and with what
    a text or bytes are compared, as `keys` of `RangeReader`.
    """

    def __new__(
        cls,
        schema: _ArrowSchema,
        sources: Sequence[str],
        *,
        key: str | None = None,
        value: str | None = None,
        mode: str = "PERMISSIVE",
        key_schema: tuple[str, Sequence[str]] | None = None,
        value_schema: tuple[str, Sequence[str]] | None = None,
        registered: bool = False,
        keeps_bad: bool = False,
        key_message: tuple[bytes, str, bool] | None = None,
        value_message: tuple[bytes, str, bool] | None = None,
        numbers: Sequence[tuple[int, Sequence[tuple[int, int]], bool]] = ...,
        texts: Sequence[tuple[int, tuple[str, Sequence[bytes | None]]]] = ...,
    ) -> TypedRead: ...
    def missing_writers(self) -> list[int]:
        """The ids of schemas that readers with this object have met and do not know."""
    def add_writer(self, schema_id: int, schema: tuple[str, str, Sequence[tuple[str, str]]] | None) -> None:
        """The schema with an id: its type ("AVRO"), its text, and the names and texts of those that it refers to; None if there is none."""
    @property
    def left_out(self) -> int:
        """Records that readers with this object have left out because they do not parse (DROPMALFORMED)."""
    def take_bad(self) -> list[_Batch]:
        """What was kept since the last call, as rows for a `RecordWriter`: topic, partition, offset (where a record is from), value, and
        headers, which are the record's and ``pylog.topic``, ``.partition``, ``.offset``, ``.timestamp`` (ms), ``.key`` if it has one,
        and ``.error``. A reader that is ahead has kept those of rows that it has not given yet, too."""

@final
class LogDirectory:
    """A data directory of a broker, pylog's or Apache Kafka's, read without it; nothing is written or locked. Thread-safe.

    Opened with what it has now; what a partition's log is, is found out once, when it is first asked for. `isolation_level` is that of readers
    and of `advance`; with `skip_damaged` bytes that are no batches are left out, and what was left out is said by `take_notices`.
    """

    def __new__(
        cls, path: str, isolation_level: str = "read_uncommitted", skip_damaged: bool = False
    ) -> LogDirectory: ...
    def describe_topics(self, names: Sequence[str] | None) -> list[_Document]:
        """As `Client.describe_topics`; partitions have no leader and no replicas."""
    def list_partitions(self, names: Sequence[str] | None) -> list[tuple[str, str, bool, str | None, list[int]]]:
        """As `Client.list_partitions`."""
    def list_offsets(
        self, wanted: Sequence[tuple[str, int, int]], isolation_level: str = "read_uncommitted"
    ) -> list[tuple[str, int, int, int]]:
        """As `Client.list_offsets`, but for -3."""
    def advance(
        self, ranges: Sequence[tuple[str, int, int, int, int | None, int | None, bool]]
    ) -> list[tuple[int, int, int]]:
        """As `Client.advance`."""
    def segments(self, topic: str, partition: int) -> list[tuple[int, int]]:
        """Of each file of the partition's log the first offset and its bytes."""
    def inspect(self, topic: str, partition: int) -> _Document:
        """log_start_offset, last_stable_offset, log_end_offset, segments, bytes."""
    def verify(self, topic: str, partition: int) -> _Document:
        """Reads the partition: batches, records (markers of transactions, too), codecs (names)."""
    def take_notices(self) -> list[str]:
        """What was left out, and why logs end where they do, since this was asked last: sentences without a dot."""
    def close(self) -> None: ...

class _Feed(Protocol):
    """Who brings a reader's batches. It raises `LogError`s of the kinds of brokers, such as OFFSET_OUT_OF_RANGE; others are errors of the storage."""

    def turn_to(
        self, topic: str, partition: int, topic_id: str, start: int, end: int
    ) -> Sequence[tuple[int, int, int]]:
        """Turn to a range; gives the aborted transactions in it that are to be hidden (producer, first offset, offset of the marker)."""
    def next_piece(self) -> bytes | None:
        """The next whole batches of the range, up to the one that has its last offset; None at the end."""

@final
class RangeReader:
    """Records of ranges [start, end) of partitions as a stream of Arrow batches (`__arrow_c_stream__`, once only).

    Fetches and decodes ahead in native threads, started at the first pull; stops early when dropped.
    Columns, in the order asked: key, value binary; topic string; partition int32; offset int64; timestamp
    timestamp[us, UTC]; timestampType int32; headers list<struct<key: string, value: binary>>. Only those asked are built.
    Control batches and, with read_committed, aborted records are left out. A batch ends at about `batch_bytes` bytes and
    holds rows of one range only. Ranges are read one after the other, in the order given, over the same connections.

    Errors in mid-stream: OFFSET_OUT_OF_RANGE, LOG_TRUNCATED (a new leader does not have what was read), UNKNOWN_TOPIC_ID
    (topic deleted or recreated), CORRUPT_BATCH, UNREACHABLE and TIMED_OUT after the configured time-outs; leader changes and
    lost connections are retried inside. With `client.rack` the leader may send the reader to a closer replica.
    """

    def __new__(
        cls,
        config: Mapping[str, str],
        topic: str,
        partition: int,
        start: int,
        end: int,
        columns: Sequence[str],
        *,
        topic_id: str = "",
        batch_bytes: int = 1_500_000,
        max_rows: int = 10_000,
        follow: bool = False,
        then: Sequence[tuple[str, int, int, int, str]] = ...,
        timestamps: Sequence[tuple[int, int]] | None = None,
        keys: Sequence[tuple[str, Sequence[bytes | None]]] = ...,
        limit: int | None = None,
        local_reads: bool = False,
        keep_connections: bool = False,
        typed: TypedRead | None = None,
        directory: LogDirectory | None = None,
        feed: _Feed | None = None,
    ) -> RangeReader:
        """`then`: further ranges (none when left out), (topic, partition, start, end, topic_id). With `follow`, the end of the last one is
        ignored and `next_batch` waits for new records.

        Rows are left out before they are built unless one of `timestamps`, if given, holds their timestamp ((first, last) in ms, both
        included, ascending) and each of `keys`, if given, their key: ("in", keys; None for no key), ("prefix", prefixes), ("range",
        [low, high]) for low <= key < high, where None is no bound. `limit`: most rows in all; fetches are small at first. With `local_reads` records come from the brokers' own files where this process
        sees them; any doubt about a file sends the rest of its range over the network. With `keep_connections` those that took a TLS
        handshake or a login are left to the next reader or writer of this process with the same settings, for a minute.
        With `directory` records come from it, with `feed` from the batches that it brings, by a native thread; `config` is not looked at then, and
        nothing is followed."""
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def next_batch(self, timeout_ms: int) -> _Batch | None:
        """For programs that poll: a batch, or None when nothing came within `timeout_ms` or the end is reached (then `at_end`
        is True)."""
    @property
    def at_end(self) -> bool: ...
    @property
    def range_index(self) -> int:
        """The number of the range that is being handed out, or that an error ended; from 0."""
    @property
    def next_offset(self) -> int:
        """Everything of that range before this offset was handed out."""
    @property
    def bytes_fetched(self) -> int:
        """Bytes of records that came from the brokers over the network."""
    @property
    def bytes_local(self) -> int:
        """Bytes of records that came from the brokers' files."""
    @property
    def fallbacks(self) -> int:
        """How often a file was doubtful, so that what was left of a range came over the network."""
    @property
    def why_not_local(self) -> str | None:
        """Why the network was taken last: one sentence; None when files were not in question, or never doubtful."""
    @property
    def error(self) -> tuple[str, str] | None:
        """(kind, message) of the error that ended the reader. Through the Arrow stream pyarrow raises an exception of
        its own, whose text contains ``KIND: message``; this is the same as values."""
    def stop(self) -> None: ...

@final
class RecordWriter:
    """Appends Arrow batches. Not thread-safe. One instance for one Spark task.

    Columns are found by name: value (required), key, topic, partition, headers, timestamp; string or binary, also the
    large and view variants; timestamp of any unit. `config` adds producer settings: acks, compression.type,
    batch.size, linger.ms, max.request.size, enable.idempotence, delivery.timeout.ms, retries, ...

    With a transactional id all that is written is one transaction: seen by readers of committed data when it is
    committed, and not at all when it is aborted or was left open for `transaction.timeout.ms` without being prepared.
    """

    def __new__(
        cls,
        config: Mapping[str, str],
        topic: str | None = None,
        *,
        transactional_id: str | None = None,
        keep_connections: bool = False,
        count_windows_ms: int | None = None,
    ) -> RecordWriter:
        """`topic` wins over the column. Connects to nobody yet. `keep_connections`: as of `RangeReader`. `count_windows_ms`: count
        records by windows of their timestamps, for `take_counts`."""
    def write(self, batch: _ArrowArray, topic: str | None = None) -> None:
        """Returns when its records are queued; blocks while the buffer
        (`buffer.memory`) is full. Raises the first delivery error of earlier records. A `topic` given here wins over all
        others, and these records are not counted."""
    def take_counts(self) -> list[tuple[str, int, int]]:
        """(topic, start of the window in ms since 1970, records) of all that was counted since the last call."""
    def flush(self) -> _Document:
        """Wait until all is acknowledged: `FlushResult`, counted from the first write of this writer."""
    def begin(self) -> _Document:
        """Begin the transaction: `ProducerIdentity`. Whoever held the transactional id before is fenced, and
        its open transaction aborted, when this returns. Without this the first batch that is sent begins it."""
    def prepare(self) -> _Document | None:
        """After `flush`: `PreparedTransaction`, which ends the transaction through `Client.end_transactions`, from anywhere.
        `prepared` True: it never times out, takes nothing more, and only these end it. False: the brokers do not offer that
        (KIP-939); it stays an ordinary transaction with its time-out. None when no record was written: there is nothing to
        end."""
    def end(self, commit: bool) -> None:
        """Commit (after `flush`) or abort, and wait until every partition knows. The writer then takes nothing more."""
    def close(self) -> None:
        """Give up what is not acknowledged and close the connections. An open transaction stays open."""

@final
class RawConnection:
    """Raw requests to a broker, for tests and tools: one connection, any request the codec knows, its answer as it is.

    Nothing is agreed on, retried or interpreted. Messages are JSON with Kafka's field names in snake_case; fields left
    out have their defaults, unknown fields are refused, bytes are hexadecimal text. Not for programs: use `Client`.
    """

    def __new__(
        cls, host: str, port: int, timeout_ms: int = 30_000, config: Mapping[str, str] | None = None
    ) -> RawConnection:
        """Connects. `timeout_ms`: how long `receive` waits for a byte before it raises TIMED_OUT. `config`: settings of a client
        (`settings`), of which those of TLS and SASL count; with SASL it is logged in."""
    def call(self, api_name: str, version: int, request_json: str = "{}", client_id: str = "raw") -> str:
        """`send`, then `receive`."""
    def send(
        self, api_name: str, version: int, request_json: str = "{}", client_id: str = "raw", *, answered: bool = True
    ) -> None:
        """Send a request, `api_name` as Kafka calls it (``JoinGroup``). `answered` False for a Produce with acks=0."""
    def receive(self) -> str:
        """The answer to the oldest request that has none."""
    def close(self) -> None: ...
