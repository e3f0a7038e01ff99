//! ListTransactions: the transactional ids that this broker coordinates.
//!
//! KIP-664. Version 1 asks for those that are open for a while (KIP-994); 2 for ids by a pattern (KIP-1152).
use crate::authorization::table::LIST_TRANSACTIONS_TRANSACTION;
use crate::call::{Call, Outcome};
use pylog_coordinator::Now;
use pylog_coordinator::transaction::{TxnFilter, TxnState};
use pylog_wire::ErrorCode;
use pylog_wire::messages::{ListTransactionsRequest, ListTransactionsResponse};

/// Looks through the machines that are loaded; says COORDINATOR_LOAD_IN_PROGRESS when one is not.
pub fn handle(call: &Call, request: &ListTransactionsRequest) -> Outcome {
    let name_matches: Box<dyn Fn(&str) -> bool> = match request.transactional_id_pattern.as_deref() {
        None | Some("") => Box::new(|_: &str| true),
        Some(pattern) => match whole(pattern) {
            Some(pattern) => Box::new(move |name: &str| pattern.is_match(name)),
            None => return Outcome::Now(call.answer(&error_response(ErrorCode::InvalidRegularExpression))),
        },
    };
    let (known, unknown): (Vec<_>, Vec<_>) =
        request.state_filters.iter().partition(|name| TxnState::from_name(name).is_some());
    let filter = TxnFilter {
        states: known.iter().filter_map(|name| TxnState::from_name(name)).collect(),
        producer_ids: request.producer_id_filters.clone(),
        duration_ms: request.duration_filter,
    };
    let mut transaction_states = Vec::new();
    // Only unknown states were asked for: nothing is in them.
    let wanted = request.state_filters.is_empty() || !known.is_empty();
    let clock = &call.shared.clock;
    let now = Now { wall_ms: clock.now_ms(), steady_ms: clock.steady_ms() };
    let looked = call.shared.coordinators.transactions.for_each_loaded(|machine| {
        if wanted {
            let listed = machine.list(&filter, &name_matches, now).into_iter();
            let visible =
                listed.filter(|state| call.may(&LIST_TRANSACTIONS_TRANSACTION, &state.transactional_id));
            transaction_states.extend(visible);
        }
    });
    Outcome::Now(call.answer(&match looked {
        Err(error) => error_response(error),
        Ok(()) => ListTransactionsResponse {
            unknown_state_filters: unknown.into_iter().cloned().collect(),
            transaction_states,
            ..Default::default()
        },
    }))
}

/// The expression, for a whole name; `None` when it is none.
fn whole(pattern: &str) -> Option<regex::Regex> {
    regex::RegexBuilder::new(&format!("^(?:{pattern})$")).size_limit(PATTERN_BYTES).build().ok()
}

/// A larger expression is refused.
const PATTERN_BYTES: usize = 64 * 1024;

fn error_response(error: ErrorCode) -> ListTransactionsResponse {
    ListTransactionsResponse { error_code: error.code(), ..Default::default() }
}
