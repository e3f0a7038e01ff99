//! The macro that turns a table of fields into a message.
//!
//! # How a message is declared
//! In the words of Kafka's own descriptors (clients/src/main/resources/common/message/*.json):
//! ```text
//! messages! {
//!     /// What it is for.
//!     FetchRequest of Fetch {                     // `of KEY`: versions and flexibility stand in `api`
//!         cluster_id: Option<String> [12+ tag 0], // in versions 12 and later, as tagged field 0
//!         replica_id: i32 [0-14] = -1,            // in versions 0 to 14; the default is -1
//!         topics: Vec<FetchTopic> [0+],
//!         rack: Option<String> [1+ null 2+],      // null is allowed from version 2 on (without it: in all)
//!     }
//!     /// A part of a message has no `of`.
//!     FetchTopic { ... }
//! }
//! ```
//! A field that the version lacks is not written, and has its default after reading. Without `= value` the default
//! is the type's own. Tagged fields stand in the order of their tags and are written when they differ from the
//! default; unknown tags are skipped.

/// Declares messages and their parts; see the head of this file.
macro_rules! messages {
    ($(
        $(#[$doc:meta])*
        $name:ident $(of $key:ident)? {
            $( $(#[$field_attr:meta])* $field:ident : $type:ty [$($spec:tt)*] $(= $default:expr)? ),* $(,)?
        }
    )*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct $name {
            $( $(#[$field_attr])* #[allow(missing_docs)] pub $field: $type, )*
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $( $field: $crate::schema::default_value!($($default)?), )* }
            }
        }

        impl $crate::field::Field for $name {
            #[inline]
            fn min_bytes(version: $crate::field::Version) -> usize {
                usize::from(version.flexible)
                    $( + $crate::schema::plain_field!([$($spec)*], version, 0, {
                        <$type as $crate::field::Field>::min_bytes(version)
                    }) )*
            }

            fn read(
                reader: &mut $crate::reader::Reader,
                version: $crate::field::Version,
            ) -> Result<Self, $crate::error::WireError> {
                let mut value = Self::default();
                $( $crate::schema::plain_field!([$($spec)*], version, (), {
                    value.$field = $crate::field::Field::read(reader, version)?;
                    $crate::schema::refuse_null!([$($spec)*], version, value.$field, $field);
                }); )*
                if version.flexible {
                    reader.tagged(|_tag, _reader| {
                        $( $crate::schema::tagged_field!([$($spec)*], version, _TAG, {
                            if _tag == _TAG {
                                value.$field = $crate::field::Field::read(_reader, version)?;
                                return Ok(true);
                            }
                        }); )*
                        Ok(false)
                    })?;
                }
                Ok(value)
            }

            fn write(
                &self,
                writer: &mut $crate::writer::Writer,
                version: $crate::field::Version,
            ) -> Result<(), $crate::error::WireError> {
                $( $crate::schema::plain_field!([$($spec)*], version, (), {
                    $crate::schema::refuse_null!([$($spec)*], version, self.$field, $field);
                    $crate::field::Field::write(&self.$field, writer, version)?;
                }); )*
                if version.flexible {
                    let count = 0 $( + $crate::schema::tagged_field!([$($spec)*], version, _TAG, {
                        u32::from(self.$field != $crate::schema::typed_default!($type, $($default)?))
                    }, 0) )*;
                    writer.uvarint(count);
                    $( $crate::schema::tagged_field!([$($spec)*], version, _TAG, {
                        if self.$field != $crate::schema::typed_default!($type, $($default)?) {
                            writer.tag(_TAG, |writer| {
                                $crate::field::Field::write(&self.$field, writer, version)
                            })?;
                        }
                    }); )*
                }
                Ok(())
            }
        }

        impl $crate::field::Nullable for $name {
            fn read_nullable(
                reader: &mut $crate::reader::Reader,
                version: $crate::field::Version,
            ) -> Result<Option<Self>, $crate::error::WireError> {
                $crate::field::read_nullable_struct(reader, version)
            }

            fn write_nullable(
                value: Option<&Self>,
                writer: &mut $crate::writer::Writer,
                version: $crate::field::Version,
            ) -> Result<(), $crate::error::WireError> {
                $crate::field::write_nullable_struct(value, writer, version)
            }

            fn min_bytes_nullable(_: $crate::field::Version) -> usize {
                $crate::field::NULL_STRUCT_BYTES
            }
        }

        #[cfg(test)]
        impl $crate::sample::Sample for $name {
            fn sample(
                entropy: &mut $crate::sample::Entropy<'_>,
                version: $crate::field::Version,
            ) -> Self {
                let mut value = Self::default();
                $( $crate::schema::sample_field!([$($spec)*], entropy, version, value.$field); )*
                value
            }
        }

        $crate::schema::top_level!($name [$($field)*] $($key)?);
    )*};
}

/// The default of a field.
macro_rules! default_value {
    () => {
        Default::default()
    };
    ($default:expr) => {
        $default
    };
}

/// The default of a field of a given type.
macro_rules! typed_default {
    ($type:ty,) => {
        <$type>::default()
    };
    ($type:ty, $default:expr) => {
        $default
    };
}

/// Whether `version` is in a range written as Kafka writes it.
macro_rules! in_versions {
    ($version:expr, 0 +) => {
        true
    };
    ($version:expr, $from:literal +) => {
        $version.number >= $from
    };
    ($version:expr, $from:literal - $to:literal) => {
        ($from..=$to).contains(&$version.number)
    };
}

/// `$body` for a field outside the tagged section if the version has it, else `$absent`.
macro_rules! plain_field {
    ([$from:literal + tag $tag:literal], $version:expr, $absent:expr, $body:block) => {
        $absent
    };
    ([$from:literal + $(null $null:literal +)?], $version:expr, $absent:expr, $body:block) => {
        if $crate::schema::in_versions!($version, $from+) { $body } else { $absent }
    };
    ([$from:literal - $to:literal $(null $null:literal +)?], $version:expr, $absent:expr, $body:block) => {
        if $crate::schema::in_versions!($version, $from - $to) { $body } else { $absent }
    };
}

/// `$body`, with the tag's number under the name `$number`, for a tagged field if the version has it.
macro_rules! tagged_field {
    ([$from:literal + tag $tag:literal], $version:expr, $number:ident, $body:block $(, $absent:expr)?) => {{
        const $number: u32 = $tag;
        if $crate::schema::in_versions!($version, $from +) { $body } $(else { $absent })?
    }};
    ($other:tt, $version:expr, $number:ident, $body:block $(, $absent:expr)?) => {
        { $($absent)? }
    };
}

/// Gives a field that the version has a value for tests; null only where the version allows it.
#[cfg(test)]
macro_rules! sample_field {
    ([$($spec:tt)*], $entropy:expr, $version:expr, $field:expr) => {
        let default = $field.clone();
        $crate::schema::plain_field!([$($spec)*], $version, (), {
            $field = $crate::sample::Sample::sample($entropy, $version);
        });
        $crate::schema::tagged_field!([$($spec)*], $version, _TAG, {
            $field = $crate::sample::Sample::sample($entropy, $version);
        });
        let refused = || -> Result<(), $crate::error::WireError> {
            $crate::schema::refuse_null!([$($spec)*], $version, $field, field);
            Ok(())
        };
        if refused().is_err() {
            $field = default;
        }
    };
}

/// Returns with an error when the field is null and the version does not allow it.
macro_rules! refuse_null {
    ([$from:literal $sign:tt $($to:literal)? null $null:literal +], $version:expr, $value:expr, $field:ident) => {
        if $version.number < $null && $crate::field::IsNull::is_null(&$value) {
            let field = stringify!($field);
            return Err($crate::error::WireError::Null { field, version: $version.number });
        }
    };
    ($other:tt, $version:expr, $value:expr, $field:ident) => {};
}

/// Makes a declared struct a message of its own.
macro_rules! top_level {
    ($name:ident $fields:tt) => {};
    ($name:ident [$($field:ident)*] $key:ident) => {
        impl $crate::message::Message for $name {
            const NAME: &'static str = stringify!($name);
            const API: $crate::api::ApiInfo = $crate::api::ApiKey::$key.info();

            fn set_throttle_time_ms(&mut self, _time_ms: i32) {
                $crate::schema::throttle!(self, _time_ms, $($field)*);
            }
        }
    };
}

/// Sets the field that says how long the client should wait, where there is one.
macro_rules! throttle {
    ($message:expr, $time_ms:expr,) => {};
    ($message:expr, $time_ms:expr, throttle_time_ms $($rest:ident)*) => {
        $message.throttle_time_ms = $time_ms;
    };
    ($message:expr, $time_ms:expr, $other:ident $($rest:ident)*) => {
        $crate::schema::throttle!($message, $time_ms, $($rest)*);
    };
}

#[cfg(test)]
pub(super) use sample_field;
pub(super) use {
    default_value, in_versions, messages, plain_field, refuse_null, tagged_field, throttle, top_level,
    typed_default,
};
