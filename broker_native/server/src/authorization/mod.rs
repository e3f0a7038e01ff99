//! Who may do what: asked by handlers with a row of the [`table`], decided by the ACLs in memory.
//!
//! Without `authorizer.class.name` there is no [`Authorizer`], and everybody may do everything. With it, what nobody allows is refused;
//! the principals of `super.users` may do everything, those of the brokers among them. A change of the ACLs holds from the next
//! question on; a request may see both the ACLs before and those after it. A denial is one line of the logger
//! `pylog.broker.authorizer`, limited for each principal. Any thread may ask.
pub mod table;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use parking_lot::RwLock;

use self::table::Row;
use crate::call::Call;
use crate::settings::Settings;
use pylog_log::info;
use pylog_log::loggers::AUTHORIZER;
use pylog_security::acl::policy::super_users;
use pylog_security::acl::{Access, AclBinding, CLUSTER_NAME, Decision, Operation, Policy, ResourceType, Rules};
use pylog_security::principal::NoPrincipal;
use pylog_wire::ErrorCode;

/// Decides who may do what, by ACLs that may be exchanged.
#[derive(Debug)]
pub struct Authorizer {
    policy: RwLock<Policy>,
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
        Ok(Some(Self { policy: RwLock::new(policy) }))
    }

    /// Exchanges all ACLs.
    pub fn apply(&self, acls: impl IntoIterator<Item = AclBinding>) {
        // Indexed without the lock.
        let rules = Arc::new(Rules::new(acls));
        let policy = self.policy.read().with(rules);
        *self.policy.write() = policy;
    }

    /// The ACLs.
    pub fn rules(&self) -> Arc<Rules> {
        Arc::clone(self.policy.read().rules())
    }
}

impl Call {
    /// Whether somebody decides who may do what. Without it nothing needs to be asked.
    pub fn is_guarded(&self) -> bool {
        self.shared.authorizer.is_some()
    }

    /// Whether the client has the right of `row` on the resource called `name`. A denial is written to the log where the row says so.
    pub fn may(&self, row: &Row, name: &str) -> bool {
        let Some(authorizer) = &self.shared.authorizer else { return true };
        let access = self.access(row.operation);
        let decision = authorizer.policy.read().allows(access, (row.resource_type, name));
        self.note(row, name, decision);
        decision.is_allowed()
    }

    /// As [`Call::may`], of the cluster.
    pub fn may_cluster(&self, row: &Row) -> bool {
        self.may(row, CLUSTER_NAME)
    }

    /// Whether the client has the right of `row` on some resource, whatever its name is.
    pub fn may_some(&self, row: &Row) -> bool {
        let Some(authorizer) = &self.shared.authorizer else { return true };
        let access = self.access(row.operation);
        let decision = authorizer.policy.read().allows_any(access, row.resource_type);
        self.note(row, "(any)", decision);
        decision.is_allowed()
    }

    /// As [`Call::may`].
    ///
    /// # Errors
    /// That of the row.
    pub fn check(&self, row: &Row, name: &str) -> Result<(), ErrorCode> {
        if self.may(row, name) { Ok(()) } else { Err(row.error()) }
    }

    /// As [`Call::may_cluster`].
    ///
    /// # Errors
    /// CLUSTER_AUTHORIZATION_FAILED.
    pub fn check_cluster(&self, row: &Row) -> Result<(), ErrorCode> {
        self.check(row, CLUSTER_NAME)
    }

    /// Whether the client may do this to a resource; nothing is written to the log.
    pub fn could(&self, operation: Operation, resource: (ResourceType, &str)) -> bool {
        let Some(authorizer) = &self.shared.authorizer else { return true };
        authorizer.policy.read().allows(self.access(operation), resource).is_allowed()
    }

    /// Takes out of `items` those on whose resource the client has not the right of `row`.
    pub fn set_aside<T>(&self, items: &mut Vec<T>, row: &Row, name: impl Fn(&T) -> &str) -> Vec<T> {
        self.set_aside_where(items, |item| !self.may(row, name(item)))
    }

    /// Takes out of `items` those that are `refused`.
    pub fn set_aside_where<T>(&self, items: &mut Vec<T>, refused: impl FnMut(&T) -> bool) -> Vec<T> {
        if !self.is_guarded() {
            return Vec::new();
        }
        let (aside, left) = std::mem::take(items).into_iter().partition(refused);
        *items = left;
        aside
    }

    fn access(&self, operation: Operation) -> Access<'_> {
        Access { principal: &self.principal, host: self.peer.ip(), operation }
    }

    /// The audit line of a denial. What clients choose is escaped: a line stays one line.
    fn note(&self, row: &Row, name: &str, decision: Decision) {
        if decision.is_allowed() || !row.is_logged {
            return;
        }
        let principal = self.principal.to_string().escape_debug().to_string();
        let (host, api) = (self.peer.ip().to_canonical(), row.api.name());
        let (operation, resource_type) = (row.operation, row.resource_type);
        let (name, why) = (name.escape_debug(), decision.reason());
        info!(
            target: AUTHORIZER, %principal, client = %host, %operation, resource = %resource_type, request = api,
            "{principal} at {host} may not {operation} {resource_type} \"{name}\" for {api}: {why}"
        );
    }
}
