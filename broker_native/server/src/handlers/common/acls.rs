//! What the requests that change ACLs have in common: what is wrong is answered in its place, and the others are decided.
use std::fmt::Display;

use pylog_wire::ErrorCode;

/// Why nothing is done without an authorizer, as in Kafka.
pub const NO_AUTHORIZER: &str = "No Authorizer is configured.";

/// Those of `asked` that make sense, and for each of all why it does not.
pub fn sorted_out<Q, E>(asked: Vec<Q>, check: impl Fn(&Q) -> Result<(), E>) -> (Vec<Q>, Vec<Option<E>>) {
    let refusals: Vec<_> = asked.iter().map(|item| check(item).err()).collect();
    let valid = asked.into_iter().zip(&refusals).filter(|(_, why)| why.is_none());
    (valid.map(|(item, _)| item).collect(), refusals)
}

/// Puts what was refused here between what was `decided`; `result` makes an answer of an error and a sentence.
pub fn merged<R, E: Display>(
    decided: Vec<R>,
    refusals: Vec<Option<E>>,
    result: impl Fn(ErrorCode, &str) -> R,
) -> Vec<R> {
    let mut decided = decided.into_iter();
    let results = refusals.into_iter().map(|refusal| match refusal {
        None => decided.next().unwrap_or_else(|| result(ErrorCode::UnknownServerError, "")),
        Some(why) => result(ErrorCode::InvalidRequest, &why.to_string()),
    });
    results.collect()
}
