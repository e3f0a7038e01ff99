//! The client against scripted brokers that refuse, lie, fall silent or move ([`fake`]).
mod cluster_faults;
pub mod fake;
mod faults;
mod logins;
mod tls;
mod tls_records;
mod tokens;
mod transactions;
mod write_faults;
