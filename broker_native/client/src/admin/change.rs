//! How a request that changes something is sent: to the controller, as often as it takes to find it.
use crate::error::{ClientError, Result, code};
use crate::metadata::cluster::Cluster;
use crate::net::retry::Retry;
use pylog_wire::messages::{
    AlterClientQuotasResponse, AlterPartitionReassignmentsResponse, AlterUserScramCredentialsResponse,
    CreateAclsResponse, CreatePartitionsResponse, CreateTopicsResponse, DeleteAclsResponse,
    DeleteTopicsResponse, ElectLeadersResponse, IncrementalAlterConfigsResponse, UnregisterBrokerResponse,
    UpdateFeaturesResponse,
};
use pylog_wire::{ErrorCode, Request};

/// Sends a request that changes something to the controller, once it is reached. When nothing was done because the broker is
/// not the controller any more, the new one is looked for and asked, for as long as `default.api.timeout.ms`.
///
/// # Errors
/// Those of the connection. After the time the answer is that of the last broker that was asked.
pub(super) fn change<Q: Request>(cluster: &mut Cluster, what: &str, request: &Q) -> Result<Q::Response>
where
    Q::Response: Codes,
{
    let mut retry = Retry::new(what, cluster.settings().api_timeout(), cluster.stop());
    loop {
        cluster.retrying(what, |cluster| cluster.metadata(Some(&[]), false).map(drop))?;
        let answer = cluster.call_controller(request)?;
        if !surely_not_done(&answer.codes()) {
            return Ok(answer);
        }
        let error = ErrorCode::NotController;
        let again = ClientError::retriable(error.name(), error.sentence());
        if retry.after(again, cluster.settings()).is_err() {
            return Ok(answer);
        }
    }
}

fn surely_not_done(codes: &[i16]) -> bool {
    let none_is_done = codes.iter().all(|&number| code(number) != ErrorCode::None);
    none_is_done && codes.iter().any(|&number| code(number) == ErrorCode::NotController)
}

/// The error codes of an answer: one for each thing that was to be changed, or the one of all.
pub(super) trait Codes {
    /// In the order of the answer; 0 for what was done.
    fn codes(&self) -> Vec<i16>;
}

/// The error of the whole request where there is one, else those of its parts.
fn all_or_each(error_code: i16, each: impl Iterator<Item = i16>) -> Vec<i16> {
    if error_code == 0 { each.collect() } else { vec![error_code] }
}

macro_rules! codes {
    ($($answer:ident: |$own:ident| $codes:expr,)*) => {$(
        impl Codes for $answer {
            fn codes(&self) -> Vec<i16> {
                let $own = self;
                $codes
            }
        }
    )*};
}

codes! {
    AlterClientQuotasResponse: |answer| answer.entries.iter().map(|entry| entry.error_code).collect(),
    AlterUserScramCredentialsResponse: |answer| answer.results.iter().map(|user| user.error_code).collect(),
    CreateAclsResponse: |answer| answer.results.iter().map(|acl| acl.error_code).collect(),
    CreatePartitionsResponse: |answer| answer.results.iter().map(|topic| topic.error_code).collect(),
    CreateTopicsResponse: |answer| answer.topics.iter().map(|topic| topic.error_code).collect(),
    DeleteAclsResponse: |answer| answer.filter_results.iter().map(|filter| filter.error_code).collect(),
    DeleteTopicsResponse: |answer| answer.responses.iter().map(|topic| topic.error_code).collect(),
    IncrementalAlterConfigsResponse: |answer| answer.responses.iter().map(|resource| resource.error_code).collect(),
    UnregisterBrokerResponse: |answer| vec![answer.error_code],
    UpdateFeaturesResponse: |answer| {
        all_or_each(answer.error_code, answer.results.iter().map(|feature| feature.error_code))
    },
    AlterPartitionReassignmentsResponse: |answer| {
        let partitions = answer.responses.iter().flat_map(|topic| &topic.partitions);
        all_or_each(answer.error_code, partitions.map(|partition| partition.error_code))
    },
    ElectLeadersResponse: |answer| {
        let partitions = answer.replica_election_results.iter().flat_map(|topic| &topic.partition_result);
        all_or_each(answer.error_code, partitions.map(|partition| partition.error_code))
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_done_in_part_is_not_sent_again() {
        let (done, denied) = (ErrorCode::None.code(), ErrorCode::TopicAuthorizationFailed.code());
        let moved = ErrorCode::NotController.code();
        for (codes, again) in [
            (vec![], false),
            (vec![done], false),
            (vec![denied], false),
            (vec![moved], true),
            (vec![moved, denied], true),
            (vec![moved, done], false),
        ] {
            assert_eq!(surely_not_done(&codes), again, "{codes:?}");
        }
    }
}
