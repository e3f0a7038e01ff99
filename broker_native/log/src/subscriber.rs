//! [`Log`] takes the events of `tracing`, applies levels and limits, and queues the lines for the program that hosts the broker.
//!
//! An event whose level is off costs an atomic load. An event that is written takes two locks for a moment. Neither is held during a wait or
//! a call of other code, so a caller may hold any other lock while it logs. Spans are not used.
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::time::{Duration, Instant, SystemTime};

use parking_lot::Mutex;
use tracing::callsite::Identifier;
use tracing::level_filters::LevelFilter;
use tracing::span;
use tracing::subscriber::{Interest, Subscriber};
use tracing::{Dispatch, Event, Level, Metadata};

use crate::levels::{Levels, TRACE};
use crate::limiter::{Cause, DETAILS_MAX, Key, LINES_MAX, LeftOut, Limiter, WINDOW};
use crate::loggers;
use crate::queue::{Batch, Queue};
use crate::record::{self, Record};

/// The log of this process; null where there is none. What it points to is never freed.
static CURRENT: AtomicPtr<Log> = AtomicPtr::new(ptr::null_mut());

/// The log of one process.
#[derive(Default)]
pub struct Log {
    levels: Levels,
    limiter: Mutex<Limiter<Identifier, Record>>,
    queue: Queue,
}

/// Makes a log that takes all events of this process. A process calls it once; a forked process calls it again, since threads of its parent
/// may have held the locks of the old log at the fork.
pub fn install() -> &'static Log {
    let log: &'static Log = Box::leak(Box::default());
    CURRENT.store(ptr::from_ref(log).cast_mut(), Ordering::Release);
    // A forked process has inherited the dispatcher: this fails there, and may.
    let _ = tracing::dispatcher::set_global_default(Dispatch::new(Forward));
    tracing::callsite::rebuild_interest_cache();
    log
}

fn current() -> Option<&'static Log> {
    // SAFETY: null, or what `install` leaked.
    unsafe { CURRENT.load(Ordering::Acquire).as_ref() }
}

impl Log {
    /// Sets levels: of each logger its name and how much it writes, from 0 (nothing) to 5 (everything); see [`crate::levels`].
    pub fn set_levels<'a>(&self, levels: impl IntoIterator<Item = (&'a str, usize)>) {
        let changed = levels.into_iter().map(|(name, level)| self.levels.set(name, level));
        if changed.fold(false, |any, changed| any | changed) {
            tracing::callsite::rebuild_interest_cache();
        }
    }

    /// Takes the lines that wait, and the summaries of windows that are over. Waits up to `timeout` when there is no line.
    pub fn next(&self, timeout: Duration) -> Batch {
        let now = Instant::now();
        let ended = self.limiter.lock().ended(now);
        self.report(ended);
        self.queue.take(now + timeout)
    }

    /// Reports that `count` of the lines that were taken are written.
    pub fn done(&self, count: usize) {
        self.queue.done(count);
    }

    /// Ends all windows and waits until all earlier lines are written. Returns whether they are; `timeout` ends the wait.
    pub fn flush(&self, timeout: Duration) -> bool {
        self.end_all_windows();
        self.queue.flush(timeout)
    }

    /// As [`Log::flush`], and takes no more lines.
    pub fn close(&self, timeout: Duration) -> bool {
        self.end_all_windows();
        self.queue.close();
        self.queue.flush(timeout)
    }

    fn end_all_windows(&self) {
        let ended = self.limiter.lock().end();
        self.report(ended);
    }

    /// Queues a summary for each window that left lines out. Called without the limiter's lock.
    fn report(&self, ended: Vec<LeftOut<Identifier, Record>>) {
        ended.into_iter().for_each(|left_out| self.queue.put(summary(left_out)));
    }

    fn event(&self, event: &Event<'_>) {
        let metadata = event.metadata();
        let lines_max = match *metadata.level() {
            Level::ERROR => return self.queue.put(Record::of(event)),
            Level::WARN | Level::INFO => LINES_MAX,
            Level::DEBUG | Level::TRACE => DETAILS_MAX,
        };
        let key =
            Key { broker: crate::broker::current(), place: metadata.callsite(), cause: record::cause(event) };
        let now = Instant::now();
        let (ended, is_written) = {
            let mut limiter = self.limiter.lock();
            (limiter.ended(now), limiter.admits(now, key, lines_max, || Record::of(event)))
        };
        self.report(ended);
        if is_written {
            self.queue.put(Record::of(event));
        }
    }
}

/// The line that says how many lines a window left out.
fn summary(left_out: LeftOut<Identifier, Record>) -> Record {
    let LeftOut { key, count, first } = left_out;
    let whose = match &key.cause {
        Cause::None => String::new(),
        Cause::Client(client) => format!(" from {client}"),
        Cause::Own(cause) => format!(" about {cause}"),
        Cause::Others => " from others".to_owned(),
    };
    let seconds = WINDOW.as_secs();
    let were = if count == 1 { "was" } else { "were" };
    let message =
        format!("{count} more like this within {seconds} s{whose} {were} left out: {}", first.message);
    let mut fields = match key.cause {
        Cause::Others => Vec::new(),
        Cause::None | Cause::Client(_) | Cause::Own(_) => first.fields,
    };
    fields.push(("left_out", count.to_string()));
    Record { time: SystemTime::now(), message, fields, ..first }
}

/// The line that says how many lines the full queue dropped.
pub fn dropped_lines(count: u64) -> Record {
    Record {
        time: SystemTime::now(),
        level: Level::WARN,
        logger: loggers::BROKER,
        broker: None,
        thread: None,
        file: file!(),
        line: line!(),
        message: format!(
            "{count} lines of the log were dropped: they came faster than they could be written"
        ),
        fields: vec![("dropped", count.to_string())],
    }
}

/// Passes all events to the log of this process.
struct Forward;

impl Subscriber for Forward {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        if self.enabled(metadata) { Interest::always() } else { Interest::never() }
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && current().is_some_and(|log| log.levels.writes_event(metadata))
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        let most_detailed = current().map_or(0, |log| log.levels.most_detailed());
        let levels = [
            LevelFilter::OFF,
            LevelFilter::ERROR,
            LevelFilter::WARN,
            LevelFilter::INFO,
            LevelFilter::DEBUG,
            LevelFilter::TRACE,
        ];
        levels.get(most_detailed.min(TRACE)).copied()
    }

    fn new_span(&self, _span: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _span: &span::Id, _values: &span::Record<'_>) {}

    fn record_follows_from(&self, _span: &span::Id, _follows: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        if let Some(log) = current() {
            log.event(event);
        }
    }

    fn enter(&self, _span: &span::Id) {}

    fn exit(&self, _span: &span::Id) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::levels::OFF;
    use crate::{broker, error, info, warn};

    /// One test, since a process has one log.
    #[test]
    fn events_become_lines_by_level_and_limit() {
        warn!(target: loggers::NETWORK, "before there is a log nothing happens");
        let log = install();
        let _here = broker::enter(7);
        let lines = || log.next(Duration::ZERO).records;
        let texts = || lines().into_iter().map(|line| line.message).collect::<Vec<_>>();

        warn!(target: loggers::NETWORK, client = %"127.0.0.1", many = 3, "closed the {}", "connection");
        let [line] = &lines()[..] else { panic!("one line") };
        assert_eq!((line.level, line.logger, line.broker), (Level::WARN, loggers::NETWORK, Some(7)));
        assert_eq!(line.message, "closed the connection");
        assert_eq!(line.fields, [("client", "127.0.0.1".to_owned()), ("many", "3".to_owned())]);
        assert!(line.file.ends_with("subscriber.rs") && line.line > 0);

        warn!(target: "another.library", "not of the broker");
        assert!(texts().is_empty());

        let say = |what: &str| info!(target: loggers::STORAGE, "{what}");
        say("on");
        log.set_levels([(loggers::STORAGE, OFF)]);
        say("off");
        log.set_levels([(loggers::STORAGE, TRACE)]);
        say("on again");
        assert_eq!(texts(), ["on", "on again"]);

        let flood =
            |client: &str| warn!(target: loggers::NETWORK, client, "closed the connection of {client}");
        (0..LINES_MAX + 12).for_each(|_| flood("127.0.0.1"));
        flood("127.0.0.2");
        (0..LINES_MAX + 12).for_each(|_| error!(target: loggers::STORAGE, "a partition is offline"));
        let all = texts();
        let count =
            |text: &str| u32::try_from(all.iter().filter(|line| line.contains(text)).count()).unwrap();
        assert_eq!((count("of 127.0.0.1"), count("of 127.0.0.2")), (LINES_MAX, 1));
        assert_eq!(count("offline"), LINES_MAX + 12, "errors are not limited");
        assert!(!log.flush(Duration::ZERO), "nobody has written what was left out");
        let said =
            "12 more like this within 10 s from 127.0.0.1 were left out: closed the connection of 127.0.0.1";
        assert_eq!(texts(), [said]);

        (0..=LINES_MAX).for_each(|_| warn!(target: loggers::STORAGE, partition = "t-0", "t-0: it fails"));
        assert!(!log.flush(Duration::ZERO));
        assert_eq!(
            texts().last().unwrap(),
            "1 more like this within 10 s about partition t-0 was left out: t-0: it fails"
        );

        let long = "x".repeat(record::TEXT_MAX + 1);
        error!(target: loggers::REQUEST, client = long.as_str(), "{long}");
        let [line] = &lines()[..] else { panic!("one line") };
        assert!(line.message.len() < long.len() + 10 && line.message.ends_with("(cut)"));
        assert!(line.fields[0].1.ends_with("(cut)"));

        assert!(!log.close(Duration::ZERO));
        assert!(log.next(Duration::from_secs(60)).is_last);
    }
}
