//! One ACL.
use std::fmt;

use serde::Deserialize;

use super::{ANY, CLUSTER_NAME, MATCH, Operation, PatternType, Permission, ResourceType, UnknownName};

/// The resources that an ACL is about.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Pattern {
    /// Their type.
    pub resource_type: ResourceType,
    /// Their name, or how it begins.
    pub name: String,
    /// Which of both.
    pub pattern_type: PatternType,
}

/// Who may do something, or may not.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Entry {
    /// Who, as `User:alice`; `User:*` is everybody.
    pub principal: String,
    /// From where: an IP address, or `*`.
    pub host: String,
    /// What.
    pub operation: Operation,
    /// Whether it is allowed or denied.
    pub permission: Permission,
}

/// One ACL: Kafka's `AclBinding`. Read from JSON with Kafka's names: `{"resource_type": "TOPIC", "resource_name": "t", "pattern_type":
/// "LITERAL", "principal": "User:alice", "host": "*", "operation": "READ", "permission": "ALLOW"}`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "Named")]
pub struct AclBinding {
    /// The resources.
    pub pattern: Pattern,
    /// Who may do what.
    pub entry: Entry,
}

/// An ACL in words.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Named {
    resource_type: String,
    resource_name: String,
    pattern_type: String,
    principal: String,
    host: String,
    operation: String,
    permission: String,
}

impl TryFrom<Named> for AclBinding {
    type Error = UnknownName;

    fn try_from(named: Named) -> Result<Self, UnknownName> {
        let pattern = Pattern {
            resource_type: named.resource_type.parse()?,
            name: named.resource_name,
            pattern_type: named.pattern_type.parse()?,
        };
        let entry = Entry {
            principal: named.principal,
            host: named.host,
            operation: named.operation.parse()?,
            permission: named.permission.parse()?,
        };
        Ok(Self { pattern, entry })
    }
}

/// Why an ACL is not taken (INVALID_REQUEST).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidAcl {
    /// The name of the cluster is another.
    #[error("The only valid name for the CLUSTER resource is {CLUSTER_NAME}")]
    ClusterName,
    /// The name is empty.
    #[error("Invalid empty resource name")]
    NoName,
    /// A value that is none, or only means something in a filter.
    #[error("Invalid {what} {word}")]
    Value {
        /// Which one.
        what: &'static str,
        /// Kafka's name of the value.
        word: &'static str,
    },
    /// What is no principal.
    #[error("Could not parse principal from `{0}`: write it as User:NAME")]
    Principal(String),
    /// An empty host.
    #[error("Invalid empty host: write an IP address, or * for every host")]
    NoHost,
}

impl AclBinding {
    /// The ACL of a CreateAcls request, whose numbers are those of the wire.
    ///
    /// # Errors
    /// [`InvalidAcl`]: the first thing in it that is wrong, in the order in which Kafka looks.
    pub fn of_request(
        (resource_type, name, pattern_type): (i8, &str, i8),
        (principal, host): (&str, &str),
        (operation, permission): (i8, i8),
    ) -> Result<Self, InvalidAcl> {
        let known = ResourceType::from_code(resource_type);
        if known == Some(ResourceType::Cluster) && name != CLUSTER_NAME {
            return Err(InvalidAcl::ClusterName);
        }
        if name.is_empty() {
            return Err(InvalidAcl::NoName);
        }
        let pattern = Pattern {
            resource_type: known.ok_or_else(|| invalid("resourceType", resource_type))?,
            name: name.to_owned(),
            pattern_type: PatternType::from_code(pattern_type)
                .ok_or_else(|| invalid("patternType", pattern_type))?,
        };
        let entry = Entry {
            principal: principal.to_owned(),
            host: host.to_owned(),
            operation: Operation::from_code(operation).ok_or_else(|| invalid("operation", operation))?,
            permission: Permission::from_code(permission)
                .ok_or_else(|| invalid("permissionType", permission))?,
        };
        if !principal.contains(':') {
            return Err(InvalidAcl::Principal(principal.to_owned()));
        }
        if host.is_empty() {
            return Err(InvalidAcl::NoHost);
        }
        Ok(Self { pattern, entry })
    }
}

/// A value that is none: Kafka knows it as a filter's, or not at all.
fn invalid(what: &'static str, code: i8) -> InvalidAcl {
    let word = match code {
        ANY => "ANY",
        MATCH if what == "patternType" => "MATCH",
        _ => "UNKNOWN",
    };
    InvalidAcl::Value { what, word }
}

impl fmt::Display for Pattern {
    /// As Kafka's audit log writes a resource: `TOPIC:LITERAL:name`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.resource_type, self.pattern_type, self.name)
    }
}

impl fmt::Display for AclBinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Entry { principal, host, operation, permission } = &self.entry;
        write!(f, "{permission} {operation} on {} to {principal} from {host}", self.pattern)
    }
}
