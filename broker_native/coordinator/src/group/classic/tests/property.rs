//! Whatever members do: one leader, every member of a stable generation has what its leader gave it, every request is
//! answered once or waits for a reason, and the log holds what a restart needs.
use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::bench::*;
use crate::Ticket;
use crate::group::classic::ClassicState;
use crate::group::{GroupReply, Settings};
use pylog_wire::messages::JoinGroupResponse;

/// Clients in a run.
const CLIENTS: usize = 5;

#[derive(Debug, Clone)]
enum Step {
    Join {
        client: usize,
        version: i16,
        protocols: usize,
        changed: bool,
    },
    Sync {
        client: usize,
    },
    Heartbeat {
        client: usize,
    },
    Leave {
        client: usize,
    },
    /// The client forgets its id, as one that was killed.
    Die {
        client: usize,
    },
    Pass {
        ms: i64,
    },
    Restart,
    /// All clients join, and time passes until they are answered.
    Gather,
    /// All clients but `but` sync, the leader in its turn.
    Settle {
        but: usize,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let client = 0..CLIENTS;
    prop_oneof![
        3 => Just(Step::Gather),
        4 => (0..2 * CLIENTS).prop_map(|but| Step::Settle { but }),
        4 => (client.clone(), prop::sample::select(vec![0, 3, 4, 8, 9]), 0..3usize, any::<bool>()).prop_map(
            |(client, version, protocols, changed)| Step::Join { client, version, protocols, changed }
        ),
        4 => client.clone().prop_map(|client| Step::Sync { client }),
        3 => client.clone().prop_map(|client| Step::Heartbeat { client }),
        2 => client.clone().prop_map(|client| Step::Leave { client }),
        1 => client.prop_map(|client| Step::Die { client }),
        2 => prop_oneof![4 => 0..50i64, 2 => 2_000..4_000i64, 1 => 9_000..25_000i64].prop_map(|ms| Step::Pass { ms }),
        1 => Just(Step::Restart),
    ]
}

/// What a client knows of itself. Clients 0 and 1 are static.
#[derive(Debug, Clone, Default)]
struct Client {
    id: String,
    generation: i32,
    leads: bool,
}

struct Run {
    bench: Bench,
    clients: Vec<Client>,
    waiting: BTreeMap<Ticket, usize>,
    /// What leaders gave, by generation and member; a new leader's word counts.
    given: BTreeMap<(i32, String), String>,
    steps: i32,
}

impl Run {
    fn new(bench: Bench) -> Self {
        Self {
            bench,
            clients: vec![Client::default(); CLIENTS],
            waiting: BTreeMap::new(),
            given: BTreeMap::new(),
            steps: 0,
        }
    }

    fn instance(client: usize) -> Option<String> {
        (client < 2).then(|| format!("static{client}"))
    }

    fn joining(&self, client: usize, version: i16, choice: usize, changed: bool) -> Join {
        let names: [&[&str]; 3] = [&["range", "sticky"], &["sticky", "range"], &["range"]];
        let mut asked = join().version(version).protocols(names[choice]).id(&self.clients[client].id);
        if changed {
            asked = asked.metadata(&consumer_metadata(&["u"]));
        }
        if version >= 5 {
            asked.request.group_instance_id = Self::instance(client);
        }
        asked
    }

    fn sync(&mut self, client: usize) {
        let me = self.clients[client].clone();
        let known = Known { id: me.id, generation: me.generation };
        let mut gifts = Vec::new();
        if me.leads {
            let gift = |id| (id, format!("gift {}", self.steps));
            gifts = self.bench_members().into_iter().map(gift).collect();
        }
        let refs: Vec<(&str, &str)> = gifts.iter().map(|(id, gift)| (id.as_str(), gift.as_str())).collect();
        let before = self.bench.state();
        let ticket = self.bench.sync(&known, &refs);
        if before == "CompletingRebalance" && self.bench.state() == "Stable" {
            for (id, gift) in gifts {
                self.given.insert((known.generation, id), gift);
            }
        }
        self.waiting.insert(ticket, client);
    }

    fn join(&mut self, client: usize, version: i16, choice: usize, changed: bool) {
        let ticket = self.bench.join(self.joining(client, version, choice, changed));
        self.waiting.insert(ticket, client);
    }

    fn gather(&mut self) {
        for client in 0..CLIENTS {
            self.join(client, 9, client % 2, false);
            self.read_answers();
            if self.clients[client].generation == 0 && !self.clients[client].id.is_empty() {
                self.join(client, 9, client % 2, false);
            }
        }
        for _ in 0..10 {
            self.read_answers();
            if self.waiting.is_empty() {
                return;
            }
            self.bench.pass(3_000);
        }
    }

    fn take(&mut self, step: &Step) {
        self.steps += 1;
        match *step {
            Step::Join { client, version, protocols, changed } => {
                self.join(client, version, protocols, changed);
            }
            Step::Gather => self.gather(),
            Step::Settle { but } => {
                for client in (0..CLIENTS).filter(|client| *client != but) {
                    self.sync(client);
                    self.read_answers();
                }
            }
            Step::Sync { client } => self.sync(client),
            Step::Heartbeat { client } => {
                let me = self.clients[client].clone();
                self.bench.heartbeat(&Known { id: me.id, generation: me.generation });
            }
            Step::Leave { client } => {
                let me = std::mem::take(&mut self.clients[client]);
                self.bench.leave(&[(&me.id, None)]);
            }
            Step::Die { client } => self.clients[client] = Client::default(),
            Step::Pass { ms } => self.bench.pass(ms),
            Step::Restart => {
                // Requests that waited get NOT_COORDINATOR.
                self.waiting.clear();
                self.bench = self.bench.restarted();
            }
        }
        self.read_answers();
    }

    fn bench_members(&self) -> Vec<String> {
        if self.bench.state() == "Dead" { Vec::new() } else { self.bench.member_ids() }
    }

    fn read_answers(&mut self) {
        for (ticket, reply) in std::mem::take(&mut self.bench.answers) {
            let Some(client) = self.waiting.remove(&ticket) else { continue };
            match reply {
                GroupReply::JoinGroup(answer) => self.read_join(client, &answer),
                GroupReply::SyncGroup(answer) if answer.error_code == 0 && !answer.assignment.is_empty() => {
                    let group = self.bench.group();
                    let gift = String::from_utf8(answer.assignment.to_vec()).expect("a gift");
                    let of_this = self.given.iter().any(|((generation, _), given)| {
                        *given == gift && *generation == group.generation_id()
                    });
                    assert!(of_this, "{gift} was given in generation {}", group.generation_id());
                }
                _ => {}
            }
        }
    }

    fn read_join(&mut self, client: usize, answer: &JoinGroupResponse) {
        let me = &mut self.clients[client];
        match answer.error_code {
            code::NONE => {
                let leads = answer.leader == answer.member_id;
                *me = Client { id: answer.member_id.clone(), generation: answer.generation_id, leads };
                assert!(leads || answer.members.is_empty());
            }
            code::MEMBER_ID_REQUIRED => me.id.clone_from(&answer.member_id),
            code::UNKNOWN_MEMBER_ID | code::FENCED_INSTANCE_ID => *me = Client::default(),
            _ => {}
        }
    }

    fn check(&self) {
        if self.bench.state() == "Dead" {
            assert!(self.waiting.is_empty(), "nobody waits for a group that is not there");
            return;
        }
        let group = self.bench.group();
        let roster = group.roster();
        assert_eq!(roster.is_empty(), roster.leader().is_none(), "members have one leader");
        assert!(roster.leader().is_none_or(|leader| roster.contains(leader)));
        assert_eq!(roster.awaiting_join(), roster.iter().filter(|member| member.awaits_join()).count());
        let joining: BTreeSet<Ticket> = roster.iter().filter_map(|member| member.join).collect();
        let syncing: BTreeSet<Ticket> = roster.iter().filter_map(|member| member.sync).collect();
        let held: BTreeSet<Ticket> = joining.union(&syncing).copied().collect();
        assert_eq!(held, self.waiting.keys().copied().collect(), "who is not answered is remembered");
        assert!(joining.is_empty() || group.state().is_preparing(), "JoinGroups wait for a rebalance only");
        assert!(syncing.is_empty() || group.state() == ClassicState::CompletingRebalance);
        assert_eq!(group.state() == ClassicState::Empty, roster.is_empty() && !group.state().is_preparing());
        if group.state() == ClassicState::Stable {
            for member in roster.iter() {
                assert!(roster.any_is_common(&member.protocols) && roster.select_protocol().is_some());
            }
        }
        self.check_log();
    }

    /// The log says what is stable, and replaying it gives just that.
    fn check_log(&self) {
        let group = self.bench.group();
        let replayed = self.bench.restarted();
        if matches!(group.state(), ClassicState::Stable | ClassicState::Empty) && !self.bench.log.is_empty() {
            assert_eq!(replayed.group().to_value(), group.to_value());
            assert_eq!(replayed.group().state(), group.state());
        }
        if group.state() == ClassicState::Stable {
            for member in group.roster().iter() {
                let known = replayed.group().roster().get(&member.member_id).expect("is in the log");
                assert_eq!(known.assignment, member.assignment);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn whatever_members_do_the_group_keeps_its_promises(
        steps in prop::collection::vec(step(), 1..80),
        delay_ms in prop::sample::select(vec![0, 3_000]),
        group_max_size in prop::sample::select(vec![3, i32::MAX]),
    ) {
        let settings = Settings {
            group_initial_rebalance_delay_ms: delay_ms,
            group_max_size,
            ..Settings::default()
        };
        let mut run = Run::new(Bench::with(settings));
        for step in &steps {
            run.take(step);
            run.check();
        }
        // Left alone, every request is answered and nobody stays.
        run.bench.pass(3_600_000);
        run.read_answers();
        prop_assert!(run.waiting.is_empty(), "{:?} were never answered", run.waiting);
        prop_assert!(matches!(run.bench.state(), "Empty" | "Dead"), "{}", run.bench.state());
    }
}
