//! DescribeClientQuotas: answered by Python.
//!
//! KIP-546.
use super::common::decided::decided;
use crate::authorization::table::DESCRIBE_CLIENT_QUOTAS_CLUSTER;
use crate::call::{Call, Outcome};
use crate::decide::Kind;
use pylog_wire::ErrorCode;
use pylog_wire::messages::{DescribeClientQuotasRequest, DescribeClientQuotasResponse};

/// Asks for the quotas.
pub fn handle(call: Call, request: DescribeClientQuotasRequest) -> Outcome {
    if let Err(error) = call.check_cluster(&DESCRIBE_CLIENT_QUOTAS_CLUSTER) {
        return Outcome::Now(call.answer(&error_response(&request, error, error.sentence())));
    }
    decided(call, Kind::DescribeClientQuotas.into(), request, error_response)
}

fn error_response(
    _request: &DescribeClientQuotasRequest,
    error: ErrorCode,
    why: &str,
) -> DescribeClientQuotasResponse {
    DescribeClientQuotasResponse {
        error_code: error.code(),
        error_message: Some(why.into()),
        ..Default::default()
    }
}
