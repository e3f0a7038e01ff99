//! Refusals that repeat all that was asked, as Kafka's do. One that would be very large has the error alone: whoever is refused may ask for
//! anything, and an answer takes many times the bytes of its request.
use super::share_admin::NAMED_MAX;

/// Whether a refusal repeats topics with so many partitions each.
pub fn is_repeated(partitions: impl Iterator<Item = usize>) -> bool {
    partitions.fold(0_usize, |sum, count| sum.saturating_add(count).saturating_add(1)) <= NAMED_MAX
}
