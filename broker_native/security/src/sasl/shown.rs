//! Names of strangers in the log and in sentences: what a client calls itself could be a whole forged line.

/// Characters of a name that are shown.
const SHOWN_CHARS: usize = 128;

/// `name` in quotes, without anything that could begin a line or move a cursor, and not longer than a name is.
pub fn shown(name: &str) -> String {
    let mut chars = name.chars();
    let start: String = chars.by_ref().take(SHOWN_CHARS).collect();
    match chars.next() {
        Some(_) => format!("{start:?}..."),
        None => format!("{start:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_begin_a_line_of_the_log_nor_fill_it() {
        assert_eq!(shown("alice"), "\"alice\"");
        let forged = shown("a\r\n[2026-01-01] INFO logged in\u{1b}[2J\u{202e}");
        assert!(!forged.contains(['\n', '\r', '\u{1b}', '\u{202e}']), "{forged}");
        assert!(shown(&"x".repeat(60_000)).len() < 200);
    }
}
