//! How many lines with the same cause and place are written. Pure: the time is an argument.
//!
//! Each key (a broker, a place in the code, a cause such as a client's address) has a window of its own, which begins with a line and lasts
//! [`WINDOW`]. In it a limited number of lines is written; the others are counted. When the window is over, [`Limiter::ended`] returns the
//! count, also when no more lines of this key come. So one cause never hides another, and every line that is left out is reported.
//!
//! The number of keys is bounded: [`CLIENTS_MAX`] for clients, which may come from very many addresses, and [`OWN_MAX`] for other causes.
//! Lines with further causes share one key for each place, [`Cause::Others`].
use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::time::{Duration, Instant};

/// How long a window lasts.
pub const WINDOW: Duration = Duration::from_secs(10);
/// Most lines of one key in a window, at the levels WARN and INFO.
pub const LINES_MAX: u32 = 20;
/// The same at the levels DEBUG and TRACE, which an operator switches on to see details.
pub const DETAILS_MAX: u32 = 1_000;
/// Most keys whose cause is a client.
pub const CLIENTS_MAX: usize = 256;
/// Most keys with another cause: enough for the partitions of a broker.
pub const OWN_MAX: usize = 10_000;

/// Lines with equal keys are counted together.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Key<P> {
    /// The `node.id` of the broker.
    pub broker: Option<i32>,
    /// The place in the code.
    pub place: P,
    /// The client or the thing that caused the lines.
    pub cause: Cause,
}

/// The cause of lines: a client or a thing, as the event's fields name it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Cause {
    /// The event names no cause.
    None,
    /// The address of a client.
    Client(String),
    /// A thing that clients do not choose, by kind and name: a partition, another broker, a file.
    Own(String),
    /// Any cause that came when there was no room for another key.
    Others,
}

/// The lines that a window left out; the window is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut<P, L> {
    /// Their key.
    pub key: Key<P>,
    /// How many they are.
    pub count: u64,
    /// The first of them.
    pub first: L,
}

struct Window<L> {
    ends: Instant,
    lines: u32,
    left_out: u64,
    first: Option<L>,
}

/// See the module. `L` is a line, `P` a place in the code.
pub struct Limiter<P, L> {
    windows: HashMap<Key<P>, Window<L>>,
    /// The keys of the windows in the order in which they began, which is the order in which they end.
    begun: VecDeque<Key<P>>,
    /// How many windows have a client as their cause.
    clients: usize,
    /// How many windows have another cause.
    owns: usize,
}

impl<P, L> Default for Limiter<P, L> {
    fn default() -> Self {
        Self { windows: HashMap::new(), begun: VecDeque::new(), clients: 0, owns: 0 }
    }
}

impl<P: Clone + Eq + Hash, L> Limiter<P, L> {
    /// Whether a line of `key` is written at `now`, with at most `most` in a window; `line` is called for the first line that is left out.
    /// Call [`Limiter::ended`] with the same time first.
    pub fn admits(&mut self, now: Instant, mut key: Key<P>, most: u32, line: impl FnOnce() -> L) -> bool {
        let is_full = self.count(&key.cause).is_some_and(|(count, most)| *count >= most);
        if is_full && !self.windows.contains_key(&key) {
            key.cause = Cause::Others;
        }
        let Some(window) = self.windows.get_mut(&key) else {
            if let Some((count, _)) = self.count(&key.cause) {
                *count += 1;
            }
            self.begun.push_back(key.clone());
            self.windows.insert(key, Window { ends: now + WINDOW, lines: 1, left_out: 0, first: None });
            return true;
        };
        if window.lines < most {
            window.lines += 1;
            return true;
        }
        window.left_out += 1;
        window.first.get_or_insert_with(line);
        false
    }

    /// Ends the windows whose time is over at `now`; returns what they left out.
    pub fn ended(&mut self, now: Instant) -> Vec<LeftOut<P, L>> {
        let mut ended = Vec::new();
        while self
            .begun
            .front()
            .and_then(|key| self.windows.get(key))
            .is_some_and(|window| window.ends <= now)
        {
            ended.extend(self.end_first());
        }
        ended
    }

    /// Ends all windows; returns what they left out.
    pub fn end(&mut self) -> Vec<LeftOut<P, L>> {
        let mut ended = Vec::new();
        while !self.begun.is_empty() {
            ended.extend(self.end_first());
        }
        ended
    }

    fn end_first(&mut self) -> Option<LeftOut<P, L>> {
        let key = self.begun.pop_front()?;
        let window = self.windows.remove(&key)?;
        if let Some((count, _)) = self.count(&key.cause) {
            *count -= 1;
        }
        Some(LeftOut { key, count: window.left_out, first: window.first? })
    }

    /// How many windows have a cause of this kind, and the most of them.
    fn count(&mut self, cause: &Cause) -> Option<(&mut usize, usize)> {
        match cause {
            Cause::Client(_) => Some((&mut self.clients, CLIENTS_MAX)),
            Cause::Own(_) => Some((&mut self.owns, OWN_MAX)),
            Cause::None | Cause::Others => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Lines = Limiter<&'static str, String>;

    fn key(place: &'static str, cause: &str) -> Key<&'static str> {
        Key { broker: Some(1), place, cause: Cause::Client(cause.to_owned()) }
    }

    /// How many of `count` lines of `key` are written.
    fn written(lines: &mut Lines, now: Instant, key: &Key<&'static str>, count: u32) -> u32 {
        let admits = |n: u32| lines.admits(now, key.clone(), LINES_MAX, || format!("line {n}"));
        u32::try_from((1..=count).map(admits).filter(|written| *written).count()).unwrap()
    }

    #[test]
    fn one_cause_does_not_hide_another_nor_one_place_another() {
        let (mut lines, now) = (Lines::default(), Instant::now());
        assert_eq!(written(&mut lines, now, &key("closed", "127.0.0.1"), 1_000), LINES_MAX);
        assert_eq!(written(&mut lines, now, &key("closed", "127.0.0.2"), 1), 1);
        assert_eq!(written(&mut lines, now, &key("refused", "127.0.0.1"), 1), 1);
        let other = Key { broker: Some(2), ..key("closed", "127.0.0.1") };
        assert_eq!(written(&mut lines, now, &other, 1), 1, "each broker has its own");
    }

    #[test]
    fn what_was_left_out_is_counted_when_the_window_is_over_without_another_line() {
        let (mut lines, now) = (Lines::default(), Instant::now());
        let flood = key("closed", "127.0.0.1");
        written(&mut lines, now, &flood, LINES_MAX + 12);
        assert_eq!(lines.ended(now + WINDOW - Duration::from_millis(1)), []);
        let (count, first) = (12, "line 21".to_owned());
        assert_eq!(lines.ended(now + WINDOW), [LeftOut { key: flood.clone(), count, first }]);
        assert_eq!(lines.ended(now + WINDOW), [], "once");
        assert_eq!(
            written(&mut lines, now + WINDOW, &flood, 1_000),
            LINES_MAX,
            "a new window has room again"
        );
    }

    #[test]
    fn a_window_that_left_out_nothing_ends_in_silence() {
        let (mut lines, now) = (Lines::default(), Instant::now());
        written(&mut lines, now, &key("closed", "127.0.0.1"), LINES_MAX);
        assert_eq!(lines.ended(now + WINDOW), []);
        assert!(lines.windows.is_empty() && lines.begun.is_empty(), "and is forgotten");
    }

    #[test]
    fn windows_end_each_at_its_own_time() {
        let (mut lines, now) = (Lines::default(), Instant::now());
        let later = now + Duration::from_secs(4);
        written(&mut lines, now, &key("closed", "a"), 100);
        written(&mut lines, later, &key("closed", "b"), 100);
        let ended = lines.ended(now + WINDOW);
        assert_eq!(ended.iter().map(|left_out| &left_out.key).collect::<Vec<_>>(), [&key("closed", "a")]);
        let ended = lines.ended(later + WINDOW);
        assert_eq!(ended.iter().map(|left_out| &left_out.key).collect::<Vec<_>>(), [&key("closed", "b")]);
    }

    #[test]
    fn causes_without_end_share_the_window_of_their_place() {
        let (mut lines, now) = (Lines::default(), Instant::now());
        let causes = u32::try_from(CLIENTS_MAX).unwrap() + 1_000;
        let all: u32 = (0..causes).map(|n| written(&mut lines, now, &key("closed", &n.to_string()), 1)).sum();
        assert_eq!(all, causes - 1_000 + LINES_MAX);
        assert_eq!(lines.windows.len(), CLIENTS_MAX + 1);
        let own = Key { cause: Cause::Own("t-0".to_owned()), ..key("closed", "") };
        assert_eq!(written(&mut lines, now, &own, 1), 1, "clients leave room to what is the broker's own");
        let ended = lines.ended(now + WINDOW);
        let counts: Vec<_> = ended.iter().map(|left_out| (&left_out.key.cause, left_out.count)).collect();
        assert_eq!(counts, [(&Cause::Others, 1_000 - u64::from(LINES_MAX))]);
        assert_eq!(
            written(&mut lines, now + WINDOW, &key("closed", "new"), 1),
            1,
            "there is room for keys again"
        );
        assert_eq!((lines.clients, lines.owns), (1, 0));
    }

    #[test]
    fn at_the_end_all_that_was_left_out_is_given_out() {
        let (mut lines, now) = (Lines::default(), Instant::now());
        let without = Key { broker: None, place: "here", cause: Cause::None };
        written(&mut lines, now, &key("closed", "a"), 21);
        written(&mut lines, now, &without, 22);
        assert_eq!(lines.end().iter().map(|left_out| left_out.count).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(lines.end(), []);
        assert_eq!((lines.clients, lines.owns), (0, 0));
    }

    #[test]
    fn every_line_is_written_or_counted() {
        let mut lines = Lines::default();
        let start = Instant::now();
        let (mut all, mut seen, mut counted) = (0, 0, 0);
        for step in 0..600_u32 {
            let now = start + Duration::from_millis(u64::from(step) * 171);
            counted += lines.ended(now).iter().map(|left_out| left_out.count).sum::<u64>();
            let cause = (step % 7).to_string();
            all += u64::from(step % 31);
            seen += u64::from(written(&mut lines, now, &key("closed", &cause), step % 31));
        }
        counted += lines.end().iter().map(|left_out| left_out.count).sum::<u64>();
        assert_eq!(seen + counted, all);
        assert!(counted > 0);
    }
}
