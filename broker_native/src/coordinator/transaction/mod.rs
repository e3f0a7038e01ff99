//! Transactional ids and their transactions: one machine for each partition of `__transaction_state`.
