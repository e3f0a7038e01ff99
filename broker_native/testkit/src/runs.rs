//! How much a run repeats, as the environment says.

/// The number in a variable of the environment.
pub fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// How many times a test repeats: once, or as often as it says in a long run.
pub fn times(long: u64) -> u64 {
    if is_long() { long } else { 1 }
}

/// Whether this is a run that repeats more (`make test-long`).
pub fn is_long() -> bool {
    number("PYLOG_TEST_LONG", 0) == 1
}
