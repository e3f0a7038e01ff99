//! ListTransactions (66): the transactional ids that a broker coordinates.
use crate::schema::messages;

messages! {
    /// Which ones; an empty list lets all through.
    ListTransactionsRequest of ListTransactions {
        state_filters: Vec<String> [0+],
        producer_id_filters: Vec<i64> [0+],
        /// Only transactions that are open for longer; negative: all.
        duration_filter: i64 [1+] = -1,
        /// A regular expression that the whole transactional id matches.
        transactional_id_pattern: Option<String> [2+],
    }

    /// The transactional ids.
    ListTransactionsResponse of ListTransactions {
        throttle_time_ms: i32 [0+],
        error_code: i16 [0+],
        unknown_state_filters: Vec<String> [0+],
        transaction_states: Vec<TransactionState> [0+],
    }

    /// One transactional id.
    TransactionState {
        transactional_id: String [0+],
        producer_id: i64 [0+],
        transaction_state: String [0+],
    }
}
