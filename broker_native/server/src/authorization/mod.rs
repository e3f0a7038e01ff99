//! Who may do what: asked by handlers with a right of the [`table`], decided by the ACLs in memory.
//!
//! Without `authorizer.class.name` there is no [`Authorizer`], and everybody may do everything. With it, what nobody allows is refused;
//! the principals of `super.users` may do everything, those of the brokers among them. A change of the ACLs holds from the next
//! question on; a request may see both the ACLs before and those after it. A denial is one line of the logger
//! `pylog.broker.authorizer`, limited for each principal. Any thread may ask.
pub mod table;

#[cfg(test)]
mod tests;

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::RwLock;

use self::table::Right;
use crate::settings::Settings;
use pylog_log::info;
use pylog_log::loggers::AUTHORIZER;
use pylog_security::acl::policy::super_users;
use pylog_security::acl::{Access, AclBinding, Decision, Operation, Policy, ResourceType, Rules};
use pylog_security::principal::{NoPrincipal, Principal};

/// Decides who may do what, by ACLs that may be exchanged.
#[derive(Debug)]
pub struct Authorizer {
    policy: RwLock<Policy>,
    /// How often it was exchanged.
    version: AtomicU64,
}

impl Authorizer {
    /// The authorizer that the settings ask for; none is the default. It has no ACLs yet.
    ///
    /// # Errors
    /// `super.users` names what is no principal.
    pub fn of(settings: &Settings) -> Result<Option<Self>, NoPrincipal> {
        if settings.authorizer_class_name.as_ref().is_none_or(String::is_empty) {
            return Ok(None);
        }
        let super_users = super_users(&settings.super_users)?;
        let policy = Policy::new(super_users, settings.allow_everyone_if_no_acl_found);
        Ok(Some(Self { policy: RwLock::new(policy), version: AtomicU64::new(0) }))
    }

    /// Exchanges all ACLs.
    pub fn apply(&self, acls: impl IntoIterator<Item = AclBinding>) {
        // Indexed without the lock.
        let rules = Arc::new(Rules::new(acls));
        let policy = self.policy.read().with(rules);
        *self.policy.write() = policy;
        // Afterwards: who has seen this version has seen these ACLs, or newer ones.
        self.version.fetch_add(1, Ordering::Release);
    }

    /// Another number after every change of the ACLs.
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// The ACLs.
    pub fn rules(&self) -> Arc<Rules> {
        Arc::clone(self.policy.read().rules())
    }

    /// Whether `who` has the `right` on the resource called `name`. A denial is written to the log where the right says so.
    pub fn may(&self, who: Who<'_>, right: &Right, name: &str) -> bool {
        let decision = self.policy.read().allows(who.access(right.operation), (right.resource_type, name));
        note(who, right, name, decision);
        decision.is_allowed()
    }

    /// As [`Authorizer::may`], on some resource, whatever its name is.
    pub fn may_some(&self, who: Who<'_>, right: &Right) -> bool {
        let decision = self.policy.read().allows_any(who.access(right.operation), right.resource_type);
        note(who, right, "(any)", decision);
        decision.is_allowed()
    }

    /// Whether `who` may do this to a resource; nothing is written to the log.
    pub fn could(&self, who: Who<'_>, operation: Operation, resource: (ResourceType, &str)) -> bool {
        self.policy.read().allows(who.access(operation), resource).is_allowed()
    }
}

/// Who wants to do something, and from where.
#[derive(Debug, Clone, Copy)]
pub struct Who<'a> {
    /// Who.
    pub principal: &'a Principal,
    /// From where.
    pub host: IpAddr,
}

impl<'a> Who<'a> {
    fn access(self, operation: Operation) -> Access<'a> {
        Access { principal: self.principal, host: self.host, operation }
    }
}

/// Writes the audit line of a denial. One that the log leaves out costs next to nothing: a request may be denied very many names.
fn note(who: Who<'_>, right: &Right, name: &str, decision: Decision) {
    if decision.is_allowed() || !right.is_logged {
        return;
    }
    let (principal, client) = (Escaped(who.principal), who.host.to_canonical());
    let (operation, resource, request) = (right.operation, right.resource_type, right.api.name());
    let denial = Denial { who, right, name, decision };
    info!(target: AUTHORIZER, %principal, %client, %operation, %resource, request, "{denial}");
}

/// What was denied to whom, as a sentence. What clients choose is escaped: a line stays one line.
struct Denial<'a> {
    who: Who<'a>,
    right: &'a Right,
    name: &'a str,
    decision: Decision,
}

impl fmt::Display for Denial<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Right { operation, resource_type, api, .. } = self.right;
        let (principal, host) = (Escaped(self.who.principal), self.who.host.to_canonical());
        let (name, api, why) = (self.name.escape_debug(), api.name(), self.decision.reason());
        write!(f, "{principal} at {host} may not {operation} {resource_type} \"{name}\" for {api}: {why}")
    }
}

/// A principal whose name cannot begin a line.
struct Escaped<'a>(&'a Principal);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.0.kind().escape_debug(), self.0.name().escape_debug())
    }
}
