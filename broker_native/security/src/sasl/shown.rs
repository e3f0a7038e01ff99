//! What strangers say, in the log and in sentences: what a client calls itself could be a whole forged line, what a broker says the password
//! that it was sent.
use crate::secret::Secret;

/// Characters of a name that are shown.
const SHOWN_CHARS: usize = 128;
/// Characters of a sentence that are shown: those of Kafka's brokers have less than half as many, with a name in them.
const SAID_CHARS: usize = 512;
/// Stands for a sentence with the secret in it.
const WITH_SECRET: &str = "what it says is not shown, since the secret of this login is in it";

/// `name` in quotes, without anything that could begin a line or move a cursor, and not longer than a name is.
pub fn shown(name: &str) -> String {
    let mut chars = name.chars();
    let start: String = chars.by_ref().take(SHOWN_CHARS).collect();
    match chars.next() {
        Some(_) => format!("{start:?}..."),
        None => format!("{start:?}"),
    }
}

/// A stranger's sentence within one of ours: escaped as a name is, though not in quotes, and longer. One with `secret` in it is not shown.
pub fn said(text: &str, secret: &Secret) -> String {
    if !secret.is_empty() && text.contains(secret.reveal()) {
        return WITH_SECRET.to_owned();
    }
    let mut chars = text.chars();
    let mut start = String::new();
    for char in chars.by_ref().take(SAID_CHARS) {
        // Quotes do no harm, and JSON would be hard to read.
        if char == '"' || char == '\'' { start.push(char) } else { start.extend(char.escape_debug()) }
    }
    if chars.next().is_some() { start + "..." } else { start }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_cannot_begin_a_line_fill_it_or_have_the_secret_in_it() {
        let secret = Secret::new("sword\"fish");
        let kafkas = "Authentication failed: Invalid username or password";
        assert_eq!(said(kafkas, &secret), kafkas);
        assert_eq!(said(r#"{"status":"invalid_token"}"#, &secret), r#"{"status":"invalid_token"}"#);
        let forged = said("a\r\n[2026-01-01] INFO logged in\u{1b}[2J\u{202e}", &secret);
        assert!(!forged.contains(['\n', '\r', '\u{1b}', '\u{202e}']), "{forged}");
        assert!(said(&"\u{7}".repeat(60_000), &secret).len() < 6 * SAID_CHARS);
        let echoed = said("you said sword\"fish", &secret);
        assert!(echoed.contains("not shown") && !echoed.contains("fish"), "{echoed}");
        assert_eq!(said("nothing is secret", &Secret::new("")), "nothing is secret");
    }

    #[test]
    fn a_name_cannot_begin_a_line_of_the_log_nor_fill_it() {
        assert_eq!(shown("alice"), "\"alice\"");
        let forged = shown("a\r\n[2026-01-01] INFO logged in\u{1b}[2J\u{202e}");
        assert!(!forged.contains(['\n', '\r', '\u{1b}', '\u{202e}']), "{forged}");
        assert!(shown(&"x".repeat(60_000)).len() < 200);
    }
}
