//! Two structs compared by what `{:?}` prints: same field names, same values, in any order.
//!
//! This is how a swap of two fields of the same type is found, which equal bytes do not show. Names of types are
//! not compared, `Wrapper(x)` counts as `x`, and fields that only one side has must be in `ignored`.
use std::collections::BTreeMap;

/// What `{:?}` prints, as a tree.
#[derive(Debug, PartialEq, Eq)]
pub enum Tree {
    /// A number, a word, text or bytes, as printed.
    Leaf(String),
    /// `[..]`.
    List(Vec<Tree>),
    /// `Name { field: value, .. }`.
    Fields(BTreeMap<String, Tree>),
}

/// The tree of `value`, without the fields in `ignored`.
pub fn tree(value: &impl std::fmt::Debug, ignored: &[&str]) -> Tree {
    let text = format!("{value:?}");
    let mut parser = Parser { rest: &text, ignored };
    let tree = parser.value();
    assert_eq!(parser.rest, "", "not read to the end: {text}");
    tree
}

struct Parser<'a> {
    rest: &'a str,
    ignored: &'a [&'a str],
}

impl Parser<'_> {
    fn eat(&mut self, token: &str) -> bool {
        let stripped = self.rest.strip_prefix(token);
        self.rest = stripped.unwrap_or(self.rest);
        stripped.is_some()
    }

    fn word(&mut self) -> String {
        let end =
            self.rest.find(|c: char| !c.is_alphanumeric() && !"_-.".contains(c)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word.to_owned()
    }

    fn quoted(&mut self) -> String {
        let mut escaped = false;
        let closing = self.rest.char_indices().skip(1).find(|&(_, c)| {
            let closes = c == '"' && !escaped;
            escaped = c == '\\' && !escaped;
            closes
        });
        let (text, rest) = self.rest.split_at(closing.expect("a closing quote").0 + 1);
        self.rest = rest;
        text.to_owned()
    }

    fn list(&mut self) -> Vec<Tree> {
        let mut list = Vec::new();
        while !self.eat("]") {
            list.push(self.value());
            self.eat(", ");
        }
        list
    }

    fn fields(&mut self) -> BTreeMap<String, Tree> {
        let mut fields = BTreeMap::new();
        while !self.eat(" }") && !self.eat("}") {
            let name = self.word();
            assert!(self.eat(": "), "a field's value: {}", self.rest);
            let value = self.value();
            if !self.ignored.contains(&name.as_str()) {
                // The crate writes a field whose name is a word of Rust as `_match`.
                fields.insert(name.trim_start_matches('_').to_owned(), value);
            }
            self.eat(", ");
        }
        fields
    }

    fn value(&mut self) -> Tree {
        if self.rest.starts_with('"') {
            return Tree::Leaf(self.quoted());
        }
        if self.eat("[") {
            return Tree::List(self.list());
        }
        let word = self.word();
        if word == "b" && self.rest.starts_with('"') {
            return Tree::Leaf(self.quoted());
        }
        if self.eat(" { ") || self.eat("{") {
            return Tree::Fields(self.fields());
        }
        if self.eat("(") {
            let inner = self.value();
            assert!(self.eat(")"), "one value in {word}(..): {}", self.rest);
            return inner;
        }
        Tree::Leaf(word)
    }
}
