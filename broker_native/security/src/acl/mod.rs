//! Kafka's ACLs: patterns, and what they allow. Pure.
