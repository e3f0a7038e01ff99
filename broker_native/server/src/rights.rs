//! What handlers ask about the rights of a request's client ([`authorization`](crate::authorization)).
use std::collections::BTreeSet;
use std::net::IpAddr;

use crate::authorization::table::Right;
use crate::authorization::{Authorizer, Who};
use crate::call::Call;
use pylog_security::acl::{CLUSTER_NAME, Operation, ResourceType};
use pylog_security::principal::Principal;
use pylog_wire::ErrorCode;

impl Call {
    /// Whether somebody decides who may do what. Without it nothing needs to be asked.
    pub fn is_guarded(&self) -> bool {
        self.shared.authorizer.is_some()
    }

    /// Another number after every change of what clients may do. Read before a right is asked for, it says whether the answer still holds.
    pub fn rights_version(&self) -> u64 {
        self.shared.authorizer.as_ref().map_or(0, Authorizer::version)
    }

    /// Whether the client has the `right` on the resource called `name`. A denial is written to the log where the right says so.
    pub fn may(&self, right: &Right, name: &str) -> bool {
        let authorizer = self.shared.authorizer.as_ref();
        authorizer.is_none_or(|authorizer| authorizer.may(self.who(), right, name))
    }

    /// As [`Call::may`], on all of those that are called so, each of which is asked about once.
    pub fn may_all<'a>(&self, right: &Right, names: impl Iterator<Item = &'a str>) -> bool {
        let names: BTreeSet<&str> = names.filter(|_| self.is_guarded()).collect();
        names.into_iter().all(|name| self.may(right, name))
    }

    /// As [`Call::may`], of the cluster.
    pub fn may_cluster(&self, right: &Right) -> bool {
        self.may(right, CLUSTER_NAME)
    }

    /// Whether the client has the `right` on some resource, whatever its name is.
    pub fn may_some(&self, right: &Right) -> bool {
        let authorizer = self.shared.authorizer.as_ref();
        authorizer.is_none_or(|authorizer| authorizer.may_some(self.who(), right))
    }

    /// As [`Call::may`].
    ///
    /// # Errors
    /// That of the right.
    pub fn check(&self, right: &Right, name: &str) -> Result<(), ErrorCode> {
        if self.may(right, name) { Ok(()) } else { Err(right.error()) }
    }

    /// As [`Call::may_cluster`].
    ///
    /// # Errors
    /// CLUSTER_AUTHORIZATION_FAILED.
    pub fn check_cluster(&self, right: &Right) -> Result<(), ErrorCode> {
        self.check(right, CLUSTER_NAME)
    }

    /// Whether the client may do this to a resource; nothing is written to the log.
    pub fn could(&self, operation: Operation, resource: (ResourceType, &str)) -> bool {
        let authorizer = self.shared.authorizer.as_ref();
        authorizer.is_none_or(|authorizer| authorizer.could(self.who(), operation, resource))
    }

    /// As [`Call::may`], of somebody else.
    pub fn may_another(&self, (principal, host): (&Principal, IpAddr), right: &Right, name: &str) -> bool {
        let authorizer = self.shared.authorizer.as_ref();
        authorizer.is_none_or(|authorizer| authorizer.may(Who { principal, host }, right, name))
    }

    /// Takes out of `items` those on whose resource the client has not the `right`.
    pub fn set_aside<T>(&self, items: &mut Vec<T>, right: &Right, name: impl Fn(&T) -> &str) -> Vec<T> {
        self.set_aside_where(items, |item| !self.may(right, name(item)))
    }

    /// Takes out of `items` those that do not pass the `check`, with its error.
    pub fn set_aside_with<T>(
        &self,
        items: &mut Vec<T>,
        check: impl Fn(&T) -> Result<(), ErrorCode>,
    ) -> Vec<(T, ErrorCode)> {
        if !self.is_guarded() {
            return Vec::new();
        }
        let (mut aside, mut left) = (Vec::new(), Vec::with_capacity(items.len()));
        for item in items.drain(..) {
            match check(&item) {
                Ok(()) => left.push(item),
                Err(error) => aside.push((item, error)),
            }
        }
        *items = left;
        aside
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

    fn who(&self) -> Who<'_> {
        Who { principal: &self.principal, host: self.peer.ip() }
    }
}
