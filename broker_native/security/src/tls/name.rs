//! Distinguished names as Java writes them (`X500Principal.getName()`, RFC 2253): this is what `super.users`, ACLs and
//! `ssl.principal.mapping.rules` of Kafka compare with, so every character counts.
//!
//! The last part comes first; the parts that RFC 2253 names have their names, the others their OID and the value in hex. A backslash stands
//! before `,=+<>#;"\` and before blanks at both ends; a NUL is `\00`.
use super::der::{self, Elements, OID, SEQUENCE, SET};
use super::error::StoreError;

/// The keyword of an attribute of 2.5.4, by its last number.
const KEYWORDS: [(u8, &str); 7] =
    [(3, "CN"), (6, "C"), (7, "L"), (8, "ST"), (9, "STREET"), (10, "O"), (11, "OU")];
const X520: &[u8] = &[0x55, 0x04];
/// 0.9.2342.19200300.100.1, but for its last number.
const PILOT: &[u8] = &[0x09, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 0x64, 0x01];
/// PrintableString, T61String, IA5String, GeneralString, BMPString, UTF8String.
const TEXTS: [u8; 6] = [0x13, 0x14, 0x16, 0x1b, 0x1e, 0x0c];

/// The name whose DER is `name`; none where that is no name.
pub fn rfc2253(name: &[u8]) -> Option<String> {
    written(name).ok()
}

fn written(name: &[u8]) -> Result<String, StoreError> {
    let mut sets = Elements::new(name).sequence()?;
    let mut parts = Vec::new();
    while !sets.is_empty() {
        let mut set = Elements::new(sets.expect(SET)?);
        let mut values = Vec::new();
        while !set.is_empty() {
            values.push(attribute(Elements::new(set.expect(SEQUENCE)?))?);
        }
        parts.push(values.join("+"));
    }
    parts.reverse();
    Ok(parts.join(","))
}

fn attribute(mut attribute: Elements<'_>) -> Result<String, StoreError> {
    let oid = attribute.expect(OID)?;
    let value = attribute.next()?;
    let keyword = keyword(oid);
    match keyword {
        Some(keyword) if TEXTS.contains(&value.tag) => {
            Ok(format!("{keyword}={}", escaped(&String::from_utf8_lossy(value.body))))
        }
        _ => {
            let name = keyword.map_or_else(|| der::dotted(oid), str::to_owned);
            let hex: String = value.whole.iter().map(|byte| format!("{byte:02x}")).collect();
            Ok(format!("{name}=#{hex}"))
        }
    }
}

fn keyword(oid: &[u8]) -> Option<&'static str> {
    match oid {
        [x520 @ .., number] if x520 == X520 => {
            KEYWORDS.iter().find(|(known, _)| known == number).map(|&(_, keyword)| keyword)
        }
        [pilot @ .., 1] if pilot == PILOT => Some("UID"),
        [pilot @ .., 25] if pilot == PILOT => Some("DC"),
        _ => None,
    }
}

fn escaped(value: &str) -> String {
    let blank = |character: char| character == ' ' || character == '\r';
    let inner = value.trim_matches(blank);
    let lead = value.len() - value.trim_start_matches(blank).len();
    let mut escaped = String::with_capacity(value.len() + 2);
    for (at, character) in value.char_indices() {
        match character {
            '\0' => escaped.push_str("\\00"),
            _ => {
                let outside = blank(character) && (at < lead || at >= lead + inner.len());
                if outside || ",=+<>#;\"\\".contains(character) {
                    escaped.push('\\');
                }
                escaped.push(character);
            }
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(oid: &[u8], tag: u8, value: &[u8]) -> Vec<u8> {
        let element = |tag: u8, body: &[u8]| [&[tag, body.len() as u8], body].concat();
        element(SET, &element(SEQUENCE, &[element(OID, oid), element(tag, value)].concat()))
    }

    fn name(parts: &[Vec<u8>]) -> String {
        let body = parts.concat();
        rfc2253(&[&[SEQUENCE, body.len() as u8], &body[..]].concat()).unwrap()
    }

    #[test]
    fn the_last_part_comes_first_under_the_keywords_of_the_rfc() {
        let parts = [
            part(&[0x55, 4, 6], 0x13, b"US"),
            part(&[0x55, 4, 8], 0x0c, b"MD"),
            part(&[PILOT, &[25]].concat(), 0x16, b"com"),
            part(&[0x55, 4, 11], 0x0c, "Büro".as_bytes()),
            part(&[0x55, 4, 3], 0x0c, b"Duke"),
            part(&[PILOT, &[1]].concat(), 0x0c, b"duke1"),
        ];
        assert_eq!(name(&parts), "UID=duke1,CN=Duke,OU=Büro,DC=com,ST=MD,C=US");
    }

    #[test]
    fn other_attributes_have_their_oid_and_their_value_in_hex() {
        let mail = [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x09, 0x01];
        assert_eq!(name(&[part(&mail, 0x16, b"a@b")]), "1.2.840.113549.1.9.1=#1603614062");
        assert_eq!(name(&[part(&[0x55, 4, 3], 0x1c, b"abcd")]), "CN=#1c0461626364");
    }

    #[test]
    fn special_characters_and_blanks_at_the_ends_have_a_backslash() {
        for (value, expected) in [
            ("Tkac, Adam", "CN=Tkac\\, Adam"),
            ("a=b+c<d>e#f;g\"h\\i", "CN=a\\=b\\+c\\<d\\>e\\#f\\;g\\\"h\\\\i"),
            ("  a b ", "CN=\\ \\ a b\\ "),
            ("  ", "CN=\\ \\ "),
            ("a\0b", "CN=a\\00b"),
            ("", "CN="),
        ] {
            assert_eq!(name(&[part(&[0x55, 4, 3], 0x0c, value.as_bytes())]), expected);
        }
    }

    #[test]
    fn what_is_no_name_has_no_text() {
        assert_eq!(rfc2253(&[]), None);
        assert_eq!(rfc2253(&[SEQUENCE, 0]).as_deref(), Some(""));
        assert_eq!(rfc2253(&[SEQUENCE, 2, SET, 9]), None);
    }
}
