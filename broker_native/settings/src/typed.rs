//! Rust types that a setting may have.
use serde_json::Value;

use crate::secret::{HIDDEN, Secret};
use crate::setting::Valid;

/// A type that a value of JSON is read as.
pub trait Typed: Clone {
    /// Which values of Kafka's type are one of this.
    const VALID: Valid = Valid::Any;
    /// The value that it is; `None` when it is of another type.
    fn of(value: &Value) -> Option<Self>;
    /// What [`Typed::of`] reads.
    fn value(&self) -> Value;
}

macro_rules! whole_numbers {
    ($($type:ty),+) => {$(
        impl Typed for $type {
            fn of(value: &Value) -> Option<Self> {
                value.as_i64().and_then(|number| number.try_into().ok())
            }
            fn value(&self) -> Value {
                (*self).into()
            }
        }
    )+};
}

whole_numbers!(i16, i32, i64, u32, u64, usize);

impl Typed for bool {
    fn of(value: &Value) -> Option<Self> {
        value.as_bool()
    }
    fn value(&self) -> Value {
        (*self).into()
    }
}

impl Typed for f64 {
    fn of(value: &Value) -> Option<Self> {
        value.as_f64()
    }
    fn value(&self) -> Value {
        (*self).into()
    }
}

impl Typed for String {
    fn of(value: &Value) -> Option<Self> {
        value.as_str().map(str::to_owned)
    }
    fn value(&self) -> Value {
        self.as_str().into()
    }
}

impl Typed for Secret {
    fn of(value: &Value) -> Option<Self> {
        value.as_str().map(Self::new)
    }

    /// Only a default is turned back, and a secret has none.
    fn value(&self) -> Value {
        if self.is_empty() { Value::from("") } else { Value::from(HIDDEN) }
    }
}

/// `None` is null: not set.
impl<T: Typed> Typed for Option<T> {
    const VALID: Valid = T::VALID;
    fn of(value: &Value) -> Option<Self> {
        if value.is_null() { Some(None) } else { T::of(value).map(Some) }
    }
    fn value(&self) -> Value {
        self.as_ref().map_or(Value::Null, T::value)
    }
}

/// Declares a type that is one of a few words; of several words for the same value the first one is its own.
macro_rules! words {
    ($(#[$meta:meta])* pub enum $enum:ident {
        $($(#[$variant_meta:meta])* $variant:ident = $word:literal $(| $other:literal)*),+ $(,)?
    }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $enum { $($(#[$variant_meta])* $variant,)+ }

        impl $crate::typed::Typed for $enum {
            const VALID: $crate::setting::Valid =
                $crate::setting::Valid::OneOf { words: &[$($word,)+ $($($other,)*)+], why: "" };
            fn of(value: &serde_json::Value) -> Option<Self> {
                match value.as_str()? {
                    $($word $(| $other)* => Some(Self::$variant),)+
                    _ => None,
                }
            }
            fn value(&self) -> serde_json::Value {
                match self { $(Self::$variant => $word.into(),)+ }
            }
        }
    };
}
pub(crate) use words;
