"""Where pylog's responses differ from Apache Kafka's, each with its reason. All other responses must be equal.

A difference names the test cases that show it; they fail as soon as they no longer do. Those in `LASTING` are to stay; those in
`GAPS` are to be closed, and tests/interop/FINDINGS.md says which users they affect.
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
        "an EndTxn that arrives before the batches of its transaction can be retried",
        "EndTxn error_code",
        "Java's producer sometimes sends one when it gets too little processor time. Kafka's INVALID_TXN_STATE is fatal to it; with "
        "CONCURRENT_TRANSACTIONS it sends its batches and tries again.",
        ("test_committing_an_empty_transaction_after_kip_890",),
    ),
    Difference(
        "a transaction that never began has not been running for long",
        "ListTransactions transaction_states",
        "For a transaction that never began Kafka counts from 1970, so that every idle producer passes a filter for long transactions.",
        ("test_transactions_are_listed_by_state_and_producer",),
    ),
    Difference(
        "a sequence of an ended transaction is no retry",
        "Produce responses.partition_responses.*",
        "When librdkafka has aborted records that were written all the same, it uses their sequence numbers for the next transaction. Kafka "
        "takes these records for a retry, acknowledges them and writes nothing. UNKNOWN_PRODUCER_ID makes it abort and go on with a new epoch.",
        ("test_other_records_under_the_sequence_of_an_aborted_one",),
    ),
    Difference(
        "a prepared transaction is kept",
        "InitProducerId *",
        "Kafka 4.4 knows the field of KIP-939 and refuses it as not implemented; here a producer can prepare its transaction, "
        "which is what makes Spark's writes exactly once.",
        ("test_a_prepared_transaction_is_not_kept",),
    ),
    Difference(
        "settings of Kafka that have no meaning here",
        "CreateTopics topics.configs.*",
        "Records stay compressed as the producer sent them; `durability`, `mirror.source` and `schema.validation.dead.letter.topic` are pylog's own, and "
        "the others of schema validation are Confluent's; "
        "min.insync.replicas is an ordinary default (Kafka stores it for the cluster when eligible leader replicas are on).",
        ("test_the_settings_of_a_new_topic_are_in_the_answer",),
    ),
    Difference(
        "no setting is stored for the whole cluster",
        "DescribeConfigs results.configs.min.insync.replicas",
        "Kafka stores min.insync.replicas for the cluster when eligible leader replicas are on; a single broker has no such election.",
        ("test_the_defaults_of_all_brokers_are_empty",),
    ),
    Difference(
        "a default that comes from a setting in hours is listed as a synonym",
        "DescribeConfigs results.configs.segment.ms.synonyms.log.roll.hours",
        "Kafka leaves log.roll.hours out, although its value is used; here the list shows where the 7 days come from.",
        ("test_a_default_has_the_source_default",),
    ),
    Difference(
        "a nonsensical config operation is the client's mistake",
        "IncrementalAlterConfigs responses.error_code",
        "Kafka answers with an internal error (UNKNOWN_SERVER_ERROR); INVALID_REQUEST says what is wrong.",
        ("test_changes_that_are_refused",),
    ),
    Difference(
        "only whole batches are sent",
        "Fetch responses.partitions.records",
        "Kafka cuts the batches at the byte limit; clients discard the incomplete last one. pylog does not send it.",
        ("test_the_partition_limit_cuts_between_batches_of_the_log_as_kafka_does",),
    ),
    Difference(
        "an unknown isolation level reads uncommitted",
        "Fetch *",
        "Kafka answers with an internal error (UNKNOWN_SERVER_ERROR). No client sends one.",
        ("test_isolation_level_7_is_refused",),
    ),
    Difference(
        "a client cannot pose as a replica",
        "Fetch *error_code",
        "Kafka answers NOT_LEADER_OR_FOLLOWER to a broker that is no replica. A broker without a cluster has no other replicas: the whole request is "
        "refused with CLUSTER_AUTHORIZATION_FAILED.",
        ("test_a_consumer_cannot_pose_as_a_replica",),
    ),
    Difference(
        "a fetch of a replica is refused as a whole",
        "Fetch *",
        "Kafka refuses each topic; who may not act as a broker learns nothing of topics here.",
        ("test_a_fetch_of_a_replica_is_refused_topic_by_topic",),
    ),
    Difference(
        "the end of a log is told to replicas that may be replicas only",
        "ListOffsets topics.partitions.*",
        "Kafka believes a client that calls itself a replica, and shows it records that are not replicated yet. Here it needs "
        "CLUSTER_ACTION.",
        ("test_a_replica_id_is_believed",),
    ),
    Difference(
        "epochs of leaders are told to replicas that may be replicas only",
        "OffsetForLeaderEpoch topics.partitions.*",
        "As in ListOffsets.",
        ("test_a_replica_id_is_believed",),
    ),
    Difference(
        "internal topics are written by brokers only",
        "Produce responses.partition_responses.*",
        "Kafka lets everybody write to an internal topic who calls himself __admin_client and may write to topics of any name. Here he "
        "needs CLUSTER_ACTION, too, so that nobody writes groups and transactions by a name.",
        ("test_who_is_called_admin_client_may_write_to_an_internal_topic",),
    ),
    Difference(
        "a fetch session belongs to a principal",
        "Fetch *",
        "In Kafka everybody who guesses its number goes on with it.",
        ("test_a_session_is_used_by_another_principal",),
    ),
    Difference(
        "an ACL's host is an address",
        "Fetch responses.partitions.*",
        "Kafka compares texts, so that an ACL for an address that is written otherwise holds for nobody, also one that denies.",
        ("test_an_address_that_is_written_otherwise_is_another_host",),
    ),
    Difference(
        "an unknown ACL is refused by itself",
        "CreateAcls *",
        "Kafka ends the connection when an ACL has the number 0 (UNKNOWN) for what it is about; INVALID_REQUEST says which one is wrong.",
        ("test_an_acl_with_the_number_0_ends_the_connection",),
    ),
    Difference(
        "whether a topic may be created is looked at before its repetition",
        "CreateTopics topics*",
        "Kafka answers INVALID_REQUEST to a name that comes twice, and looks at ACLs later.",
        ("test_a_name_twice_hides_that_it_is_not_allowed",),
    ),
    Difference(
        "whether a topic may be deleted is looked at before its repetition",
        "DeleteTopics responses*",
        "As in CreateTopics.",
        ("test_a_name_twice_hides_that_it_is_not_allowed",),
    ),
    Difference(
        "a member is assigned what it may describe itself",
        "ConsumerGroupHeartbeat assignment*",
        "In Kafka the first member that resolves an expression does so for all members with the same one: they are told of topics that "
        "they may not describe.",
        ("test_topics_of_an_expression_are_those_of_the_member_that_resolved_it",),
    ),
    Difference(
        "the id of a topic is not told to who may not read it",
        "AlterShareGroupOffsets responses.topic_id",
        "Kafka refuses the topic and names its id, which shows that it is there; what may not be described is answered like what is not.",
        ("test_the_id_of_a_topic_is_told_to_who_may_not_read_it",),
    ),
    Difference(
        "a share fetch names a topic that there is not",
        "ShareFetch *",
        "With an authorizer Kafka answers UNKNOWN_SERVER_ERROR to the whole request, for the lack of the topic's name; UNKNOWN_TOPIC_ID of "
        "the topic says what is wrong.",
        ("test_a_share_fetch_of_an_unknown_topic_is_an_internal_error",),
    ),
    Difference(
        "a producer id needs an epoch",
        "Produce responses.partition_responses.*",
        "Kafka takes a batch with a producer id and epoch -1, which no client sends; later checks could not distinguish its epochs.",
        ("test_a_producer_id_with_a_negative_epoch",),
    ),
    Difference(
        "a refusal has the log's start offset",
        "Produce responses.partition_responses.log_start_offset",
        "Kafka refuses a records field that is not one batch, and a batch that belongs to no transaction, before it looks at "
        "the log, so it does not know that offset. Harmless.",
        (
            "test_a_transactional_batch_without_its_partition_added_is_refused",
            "test_a_batch_after_the_end_of_its_transaction_is_refused",
            "test_after_kip_890_a_late_batch_of_the_last_transaction_is_fenced",
            "test_a_fenced_producers_batch_is_refused",
            "test_a_transaction_that_takes_too_long_is_aborted_and_its_producer_fenced",
            "test_magic_1_is_refused_in_a_new_version",
            "test_two_batches_in_one_field_are_refused",
            "test_an_empty_records_field_is_refused",
        ),
    ),
    Difference(
        "offsets of a batch have no gaps",
        "Produce responses.partition_responses.*",
        "Kafka checks the offsets of compressed records only; here those of uncompressed ones are checked too, and a gap is refused.",
        ("test_offset_deltas_with_a_gap_are_taken_uncompressed",),
    ),
    Difference(
        "an unknown codec is named",
        "Produce responses.partition_responses.*",
        "Kafka answers with an internal error (UNKNOWN_SERVER_ERROR); UNSUPPORTED_COMPRESSION_TYPE says what is wrong.",
        ("test_an_unknown_codec_is_refused",),
    ),
    Difference(
        "bytes that are not compressed as they claim are named",
        "Produce responses.partition_responses.*",
        "Kafka answers with an internal error (UNKNOWN_SERVER_ERROR); INVALID_RECORD says what is wrong.",
        ("test_compressed_bytes_that_are_none_are_refused",),
    ),
    Difference(
        "a partition named twice is written twice",
        "*",
        "Kafka keeps the last batch of a partition that one request names twice and silently loses the others.",
        ("test_a_topic_named_twice_in_a_request_is_written_twice",),
    ),
)

GAPS: tuple[Difference, ...] = (
    Difference(
        "the classic leave request does not know members of KIP-848 groups",
        "LeaveGroup members.error_code",
        "Kafka removes them; an Admin client's removeMembersFromConsumerGroup gets UNKNOWN_MEMBER_ID here.",
        ("test_a_member_of_a_consumer_group_is_removed_by_the_classic_leave_request",),
    ),
    Difference(
        "append-time refusals do not name the records",
        "Produce responses.partition_responses.record_errors",
        "Kafka lists every record whose timestamp is refused, pylog names the range only.",
        (
            "test_a_record_an_hour_and_more_ahead_is_refused_and_named",
            "test_a_record_older_than_the_topic_allows_is_refused",
        ),
    ),
)

DIFFERENCES = LASTING + GAPS
