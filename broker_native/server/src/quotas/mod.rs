//! Quotas: how much of the broker each user and client id may use (KIP-13, KIP-55, KIP-124), and how long who used more must pause.
//!
//! | file | what it owns |
//! |---|---|
//! | [`table`] | which limit counts for a client (pure) |
//! | [`rate`] | what was used in the last seconds (pure) |
//!
//! A client that is over a limit is answered at once, with the time that it should wait, and its connection is not read until then
//! (KIP-219). Rates are of this broker alone, as in Kafka. May be used from any thread; without limits a request costs one look at a flag.
//!
//! Of a client nothing is kept but its rate, under a number that is made of its names: these are as long as strangers choose.
pub mod rate;
pub mod table;

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{Mutex, RwLock};

use pylog_log::loggers::REQUEST;
use pylog_log::warn;
use rate::{Rate, Windows};
use table::{EntityQuotas, Quota, QuotaLimits, Share};

/// Clients whose use is added up apart, for each kind of limit: about 100 bytes and 24 for each window, 10 MB with the 11 windows of the
/// default. The use of those beyond is added up together, so that nobody escapes a limit by ever new client ids.
const RATES_MAX: usize = 20_000;

/// Quotas that Kafka has and that are kept for it, but limit nobody here.
const NOT_ENFORCED: &[&str] = &["controller_mutation_rate", "connection_creation_rate"];

/// Who uses the broker.
#[derive(Debug, Clone, Copy)]
pub struct QuotaClient<'a> {
    /// The name of the user, `ANONYMOUS` without a login.
    pub user: &'a str,
    /// The client id; empty when there is none.
    pub client_id: &'a str,
}

/// All quotas of a broker, and what was used of them.
#[derive(Debug)]
pub struct Quotas {
    windows: Windows,
    kinds: [QuotaKind; Quota::ALL.len()],
    numbers: Numbers,
}

#[derive(Debug, Default)]
struct QuotaKind {
    is_limited: AtomicBool,
    limits: RwLock<Arc<QuotaLimits>>,
    rates: Mutex<Rates>,
}

/// What was used in the last seconds.
#[derive(Debug, Default)]
struct Rates {
    of: HashMap<u128, Rate>,
    /// When those that were over were last removed.
    swept_ms: i64,
}

impl Rates {
    /// Removes what does not count any more, once in all of the time that counts.
    fn sweep(&mut self, windows: Windows, now_ms: i64) {
        if now_ms - self.swept_ms >= windows.all_ms() {
            self.sweep_now(windows, now_ms);
        }
    }

    fn sweep_now(&mut self, windows: Windows, now_ms: i64) {
        self.of.retain(|_, rate| !rate.is_over(windows, now_ms));
        self.swept_ms = now_ms;
    }
}

/// Makes numbers of names. Without the keys, which are this process's own, nobody finds two names with the same number.
#[derive(Debug, Default)]
struct Numbers {
    high: RandomState,
    low: RandomState,
}

impl Numbers {
    fn of(&self, share: Share<'_>) -> u128 {
        let half = |keys: &RandomState| u128::from(keys.hash_one(share));
        half(&self.high) << u64::BITS | half(&self.low)
    }
}

impl Quotas {
    /// Without limits.
    pub fn new(windows: Windows) -> Self {
        Self { windows, kinds: Default::default(), numbers: Numbers::default() }
    }

    /// These are the limits from now on; what was used before still counts.
    pub fn apply(&self, stored: &[EntityQuotas]) {
        for quota in Quota::ALL {
            let limits = QuotaLimits::of(quota, stored);
            let kind = self.kind(quota);
            kind.is_limited.store(!limits.is_empty(), Ordering::Release);
            *kind.limits.write() = Arc::new(limits);
        }
        for name in NOT_ENFORCED {
            if stored.iter().any(|entity| entity.values.contains_key(*name)) {
                warn!(target: REQUEST, kind = name, "the quota {name} is kept and shown, but this version does not enforce it");
            }
        }
    }

    /// Whether anybody has a limit of this kind.
    pub fn is_limited(&self, quota: Quota) -> bool {
        self.kind(quota).is_limited.load(Ordering::Acquire)
    }

    /// Adds what was used, and gives how long the client must pause, in milliseconds; 0 when it is within its limit.
    pub fn record(&self, quota: Quota, client: QuotaClient<'_>, amount: f64, now_ms: i64) -> i32 {
        self.with_rate(quota, client, now_ms, |rate, limit, windows| {
            rate.record(amount, windows, now_ms);
            rate.pause_ms(0.0, limit, windows, now_ms)
        })
    }

    /// As [`Quotas::record`], but what would lead to a pause is not used and not added: the client asks again after the pause.
    pub fn record_within(&self, quota: Quota, client: QuotaClient<'_>, amount: f64, now_ms: i64) -> i32 {
        self.with_rate(quota, client, now_ms, |rate, limit, windows| {
            let pause_ms = rate.pause_ms(amount, limit, windows, now_ms);
            if pause_ms == 0 {
                rate.record(amount, windows, now_ms);
            }
            pause_ms
        })
    }

    /// The most that can be used at once without a pause; `None` without a limit.
    pub fn most_at_once(&self, quota: Quota, client: QuotaClient<'_>) -> Option<f64> {
        if !self.is_limited(quota) {
            return None;
        }
        let (_, limit) = self.limits(quota).find(client.user, client.client_id)?;
        Some(
            limit * f64::from(self.windows.samples.saturating_sub(1)) * self.windows.window_ms as f64
                / 1000.0,
        )
    }

    /// Number of clients whose use is added up apart.
    pub fn clients(&self, quota: Quota) -> usize {
        self.kind(quota).rates.lock().of.len()
    }

    fn kind(&self, quota: Quota) -> &QuotaKind {
        let [produce, consume, request] = &self.kinds;
        match quota {
            Quota::Produce => produce,
            Quota::Consume => consume,
            Quota::Request => request,
        }
    }

    fn limits(&self, quota: Quota) -> Arc<QuotaLimits> {
        Arc::clone(&self.kind(quota).limits.read())
    }

    fn with_rate(
        &self,
        quota: Quota,
        client: QuotaClient<'_>,
        now_ms: i64,
        used: impl FnOnce(&mut Rate, f64, Windows) -> i64,
    ) -> i32 {
        if !self.is_limited(quota) {
            return 0;
        }
        let Some((share, limit)) = self.limits(quota).find(client.user, client.client_id) else { return 0 };
        let share = self.numbers.of(share);
        let mut rates = self.kind(quota).rates.lock();
        rates.sweep(self.windows, now_ms);
        let share = self.place(quota, &mut rates, share, now_ms);
        let pause_ms = used(rates.of.entry(share).or_default(), limit, self.windows);
        drop(rates);
        i32::try_from(self.bounded(quota, pause_ms)).unwrap_or(i32::MAX)
    }

    /// The share under which the use is added up: its own, or that of all who have no place.
    fn place(&self, quota: Quota, rates: &mut Rates, share: u128, now_ms: i64) -> u128 {
        if rates.of.len() < RATES_MAX || rates.of.contains_key(&share) {
            return share;
        }
        rates.sweep_now(self.windows, now_ms);
        if rates.of.len() < RATES_MAX {
            return share;
        }
        let kind = quota.name();
        warn!(
            target: REQUEST,
            kind,
            "{RATES_MAX} clients have used their {kind} in the last seconds; the use of others is added up together",
        );
        self.numbers.of(Share { user: "", client_id: "" })
    }

    /// Threads are not held up by one pause of more than a window (KIP-124).
    fn bounded(&self, quota: Quota, pause_ms: i64) -> i64 {
        match quota {
            Quota::Produce | Quota::Consume => pause_ms,
            Quota::Request => pause_ms.min(self.windows.window_ms),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALICE: QuotaClient<'_> = QuotaClient { user: "alice", client_id: "app" };
    const BOB: QuotaClient<'_> = QuotaClient { user: "bob", client_id: "app" };

    fn quotas(stored: &str) -> Quotas {
        let quotas = Quotas::new(Windows { samples: 11, window_ms: 1000 });
        quotas.apply(&serde_json::from_str::<Vec<EntityQuotas>>(stored).unwrap());
        quotas
    }

    const ALICE_1000: &str = r#"[{"entity": {"user": "alice"}, "values": {"producer_byte_rate": 1000, "consumer_byte_rate": 1000}}]"#;

    #[test]
    fn who_uses_more_pauses_and_nobody_else_does() {
        let quotas = quotas(ALICE_1000);
        assert_eq!(quotas.record(Quota::Produce, ALICE, 20_000.0, 0), 10_000);
        assert_eq!(quotas.record(Quota::Produce, BOB, 20_000.0, 0), 0);
        assert_eq!(quotas.record(Quota::Consume, ALICE, 1.0, 0), 0);
    }

    #[test]
    fn two_client_ids_of_a_limited_user_share_its_limit() {
        let quotas = quotas(ALICE_1000);
        assert_eq!(quotas.record(Quota::Produce, ALICE, 10_000.0, 0), 0);
        assert!(quotas.record(Quota::Produce, QuotaClient { client_id: "other", ..ALICE }, 1_000.0, 0) > 0);
    }

    #[test]
    fn what_leads_to_a_pause_is_not_counted_when_it_is_not_used() {
        let quotas = quotas(ALICE_1000);
        assert_eq!(quotas.most_at_once(Quota::Consume, ALICE), Some(10_000.0));
        assert!(quotas.record_within(Quota::Consume, ALICE, 20_000.0, 0) > 0);
        assert_eq!(quotas.record_within(Quota::Consume, ALICE, 10_000.0, 0), 0);
    }

    #[test]
    fn a_limit_that_is_gone_pauses_nobody() {
        let quotas = quotas(ALICE_1000);
        quotas.record(Quota::Produce, ALICE, 1e9, 0);
        quotas.apply(&[]);
        assert!(!quotas.is_limited(Quota::Produce));
        assert_eq!(quotas.record(Quota::Produce, ALICE, 1e9, 0), 0);
        assert_eq!(quotas.most_at_once(Quota::Produce, ALICE), None);
    }

    #[test]
    fn time_of_threads_pauses_for_a_window_at_most() {
        let quotas = quotas(r#"[{"entity": {"user": null}, "values": {"request_percentage": 1}}]"#);
        assert_eq!(quotas.record(Quota::Request, BOB, 1e6, 0), 1000);
    }

    #[test]
    fn nobody_escapes_a_limit_by_ever_new_client_ids() {
        let quotas = quotas(r#"[{"entity": {"client-id": null}, "values": {"producer_byte_rate": 1}}]"#);
        let mut pauses = 0;
        for number in 0..RATES_MAX + 100 {
            let client_id = format!("client-{number}");
            let client = QuotaClient { user: "ANONYMOUS", client_id: &client_id };
            pauses += i32::from(quotas.record(Quota::Produce, client, 1.0, 0) > 0);
        }
        assert!(pauses > 0, "each of the last ones had a limit of its own");
        assert!(quotas.clients(Quota::Produce) <= RATES_MAX + 1);
    }

    #[test]
    fn who_is_gone_is_forgotten_when_nobody_needs_the_place() {
        let quotas = quotas(r#"[{"entity": {"client-id": null}, "values": {"producer_byte_rate": 1}}]"#);
        for number in 0..1_000 {
            let client_id = format!("client-{number}");
            quotas.record(Quota::Produce, QuotaClient { client_id: &client_id, ..ALICE }, 1.0, 0);
        }
        assert_eq!(quotas.clients(Quota::Produce), 1_000);
        quotas.record(Quota::Produce, ALICE, 1.0, 11_000);
        assert_eq!(quotas.clients(Quota::Produce), 1);
    }
}
