//! Reads and checks values that are given under the names of settings.
use serde_json::{Map, Value};

use crate::setting::Setting;
use crate::typed::Typed;

/// Why a struct of settings cannot be read. One sentence, which names the setting.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Refused {
    /// No value is given for it.
    #[error("the setting {0} is missing")]
    Missing(&'static str),
    /// Its value is of another type, or not valid.
    #[error("{name} must be {allowed}, not {value}")]
    Unfit {
        /// The setting.
        name: &'static str,
        /// The values that are valid, in words.
        allowed: String,
        /// The value that was given.
        value: Value,
    },
    /// There is no setting of this name in the struct.
    #[error("there is no setting {0} here")]
    Unknown(String),
}

/// Values by the name of their setting. Each struct takes its own; [`Given::finish`] refuses a value that none took.
pub struct Given(Map<String, Value>);

impl Given {
    /// The values to read; each of them must be taken.
    pub fn new(values: Map<String, Value>) -> Self {
        Self(values)
    }

    /// Takes the value of `setting`; without one, returns that of `base`.
    ///
    /// # Errors
    /// It does not fit, or is missing and there is no `base`.
    pub fn take<T: Typed>(&mut self, setting: &Setting, base: Option<&T>) -> Result<T, Refused> {
        let is_valid = |value: &Value| value.is_null() || setting.accepts(value);
        let read = self.read(setting.name, base, is_valid, || setting.allowed());
        read.map_err(|refused| match refused {
            Refused::Unfit { name, allowed, value } => {
                Refused::Unfit { name, allowed, value: setting.shown(value) }
            }
            other => other,
        })
    }

    /// Takes the value of a field that no user sets, as [`Given::take`] does.
    ///
    /// # Errors
    /// As [`Given::take`].
    pub fn take_field<T: Typed>(&mut self, name: &'static str, base: Option<&T>) -> Result<T, Refused> {
        self.read(name, base, |_| true, || "of another type".to_owned())
    }

    /// Ends the reading: every value must have been taken.
    ///
    /// # Errors
    /// [`Refused::Unknown`] when a value was not taken.
    pub fn finish(self) -> Result<(), Refused> {
        self.0.into_iter().next().map_or(Ok(()), |(name, _)| Err(Refused::Unknown(name)))
    }

    fn read<T: Typed>(
        &mut self,
        name: &'static str,
        base: Option<&T>,
        is_valid: impl Fn(&Value) -> bool,
        allowed: impl Fn() -> String,
    ) -> Result<T, Refused> {
        let Some(value) = self.0.remove(name) else {
            return base.cloned().ok_or(Refused::Missing(name));
        };
        let read = is_valid(&value).then(|| T::of(&value)).flatten();
        read.ok_or_else(|| Refused::Unfit { name, allowed: allowed(), value })
    }
}
