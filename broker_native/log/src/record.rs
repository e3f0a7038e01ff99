//! One line of the log: its message and fields, when and where it was logged.
use std::fmt::{Debug, Write};
use std::time::SystemTime;

use tracing::field::{Field, Visit};
use tracing::{Event, Level};

use crate::broker;
use crate::limiter::Cause;

/// The field for the address of a client that is the cause of an event.
pub const CLIENT: &str = "client";
/// The field for the principal that is the cause of an event, from whichever address.
pub const PRINCIPAL: &str = "principal";
/// Fields that name the cause of an event: a principal, a client, a partition, another broker, a file or directory. The first of them that an event has
/// is the cause by which the limiter counts.
pub const CAUSES: [&str; 5] = [PRINCIPAL, CLIENT, "partition", "peer", "path"];

/// Longest message and longest value of a field, in bytes; the rest is cut. Clients choose parts of these texts.
pub const TEXT_MAX: usize = /* 8 KiB */ 8 << 10;

const MESSAGE: &str = "message";

/// One line of the log.
#[derive(Debug, Clone)]
pub struct Record {
    /// When it was logged.
    pub time: SystemTime,
    /// How severe it is.
    pub level: Level,
    /// Its logger.
    pub logger: &'static str,
    /// The `node.id` of the broker whose thread logged it; none on other threads.
    pub broker: Option<i32>,
    /// The name of the thread.
    pub thread: Option<String>,
    /// Where in the code: the file.
    pub file: &'static str,
    /// Where in the code: the line.
    pub line: u32,
    /// A sentence; it may have more than one line.
    pub message: String,
    /// The other fields of the event: name and value.
    pub fields: Vec<(&'static str, String)>,
}

impl Record {
    /// The line of an `event` that this thread logs now.
    pub fn of(event: &Event<'_>) -> Self {
        let metadata = event.metadata();
        let mut texts = Texts::default();
        event.record(&mut texts);
        Self {
            time: SystemTime::now(),
            level: *metadata.level(),
            logger: metadata.target(),
            broker: broker::current(),
            thread: std::thread::current().name().map(str::to_owned),
            file: metadata.file().unwrap_or_default(),
            line: metadata.line().unwrap_or_default(),
            message: texts.message,
            fields: texts.fields,
        }
    }
}

/// The cause of an event: the value of the first of [`CAUSES`] that it has.
pub fn cause(event: &Event<'_>) -> Cause {
    let known = event.metadata().fields();
    let Some(name) = CAUSES.into_iter().find(|name| known.field(name).is_some()) else { return Cause::None };
    let mut finder = FieldFinder { name, value: None };
    event.record(&mut finder);
    match finder.value {
        None => Cause::None,
        Some(value) if name == CLIENT || name == PRINCIPAL => Cause::Client(value),
        Some(value) => Cause::Own(format!("{name} {value}")),
    }
}

/// Finds the value of one field.
struct FieldFinder {
    name: &'static str,
    value: Option<String>,
}

impl Visit for FieldFinder {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == self.name {
            self.value = Some(cut(value.to_owned()));
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == self.name {
            self.value = Some(text(value));
        }
    }
}

/// Collects the message and the fields.
#[derive(Default)]
struct Texts {
    message: String,
    fields: Vec<(&'static str, String)>,
}

impl Texts {
    fn add(&mut self, field: &Field, text: String) {
        if field.name() == MESSAGE {
            self.message = text;
        } else {
            self.fields.push((field.name(), text));
        }
    }
}

impl Visit for Texts {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.add(field, cut(value.to_owned()));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.add(field, text(value));
    }
}

fn text(value: &dyn Debug) -> String {
    let mut text = String::new();
    // Writing into a string never fails; a value whose own formatting fails is shown as far as it came.
    let _ = write!(text, "{value:?}");
    cut(text)
}

/// At most [`TEXT_MAX`] bytes.
fn cut(mut text: String) -> String {
    if text.len() > TEXT_MAX {
        let end = (0..=TEXT_MAX).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        text.truncate(end);
        text.push_str(" ... (cut)");
    }
    text
}
