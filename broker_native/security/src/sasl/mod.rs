//! SASL: the mechanisms as state machines, the client's side and the broker's.
