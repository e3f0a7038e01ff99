//! What one setting is. Types, importance and the way values are written are Apache Kafka's
//! (org.apache.kafka.common.config.ConfigDef).
use serde_json::Value;

use crate::secret::HIDDEN;

/// Type of a setting, as Kafka names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// true or false.
    BOOLEAN,
    /// Text.
    STRING,
    /// A whole number of 32 bits.
    INT,
    /// A whole number of 64 bits.
    LONG,
    /// A number.
    DOUBLE,
    /// Words separated by commas.
    LIST,
    /// Text that is never shown.
    PASSWORD,
}

impl Kind {
    /// Kafka's name of it.
    pub fn name(self) -> &'static str {
        match self {
            Self::BOOLEAN => "BOOLEAN",
            Self::STRING => "STRING",
            Self::INT => "INT",
            Self::LONG => "LONG",
            Self::DOUBLE => "DOUBLE",
            Self::LIST => "LIST",
            Self::PASSWORD => "PASSWORD",
        }
    }
}

/// Which values of its type a setting takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Valid {
    /// All.
    Any,
    /// Numbers from `low` to `high`, both included; `None` leaves that side open.
    Range {
        /// The smallest.
        low: Option<i64>,
        /// The largest.
        high: Option<i64>,
    },
    /// One of a few words; of a list, each element is one.
    OneOf {
        /// The words.
        words: &'static [&'static str],
        /// What is left out on purpose.
        why: &'static str,
    },
    /// A text whose form Python checks, by the name of that form.
    Form(&'static str),
}

/// How much attention a setting deserves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Importance {
    /// Look at it before the first start.
    High,
    /// Most of them.
    Medium,
    /// For rare cases.
    Low,
}

impl Importance {
    /// In lower case.
    pub fn name(self) -> &'static str {
        match self {
            Self::High => "high",
            Self::Medium => "medium",
            Self::Low => "low",
        }
    }
}

/// A broker setting that stands in for one of a topic or a group that is not given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Synonym {
    /// Name of the broker setting.
    pub name: &'static str,
    /// Its value times this (hours to milliseconds: 3600000).
    pub factor: i64,
}

/// A synonym in the same unit.
pub const fn same(name: &'static str) -> Synonym {
    Synonym { name, factor: 1 }
}

/// A synonym in minutes, of a setting in milliseconds.
pub const fn minutes(name: &'static str) -> Synonym {
    Synonym { name, factor: 60_000 }
}

/// A synonym in hours, of a setting in milliseconds.
pub const fn hours(name: &'static str) -> Synonym {
    Synonym { name, factor: 3_600_000 }
}

/// A declaration: all of a setting but its default, which is a value of the struct's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setting {
    /// Kafka's name, or ours where Kafka has none.
    pub name: &'static str,
    /// Its type.
    pub kind: Kind,
    /// What it means.
    pub doc: &'static str,
    /// Which values it takes.
    pub valid: Valid,
    /// How much attention it deserves.
    pub importance: Importance,
    /// Whether a change takes effect while the broker runs.
    pub dynamic: bool,
    /// The field of the struct that is read from it; `None` when Python alone reads it.
    pub field: Option<&'static str>,
    /// Of a topic or group: the broker settings that it falls back to, the first one that is given wins.
    pub synonyms: &'static [Synonym],
    /// Of a topic: the broker setting of the same type, default and valid values that it falls back to; declared by this.
    pub of_broker: Option<&'static str>,
    /// Other names that mean the same.
    pub aliases: &'static [&'static str],
    /// Of a broker: whether each listener may have a value of its own (`listener.name.<name>.<setting>`).
    pub per_listener: bool,
}

/// The words after a default in a declaration.
impl Setting {
    /// Of medium importance, takes all values of its type, and Python alone reads it.
    pub const fn new(name: &'static str, kind: Kind, doc: &'static str) -> Self {
        let (valid, importance) = (Valid::Any, Importance::Medium);
        let (synonyms, of_broker, aliases): (&[Synonym], _, &[&str]) = (&[], None, &[]);
        Self {
            name,
            kind,
            doc,
            valid,
            importance,
            dynamic: false,
            field: None,
            synonyms,
            of_broker,
            aliases,
            per_listener: false,
        }
    }

    /// Read into the field called `field`, whose type takes `valid`.
    pub const fn read_into(self, field: &'static str, valid: Valid) -> Self {
        Self { field: Some(field), valid, ..self }
    }

    /// Numbers from `low` on.
    pub const fn at_least(self, low: i64) -> Self {
        Self { valid: Valid::Range { low: Some(low), high: None }, ..self }
    }

    /// Numbers from `low` to `high`, both included.
    pub const fn between(self, low: i64, high: i64) -> Self {
        Self { valid: Valid::Range { low: Some(low), high: Some(high) }, ..self }
    }

    /// One of `words`; `why` says what is left out on purpose.
    pub const fn one_of(self, words: &'static [&'static str], why: &'static str) -> Self {
        Self { valid: Valid::OneOf { words, why }, ..self }
    }

    /// Text of a form that Python checks.
    pub const fn form(self, name: &'static str) -> Self {
        Self { valid: Valid::Form(name), ..self }
    }

    /// Of high importance.
    pub const fn high(self) -> Self {
        Self { importance: Importance::High, ..self }
    }

    /// Of low importance.
    pub const fn low(self) -> Self {
        Self { importance: Importance::Low, ..self }
    }

    /// A change takes effect while the broker runs.
    pub const fn dynamic(self) -> Self {
        Self { dynamic: true, ..self }
    }

    /// Of a topic: declares the broker setting `name` as well, with all that this one has, as its default.
    pub const fn of_broker(self, name: &'static str) -> Self {
        Self { of_broker: Some(name), ..self }
    }

    /// Falls back to `synonyms`, which have rows of their own.
    pub const fn falls_back_to(self, synonyms: &'static [Synonym]) -> Self {
        Self { synonyms, ..self }
    }

    /// Known by `aliases` as well.
    pub const fn aliases(self, aliases: &'static [&'static str]) -> Self {
        Self { aliases, ..self }
    }

    /// Each listener of a broker may have a value of its own.
    pub const fn per_listener(self) -> Self {
        Self { per_listener: true, ..self }
    }
}

impl Setting {
    /// The value that `text` stands for. Words may be in upper or lower case.
    ///
    /// # Errors
    /// The second half of the sentence "`name` must be ...".
    pub fn parse(&self, text: &str) -> Result<Value, String> {
        let trimmed = text.trim();
        let value = match (self.kind, self.valid) {
            (Kind::BOOLEAN, _) => {
                same_word(&["true", "false"], trimmed).map(|word| Value::from(word == "true"))
            }
            (Kind::INT | Kind::LONG, _) => trimmed.parse::<i64>().ok().map(Value::from),
            (Kind::DOUBLE, _) => trimmed.parse::<f64>().ok().map(Value::from),
            (Kind::STRING, Valid::OneOf { words, .. }) => same_word(words, trimmed).map(Value::from),
            (Kind::STRING | Kind::LIST | Kind::PASSWORD, _) => Some(Value::from(text)),
        };
        value.filter(|value| self.accepts(value)).ok_or_else(|| self.allowed())
    }

    /// Whether `value` is of this type, and one of those that are valid.
    pub fn accepts(&self, value: &Value) -> bool {
        match self.kind {
            Kind::BOOLEAN => value.is_boolean(),
            Kind::INT | Kind::LONG => {
                let (low, high) = self.bounds();
                value.as_i64().is_some_and(|number| (low..=high).contains(&number))
            }
            Kind::DOUBLE => {
                let (low, high) = self.bounds();
                value
                    .as_f64()
                    .is_some_and(|number| number >= low as f64 && (number <= high as f64 || high == i64::MAX))
            }
            Kind::PASSWORD => value.is_string(),
            Kind::STRING | Kind::LIST => match (self.valid, value.as_str()) {
                (Valid::Form(_), _) => true,
                (Valid::OneOf { words, .. }, Some(text)) if self.kind == Kind::LIST => {
                    text.split(',').all(|word| words.contains(&word.trim()))
                }
                (Valid::OneOf { words, .. }, Some(text)) => words.contains(&text),
                (_, text) => text.is_some(),
            },
        }
    }

    /// `value` as a message may show it: not that of a password.
    pub fn shown(&self, value: Value) -> Value {
        if self.kind == Kind::PASSWORD { Value::from(HIDDEN) } else { value }
    }

    /// The values that [`Setting::accepts`] takes, in words.
    pub fn allowed(&self) -> String {
        match (self.kind, self.valid) {
            (Kind::BOOLEAN, _) => "one of true, false".to_owned(),
            (Kind::INT | Kind::LONG, _) => {
                let (low, high) = self.bounds();
                format!("a whole number from {low} to {high}")
            }
            (Kind::DOUBLE, Valid::Range { low, high }) => {
                let low = low.map(|low| format!(" from {low}")).unwrap_or_default();
                let high = high.map(|high| format!(" to {high}")).unwrap_or_default();
                format!("a number{low}{high}")
            }
            (Kind::DOUBLE, _) => "a number".to_owned(),
            (Kind::STRING, Valid::OneOf { words, .. }) => format!("one of {}", words.join(", ")),
            (Kind::LIST, Valid::OneOf { words, .. }) => format!("a list of {}", words.join(", ")),
            (Kind::STRING, Valid::Form(name)) => format!("text of the form {name}"),
            (Kind::STRING | Kind::PASSWORD, _) => "text".to_owned(),
            (Kind::LIST, _) => "a list separated by commas".to_owned(),
        }
    }

    /// The smallest and the largest whole number.
    fn bounds(&self) -> (i64, i64) {
        let (lowest, highest) = match self.kind {
            Kind::INT => (i32::MIN.into(), i32::MAX.into()),
            _ => (i64::MIN, i64::MAX),
        };
        match self.valid {
            Valid::Range { low, high } => (low.unwrap_or(lowest), high.unwrap_or(highest)),
            _ => (lowest, highest),
        }
    }
}

fn same_word<'a>(words: &[&'a str], text: &str) -> Option<&'a str> {
    words.iter().copied().find(|word| word.eq_ignore_ascii_case(text))
}

/// A setting in a table.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Its declaration.
    pub setting: Setting,
    /// The value of a setting that is not given; null stands for none.
    pub default: Value,
    /// What it means.
    pub doc: String,
}

impl Row {
    /// A row with the doc of its declaration.
    pub fn new(setting: Setting, default: Value) -> Self {
        Self { setting, default, doc: setting.doc.to_owned() }
    }

    /// The broker settings that it falls back to, in order.
    pub fn synonyms(&self) -> Vec<Synonym> {
        self.setting.of_broker.map(same).into_iter().chain(self.setting.synonyms.iter().copied()).collect()
    }

    /// The broker setting that is declared with this one of a topic.
    pub fn of_broker(&self) -> Option<Self> {
        let name = self.setting.of_broker?;
        let declared = Setting { name, field: None, of_broker: None, synonyms: &[], ..self.setting };
        let doc = format!("Default of {} for topics that do not set it.", self.setting.name);
        Some(Self { setting: declared.high().dynamic(), default: self.default.clone(), doc })
    }
}
