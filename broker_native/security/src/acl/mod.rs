//! Kafka's ACLs: who may do what to which resource, from where.
//!
//! | file | what it owns |
//! |---|---|
//! | `mod` | the words: [`ResourceType`], [`PatternType`], [`Operation`], [`Permission`], with Kafka's names and codes |
//! | [`binding`] | [`AclBinding`], one ACL: a pattern of resources and an entry; what a new one must be like |
//! | [`filter`] | which ACLs a DescribeAcls or DeleteAcls request means |
//! | [`rules`] | [`Rules`]: all ACLs of a cluster, indexed; what they say about one access |
//! | [`policy`] | [`Policy`]: the rules, super users, and who is let in when there is no ACL |
//!
//! The semantics are those of Kafka's `StandardAuthorizer`, with one difference: an ACL's host that is an IP address is compared as an
//! address, so that `::1` and `0:0:0:0:0:0:0:1` are the same. Everything here is immutable once it is made, and may be used from any thread.
pub mod binding;
pub mod filter;
pub mod policy;
pub mod rules;

#[cfg(test)]
mod tests;

use std::fmt;
use std::str::FromStr;

pub use binding::{AclBinding, Entry, InvalidAcl, Pattern};
pub use filter::AclFilter;
pub use policy::{Access, Decision, Policy};
pub use rules::Rules;

/// The name that stands for every name, every host, and (after `User:`) every principal.
pub const WILDCARD: &str = "*";
/// The name of the only resource of type CLUSTER.
pub const CLUSTER_NAME: &str = "kafka-cluster";

/// The number on the wire of "any", in every enumeration: only a filter has it.
pub const ANY: i8 = 1;
/// The number on the wire of the patterns that match a name: only a filter has it.
pub const MATCH: i8 = 2;

/// A name that is none of those that a type has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name:?} is no {kind} of an ACL: use {known}")]
pub struct UnknownName {
    kind: &'static str,
    name: String,
    known: String,
}

/// Declares one of Kafka's enumerations: a name and a code on the wire for each value.
macro_rules! words {
    ($(#[$doc:meta])* $type:ident, $kind:literal { $($(#[$about:meta])* $value:ident = $code:literal $name:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $type {
            $($(#[$about])* $value,)*
        }

        impl $type {
            /// All of them, in the order of their codes.
            pub const ALL: &[Self] = &[$(Self::$value),*];

            /// Kafka's name.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$value => $name),* }
            }

            /// The number on the wire.
            pub const fn code(self) -> i8 {
                match self { $(Self::$value => $code),* }
            }

            /// The value with this number on the wire.
            pub fn from_code(code: i8) -> Option<Self> {
                Self::ALL.iter().copied().find(|one| one.code() == code)
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.name())
            }
        }

        impl FromStr for $type {
            type Err = UnknownName;

            /// Reads Kafka's name, in any case.
            fn from_str(text: &str) -> Result<Self, UnknownName> {
                let found = Self::ALL.iter().copied().find(|one| one.name().eq_ignore_ascii_case(text));
                found.ok_or_else(|| {
                    let known: Vec<_> = Self::ALL.iter().map(|one| one.name()).collect();
                    UnknownName { kind: $kind, name: text.to_owned(), known: known.join(", ") }
                })
            }
        }
    };
}

words! {
    /// What an ACL is about.
    ResourceType, "resource type" {
        /// A topic.
        Topic = 2 "TOPIC",
        /// A consumer group or a share group.
        Group = 3 "GROUP",
        /// The cluster as a whole; its name is [`CLUSTER_NAME`].
        Cluster = 4 "CLUSTER",
        /// A transactional id.
        TransactionalId = 5 "TRANSACTIONAL_ID",
        /// A delegation token.
        DelegationToken = 6 "DELEGATION_TOKEN",
        /// A user, whose tokens somebody else makes.
        User = 7 "USER",
    }
}

words! {
    /// Which names an ACL is about.
    PatternType, "pattern type" {
        /// This name, or every name when it is `*`.
        Literal = 3 "LITERAL",
        /// All names that begin with this text.
        Prefixed = 4 "PREFIXED",
    }
}

words! {
    /// What is done to a resource.
    Operation, "operation" {
        /// Everything.
        All = 2 "ALL",
        /// Records are read, or a group is joined.
        Read = 3 "READ",
        /// Records are written, or a transactional id is used.
        Write = 4 "WRITE",
        /// It is made.
        Create = 5 "CREATE",
        /// It is deleted.
        Delete = 6 "DELETE",
        /// It is changed.
        Alter = 7 "ALTER",
        /// It is looked at.
        Describe = 8 "DESCRIBE",
        /// What only brokers do.
        ClusterAction = 9 "CLUSTER_ACTION",
        /// Its settings are read.
        DescribeConfigs = 10 "DESCRIBE_CONFIGS",
        /// Its settings are changed.
        AlterConfigs = 11 "ALTER_CONFIGS",
        /// Records are written by an idempotent producer.
        IdempotentWrite = 12 "IDEMPOTENT_WRITE",
        /// Tokens are made for a user.
        CreateTokens = 13 "CREATE_TOKENS",
        /// A user's tokens are looked at.
        DescribeTokens = 14 "DESCRIBE_TOKENS",
        /// A transaction takes part in a commit that somebody else decides.
        TwoPhaseCommit = 15 "TWO_PHASE_COMMIT",
    }
}

words! {
    /// Whether an ACL lets in or keeps out.
    Permission, "permission" {
        /// It keeps out, whatever others allow.
        Deny = 2 "DENY",
        /// It lets in.
        Allow = 3 "ALLOW",
    }
}

impl Operation {
    /// Whether who is allowed this may do `other`, too: who may read, write, delete or alter may describe, and who may alter settings
    /// may read them. A denial implies nothing.
    pub fn implies(self, other: Self) -> bool {
        let implied = match other {
            Self::Describe => matches!(self, Self::Read | Self::Write | Self::Delete | Self::Alter),
            Self::DescribeConfigs => self == Self::AlterConfigs,
            _ => false,
        };
        implied || self == other || self == Self::All
    }

    /// Whether a denial of this keeps from `other`.
    pub fn denies(self, other: Self) -> bool {
        self == other || self == Self::All
    }
}

impl ResourceType {
    /// The operations that there are on a resource of this type, as clients are told what they may do.
    pub const fn operations(self) -> &'static [Operation] {
        use Operation::{
            Alter, AlterConfigs, ClusterAction, Create, CreateTokens, Delete, Describe, DescribeConfigs,
            DescribeTokens, IdempotentWrite, Read, TwoPhaseCommit, Write,
        };
        match self {
            Self::Topic => &[Read, Write, Create, Delete, Alter, Describe, DescribeConfigs, AlterConfigs],
            Self::Group => &[Read, Delete, Describe, DescribeConfigs, AlterConfigs],
            Self::Cluster => {
                &[Create, Alter, Describe, ClusterAction, DescribeConfigs, AlterConfigs, IdempotentWrite]
            }
            Self::TransactionalId => &[Write, Describe, TwoPhaseCommit],
            Self::DelegationToken => &[Describe],
            Self::User => &[CreateTokens, DescribeTokens],
        }
    }

    /// Its place in a table of all types.
    pub(crate) const fn index(self) -> usize {
        self as usize
    }
}
