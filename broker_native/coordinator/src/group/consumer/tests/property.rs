//! Whatever clients and topics do: no partition has two owners (checked by the scene after every step), the log gives the
//! live state (likewise), and when things calm down everything is assigned, and evenly.
use proptest::prelude::*;
use uuid::Uuid;

use super::scene::{Client, Scene, join, reconcile_all, stay};
use crate::group::GroupKind;
use crate::group::context::TopicsView;

const CLIENTS: usize = 5;
/// The client that is a static member.
const STATIC: usize = 0;
const TOPICS: [&str; 3] = ["t-0", "t-1", "other"];

#[derive(Debug, Clone)]
enum Happening {
    /// A client heartbeats, or joins.
    Beat(usize),
    /// Its answer is lost: it does not know.
    BeatUnheard(usize),
    /// It leaves.
    Leave(usize),
    /// It leaves for a while, if it is the static one, and comes back under another id.
    Away(usize),
    /// It dies without a word and comes back under another id.
    Die(usize),
    Pass(i64),
    Grow(usize, i32),
    Delete(usize),
    Restart,
}

fn happening() -> impl Strategy<Value = Happening> {
    let client = 0..CLIENTS;
    prop_oneof![
        12 => client.clone().prop_map(Happening::Beat),
        2 => client.clone().prop_map(Happening::BeatUnheard),
        1 => client.clone().prop_map(Happening::Leave),
        1 => client.clone().prop_map(Happening::Away),
        1 => client.prop_map(Happening::Die),
        2 => (0i64..30_000).prop_map(Happening::Pass),
        1 => (0..TOPICS.len(), 1i32..4).prop_map(|(topic, more)| Happening::Grow(topic, more)),
        1 => (0..TOPICS.len()).prop_map(Happening::Delete),
        1 => Just(Happening::Restart),
    ]
}

fn client(at: usize, life: usize, same_topics: bool) -> Client {
    let mut request = join(&format!("client-{at}-{life}"), &TOPICS);
    request.instance_id = (at == STATIC).then(|| "static".into());
    if !same_topics && at % 2 == 1 {
        request.subscribed_topic_names = None;
        request.subscribed_topic_regex = Some("t-.*".into());
    }
    Client::new(request)
}

fn leave(scene: &mut Scene, client: &Client, member_epoch: i32) {
    let mut request = stay(&client.join.member_id, member_epoch);
    request.instance_id.clone_from(&client.join.instance_id);
    scene.beat(request);
}

fn play(happenings: Vec<Happening>, same_topics: bool) -> (Scene, Vec<Client>) {
    let mut scene = Scene::new();
    let mut lives = 0;
    let mut clients: Vec<Client> = (0..CLIENTS).map(|at| client(at, 0, same_topics)).collect();
    for happening in happenings {
        match happening {
            Happening::Beat(at) => clients[at].beat(&mut scene),
            Happening::BeatUnheard(at) => clients[at].beat_unheard(&mut scene),
            Happening::Leave(at) => {
                leave(&mut scene, &clients[at], -1);
                clients[at] = client(at, lives, same_topics);
            }
            Happening::Away(at) => {
                lives += 1;
                leave(&mut scene, &clients[at], if at == STATIC { -2 } else { -1 });
                clients[at] = client(at, lives, same_topics);
            }
            Happening::Die(at) => {
                lives += 1;
                clients[at] = client(at, lives, same_topics);
            }
            Happening::Pass(ms) => scene.pass(ms),
            Happening::Grow(topic, more) => {
                let before = scene.topics.topic(TOPICS[topic]).map_or(0, |(_, partitions)| partitions);
                scene.topics.set(TOPICS[topic], before + more);
            }
            Happening::Delete(topic) => scene.topics.delete(TOPICS[topic]),
            Happening::Restart => scene.restart(),
        }
    }
    // The dead are found out, the living go on.
    for _ in 0..20 {
        scene.pass(5_000);
        for client in &mut clients {
            client.beat(&mut scene);
        }
    }
    reconcile_all(&mut scene, &mut clients);
    (scene, clients)
}

/// Every partition of every topic, once.
fn all(scene: &Scene) -> Vec<(Uuid, i32)> {
    let topics = TOPICS.iter().filter_map(|name| scene.topics.topic(name));
    let mut all: Vec<_> =
        topics.flat_map(|(id, count)| (0..count).map(move |partition| (id, partition))).collect();
    all.sort_unstable();
    all
}

fn owned(clients: &[Client]) -> Vec<(Uuid, i32)> {
    let mut owned: Vec<(Uuid, i32)> = clients
        .iter()
        .flat_map(|client| {
            client.owned.iter().flat_map(|(id, partitions)| partitions.iter().map(|p| (*id, *p)))
        })
        .collect();
    owned.sort_unstable();
    owned
}

/// How many groups are played: more in a long run.
fn cases() -> u32 {
    if std::env::var("PYLOG_TEST_LONG").is_ok_and(|long| long == "1") { 60 } else { 20 }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), max_shrink_iters: 300, ..ProptestConfig::default() })]

    #[test]
    fn members_with_the_same_topics_end_with_all_partitions_within_one_of_each_other(
        happenings in prop::collection::vec(happening(), 0..120),
    ) {
        let (scene, clients) = play(happenings, true);
        prop_assert_eq!(owned(&clients), all(&scene));
        let counts: Vec<usize> = clients.iter().map(Client::count).collect();
        let (most, fewest) = (counts.iter().max(), counts.iter().min());
        prop_assert!(most.zip(fewest).is_some_and(|(most, fewest)| most - fewest <= 1), "{counts:?}");
        prop_assert_eq!(scene.state(), "Stable");
    }

    #[test]
    fn members_with_different_topics_end_with_all_partitions(
        happenings in prop::collection::vec(happening(), 0..120),
    ) {
        let (scene, clients) = play(happenings, false);
        prop_assert_eq!(owned(&clients), all(&scene));
        prop_assert!(matches!(scene.group.kind, GroupKind::Consumer(_)));
    }
}
