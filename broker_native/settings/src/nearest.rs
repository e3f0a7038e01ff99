//! The known name that a user probably meant by an unknown one.

/// How many letters of a short name may be wrong. In a longer name every third may be.
const LEAST_BOUND: usize = 2;

/// The name of `known` that is written most like `name`; none when even that one is too different.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let bound = (name.chars().count() / 3).max(LEAST_BOUND);
    let distances = known.into_iter().map(|known| (distance(known, name), known));
    let (least, nearest) = distances.min_by_key(|(distance, _)| *distance)?;
    (least <= bound).then_some(nearest)
}

/// Levenshtein distance.
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (i, a) in left.chars().enumerate() {
        let mut diagonal = i;
        let mut previous = i + 1;
        for (cell, b) in row.iter_mut().skip(1).zip(&right) {
            let value = (diagonal + usize::from(a != *b)).min(previous + 1).min(*cell + 1);
            diagonal = *cell;
            *cell = value;
            previous = value;
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typing_error_is_near_and_another_word_is_not() {
        let known = ["batch.size", "linger.ms", "log.retention.ms"];
        assert_eq!(nearest("batch.sise", known), Some("batch.size"));
        assert_eq!(nearest("retention.ms", known), Some("log.retention.ms"));
        assert_eq!(nearest("something.else", known), None);
        assert_eq!(nearest("name", ["value"]), None);
        assert_eq!(nearest("vlaue", ["key", "value"]), Some("value"));
        assert_eq!(nearest("batch.size", []), None);
    }
}
