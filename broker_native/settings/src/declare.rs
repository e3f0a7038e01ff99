//! The macro that declares settings.
//!
//! ```text
//! settings! {
//!     /// What the struct is for.
//!     pub struct Name {
//!         /// What the setting means, for users.
//!         "kafka.name" KIND field: type = default, at_least(1), high();
//!     }
//!     beside { /// What no user sets; read under its own name.
//!         field: type = default; }
//!     parts { /// A struct of settings that is read from the same values.
//!         field: type; }
//!     without_field { /// What Python alone reads.
//!         "kafka.name" KIND = default, dynamic(); }
//! }
//! ```
//! The struct has the fields, `Default` the defaults; `read` wants every value, `read_over` takes what is given over another struct;
//! `rows` are the settings for the tables. The words after a default are methods of [`crate::Setting`].
//! `settings! { rows ... }` makes only `rows`, of settings without fields.

/// See the head of this file.
macro_rules! settings {
    (@setting $name:literal $kind:ident [$($doc:literal)+] [$($field:ident: $type:ty)?]
        [$($method:ident($($argument:expr),*))*]) => {
        $crate::setting::Setting::new($name, $crate::setting::Kind::$kind, concat!($($doc),+).trim_ascii())
            $(.read_into(stringify!($field), <$type as $crate::typed::Typed>::VALID))?
            $(.$method($(const { $argument }),*))*
    };
    (rows $($(#[doc = $doc:literal])+ $name:literal $kind:ident = $default:expr
        $(, $method:ident($($argument:expr),*))*;)*) => {
        /// The settings declared here.
        pub fn rows() -> Vec<$crate::setting::Row> {
            vec![$($crate::setting::Row::new(
                $crate::declare::settings!(@setting $name $kind [$($doc)+] [] [$($method($($argument),*))*]),
                serde_json::json!($default),
            )),*]
        }
    };
    (
        $(#[$meta:meta])*
        pub struct $struct:ident {
            $($(#[doc = $doc:literal])+ $name:literal $kind:ident $field:ident: $type:ty = $default:expr
                $(, $method:ident($($argument:expr),*))*;)*
        }
        $(beside {$($(#[doc = $beside_doc:literal])+ $beside:ident: $beside_type:ty = $beside_default:expr;)*})?
        $(parts {$($(#[doc = $part_doc:literal])+ $part:ident: $part_type:ty;)*})?
        $(without_field {$($without:tt)*})?
    ) => {
        $(#[$meta])*
        pub struct $struct {
            $($(#[doc = $doc])+ pub $field: $type,)*
            $($($(#[doc = $beside_doc])+ pub $beside: $beside_type,)*)?
            $($($(#[doc = $part_doc])+ pub $part: $part_type,)*)?
        }

        impl Default for $struct {
            fn default() -> Self {
                Self {
                    $($field: $default,)*
                    $($($beside: $beside_default,)*)?
                    $($($part: <$part_type>::default(),)*)?
                }
            }
        }

        impl $struct {
            /// Those that are read into a field.
            pub const SETTINGS: &'static [$crate::setting::Setting] = &[
                $($crate::declare::settings!(@setting $name $kind [$($doc)+] [$field: $type] [$($method($($argument),*))*])),*
            ];

            /// The settings declared with this struct, those of its parts left out.
            pub fn rows() -> Vec<$crate::setting::Row> {
                let default = Self::default();
                let values = [$($crate::typed::Typed::value(&default.$field)),*];
                let rows = Self::SETTINGS.iter().zip(values);
                let rows = rows.map(|(setting, value)| $crate::setting::Row::new(*setting, value));
                $(
                    mod without_field {
                        #[allow(unused_imports)]
                        use super::*;
                        $crate::declare::settings! { rows $($without)* }
                    }
                    let rows = rows.chain(without_field::rows());
                )?
                rows.collect()
            }

            /// Reads the struct from values under the names of its settings; none may be missing.
            ///
            /// # Errors
            /// A value is missing, unknown, or does not fit.
            pub fn read(values: serde_json::Map<String, serde_json::Value>) -> Result<Self, $crate::given::Refused> {
                let mut given = $crate::given::Given::new(values);
                let read = Self::take(&mut given, None)?;
                given.finish()?;
                Ok(read)
            }

            /// This with the values that are given over its own.
            ///
            /// # Errors
            /// A value is unknown, or does not fit.
            pub fn read_over(
                &self,
                values: serde_json::Map<String, serde_json::Value>,
            ) -> Result<Self, $crate::given::Refused> {
                let mut given = $crate::given::Given::new(values);
                let read = Self::take(&mut given, Some(self))?;
                given.finish()?;
                Ok(read)
            }

            /// Takes its own from `given`; what is not given is that of `base`.
            ///
            /// # Errors
            /// A value does not fit, or is missing and there is no `base`.
            pub fn take(
                given: &mut $crate::given::Given,
                base: Option<&Self>,
            ) -> Result<Self, $crate::given::Refused> {
                let read = Self {
                    $($field: given.take(
                        const { &$crate::declare::settings!(@setting $name $kind [$($doc)+] [$field: $type]
                            [$($method($($argument),*))*]) },
                        base.map(|base| &base.$field),
                    )?,)*
                    $($($beside: given.take_field(stringify!($beside), base.map(|base| &base.$beside))?,)*)?
                    $($($part: <$part_type>::take(given, base.map(|base| &base.$part))?,)*)?
                };
                Ok(read)
            }
        }

        impl<'de> serde::Deserialize<'de> for $struct {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                let values = serde::Deserialize::deserialize(from)?;
                Self::read(values).map_err(serde::de::Error::custom)
            }
        }
    };
}
pub(crate) use settings;
