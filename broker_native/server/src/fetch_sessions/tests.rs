//! Promises of the cache: epochs, errors, room.
use super::*;
use proptest::prelude::*;
use pylog_storage::MAX_TOPIC_NAME_LEN;
use std::sync::LazyLock;
use uuid::Uuid;

static ALICE: LazyLock<Arc<Principal>> = LazyLock::new(|| Arc::new(Principal::user("alice")));
static BOB: LazyLock<Arc<Principal>> = LazyLock::new(|| Arc::new(Principal::user("bob")));

fn asked(partition: i32, offset: i64) -> AskedPartition {
    let position = Position {
        partition,
        leader_epoch: -1,
        offset,
        last_fetched_epoch: -1,
        log_start_offset: -1,
        max_bytes: 9,
    };
    AskedPartition { topic: TopicKey::Name("t".into()), position }
}

fn request(id: i32, epoch: i32, partitions: i32) -> SessionRequest<'static> {
    let asked = (0..partitions).map(|partition| asked(partition, 0)).collect();
    SessionRequest { principal: &ALICE, id, epoch, by_id: false, asked, forgotten: &[] }
}

fn unchanged(count: usize) -> Vec<AnsweredPartition> {
    vec![AnsweredPartition { high_watermark: 0, log_start_offset: 0, bytes: 0, is_news: false }; count]
}

/// Begins a session of `partitions` partitions.
fn begin(sessions: &FetchSessions, partitions: i32, now_ms: i64) -> i32 {
    let (asked, plan) = sessions.take(request(0, 0, partitions), now_ms).unwrap();
    sessions.complete(&plan, &asked, &unchanged(asked.len()), now_ms).unwrap().id
}

/// Goes on with a session.
fn go_on(sessions: &FetchSessions, id: i32, epoch: i32, now_ms: i64) -> Result<Vec<bool>, ErrorCode> {
    let (asked, plan) = sessions.take(request(id, epoch, 0), now_ms)?;
    let completed =
        sessions.complete(&plan, &asked, &unchanged(asked.len()), now_ms).map_err(|(code, _)| code)?;
    assert_eq!(completed.id, id);
    Ok(completed.sent.unwrap())
}

#[test]
fn a_session_begins_with_epoch_0_and_counts_from_1() {
    let sessions = FetchSessions::new(10);
    let id = begin(&sessions, 3, 0);
    assert!(id > 0);
    assert_eq!(go_on(&sessions, id, 1, 0), Ok(vec![false; 3]));
    assert_eq!(go_on(&sessions, id, 2, 0), Ok(vec![false; 3]));
    assert_eq!(sessions.counts(), (1, 3, 0));
}

#[test]
fn a_session_is_its_principals_and_nobody_else_can_use_or_end_it() {
    let sessions = FetchSessions::new(10);
    let id = begin(&sessions, 1, 0);
    let of_bob = |epoch| SessionRequest { principal: &BOB, ..request(id, epoch, 1) };
    assert_eq!(sessions.take(of_bob(1), 0).err(), Some(ErrorCode::FetchSessionIdNotFound));
    assert!(sessions.take(of_bob(0), 0).is_ok() && sessions.take(of_bob(-1), 0).is_ok(), "without it");
    assert_eq!(go_on(&sessions, id, 1, 0), Ok(vec![false]), "it is where it was");
    let _ = sessions.take(request(id, -1, 0), 0).unwrap();
    assert_eq!(go_on(&sessions, id, 2, 0), Err(ErrorCode::FetchSessionIdNotFound));
}

#[test]
fn a_repeated_or_skipped_epoch_is_refused_and_the_session_stays() {
    let sessions = FetchSessions::new(10);
    let id = begin(&sessions, 1, 0);
    assert_eq!(go_on(&sessions, id, 1, 0), Ok(vec![false]));
    assert_eq!(go_on(&sessions, id, 1, 0), Err(ErrorCode::InvalidFetchSessionEpoch));
    assert_eq!(go_on(&sessions, id, 3, 0), Err(ErrorCode::InvalidFetchSessionEpoch));
    assert_eq!(go_on(&sessions, id, 2, 0), Ok(vec![false]));
}

#[test]
fn an_unknown_session_is_not_found() {
    let sessions = FetchSessions::new(10);
    assert_eq!(go_on(&sessions, 77, 1, 0), Err(ErrorCode::FetchSessionIdNotFound));
}

#[test]
fn a_session_by_name_does_not_go_on_by_id() {
    let sessions = FetchSessions::new(10);
    let id = begin(&sessions, 1, 0);
    let by_id = SessionRequest { by_id: true, ..request(id, 1, 0) };
    assert_eq!(sessions.take(by_id, 0).unwrap_err(), ErrorCode::FetchSessionTopicIdError);
    assert_eq!(go_on(&sessions, id, 1, 0), Ok(vec![false]));
}

#[test]
fn a_full_request_ends_the_session_that_it_names() {
    let sessions = FetchSessions::new(10);
    let first = begin(&sessions, 2, 0);
    let (asked, plan) = sessions.take(request(first, 0, 2), 0).unwrap();
    let second = sessions.complete(&plan, &asked, &unchanged(2), 0).unwrap();
    assert_ne!(second.id, first);
    assert_eq!(second.sent, None, "all is sent");
    assert_eq!(sessions.counts(), (1, 2, 0));
    let (_, plan) = sessions.take(request(second.id, -1, 2), 0).unwrap();
    assert!(matches!(plan, SessionPlan::Sessionless));
    assert_eq!(sessions.counts(), (0, 0, 0));
}

#[test]
fn a_session_whose_last_partition_is_forgotten_ends() {
    let sessions = FetchSessions::new(10);
    let id = begin(&sessions, 1, 0);
    let forgotten = [ForgottenTopic { topic: "t".into(), partitions: vec![0], ..Default::default() }];
    let (asked, plan) =
        sessions.take(SessionRequest { forgotten: &forgotten, ..request(id, 1, 0) }, 0).unwrap();
    assert!(asked.is_empty() && matches!(plan, SessionPlan::Sessionless));
    assert_eq!(sessions.counts(), (0, 0, 0));
}

#[test]
fn an_answer_to_a_request_that_was_overtaken_is_an_epoch_error() {
    let sessions = FetchSessions::new(10);
    let id = begin(&sessions, 1, 0);
    let (asked, plan) = sessions.take(request(id, 1, 0), 0).unwrap();
    assert_eq!(go_on(&sessions, id, 2, 0), Ok(vec![false]));
    let late = sessions.complete(&plan, &asked, &unchanged(1), 0);
    assert_eq!(late, Err((ErrorCode::InvalidFetchSessionEpoch, id)));
}

#[test]
fn without_room_there_is_no_session() {
    let sessions = FetchSessions::new(2);
    let kept = [begin(&sessions, 5, 0), begin(&sessions, 5, 0)];
    assert_eq!(begin(&sessions, 9, EVICTION_MS), NO_SESSION, "both are young");
    for id in kept {
        assert!(go_on(&sessions, id, 1, EVICTION_MS).is_ok());
    }
    assert_eq!(begin(&FetchSessions::new(0), 1, 0), NO_SESSION);
}

#[test]
fn an_idle_session_makes_room() {
    let sessions = FetchSessions::new(2);
    let (idle, used) = (begin(&sessions, 50, 0), begin(&sessions, 5, 0));
    assert!(go_on(&sessions, used, 1, EVICTION_MS).is_ok());
    assert_ne!(begin(&sessions, 1, EVICTION_MS + 1), NO_SESSION);
    assert_eq!(go_on(&sessions, idle, 1, EVICTION_MS + 1), Err(ErrorCode::FetchSessionIdNotFound));
    assert!(go_on(&sessions, used, 2, EVICTION_MS + 1).is_ok());
    assert_eq!(sessions.counts().2, 1);
}

#[test]
fn an_old_session_in_use_makes_room_for_a_larger_one_only() {
    let sessions = FetchSessions::new(2);
    let (small, large) = (begin(&sessions, 3, 0), begin(&sessions, 8, 0));
    let now_ms = EVICTION_MS + 1;
    for id in [small, large] {
        assert!(go_on(&sessions, id, 1, now_ms).is_ok());
    }
    assert_eq!(begin(&sessions, 3, now_ms), NO_SESSION, "not larger than the smallest");
    assert_ne!(begin(&sessions, 4, now_ms), NO_SESSION);
    assert_eq!(go_on(&sessions, small, 2, now_ms), Err(ErrorCode::FetchSessionIdNotFound));
    assert!(go_on(&sessions, large, 2, now_ms).is_ok());
}

#[test]
fn sessions_hold_a_bounded_number_of_partitions() {
    let sessions = FetchSessions::new(10);
    let max = i32::try_from(CACHED_PARTITIONS_MAX).unwrap();
    assert_eq!(begin(&sessions, max + 1, 0), NO_SESSION);
    let id = begin(&sessions, 1, 0);
    let grown = sessions.take(request(id, 1, max + 1), 0);
    assert_eq!(grown.unwrap_err(), ErrorCode::FetchSessionIdNotFound);
    assert_eq!(sessions.counts(), (0, 0, 0));
}

#[test]
fn a_name_that_no_topic_can_have_is_not_kept() {
    let sessions = FetchSessions::new(10);
    let named =
        |bytes: usize| AskedPartition { topic: TopicKey::Name("t".repeat(bytes).into()), ..asked(0, 0) };
    let with = |id, epoch, bytes| SessionRequest { asked: vec![named(bytes)], ..request(id, epoch, 0) };
    let begins = |bytes| {
        let (asked, plan) = sessions.take(with(0, 0, bytes), 0).unwrap();
        assert_eq!(asked, [named(bytes)], "it is answered");
        sessions.complete(&plan, &asked, &unchanged(1), 0).unwrap().id
    };
    assert_eq!(begins(MAX_TOPIC_NAME_LEN + 1), NO_SESSION);
    let id = begins(MAX_TOPIC_NAME_LEN);
    assert_ne!(id, NO_SESSION);
    // The client begins anew, without a session.
    let grown = sessions.take(with(id, 1, MAX_TOPIC_NAME_LEN + 1), 0);
    assert_eq!(grown.unwrap_err(), ErrorCode::FetchSessionIdNotFound);
    assert_eq!(sessions.counts(), (0, 0, 0));
}

#[test]
fn a_partition_named_twice_counts_once_without_a_session_too() {
    let sessions = FetchSessions::new(10);
    let twice = vec![asked(0, 1), asked(1, 1), asked(0, 2)];
    let (each, _) = sessions.take(SessionRequest { asked: twice, ..request(0, -1, 0) }, 0).unwrap();
    assert_eq!(each, [asked(0, 2), asked(1, 1)]);
}

#[test]
fn the_epoch_after_the_largest_is_1() {
    assert_eq!(next_epoch(i32::MAX), 1);
    assert_eq!(next_epoch(0), 1);
}

#[test]
fn ids_are_positive_and_differ() {
    let ids: BTreeSet<i32> = (0..100).map(|_| random_id()).collect();
    assert!(ids.len() > 90 && ids.iter().all(|id| *id >= 0));
}

proptest! {
    /// Whatever clients do, the bounds hold and the indexes of the cache name exactly its sessions.
    #[test]
    fn the_cache_stays_consistent(steps in prop::collection::vec((0..6_usize, -1..4_i32, 0..5_i32, 0..200_000_i64), 1..80)) {
        let sessions = FetchSessions::new(3);
        let (mut ids, mut now_ms) = (vec![Uuid::nil().as_u128() as i32], 0);
        for (which, epoch, partitions, later_ms) in steps {
            now_ms += later_ms;
            let id = ids[which % ids.len()];
            if let Ok((asked, plan)) = sessions.take(request(id, epoch, partitions), now_ms)
                && let Ok(completed) = sessions.complete(&plan, &asked, &unchanged(asked.len()), now_ms) {
                    ids.push(completed.id);
                }
            let cache = sessions.cache.lock();
            prop_assert!(cache.sessions.len() <= 3);
            let used: BTreeSet<_> = cache.sessions.iter().map(|(id, entry)| (entry.last_used_ms, *id)).collect();
            prop_assert_eq!(&used, &cache.last_used);
            prop_assert!(cache.evictable.iter().all(|(size, id)| cache.sessions.get(id).is_some_and(|e| e.size == *size)));
            prop_assert_eq!(cache.partitions, cache.sessions.values().map(|entry| entry.size).sum::<usize>());
            for entry in cache.sessions.values() {
                prop_assert_eq!(entry.session.lock().partitions.len(), entry.size);
            }
        }
    }
}
