//! How much a run repeats, as the environment says.

/// The number in a variable of the environment.
pub fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Whether this is a run that repeats more (`make test-long`).
pub fn is_long() -> bool {
    number("PYLOG_TEST_LONG", 0) == 1
}
