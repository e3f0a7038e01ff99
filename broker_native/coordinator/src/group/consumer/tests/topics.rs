//! Topics come, grow and go; regular expressions.
use super::scene::{Client, Scene, assigned, join, of, reconcile_all, stay};
use crate::group::consumer::ConsumerChange;
use pylog_wire::ErrorCode;
use pylog_wire::messages::ConsumerGroupHeartbeatRequest;

fn matching(member_id: &str, regex: &str) -> ConsumerGroupHeartbeatRequest {
    ConsumerGroupHeartbeatRequest {
        subscribed_topic_names: None,
        subscribed_topic_regex: Some(regex.into()),
        ..join(member_id, &[])
    }
}

#[test]
fn new_partitions_are_assigned_with_the_next_heartbeat() {
    let mut scene = Scene::with_topic(1);
    scene.beat(join("a", &["foo"]));
    let foo = scene.topics.set("foo", 3);
    let answer = scene.beat(stay("a", 2));
    assert_eq!((answer.member_epoch, assigned(&answer)), (3, Some(of(foo, &[0, 1, 2]))));
}

#[test]
fn a_topic_that_does_not_exist_yet_is_assigned_when_it_does() {
    let mut scene = Scene::with_topic(1);
    assert_eq!(assigned(&scene.beat(join("a", &["bar"]))), Some(of(scene.id("foo"), &[])));
    let bar = scene.topics.set("bar", 2);
    assert_eq!(assigned(&scene.beat(stay("a", 2))), Some(of(bar, &[0, 1])));
}

#[test]
fn topics_that_nobody_is_subscribed_to_do_not_matter() {
    let mut scene = Scene::with_topic(1);
    scene.beat(join("a", &["foo"]));
    scene.topics.set("bar", 2);
    let (answer, changes) = scene.beat_writing(stay("a", 2), 1);
    assert_eq!((answer.member_epoch, changes), (2, vec![]));
}

#[test]
fn a_topic_made_anew_under_its_name_is_another_topic() {
    let mut scene = Scene::with_topic(1);
    let mut clients = [Client::new(join("a", &["foo"]))];
    reconcile_all(&mut scene, &mut clients);
    scene.topics.delete("foo");
    reconcile_all(&mut scene, &mut clients);
    assert_eq!(clients[0].count(), 0);
    let anew = scene.topics.set("foo", 1);
    reconcile_all(&mut scene, &mut clients);
    assert_eq!(clients[0].owned, of(anew, &[0]));
}

#[test]
fn a_regular_expression_matches_whole_names_now_and_later() {
    let mut scene = Scene::new();
    let (a, _) = (scene.topics.set("log-a", 1), scene.topics.set("catalog-a", 1));
    let (answer, changes) = scene.beat_writing(matching("m", "log-.*"), 1);
    assert_eq!(assigned(&answer), Some(of(a, &[0])));
    let resolved = changes.iter().find_map(|change| match change {
        ConsumerChange::Regex(regex, Some(resolved)) => {
            Some((regex.as_str(), resolved.topics.iter().collect::<Vec<_>>()))
        }
        _ => None,
    });
    assert_eq!(resolved.map(|(regex, topics)| (regex, topics.len())), Some(("log-.*", 1)));
    let b = scene.topics.set("log-b", 1);
    let mut clients = [Client::new(matching("m", "log-.*"))];
    reconcile_all(&mut scene, &mut clients);
    assert_eq!(clients[0].owned.keys().copied().collect::<Vec<_>>(), [a, b]);
    assert!(scene.members().is_subscribed_to("log-b"));
    assert!(!scene.members().is_subscribed_to("catalog-a"));
    scene.topics.delete("log-a");
    reconcile_all(&mut scene, &mut clients);
    assert_eq!(clients[0].owned, of(b, &[0]));
}

#[test]
fn names_and_an_expression_together_are_both_subscribed_to() {
    let mut scene = Scene::with_topic(1);
    scene.topics.set("log-a", 1);
    let mut request = matching("m", "log-.*");
    request.subscribed_topic_names = Some(vec!["foo".into()]);
    let mut clients = [Client::new(request)];
    reconcile_all(&mut scene, &mut clients);
    assert_eq!(clients[0].count(), 2);
}

#[test]
fn an_expression_is_forgotten_with_its_last_member() {
    let mut scene = Scene::new();
    scene.topics.set("log-a", 2);
    let mut clients = [Client::new(matching("a", "log-.*")), Client::new(matching("b", "log-.*"))];
    reconcile_all(&mut scene, &mut clients);
    scene.beat(stay("a", -1));
    assert_eq!(scene.members().regexes.len(), 1);
    let mut none = stay("b", clients[1].epoch);
    none.subscribed_topic_regex = Some(String::new());
    scene.beat(none);
    assert_eq!(scene.members().regexes.len(), 0);
    assert!(!scene.members().is_subscribed_to("log-a"));
}

#[test]
fn an_expression_that_cannot_be_right_is_refused_with_the_reason() {
    let mut scene = Scene::new();
    for wrong in ["(", "a)(b", "[z-a]", "(?=a)", r"(a)\1", "a{9999999}"] {
        assert_eq!(scene.refused(matching("m", wrong)), ErrorCode::InvalidRegularExpression, "{wrong}");
    }
    let (answer, _) = scene.beat_writing(matching("m", "(a"), 1);
    let message = answer.error_message.expect("a sentence");
    assert!(message.contains("`(a`") && message.contains("unclosed group"), "{message}");
}
