//! Why a record does not parse.
use std::borrow::Cow;
use std::fmt;

/// What is wrong with a key or a value, in words that follow "the value".
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// What is wrong.
    pub what: Cow<'static, str>,
    /// The field at the root where it was seen, if it has one.
    pub field: Option<String>,
}

impl Damage {
    /// Of the whole key or value.
    pub fn whole(what: &'static str) -> Self {
        Self { what: Cow::Borrowed(what), field: None }
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.field {
            Some(field) => write!(out, "{} (field {field})", self.what),
            None => out.write_str(&self.what),
        }
    }
}
