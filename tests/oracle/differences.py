"""Where pylog answers otherwise than Apache Kafka, each with its reason. What is not here must be equal.

A difference names the cases that show it and fails them as soon as they no longer do. `LASTING` ones are meant to stay;
`GAPS` are to be closed, and tests/interop/FINDINGS.md says who notices them.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Difference:
    """`field` is a pattern (`fnmatch`) of "API path", without numbers of lists: ``Fetch responses.partitions.error_code``."""

    name: str
    field: str
    why: str
    cases: tuple[str, ...]


LASTING: tuple[Difference, ...] = (
    Difference(
        "settings of Kafka that have no meaning here",
        "CreateTopics topics.configs.*",
        "Tiers and throttled replicas do not exist, records are kept as compressed by the producer; `durability` is pylog's own; "
        "min.insync.replicas is an ordinary default (Kafka stores it for the cluster when eligible leader replicas are on).",
        ("test_the_settings_of_a_new_topic_are_told",),
    ),
    Difference(
        "no setting is stored for the whole cluster",
        "DescribeConfigs results.configs.min.insync.replicas",
        "Kafka stores min.insync.replicas for the cluster when eligible leader replicas are on; one broker has no such election.",
        ("test_the_defaults_of_all_brokers_are_empty",),
    ),
    Difference(
        "a default that comes from hours is told as synonym",
        "DescribeConfigs results.configs.segment.ms.synonyms.log.roll.hours",
        "Kafka leaves log.roll.hours out, though its value holds; whoever looks for where 7 days come from finds it here.",
        ("test_a_default_has_the_source_default",),
    ),
    Difference(
        "a nonsensical config operation is the client's mistake",
        "IncrementalAlterConfigs responses.error_code",
        "Kafka fails inside (UNKNOWN_SERVER_ERROR); INVALID_REQUEST says what is wrong.",
        ("test_changes_that_are_refused",),
    ),
    Difference(
        "only whole batches are sent",
        "Fetch responses.partitions.records",
        "Kafka cuts the run of batches at the byte limit; clients throw the cut batch away. pylog does not send it.",
        ("test_the_partition_limit_cuts_between_batches_of_the_log_as_kafka_does",),
    ),
    Difference(
        "an unknown isolation level reads uncommitted",
        "Fetch *",
        "Kafka fails inside (UNKNOWN_SERVER_ERROR). No client sends one.",
        ("test_isolation_level_7_is_refused",),
    ),
    Difference(
        "nobody can pose as a replica",
        "Fetch *error_code",
        "Kafka says NOT_LEADER_OR_FOLLOWER for a broker that is no replica. There are no replicas here: the whole request is "
        "refused with CLUSTER_AUTHORIZATION_FAILED.",
        ("test_a_consumer_cannot_pose_as_a_replica",),
    ),
    Difference(
        "a producer id needs an epoch",
        "Produce responses.partition_responses.*",
        "Kafka takes a batch with a producer id and epoch -1, which no client sends; later checks could not tell its epochs apart.",
        ("test_a_producer_id_with_a_negative_epoch",),
    ),
    Difference(
        "offsets of a batch have no gaps",
        "Produce responses.partition_responses.*",
        "Kafka looks at the offsets of compressed records only; here the uncompressed ones are looked at, and a gap is refused.",
        ("test_offset_deltas_with_a_gap_are_taken_uncompressed",),
    ),
    Difference(
        "an unknown codec is named",
        "Produce responses.partition_responses.*",
        "Kafka fails inside (UNKNOWN_SERVER_ERROR); UNSUPPORTED_COMPRESSION_TYPE says what is wrong.",
        ("test_an_unknown_codec_is_refused",),
    ),
    Difference(
        "compressed records are not opened",
        "Produce responses.partition_responses.*",
        "Kafka opens every compressed batch and fails inside on garbage. pylog keeps it, and readers get a clear error.",
        ("test_compressed_bytes_that_are_none_are_refused",),
    ),
    Difference(
        "a batch's largest time is believed",
        "Fetch responses.partitions.records.max_time_ms",
        "Kafka rewrites a max timestamp that the records contradict; pylog keeps the producer's bytes.",
        ("test_the_max_time_of_a_batch_is_what_its_records_say",),
    ),
    Difference(
        "a partition named twice is written twice",
        "*",
        "Kafka keeps the last batch of a partition that one request names twice and loses the others without a word.",
        ("test_a_topic_named_twice_in_a_request_is_written_twice",),
    ),
)

GAPS: tuple[Difference, ...] = (
    Difference(
        "append-time refusals do not name the records",
        "Produce responses.partition_responses.record_errors",
        "Kafka lists every record whose timestamp is refused, pylog names the range only.",
        (
            "test_a_record_an_hour_and_more_ahead_is_refused_and_named",
            "test_a_record_older_than_the_topic_allows_is_refused",
        ),
    ),
    Difference(
        "a refused batch does not tell the log's start",
        "Produce responses.partition_responses.log_start_offset",
        "Kafka tells it with most refusals; clients read it with UNKNOWN_PRODUCER_ID only, which is not sent any more.",
        (
            "test_a_gap_is_out_of_order",
            "test_a_duplicate_of_the_sixth_last_batch_is_out_of_order",
            "test_a_batch_that_overlaps_the_last_one_is_no_duplicate",
            "test_an_older_epoch_is_fenced",
            "test_a_newer_epoch_that_does_not_begin_at_0_is_out_of_order",
            "test_a_duplicate_of_the_old_epoch_after_the_new_one_is_fenced",
            "test_sequences_of_partitions_are_apart",
            "test_a_producer_id_with_a_negative_sequence_is_refused",
            "test_a_batch_without_records_is_refused",
            "test_a_count_that_is_not_the_number_of_records_is_refused",
            "test_a_last_offset_delta_that_does_not_fit_the_count_is_refused",
            "test_a_base_offset_other_than_0_is_refused",
            "test_a_control_batch_of_a_client_is_refused",
            "test_a_record_an_hour_and_more_ahead_is_refused_and_named",
            "test_a_record_older_than_the_topic_allows_is_refused",
        ),
    ),
    Difference(
        "a duplicate is answered without its time",
        "Produce responses.partition_responses.log_append_time_ms",
        "Kafka tells the time of the batch that lies there, even where producers set the time; no client reads it then.",
        (
            "test_a_duplicate_of_the_last_batch_has_the_first_answer",
            "test_a_duplicate_of_the_fifth_last_batch_is_known",
            "test_a_duplicate_is_known_when_its_records_were_deleted",
        ),
    ),
    Difference(
        "a batch larger than a segment is too large",
        "Produce responses.partition_responses.error_code",
        "Kafka says RECORD_LIST_TOO_LARGE when the batch is allowed but no segment can hold it.",
        ("test_a_batch_larger_than_a_segment_is_refused",),
    ),
    Difference(
        "an unknown magic is an invalid record",
        "Produce responses.partition_responses.error_code",
        "Kafka says CORRUPT_MESSAGE for a magic that never was.",
        ("test_magic_3_is_refused",),
    ),
    Difference(
        "transactions are not served",
        "* *error_code",
        "No transaction coordinator yet.",
        (
            "test_a_producer_id_without_an_epoch_is_an_invalid_request",
            "test_a_transactional_batch_with_acks_1_or_without_a_transactional_id",
        ),
    ),
    Difference(
        "compaction is not served",
        "IncrementalAlterConfigs responses.error_code",
        "cleanup.policy=compact is refused.",
        ("test_a_list_grows_and_shrinks",),
    ),
    Difference(
        "the aborted list of an unknown partition is null",
        "Fetch responses.partitions.aborted_transactions",
        "Kafka has an empty list there.",
        (
            "test_an_unknown_topic_by_name",
            "test_an_unknown_partition",
            "test_an_unknown_topic_id",
            "test_the_zero_topic_id_is_unknown",
            "test_the_id_of_a_deleted_and_recreated_topic_is_unknown",
        ),
    ),
    Difference(
        "a partition named twice is looked up twice",
        "ListOffsets topics.partitions",
        "Kafka says INVALID_REQUEST for it.",
        (
            "test_the_same_partition_twice_is_an_invalid_request",
            "test_the_same_partition_twice_is_invalid_for_that_partition_only",
        ),
    ),
    Difference(
        "a topic named twice is described twice",
        "Metadata topics",
        "Kafka describes it once.",
        ("test_metadata_of_the_same_topic_twice",),
    ),
)

DIFFERENCES = LASTING + GAPS
