//! How a broker reaches the others of its cluster: settings of a client, by their names.
use serde_json::{Map, Value};

use crate::secret::{HIDDEN, Secret};
use crate::typed::Typed;

/// Texts of a client's settings (`pylog_settings::client_security`); none for a plain connection. `Debug` shows no text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClientTexts(Vec<(String, Secret)>);

impl ClientTexts {
    /// Name and text of each.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, text)| (name.as_str(), text.reveal()))
    }

    /// Whether a plain connection is meant.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Typed for ClientTexts {
    /// Reads an object of texts.
    fn of(value: &Value) -> Option<Self> {
        let texts = value.as_object()?.iter();
        let texts = texts.map(|(name, text)| Some((name.clone(), Secret::new(text.as_str()?))));
        texts.collect::<Option<_>>().map(Self)
    }

    fn value(&self) -> Value {
        self.0.iter().map(|(name, _)| (name.clone(), Value::from(HIDDEN))).collect::<Map<_, _>>().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_of_texts_is_read_and_no_text_is_shown() {
        let texts = ClientTexts::of(&serde_json::json!({"ssl.key.password": "swordfish"})).unwrap();
        assert_eq!(texts.iter().collect::<Vec<_>>(), [("ssl.key.password", "swordfish")]);
        assert!(!format!("{texts:?} {}", texts.value()).contains("swordfish"));
        assert_eq!(ClientTexts::of(&serde_json::json!({"a": 1})), None);
        assert!(ClientTexts::of(&serde_json::json!({})).unwrap().is_empty());
    }
}
