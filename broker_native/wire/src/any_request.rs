//! Requests whose API is known only when the program runs.
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::api::{ApiKey, with_apis};
use super::error::WireError;
use super::message::{self, Message, Request};
use super::messages;
use super::reader::Reader;
use super::writer::Chunk;

/// Something done for one API whose types are known only when its number is; see [`ApiKey::visit`].
pub trait Visitor {
    /// What comes of it.
    type Output;

    /// Does it for the API whose request is `R`.
    fn visit<R: Request + Serialize + DeserializeOwned>(self) -> Self::Output
    where
        R::Response: Serialize;
}

/// Declares which request has which response, and the type of any request.
macro_rules! requests {
    ($( $name:ident = $code:literal, $request:ident -> $response:ident,
        $min:literal - $max:literal, flexible $flexible:literal + $(, advertised $low:literal - $high:literal)? ; )*) => {
        impl ApiKey {
            /// Does with the API's types what `visitor` does.
            pub fn visit<V: Visitor>(self, visitor: V) -> V::Output {
                match self { $( Self::$name => visitor.visit::<messages::$request>(), )* }
            }
        }

        $( impl Request for messages::$request { type Response = messages::$response; } )*

        /// A request of any API.
        #[derive(Debug, Clone, PartialEq)]
        #[allow(missing_docs, clippy::large_enum_variant)]
        pub enum AnyRequest { $( $name(messages::$request), )* }

        impl AnyRequest {
            /// Reads the body of a request.
            ///
            /// # Errors
            /// As [`Message::decode`].
            pub fn decode(key: ApiKey, reader: &mut Reader, version: i16) -> Result<Self, WireError> {
                match key {
                    $( ApiKey::$name => Ok(Self::$name(messages::$request::decode(reader, version)?)), )*
                }
            }

            /// The request's frame, as [`message::request_frame`].
            ///
            /// # Errors
            /// As [`Message::encode`].
            pub fn frame(
                &self,
                version: i16,
                correlation_id: i32,
                client_id: Option<&str>,
            ) -> Result<Vec<Chunk>, WireError> {
                match self {
                    $( Self::$name(body) => message::request_frame(body, version, correlation_id, client_id), )*
                }
            }
        }
    };
}

with_apis!(requests);
