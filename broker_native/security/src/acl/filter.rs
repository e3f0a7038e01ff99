//! Which ACLs a request means: Kafka's `AclBindingFilter`.
use super::{ANY, AclBinding, MATCH, Operation, Pattern, PatternType, Permission, ResourceType, WILDCARD};

/// The patterns that a filter means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PatternTypeFilter {
    /// Whatever its type is; a name is compared letter by letter.
    Any,
    /// All that match the name: the name itself, its prefixes, and `*`.
    Match,
    /// Patterns of this type; a name is compared letter by letter.
    Only(PatternType),
}

/// The ACLs that a DescribeAcls or DeleteAcls request means. What is `None` may be anything.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AclFilter {
    /// The type of the resources.
    pub resource_type: Option<ResourceType>,
    /// The name of the pattern, or one that it matches.
    pub name: Option<String>,
    /// How the name is meant.
    pub pattern_type: PatternTypeFilter,
    /// Who; `User:*` is the principal of that name, not everybody.
    pub principal: Option<String>,
    /// From where; `*` is the host of that name, not every host.
    pub host: Option<String>,
    /// What is done.
    pub operation: Option<Operation>,
    /// Whether it is allowed or denied.
    pub permission: Option<Permission>,
}

/// A filter with a number that is none (INVALID_REQUEST).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidFilter {
    /// In the part about resources.
    #[error("Unknown patternFilter.")]
    Pattern,
    /// In the part about who may do what.
    #[error("Unknown entryFilter.")]
    Entry,
}

impl AclFilter {
    /// Every ACL.
    pub const ALL: Self = Self {
        resource_type: None,
        name: None,
        pattern_type: PatternTypeFilter::Any,
        principal: None,
        host: None,
        operation: None,
        permission: None,
    };

    /// The filter of a request, whose numbers are those of the wire.
    ///
    /// # Errors
    /// [`InvalidFilter`].
    pub fn of_request(
        (resource_type, name, pattern_type): (i8, Option<&str>, i8),
        (principal, host): (Option<&str>, Option<&str>),
        (operation, permission): (i8, i8),
    ) -> Result<Self, InvalidFilter> {
        let (pattern, entry) = (|| InvalidFilter::Pattern, || InvalidFilter::Entry);
        Ok(Self {
            resource_type: optional(resource_type, ResourceType::from_code).ok_or_else(pattern)?,
            name: name.map(str::to_owned),
            pattern_type: match pattern_type {
                ANY => PatternTypeFilter::Any,
                MATCH => PatternTypeFilter::Match,
                code => PatternTypeFilter::Only(PatternType::from_code(code).ok_or_else(pattern)?),
            },
            principal: principal.map(str::to_owned),
            host: host.map(str::to_owned),
            operation: optional(operation, Operation::from_code).ok_or_else(entry)?,
            permission: optional(permission, Permission::from_code).ok_or_else(entry)?,
        })
    }

    /// Whether the ACL is meant.
    pub fn matches(&self, acl: &AclBinding) -> bool {
        let entry = &acl.entry;
        self.matches_pattern(&acl.pattern)
            && self.principal.as_ref().is_none_or(|principal| *principal == entry.principal)
            && self.host.as_ref().is_none_or(|host| *host == entry.host)
            && self.operation.is_none_or(|operation| operation == entry.operation)
            && self.permission.is_none_or(|permission| permission == entry.permission)
    }

    /// Whether the ACL's resources are meant.
    pub fn matches_pattern(&self, pattern: &Pattern) -> bool {
        if self.resource_type.is_some_and(|wanted| wanted != pattern.resource_type) {
            return false;
        }
        match (self.pattern_type, &self.name) {
            (PatternTypeFilter::Only(wanted), _) if wanted != pattern.pattern_type => false,
            (_, None) => true,
            (PatternTypeFilter::Any | PatternTypeFilter::Only(_), Some(name)) => *name == pattern.name,
            (PatternTypeFilter::Match, Some(name)) => match pattern.pattern_type {
                PatternType::Literal => *name == pattern.name || pattern.name == WILDCARD,
                PatternType::Prefixed => name.starts_with(&pattern.name),
            },
        }
    }
}

/// The value of a number, `None` for any; nothing when there is no such number.
fn optional<T>(code: i8, from_code: fn(i8) -> Option<T>) -> Option<Option<T>> {
    match code {
        ANY => Some(None),
        code => from_code(code).map(Some),
    }
}
