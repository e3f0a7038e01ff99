//! Kafka's messages, one file per API, names and fields as in Kafka 4.3's descriptors.
//!
//! Requests, responses and [`ApiVersion`] are re-exported here; parts of messages stay in their files because Kafka
//! uses some names twice.
pub mod api_versions;
pub mod fetch;
mod hex;
pub mod list_offsets;
pub mod metadata;
pub mod produce;

pub use api_versions::{ApiVersion, ApiVersionsRequest, ApiVersionsResponse};
pub use fetch::{FetchRequest, FetchResponse};
pub use list_offsets::{ListOffsetsRequest, ListOffsetsResponse};
pub use metadata::{MetadataRequest, MetadataResponse};
pub use produce::{ProduceRequest, ProduceResponse};
