//! Who may do what: the ACLs, and what a broker's settings add to them.
use std::collections::HashSet;
use std::net::IpAddr;
use std::sync::Arc;

use super::rules::AclMatch;
use super::{Operation, ResourceType, Rules};
use crate::principal::{NoPrincipal, Principal};

/// Somebody who wants to do something.
#[derive(Debug, Clone, Copy)]
pub struct Access<'a> {
    /// Who.
    pub principal: &'a Principal,
    /// From where.
    pub host: IpAddr,
    /// What.
    pub operation: Operation,
}

/// Whether an access is allowed, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// A super user may do everything.
    SuperUser,
    /// An ACL allows it, and none denies it.
    Allowed,
    /// There is no ACL for the resource, and then everybody may.
    AllowedWithoutAcl,
    /// An ACL denies it.
    Denied,
    /// No ACL allows it.
    NotAllowed,
}

impl Decision {
    /// Whether it is allowed.
    pub fn is_allowed(self) -> bool {
        matches!(self, Self::SuperUser | Self::Allowed | Self::AllowedWithoutAcl)
    }

    /// Why, for the log.
    pub fn reason(self) -> &'static str {
        match self {
            Self::SuperUser => "a super user may do everything",
            Self::Allowed => "an ACL allows it",
            Self::AllowedWithoutAcl => "there is no ACL for the resource",
            Self::Denied => "an ACL denies it",
            Self::NotAllowed => "no ACL allows it",
        }
    }
}

/// Decides. Cheap to copy with other rules.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    super_users: Arc<HashSet<Principal>>,
    allows_without_acl: bool,
    rules: Arc<Rules>,
}

impl Policy {
    /// Without any ACL: only super users may do something, or everybody may (`allow.everyone.if.no.acl.found`).
    pub fn new(super_users: HashSet<Principal>, allows_without_acl: bool) -> Self {
        Self { super_users: Arc::new(super_users), allows_without_acl, rules: Arc::default() }
    }

    /// The same with these ACLs.
    pub fn with(&self, rules: Arc<Rules>) -> Self {
        Self { rules, ..self.clone() }
    }

    /// The ACLs.
    pub fn rules(&self) -> &Arc<Rules> {
        &self.rules
    }

    /// Whether the access to this resource is allowed.
    pub fn allows(&self, access: Access<'_>, resource: (ResourceType, &str)) -> Decision {
        let Access { principal, host, operation } = access;
        if self.super_users.contains(principal) {
            return Decision::SuperUser;
        }
        match self.rules.match_of(principal, host, operation, resource) {
            AclMatch::Denied => Decision::Denied,
            AclMatch::Allowed => Decision::Allowed,
            AclMatch::NoAcl if self.allows_without_acl => Decision::AllowedWithoutAcl,
            AclMatch::NoAcl | AclMatch::NotMentioned => Decision::NotAllowed,
        }
    }

    /// Whether the access to some resource of the type is allowed (Kafka's `authorizeByResourceType`).
    pub fn allows_any(&self, access: Access<'_>, resource_type: ResourceType) -> Decision {
        let Access { principal, host, operation } = access;
        // As Kafka: a name that nobody has stands for all that no ACL is about.
        let of_a_name = self.allows(access, (resource_type, "hardcode"));
        if of_a_name.is_allowed() {
            return of_a_name;
        }
        match self.rules.allow_some(principal, host, operation, resource_type) {
            true => Decision::Allowed,
            false => Decision::NotAllowed,
        }
    }
}

/// Reads `super.users`: principals with semicolons between them.
///
/// # Errors
/// [`NoPrincipal`]: the first that is none.
pub fn super_users(text: &str) -> Result<HashSet<Principal>, NoPrincipal> {
    text.split(';').map(str::trim).filter(|one| !one.is_empty()).map(str::parse).collect()
}
