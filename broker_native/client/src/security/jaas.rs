//! `sasl.jaas.config`: a login module and its options, as Java clients write them.
//!
//! ```text
//! org.apache.kafka.common.security.plain.PlainLoginModule required username="alice" password="..." ;
//! ```
//! The grammar is that of Kafka's own reader: one entry, quoted values with Java's escapes, comments of Java. A module is known by the last
//! part of its class's name, so that shaded ones are known as well. No error shows a value.
use std::collections::BTreeMap;
use std::iter::Peekable;
use std::str::Chars;

use pylog_settings::Secret;

/// What may stand behind a module's name.
const FLAGS: [&str; 4] = ["required", "requisite", "sufficient", "optional"];

/// A login module with its options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The class as it is written.
    pub class: String,
    /// The options; `Debug` does not show their values.
    pub options: BTreeMap<String, Secret>,
}

impl Entry {
    /// The class's name without packages.
    pub fn module(&self) -> &str {
        self.class.rsplit(['.', '$']).next().unwrap_or(&self.class)
    }

    /// An option that is there and not empty.
    pub fn option(&self, name: &str) -> Option<&Secret> {
        self.options.get(name).filter(|value| !value.is_empty())
    }

    /// Reads the one entry of `text`.
    ///
    /// # Errors
    /// The second half of the sentence "sasl.jaas.config ...".
    pub fn read(text: &str) -> Result<Self, String> {
        let mut tokens = Tokens { chars: text.chars().peekable() };
        let class = match tokens.next()? {
            Some(Token::Word(class)) => class,
            _ => return Err("must begin with the class of a login module".into()),
        };
        match tokens.next()? {
            Some(Token::Word(flag)) if FLAGS.iter().any(|known| known.eq_ignore_ascii_case(&flag)) => {}
            _ => return Err(format!("must say {} behind the login module's class", FLAGS.join(", "))),
        }
        let mut options = BTreeMap::new();
        loop {
            let name = match tokens.next()? {
                Some(Token::Word(name)) => name,
                Some(Token::Sign(';')) => break,
                None => return Err("must end with a semicolon".into()),
                Some(_) => return Err("must give options as name=\"value\"".into()),
            };
            if tokens.next()? != Some(Token::Sign('=')) {
                return Err(format!("has no = behind {}", shown(&name)));
            }
            let value = match tokens.next()? {
                Some(Token::Word(value) | Token::Quoted(value)) => value,
                _ => return Err(format!("has no value of {}", shown(&name))),
            };
            options.insert(name, Secret::new(value));
        }
        if tokens.next()?.is_some() {
            return Err("must have one login module only".into());
        }
        Ok(Self { class, options })
    }
}

/// An option as a message may name it: where a quotation mark is missing, a secret may stand in a name's place.
fn shown(name: &str) -> String {
    let known = ["username", "password", "clientId", "clientSecret", "scope", "tokenauth"];
    if known.contains(&name) { format!("the option {name}") } else { "one of its options".to_owned() }
}

#[derive(Debug, PartialEq, Eq)]
enum Token {
    Word(String),
    Quoted(String),
    Sign(char),
}

struct Tokens<'a> {
    chars: Peekable<Chars<'a>>,
}

impl Tokens<'_> {
    fn next(&mut self) -> Result<Option<Token>, String> {
        loop {
            match self.chars.next() {
                None => return Ok(None),
                Some(space) if space.is_whitespace() => {}
                Some('/') => self.comment()?,
                Some(quote @ ('"' | '\'')) => {
                    return self.quoted(quote).map(|text| Some(Token::Quoted(text)));
                }
                Some(sign @ ('=' | ';')) => return Ok(Some(Token::Sign(sign))),
                Some(first) => return Ok(Some(Token::Word(self.word(first)))),
            }
        }
    }

    fn word(&mut self, first: char) -> String {
        let mut word = String::from(first);
        while let Some(next) = self.chars.next_if(|next| !next.is_whitespace() && !"=;\"'".contains(*next)) {
            word.push(next);
        }
        word
    }

    fn comment(&mut self) -> Result<(), String> {
        match self.chars.next() {
            Some('/') => {
                while self.chars.next_if(|next| *next != '\n').is_some() {}
                Ok(())
            }
            Some('*') => loop {
                match self.chars.next() {
                    Some('*') if self.chars.next_if_eq(&'/').is_some() => return Ok(()),
                    Some(_) => {}
                    None => return Err("has a comment without an end".into()),
                }
            },
            _ => Err("has a / where a name or a value is expected; put values into quotation marks".into()),
        }
    }

    fn quoted(&mut self, quote: char) -> Result<String, String> {
        let mut text = String::new();
        loop {
            match self.chars.next() {
                Some(end) if end == quote => return Ok(text),
                Some('\\') => text.push(self.escaped()?),
                Some(other) if other != '\n' => text.push(other),
                _ => return Err("has a quotation mark without its other one".into()),
            }
        }
    }

    /// What stands for a character behind a backslash: Java's letters, up to three octal digits, or the character itself.
    fn escaped(&mut self) -> Result<char, String> {
        let first = self.chars.next().ok_or("ends with a backslash")?;
        if let Some(digit) = first.to_digit(8) {
            let mut code = digit;
            let more = if digit < 4 { 2 } else { 1 };
            for _ in 0..more {
                let Some(digit) = self.chars.peek().and_then(|next| next.to_digit(8)) else { break };
                self.chars.next();
                code = code * 8 + digit;
            }
            return Ok(char::from_u32(code).unwrap_or('?'));
        }
        Ok(match first {
            'n' => '\n',
            't' => '\t',
            'r' => '\r',
            'a' => '\u{7}',
            'b' => '\u{8}',
            'f' => '\u{c}',
            'v' => '\u{b}',
            other => other,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn options(text: &str) -> Vec<(String, String)> {
        let entry = Entry::read(text).unwrap();
        entry.options.into_iter().map(|(name, value)| (name, value.reveal().to_owned())).collect()
    }

    #[test]
    fn a_module_is_known_by_its_class_shaded_or_not() {
        for class in [
            "org.apache.kafka.common.security.plain.PlainLoginModule",
            "kafkashaded.org.apache.kafka.common.security.plain.PlainLoginModule",
            "PlainLoginModule",
        ] {
            let entry = Entry::read(&format!("{class} required username=\"a\" password=\"b\";")).unwrap();
            assert_eq!(entry.module(), "PlainLoginModule");
        }
    }

    #[test]
    fn values_are_quoted_in_either_way_or_not_at_all_and_may_hold_anything() {
        let text = "x.M REQUIRED\n  username='$ConnectionString' // why\n password=\"Endpoint=sb://a;b==\\\"\\\\\\101\" /* c; */ n=12;";
        let expected =
            [("n", "12"), ("password", "Endpoint=sb://a;b==\"\\A"), ("username", "$ConnectionString")];
        let expected: Vec<_> =
            expected.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        assert_eq!(options(text), expected);
    }

    #[test]
    fn what_is_not_of_this_form_is_refused_and_no_value_is_shown() {
        for (text, why) in [
            ("", "must begin with"),
            ("x.M", "behind the login module's class"),
            ("x.M username=\"swordfish\";", "behind the login module's class"),
            ("x.M required username=\"a\"", "semicolon"),
            ("x.M required password swordfish;", "no = behind the option password"),
            ("x.M required swordfish swordfish;", "no = behind one of its options"),
            ("x.M required password=;", "no value of the option password"),
            ("x.M required password=\"swordfish;", "quotation mark"),
            ("x.M required password=\"swordfish\\", "backslash"),
            ("x.M required; y.N required;", "one login module only"),
            ("x.M required /* swordfish", "comment"),
            ("x.M required \"swordfish\"=1;", "options as name"),
        ] {
            let refused = Entry::read(text).unwrap_err();
            assert!(refused.contains(why) && !refused.contains("swordfish"), "{text:?}: {refused}");
        }
    }

    /// A name or a value without quotation marks, as it may be written.
    const WORD: &str = "[a-zA-Z0-9.$_-]{1,12}";

    /// `value` in quotation marks; Java's escapes for what needs them.
    fn quoted(value: &str) -> String {
        let escaped = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        format!("\"{escaped}\"")
    }

    proptest! {
        #[test]
        fn random_entries_are_read_as_they_were_written(
            class in WORD,
            options in prop::collection::btree_map(WORD, "\\PC{0,20}|[\\\\\"'=; \n\t/*0-7]{0,8}", 0..5),
            space in "[ \t\n]{1,3}(/\\*[^*/]{0,8}\\*/|//[^\n]{0,8}\n)?",
        ) {
            let mut text = format!("{class} required");
            for (name, value) in &options {
                text.push_str(&format!(" {space}{name}{space}={space}{}", quoted(value)));
            }
            text.push_str(&format!("{space};{space}"));
            let read = Entry::read(&text).unwrap();
            prop_assert_eq!(&read.class, &class);
            let found: BTreeMap<_, _> =
                read.options.iter().map(|(name, value)| (name.clone(), value.reveal().to_owned())).collect();
            prop_assert_eq!(found, options);
        }

        #[test]
        fn random_and_mutated_texts_are_read_or_refused_without_their_values(
            random in "\\PC{0,60}",
            places in prop::collection::vec((any::<usize>(), any::<char>()), 0..4),
            cut in prop::option::of(any::<usize>()),
        ) {
            let whole = "x.PlainLoginModule required username=\"alice\" /* it */ password='sword\\'fish' n=1; // end";
            let mut chars: Vec<char> = whole.chars().collect();
            for (at, char) in places {
                let at = at % chars.len();
                chars[at] = char;
            }
            if let Some(cut) = cut {
                chars.truncate(cut % chars.len());
            }
            let mutated: String = chars.into_iter().collect();
            for text in [&random, &mutated, &format!("x.M required {random}"), &format!("{mutated}{random}")] {
                match Entry::read(text) {
                    Ok(entry) => {
                        let values = entry.options.values().map(|value| value.reveal().len()).sum::<usize>();
                        prop_assert!(values <= text.len());
                    }
                    Err(why) => prop_assert!(!why.contains("fish") && why.len() < 200, "{}", why),
                }
            }
        }
    }

    #[test]
    fn debug_shows_no_value() {
        let entry = Entry::read("x.M required password=\"swordfish\";").unwrap();
        assert!(!format!("{entry:?}").contains("swordfish"));
    }
}
