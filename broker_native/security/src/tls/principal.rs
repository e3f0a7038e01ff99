//! Who a TLS peer is: the distinguished name of its certificate, through `ssl.principal.mapping.rules` (KIP-371).
//!
//! ```text
//! rules   = rule, rule, ...      the first one whose pattern is the whole name decides; none: the peer is refused
//! rule    = DEFAULT              the name as it is
//!         | RULE:pattern/replacement/     $1 to $9 and so on are groups of the pattern
//!         | RULE:pattern/replacement/L    in lower case; U: in upper case
//! ```
//!
//! In pattern and replacement a backslash stands before `/` and before itself. Patterns are those of Java, but for what takes exponential time:
//! groups that look ahead or behind, references back, and quotations with `\Q`, which are refused. As in Java `\w`, `\d`, `\s` and `\b` know
//! ASCII only.
use regex::Regex;
use rustls::pki_types::CertificateDer;

use super::certificate;
use super::error::TlsError;
use super::name;
use crate::principal::Principal;

/// How long the rules may be.
pub const MAX_RULES_BYTES: usize = 64 << 10;
/// How large a pattern may become.
const MAX_PATTERN_BYTES: usize = 1 << 20;

/// `ssl.principal.mapping.rules`, read.
#[derive(Debug, Clone)]
pub struct MappingRules {
    rules: Vec<Rule>,
}

#[derive(Debug, Clone)]
enum Rule {
    Default,
    Mapped(Box<Mapped>),
}

#[derive(Debug, Clone)]
struct Mapped {
    /// For the whole name.
    whole: Regex,
    /// For its parts, which are replaced.
    part: Regex,
    replacement: Vec<Piece>,
    letters: Letters,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    Group(usize),
    Named(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Letters {
    AsTheyAre,
    Lower,
    Upper,
}

impl Default for MappingRules {
    /// Kafka's: the name as it is.
    fn default() -> Self {
        Self { rules: vec![Rule::Default] }
    }
}

impl MappingRules {
    /// Reads the setting.
    pub fn parse(text: &str) -> Result<Self, TlsError> {
        if text.len() > MAX_RULES_BYTES {
            return Err(refused(format!("they have more than {MAX_RULES_BYTES} bytes")));
        }
        let mut rules = Vec::new();
        let mut rest = text.trim();
        while !rest.is_empty() {
            let (rule, after) = next_rule(rest)?;
            rules.extend(rule);
            rest = after.trim_start();
        }
        Ok(Self { rules })
    }

    /// What the rules make of a distinguished name; none when no rule is for it.
    pub fn apply(&self, name: &str) -> Option<String> {
        self.rules.iter().find_map(|rule| match rule {
            Rule::Default => Some(name.to_owned()),
            Rule::Mapped(mapped) => mapped.apply(name),
        })
    }
}

/// Who showed `chain`: nobody, where it is empty.
pub fn peer_principal(chain: &[CertificateDer<'_>], rules: &MappingRules) -> Result<Principal, TlsError> {
    let Some(own) = chain.first() else { return Ok(Principal::anonymous()) };
    let parsed = certificate::parse(own).map_err(TlsError::Settings)?;
    let name = name::rfc2253(parsed.subject().as_raw());
    let name = name
        .ok_or_else(|| TlsError::Settings("The subject of the client's certificate cannot be read".into()))?;
    let mapped = rules.apply(&name);
    mapped
        .map(Principal::user)
        .ok_or_else(|| refused(format!("none of them is for the certificate of {name}")))
}

fn refused(what: impl std::fmt::Display) -> TlsError {
    TlsError::Settings(format!("ssl.principal.mapping.rules: {what}"))
}

/// The first rule of `text`, and what is behind the comma after it. No rule between two commas is none.
fn next_rule(text: &str) -> Result<(Option<Rule>, &str), TlsError> {
    if let Some(rest) = text.strip_prefix("RULE:") {
        let not_whole = || {
            refused(format!(
                "{text:?} is not whole: write RULE:pattern/replacement/, with L or U behind it or not"
            ))
        };
        let (pattern, rest) = until_slash(rest).ok_or_else(not_whole)?;
        let (replacement, rest) = until_slash(rest).ok_or_else(not_whole)?;
        let (letters, rest) = match rest.chars().next() {
            Some('L') => (Letters::Lower, &rest[1..]),
            Some('U') => (Letters::Upper, &rest[1..]),
            _ => (Letters::AsTheyAre, rest),
        };
        let (behind, rest) = until_comma(rest);
        if !behind.is_empty() {
            return Err(refused(format!(
                "{behind:?} stands behind the rule with the pattern {pattern:?}: only L or U may"
            )));
        }
        return Ok((Some(Rule::Mapped(Box::new(Mapped::new(pattern, replacement, letters)?))), rest));
    }
    match until_comma(text) {
        ("", rest) => Ok((None, rest)),
        ("DEFAULT", rest) => Ok((Some(Rule::Default), rest)),
        (other, _) => {
            Err(refused(format!("{other:?} is no rule: write DEFAULT or RULE:pattern/replacement/")))
        }
    }
}

/// What is before the next `/` that has no backslash before it, and what is behind it.
fn until_slash(text: &str) -> Option<(&str, &str)> {
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '\\' => {
                characters.next()?;
            }
            '/' => return Some((&text[..at], &text[at + 1..])),
            _ => {}
        }
    }
    None
}

fn until_comma(text: &str) -> (&str, &str) {
    let (before, after) = text.split_once(',').unwrap_or((text, ""));
    (before.trim(), after)
}

impl Mapped {
    fn new(pattern: &str, replacement: &str, letters: Letters) -> Result<Self, TlsError> {
        let ascii = ascii_classes(pattern);
        let compiled = |text: &str| {
            let built = regex::RegexBuilder::new(text).size_limit(MAX_PATTERN_BYTES).build();
            built.map_err(|_| {
                refused(format!(
                    "{pattern:?} is no pattern that can be used: groups that look ahead or behind, references back and \\Q are not known"
                ))
            })
        };
        let (whole, part) = (compiled(&format!(r"\A(?:{ascii})\z"))?, compiled(&ascii)?);
        let replacement = pieces(replacement, &part)?;
        Ok(Self { whole, part, replacement, letters })
    }

    /// As Java does it: if the pattern is the whole name, every part of the name that it matches is replaced, an empty one at the end too.
    fn apply(&self, name: &str) -> Option<String> {
        self.whole.is_match(name).then(|| {
            let mapped = self.replaced(name);
            match self.letters {
                Letters::AsTheyAre => mapped,
                Letters::Lower => mapped.to_lowercase(),
                Letters::Upper => mapped.to_uppercase(),
            }
        })
    }

    fn replaced(&self, name: &str) -> String {
        let mut text = String::new();
        let (mut copied, mut from) = (0, 0);
        while let Some(found) = self.part.captures_at(name, from) {
            let Some(all) = found.get(0) else { break };
            text.push_str(&name[copied..all.start()]);
            for piece in &self.replacement {
                text.push_str(match piece {
                    Piece::Text(text) => text,
                    Piece::Group(number) => found.get(*number).map_or("", |group| group.as_str()),
                    Piece::Named(group) => found.name(group).map_or("", |group| group.as_str()),
                });
            }
            copied = all.end();
            from = all.end();
            if all.is_empty() {
                // The next place to look at is behind the next character, which is copied.
                match name[from..].chars().next() {
                    Some(character) => from += character.len_utf8(),
                    None => break,
                }
            }
        }
        text.push_str(&name[copied..]);
        text
    }
}

/// A replacement in pieces. A `$` with a number that the pattern has no group for is itself, as in Kafka.
fn pieces(text: &str, pattern: &Regex) -> Result<Vec<Piece>, TlsError> {
    let groups = pattern.captures_len() - 1;
    let mut pieces = Vec::new();
    let mut literal = String::new();
    let mut characters = text.chars().peekable();
    let wrong = |what: &str| refused(format!("the replacement {text:?} {what}"));
    while let Some(character) = characters.next() {
        let group = match (character, characters.peek().copied()) {
            ('\\', Some(next)) => {
                characters.next();
                literal.push(next);
                continue;
            }
            ('\\', None) => return Err(wrong("ends with a backslash")),
            ('$', Some('{')) => {
                characters.next();
                let name: String = characters.by_ref().take_while(|&character| character != '}').collect();
                if !pattern.capture_names().flatten().any(|known| known == name) {
                    return Err(wrong("names a group that the pattern does not have"));
                }
                Piece::Named(name)
            }
            ('$', Some(digit)) if digit.is_ascii_digit() => {
                let first = digit.to_digit(10).unwrap_or_default() as usize;
                if first > groups {
                    if groups == 0 {
                        return Err(wrong("names a group, and the pattern has none"));
                    }
                    literal.push('$');
                    continue;
                }
                characters.next();
                let mut number = first;
                while let Some(digit) = characters.peek().and_then(|character| character.to_digit(10)) {
                    match number * 10 + digit as usize {
                        larger if larger <= groups => number = larger,
                        _ => break,
                    }
                    characters.next();
                }
                Piece::Group(number)
            }
            ('$', _) => return Err(wrong("has a $ without the number of a group: write \\$")),
            _ => {
                literal.push(character);
                continue;
            }
        };
        if !literal.is_empty() {
            pieces.push(Piece::Text(std::mem::take(&mut literal)));
        }
        pieces.push(group);
    }
    if !literal.is_empty() {
        pieces.push(Piece::Text(literal));
    }
    Ok(pieces)
}

/// The pattern with Java's meaning of `\w`, `\d`, `\s` and their opposites, and of `\b`: of ASCII only.
fn ascii_classes(pattern: &str) -> String {
    let mut text = String::with_capacity(pattern.len());
    let mut depth = 0_usize;
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        match character {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if character != '\\' {
            text.push(character);
            continue;
        }
        let class = match characters.next() {
            Some('w') => "[:word:]",
            Some('W') => "[:^word:]",
            Some('d') => "[:digit:]",
            Some('D') => "[:^digit:]",
            Some('s') => "[:space:]",
            Some('S') => "[:^space:]",
            Some('b') if depth == 0 => {
                text.push_str(r"(?-u:\b)");
                continue;
            }
            other => {
                text.push('\\');
                text.extend(other);
                continue;
            }
        };
        if depth == 0 {
            text.push_str(&format!("[{class}]"));
        } else {
            text.push_str(class);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(rules: &str, name: &str) -> Option<String> {
        MappingRules::parse(rules).unwrap().apply(name)
    }

    fn error(rules: &str) -> String {
        MappingRules::parse(rules).unwrap_err().to_string()
    }

    #[test]
    fn the_first_rule_that_is_for_the_whole_name_decides() {
        let rules =
            "RULE:^CN=(.*?),OU=Services.*$/$1/L, RULE:^CN=(.*?),OU=(.*?),O=(.*?),C=(.*?)$/$1@$2/U , DEFAULT";
        assert_eq!(map(rules, "CN=Anna,OU=Services,O=x").as_deref(), Some("anna"));
        assert_eq!(map(rules, "CN=anna,OU=lab,O=x,C=de").as_deref(), Some("ANNA@LAB"));
        assert_eq!(map(rules, "OU=lab").as_deref(), Some("OU=lab"));
        assert_eq!(map("RULE:CN=(\\w+)/$1/", "CN=anna,OU=x"), None);
    }

    #[test]
    fn the_rules_of_kafkas_documentation_are_read() {
        for rules in [
            "DEFAULT",
            "",
            "RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/",
            "RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/L",
            "RULE:^CN=([^,ADEFLTU,]+)(,.*|$)/$1/",
            ",  , RULE: /   /    ,,,   DEFAULT, ,   ",
            r"RULE:\/\\\(\)\n\t/\/\//",
        ] {
            MappingRules::parse(rules).unwrap();
        }
        let rules = r"RULE:^CN=((\\, *|\w)+)(,.*|$)/$1/,DEFAULT";
        assert_eq!(map(rules, "CN=Tkac\\, Adam,OU=ITZ,DC=geodis,DC=cz").as_deref(), Some("Tkac\\, Adam"));
    }

    #[test]
    fn what_is_no_rule_is_refused() {
        for rules in [
            "default",
            "DEFAUL",
            "DEFAULT/L",
            "RULE:CN=(.*?)/$1",
            "rule:a/b/",
            "RULE:(a)/$1/L/U",
            "RULE:a/L",
            "RULE:a/LU",
        ] {
            assert!(error(rules).starts_with("ssl.principal.mapping.rules: "), "{rules}");
        }
        assert!(error("RULE:(?=a)a/b/").contains("look ahead"));
        assert!(error("RULE:(a)/${name}/").contains("does not have"));
        assert!(error("RULE:a/$1/").contains("the pattern has none"));
    }

    #[test]
    fn replacing_is_javas() {
        // An empty match at the end is replaced too.
        assert_eq!(map("RULE:.*/x/", "abc").as_deref(), Some("xx"));
        assert_eq!(map("RULE:^(.*)$/$1/", "abc").as_deref(), Some("abc"));
        assert_eq!(map("RULE:(a)(b)?c/$1$2-$9-$12/", "ac").as_deref(), Some("a-$9-a2"));
        assert_eq!(map(r"RULE:(a)/\$1\\\/$0/", "a").as_deref(), Some("$1\\/a"));
        assert_eq!(map("RULE:(?<x>a)b/${x}/", "ab").as_deref(), Some("a"));
        assert_eq!(map("RULE:a|ab/x/", "ab").as_deref(), Some("xb"));
    }

    #[test]
    fn classes_of_characters_are_ascii_as_in_java() {
        for (rules, name, expected) in [
            (r"RULE:\w+/x/", "é", None),
            (r"RULE:[\w.]+/x/", "a.é", None),
            (r"RULE:[^\d]+/x/", "é", Some("x")),
            (r"RULE:\W/x/", "é", Some("x")),
            (r"RULE:\S\D/x/", "éé", Some("x")),
            (r"RULE:a\b./x/", "aé", Some("x")),
        ] {
            assert_eq!(map(rules, name).as_deref(), expected, "{rules} {name}");
        }
    }
}
