//! DescribeClientQuotas: answered by Python.
//!
//! KIP-546.
use super::common::decided::decided;
use crate::call::{Call, Outcome};
use crate::decide::Kind;
use pylog_wire::ErrorCode;
use pylog_wire::messages::{DescribeClientQuotasRequest, DescribeClientQuotasResponse};

/// Asks for the quotas.
pub fn handle(call: Call, request: DescribeClientQuotasRequest) -> Outcome {
    decided(call, Kind::DescribeClientQuotas, request, 0, |_request, error: ErrorCode, why| {
        DescribeClientQuotasResponse {
            error_code: error.code(),
            error_message: Some(why.into()),
            ..Default::default()
        }
    })
}
