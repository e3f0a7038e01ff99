"""Who may do what: Apache Kafka with its StandardAuthorizer and pylog with the same ACLs, asked the same by the same principals.

Each case is a set of ACLs under which each principal sends all of `REQUESTS`, about a topic, group and transactional id called "mine", about
others, and about internal topics. Texts and the order of answers are not compared, what changes with time neither.
"""

from collections.abc import Callable, Iterable

import pytest

from tests.oracle.batches import batch
from tests.oracle.compare import Run
from tests.oracle.guarded import administration, groups, records, table, transactions
from tests.oracle.guarded.brokers import (
    ALICE,
    ANONYMOUS,
    BOB,
    CLUSTER,
    EVERYBODY,
    PRINCIPALS,
    RESOURCES,
    SUPER_USER,
    Acl,
    Guarded,
    any_of,
    at_once,
    denied,
    everything,
    rights,
)
from tests.oracle.guarded.names import INTERNAL, UNKNOWN_ID, Names, committed, fetched, produced
from tests.oracle.members import joining
from tests.oracle.script import Answer, Script, error_names
from tests.oracle.transactions import Transactional, init

pytestmark = (
    pytest.mark.long
)  # the table of rights: broker_native/server; with clients: tests/broker/test_authorization.py

REQUESTS = (
    records.records, records.metadata, groups.groups, groups.consumer_groups, groups.share_groups, groups.share_states,
    transactions.transactions, administration.topics, administration.configs, administration.cluster, administration.security,
    administration.deletion,
)  # fmt: skip
#: APIs that no case asks, and why.
NOT_ASKED = {
    "ApiVersions": "everybody may ask what is spoken, before a login, too: test_api_versions",
    "SaslHandshake": "part of a login: test_logins",
    "SaslAuthenticate": "part of a login: test_logins",
}
#: Rows of the table that refuse nothing with an error, and those that demand what Apache Kafka does not.
WITHOUT_AN_ERROR = {"METADATA_OPERATIONS", "DESCRIBE_CLUSTER_OPERATIONS"}
BEYOND_KAFKA = {
    "PRODUCE_INTERNAL",
    "FETCH_REPLICA",
    "LIST_OFFSETS_REPLICA",
    "OFFSET_FOR_LEADER_EPOCH_REPLICA",
}
#: Rights instead of which others are enough, which have to be denied as well.
WAYS_AROUND = {
    ("WRITE", "TOPIC"): [("IDEMPOTENT_WRITE", "CLUSTER")],
    ("CREATE", "TOPIC"): [("CREATE", "CLUSTER")],
    ("DELETE", "TOPIC"): [("DELETE", "CLUSTER")],
    ("DESCRIBE", "TOPIC"): [("DELETE", "CLUSTER"), ("CLUSTER_ACTION", "CLUSTER")],
    ("CLUSTER_ACTION", "CLUSTER"): [("ALTER", "CLUSTER")],
}
Right = tuple[str, str]


def asked(guarded: Guarded, s: Script, acls: Iterable[Acl], who: tuple[str, ...]) -> None:
    """Send all requests as each of `who`, under `acls`, in whose names MINE stands for what is made for this script."""
    guarded.act(s, SUPER_USER)
    names = Names(s)
    guarded.apply(s, *(told for acl in acls for told in names.told(acl)))
    for names.principal in who:
        guarded.act(s, names.principal)
        for requests in REQUESTS:
            requests(s, names)


def under(
    *acls: tuple[Acl, ...], who: tuple[str, ...] = PRINCIPALS
) -> Callable[[Guarded, pytest.FixtureRequest], None]:
    """A test that sends all requests under `acls`."""

    def test(guarded: Guarded, request: pytest.FixtureRequest) -> None:
        guarded.brokers.compare(request.node.name, lambda s: asked(guarded, s, at_once(*acls), who))

    return test


def test_every_served_api_is_asked_and_a_super_user_may_do_everything_whatever_is_denied(guarded: Guarded) -> None:
    denials = at_once(*(denied(SUPER_USER, kind, "ALL", name=any_of(kind)) for kind in RESOURCES))
    run = guarded.brokers.compare("super user", lambda s: asked(guarded, s, denials, (SUPER_USER,)))
    assert {step.split()[0] for step, _ in run.transcript} == table.served() - NOT_ASKED.keys()
    refused = {
        step
        for step, answer in run.transcript
        for error in error_names(answer)
        if error.endswith("AUTHORIZATION_FAILED")
    }
    # Nobody adds an internal topic to a transaction.
    assert refused == {"AddPartitionsToTxn v3 by admin"}


test_nobody_may_do_anything_without_an_acl = under(who=(BOB, ANONYMOUS))
test_who_may_do_everything = under(everything(EVERYBODY), who=(ALICE, ANONYMOUS))
test_what_everybody_may_is_denied_to_one = under(
    rights(EVERYBODY, "TOPIC", "READ"),
    rights(EVERYBODY, "GROUP", "READ"),
    denied(BOB, "TOPIC", "READ"),
    denied(ANONYMOUS, "GROUP", "ALL"),
)
test_what_one_may_another_may_not = under(
    everything(ALICE), rights("Group:bob", "TOPIC", "READ"), rights("User:ALICE", "TOPIC", "READ", name="*")
)
test_hosts_count = under(
    everything(ALICE, host="10.9.8.7"),
    everything(BOB, host="127.0.0.1"),
    everything(ANONYMOUS), denied(ANONYMOUS, "TOPIC", "READ", name="*", host="127.0.0.1"),
    denied(ANONYMOUS, "GROUP", "READ", name="*", host="10.9.8.7"),
)  # fmt: skip
test_prefixes_of_names = under(
    rights(ALICE, "TOPIC", "ALL", pattern="PREFIXED"), rights(ALICE, "GROUP", "DESCRIBE", "DELETE", pattern="PREFIXED"),
    rights(BOB, "TOPIC", "CREATE", "DELETE", "ALTER", pattern="PREFIXED"), rights(BOB, "GROUP", "DELETE"),
    rights(ANONYMOUS, "TOPIC", "WRITE"), denied(ANONYMOUS, "TOPIC", "WRITE", pattern="PREFIXED"),
)  # fmt: skip
test_denials_among_everything = under(
    everything(EVERYBODY),
    denied(ALICE, "TOPIC", "WRITE"), denied(ALICE, "GROUP", "DESCRIBE", pattern="PREFIXED"),
    denied(BOB, "TRANSACTIONAL_ID", "WRITE", name="*"), denied(EVERYBODY, "CLUSTER", "ALTER", name=CLUSTER),
    denied(ANONYMOUS, "TOPIC", "DESCRIBE"),
)  # fmt: skip
test_a_denial_of_describe_keeps_no_reader_out = under(
    rights(ALICE, "TOPIC", "READ", "WRITE"), denied(ALICE, "TOPIC", "DESCRIBE"), rights(ALICE, "GROUP", "READ"),
    rights(BOB, "TOPIC", "READ"), rights(BOB, "GROUP", "READ"), denied(BOB, "GROUP", "DESCRIBE"),
    rights(ANONYMOUS, "TOPIC", "ALTER_CONFIGS"), denied(ANONYMOUS, "TOPIC", "DESCRIBE_CONFIGS"),
)  # fmt: skip
test_who_may_describe_alter_or_act_for_the_cluster = under(
    rights(ALICE, "CLUSTER", "DESCRIBE", "DESCRIBE_CONFIGS", name=CLUSTER),
    rights(BOB, "CLUSTER", "ALTER", "ALTER_CONFIGS", name=CLUSTER),
    rights(ANONYMOUS, "CLUSTER", "CLUSTER_ACTION", name=CLUSTER),
)
test_producers_with_and_without_transactions_and_a_consumer = under(
    rights(ALICE, "CLUSTER", "CREATE", "IDEMPOTENT_WRITE", name=CLUSTER), rights(ALICE, "TOPIC", "DESCRIBE", name="*"),
    rights(BOB, "TOPIC", "WRITE"), rights(BOB, "TRANSACTIONAL_ID", "WRITE"), rights(BOB, "GROUP", "READ", name="*"),
    rights(ANONYMOUS, "TOPIC", "READ"), rights(ANONYMOUS, "GROUP", "READ"),
)  # fmt: skip
test_who_may_look_at_settings_change_them_and_write_to_one_topic = under(
    rights(ALICE, "TOPIC", "DESCRIBE_CONFIGS"), rights(ALICE, "GROUP", "ALTER_CONFIGS"), rights(ALICE, "TOPIC", "ALTER_CONFIGS", name="*"),
    rights(BOB, "GROUP", "DESCRIBE_CONFIGS"), rights(BOB, "TOPIC", "ALL"), rights(BOB, "TRANSACTIONAL_ID", "DESCRIBE"),
    rights(ANONYMOUS, "TOPIC", "WRITE"),
)  # fmt: skip


def of_three(found: list[Right]) -> list[tuple[Right, ...]]:
    """Three at a time: one for each principal."""
    return [tuple(found[at : at + 3]) for at in range(0, len(found), 3)]


def named(three: tuple[Right, ...]) -> str:
    """Their name as a case."""
    return ", ".join(f"{operation} {kind}" for operation, kind in three)


RIGHTS = of_three(sorted({(row.operation, row.kind) for row in table.rows()}))


@pytest.mark.parametrize("three", RIGHTS, ids=named)
def test_who_lacks_one_right_is_refused_where_the_table_says(
    guarded: Guarded, request: pytest.FixtureRequest, three: tuple[Right, ...]
) -> None:
    lacking = dict(zip(PRINCIPALS, three, strict=True))
    acls = [*everything(EVERYBODY)]
    for principal, right in lacking.items():
        for operation, kind in (right, *WAYS_AROUND.get(right, [])):
            acls += denied(principal, kind, operation, name=any_of(kind))
    run = guarded.brokers.compare(request.node.name, lambda s: asked(guarded, s, acls, PRINCIPALS))
    for principal, right in lacking.items():
        assert not_refused(run, principal, right) == []


def not_refused(run: Run, principal: str, right: Right) -> list[str]:
    """Rows of the table that say that a request is refused for want of a right, which Apache Kafka refused to nobody."""
    errors: dict[str, set[str]] = {}
    for step, answer in run.transcript:
        if step.endswith(f" by {principal.removeprefix('User:')}"):
            errors.setdefault(step.split()[0], set()).update(error_names(answer))
    demanding = [row for row in table.rows() if (row.operation, row.kind) == right and row.refuses]
    return [
        row.name
        for row in demanding
        if row.error not in errors[row.api] and row.name not in WITHOUT_AN_ERROR | BEYOND_KAFKA
    ]


@pytest.mark.long  # that each of these rights is needed is above, and what some of them open
@pytest.mark.parametrize("three", RIGHTS, ids=named)
def test_who_has_one_right_alone(guarded: Guarded, request: pytest.FixtureRequest, three: tuple[Right, ...]) -> None:
    acls = [
        acl
        for who, (operation, kind) in zip(PRINCIPALS, three, strict=True)
        for acl in rights(who, kind, operation, name=any_of(kind))
    ]
    guarded.brokers.compare(request.node.name, lambda s: asked(guarded, s, acls, PRINCIPALS))


def case(script: Callable[[Guarded, Script], None]) -> Callable[[Guarded], None]:
    """A test of the script's name that runs it against both."""

    def test(guarded: Guarded) -> None:
        guarded.brokers.compare(script.__name__, lambda s: script(guarded, s))

    test.__name__ = test.__qualname__ = script.__name__
    test.__module__ = script.__module__
    return test


def topics_of(guarded: Guarded, s: Script, count: int = 2) -> list[str]:
    """New topics with a record, made by the super user."""
    guarded.act(s, SUPER_USER)
    topics = [s.topic() for _ in range(count)]
    for topic in topics:
        s.fill(topic, "x")
    return topics


@case
def test_a_fetch_session_goes_on_without_the_topic_whose_right_was_taken_away(g: Guarded, s: Script) -> None:
    mine, other = topics_of(g, s)
    ids = [s.topic_id(topic) for topic in (mine, other)]
    both = at_once(*(rights(ALICE, "TOPIC", "READ", name=topic) for topic in (mine, other)))
    for version, named, topics in ((12, "topic", [mine, other]), (13, "topic_id", ids)):
        g.apply(s, *both)
        g.act(s, ALICE)
        wanted = [topic for name in topics for topic in fetched(name, named, 1 << 20)["topics"]]
        session = s.call("Fetch", version, **{**fetched(mine), "topics": wanted}, session_epoch=0)["session_id"]
        going_on = {"max_wait_ms": 0, "min_bytes": 0, "topics": [], "session_id": session}
        for epoch, acls in ((1, both), (2, both[:1]), (3, both[:1]), (4, ()), (5, both)):
            g.apply(s, *acls)
            g.act(s, ALICE)
            s.call("Fetch", version, **going_on, session_epoch=epoch)


@case
def test_a_share_session_goes_on_without_the_topic_whose_right_was_taken_away(g: Guarded, s: Script) -> None:
    mine, other = topics_of(g, s)
    group, ids = s.new("group"), [s.topic_id(topic) for topic in (mine, other)]
    there = [
        {"topic_name": topic, "partitions": [{"partition_index": 0, "start_offset": 1}]} for topic in (mine, other)
    ]
    s.quietly("AlterShareGroupOffsets", 0, group_id=group, topics=there)
    of_group = rights(ALICE, "GROUP", "READ", name=group)
    both = at_once(*(rights(ALICE, "TOPIC", "READ", name=topic) for topic in (mine, other)))
    session = {"group_id": group, "member_id": "AAAAAAAAAAAAAAAAAAAAAQ", "max_records": 1, "batch_size": 1}
    topics = [{"topic_id": topic_id, "partitions": [{"partition_index": 0}]} for topic_id in ids]
    for epoch, acls in enumerate((of_group + both, of_group + both[:1], both, of_group, of_group + both)):
        g.apply(s, *acls)
        g.act(s, ALICE)
        # What is refused is asked for again under the same number.
        number = epoch - (epoch > 2)
        groups.errors_alone(
            s, s.call("ShareFetch", 2, **session, share_session_epoch=number, topics=[] if epoch else topics)
        )


@case
def test_an_open_transaction_waits_for_rights_that_were_taken_away(g: Guarded, s: Script) -> None:
    topic, _ = topics_of(g, s)
    group = s.new("group")
    producing = at_once(rights(ALICE, "TOPIC", "ALL", name=topic), rights(ALICE, "GROUP", "READ", name=group))
    of_id = rights(ALICE, "TRANSACTIONAL_ID", "WRITE", name=s.new("txn"))
    g.apply(s, *producing, *of_id)
    g.act(s, ALICE)
    answer = init(s, of_id[0].name)
    producer = Transactional(s, of_id[0].name, answer["producer_id"], answer["producer_epoch"])
    producer.add(topic)
    producer.produce(topic, "one")
    producer.add_offsets(group)
    producer.commit_offset(group, topic, 1)
    s.says("NONE")
    for acls in (producing, of_id, (*producing[1:], *of_id), (*producing, *of_id)):
        g.apply(s, *acls)
        g.act(s, ALICE)
        producer.produce(topic, "two")
        producer.commit_offset(group, topic, 2)
        s.call("DescribeTransactions", 0, transactional_ids=[producer.txn])
    g.apply(s, *producing)
    g.act(s, ALICE)
    producer.end(True)
    s.says("TRANSACTIONAL_ID_AUTHORIZATION_FAILED")
    g.apply(s, *producing, *of_id)
    g.act(s, ALICE)
    producer.end(True)
    s.says("NONE")


@case
def test_a_member_of_a_group_whose_right_is_taken_away_is_not_heard(g: Guarded, s: Script) -> None:
    topic, _ = topics_of(g, s)
    group = s.new("group")
    reading = at_once(rights(BOB, "TOPIC", "READ", name=topic), rights(BOB, "GROUP", "READ", name=group))
    g.apply(s, *reading)
    g.act(s, BOB)
    member = s.until(_has_joined, "JoinGroup", 3, **joining(group, session_timeout_ms=60_000))
    named = {"group_id": group, "generation_id": member["generation_id"], "member_id": member["member_id"]}
    s.call("SyncGroup", 3, **named, assignments=[{"member_id": member["member_id"], "assignment": "01"}])
    of_member = {
        "group_id": group,
        "generation_id_or_member_epoch": named["generation_id"],
        "member_id": member["member_id"],
    }
    for acls in (reading, reading[:1], reading[1:], reading):
        g.apply(s, *acls)
        g.act(s, BOB)
        s.call("Heartbeat", 3, **named)
        s.call("OffsetCommit", 8, **of_member, topics=[committed(topic, 1)])
        s.call("OffsetFetch", 8, groups=[{"group_id": group, "topics": None}])
    s.call("LeaveGroup", 3, group_id=group, members=[{"member_id": member["member_id"]}])
    s.says("NONE")


def _has_joined(answer: Answer) -> bool:
    return not answer["error_code"]


@case
def test_internal_topics_are_deleted_by_nobody_who_may_only_describe_them(g: Guarded, s: Script) -> None:
    g.apply(s, *rights(ALICE, "TOPIC", "DESCRIBE", "WRITE", "READ", name="*"))
    for who in (ALICE, BOB):
        g.act(s, who)
        for topic in INTERNAL:
            s.call("DeleteTopics", 6, timeout_ms=30_000, topics=[{"name": topic}])
            s.says("TOPIC_AUTHORIZATION_FAILED")


@case
def test_an_acl_with_an_unknown_number_is_refused_by_itself(g: Guarded, s: Script) -> None:
    known = Acl("ALLOW", "READ", "TOPIC", s.new("topic"), ALICE).creation()
    g.act(s, SUPER_USER)
    for field in ("resource_type", "resource_pattern_type", "operation", "permission_type"):
        s.call("CreateAcls", 3, creations=[known, {**known, field: 99}])
        s.says("INVALID_REQUEST")


# Differences, each with its entry in `differences`.


@case
def test_a_replica_id_is_believed(g: Guarded, s: Script) -> None:
    topic, _ = topics_of(g, s)
    g.apply(s, *rights(ALICE, "TOPIC", "READ", name=topic))
    wanted = {"name": topic, "partitions": [{"partition_index": 0, "timestamp": -1}]}
    epochs = {"topic": topic, "partitions": [{"partition": 0, "leader_epoch": 0}]}
    g.act(s, ALICE)
    s.call("ListOffsets", 7, replica_id=2, topics=[wanted])
    s.call("OffsetForLeaderEpoch", 4, replica_id=2, topics=[epochs])


@case
def test_a_fetch_of_a_replica_is_refused_topic_by_topic(g: Guarded, s: Script) -> None:
    topic, _ = topics_of(g, s)
    g.apply(s, *rights(ALICE, "TOPIC", "READ", name=topic))
    g.act(s, ALICE)
    s.call("Fetch", 12, **fetched(topic), replica_id=2)


@case
def test_who_is_called_admin_client_may_write_to_an_internal_topic(g: Guarded, s: Script) -> None:
    g.apply(s, *rights(ANONYMOUS, "TOPIC", "WRITE", name="*"))
    for client_id in ("oracle", "__admin_client"):
        # Apache Kafka refuses only the record: it has no key, and the topic is compacted.
        s.line(client_id).call("Produce", 9, **produced("__consumer_offsets", batch("x")))


@case
def test_a_session_is_used_by_another_principal(g: Guarded, s: Script) -> None:
    topic, _ = topics_of(g, s)
    g.apply(s, *rights(EVERYBODY, "TOPIC", "READ", name=topic))
    g.act(s, ALICE)
    session = s.call("Fetch", 12, **fetched(topic), session_epoch=0)["session_id"]
    g.act(s, BOB)
    s.call("Fetch", 12, **{**fetched(topic), "topics": []}, session_id=session, session_epoch=1)


@case
def test_an_address_that_is_written_otherwise_is_another_host(g: Guarded, s: Script) -> None:
    topic, _ = topics_of(g, s)
    g.apply(s, *rights(ALICE, "TOPIC", "READ", name=topic, host="::ffff:127.0.0.1"))
    g.act(s, ALICE)
    s.call("Fetch", 12, **fetched(topic))


@case
def test_an_acl_with_the_number_0_ends_the_connection(g: Guarded, s: Script) -> None:
    known = Acl("ALLOW", "READ", "TOPIC", s.new("topic"), ALICE).creation()
    for field in ("resource_type", "resource_pattern_type", "operation", "permission_type"):
        g.act(s, SUPER_USER)
        s.call("CreateAcls", 3, creations=[known, {**known, field: 0}])


@case
def test_a_name_twice_hides_that_it_is_not_allowed(g: Guarded, s: Script) -> None:
    topic, other = topics_of(g, s)
    g.apply(s, *rights(ALICE, "TOPIC", "DESCRIBE", name=topic))
    g.act(s, ALICE)
    new = {"name": s.new("topic"), "num_partitions": 1, "replication_factor": 1}
    s.call("CreateTopics", 7, timeout_ms=30_000, topics=[new, new])
    for name in (topic, other):
        s.call("DeleteTopics", 6, timeout_ms=30_000, topics=[{"name": name}, {"name": name}])


@case
def test_topics_of_an_expression_are_those_of_the_member_that_resolved_it(g: Guarded, s: Script) -> None:
    topics = topics_of(g, s)
    group, beginning = s.new("group"), topics[0][:-1]
    g.apply(
        s,
        *rights(ALICE, "TOPIC", "READ", name=beginning, pattern="PREFIXED"),
        *rights(EVERYBODY, "GROUP", "READ", name=group),
    )
    joining = {
        "group_id": group,
        "member_epoch": 0,
        "subscribed_topic_regex": f"{beginning}.",
        "rebalance_timeout_ms": 30_000,
    }

    def joined(who: str, member_id: str, done: Callable[[int], bool]) -> None:
        """Join again and again until this many topics are assigned, for a start anew: with nothing owned."""
        g.act(s, who)
        fields = {**joining, "member_id": member_id, "topic_partitions": []}
        s.until(
            lambda answer: done(len((answer["assignment"] or {}).get("topic_partitions", ()))),
            "ConsumerGroupHeartbeat",
            1,
            **fields,
        )
        s.without("member_epoch")

    joined(ALICE, "alice", lambda count: count == len(topics))
    joined(BOB, "bob", lambda _: True)
    joined(ALICE, "alice", lambda count: count < len(topics))
    joined(BOB, "bob", lambda count: count > 0 or not s.is_kafka)


@case
def test_the_id_of_a_topic_is_told_to_who_may_not_read_it(g: Guarded, s: Script) -> None:
    topic, _ = topics_of(g, s)
    group = s.new("group")
    g.apply(s, *rights(ALICE, "GROUP", "READ", "DELETE", name=group))
    g.act(s, ALICE)
    there = [{"topic_name": topic, "partitions": [{"partition_index": 0, "start_offset": 0}]}]
    s.call("AlterShareGroupOffsets", 0, group_id=group, topics=there)


@case
def test_a_share_fetch_of_an_unknown_topic_is_an_internal_error(g: Guarded, s: Script) -> None:
    group = s.new("group")
    g.apply(s, *everything(ALICE))
    g.act(s, ALICE)
    asked = {
        "group_id": group,
        "member_id": "AAAAAAAAAAAAAAAAAAAAAQ",
        "max_wait_ms": 0,
        "max_records": 1,
        "batch_size": 1,
    }
    s.call("ShareFetch", 2, **asked, topics=[{"topic_id": UNKNOWN_ID, "partitions": [{"partition_index": 0}]}])
