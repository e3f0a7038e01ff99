//! The part of ASN.1's DER that keys, PKCS#12 stores and distinguished names need: elements of one-byte tags with definite lengths.
//!
//! Nothing is copied and nothing is allocated; an element never reaches beyond the bytes that it is in.
use super::error::StoreError;

pub(crate) const INTEGER: u8 = 0x02;
pub(crate) const OCTET_STRING: u8 = 0x04;
pub(crate) const OID: u8 = 0x06;
pub(crate) const SEQUENCE: u8 = 0x30;
pub(crate) const SET: u8 = 0x31;
/// `[0]`, with elements in it.
pub(crate) const CONTEXT_0: u8 = 0xa0;
/// `[0]`, with bytes in it.
pub(crate) const CONTEXT_0_BYTES: u8 = 0x80;

/// One element: its tag, what is in it, and all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Element<'a> {
    pub(crate) tag: u8,
    pub(crate) body: &'a [u8],
    pub(crate) whole: &'a [u8],
}

/// Elements one after the other.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Elements<'a>(&'a [u8]);

impl<'a> Elements<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The next element, of any tag.
    pub(crate) fn next(&mut self) -> Result<Element<'a>, StoreError> {
        let short = || StoreError::damaged("it ends in the middle of an element");
        let (&tag, rest) = self.0.split_first().ok_or_else(short)?;
        let (&first, rest) = rest.split_first().ok_or_else(short)?;
        if tag & 0x1f == 0x1f {
            return Err(StoreError::damaged("it has a tag of several bytes"));
        }
        let (length, rest) = match first {
            0..=0x7f => (usize::from(first), rest),
            0x81..=0x84 => {
                let (bytes, rest) = rest.split_at_checked(usize::from(first & 0x7f)).ok_or_else(short)?;
                (bytes.iter().fold(0, |length, &byte| (length << 8) | usize::from(byte)), rest)
            }
            0x80 => {
                return Err(StoreError::Unsupported(
                    "has elements without a length (BER); write it anew as DER".into(),
                ));
            }
            _ => return Err(short()),
        };
        let (body, rest) = rest.split_at_checked(length).ok_or_else(short)?;
        let whole = &self.0[..self.0.len() - rest.len()];
        self.0 = rest;
        Ok(Element { tag, body, whole })
    }

    /// The body of the next element, which is to have `tag`.
    pub(crate) fn expect(&mut self, tag: u8) -> Result<&'a [u8], StoreError> {
        let element = self.next()?;
        if element.tag != tag {
            return Err(StoreError::damaged(format!(
                "it has an element {:#04x} where {tag:#04x} belongs",
                element.tag
            )));
        }
        Ok(element.body)
    }

    /// The body of the next element if it has `tag`.
    pub(crate) fn optional(&mut self, tag: u8) -> Result<Option<&'a [u8]>, StoreError> {
        if self.0.first() == Some(&tag) { self.expect(tag).map(Some) } else { Ok(None) }
    }

    /// The elements of the next one, which is a sequence.
    pub(crate) fn sequence(&mut self) -> Result<Elements<'a>, StoreError> {
        self.expect(SEQUENCE).map(Self::new)
    }

    /// The next element, a number that is not negative.
    pub(crate) fn number(&mut self) -> Result<u64, StoreError> {
        number(self.expect(INTEGER)?)
    }
}

/// The body of an INTEGER as a number that is not negative.
pub(crate) fn number(body: &[u8]) -> Result<u64, StoreError> {
    match body {
        [first, ..] if *first < 0x80 && body.len() <= 8 => {
            Ok(body.iter().fold(0, |number, &byte| (number << 8) | u64::from(byte)))
        }
        _ => Err(StoreError::damaged("it has a number that is negative or far too large")),
    }
}

/// An object identifier in digits, for messages; from its encoded body.
pub(crate) fn dotted(oid: &[u8]) -> String {
    let mut parts = Vec::new();
    let mut part = 0_u64;
    for &byte in oid {
        part = (part.saturating_mul(128)) | u64::from(byte & 0x7f);
        if byte < 0x80 {
            if parts.is_empty() {
                let first = (part / 40).min(2);
                parts.push(first.to_string());
                part -= first * 40;
            }
            parts.push(part.to_string());
            part = 0;
        }
    }
    parts.join(".")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_read_one_after_the_other_and_in_each_other() {
        let mut outer = Elements::new(&[0x30, 0x06, 0x02, 0x01, 0x05, 0x04, 0x01, 0xff, 0x05, 0x00]);
        let mut inner = outer.sequence().unwrap();
        assert_eq!(inner.number(), Ok(5));
        assert_eq!(inner.optional(OID), Ok(None));
        assert_eq!(inner.expect(OCTET_STRING), Ok(&[0xff][..]));
        assert!(inner.is_empty());
        assert_eq!(outer.next().map(|element| element.whole), Ok(&[0x05, 0x00][..]));
    }

    #[test]
    fn lengths_beyond_the_bytes_and_without_a_number_are_refused() {
        for bytes in [
            &[0x30][..],
            &[0x30, 0x01],
            &[0x30, 0x84, 0xff, 0xff, 0xff, 0xff],
            &[0x30, 0x80, 0, 0],
            &[0x30, 0x85, 0, 0, 0, 0, 0],
        ] {
            assert!(Elements::new(bytes).next().is_err(), "{bytes:?}");
        }
        assert!(number(&[0x80]).is_err() && number(&[]).is_err() && number(&[0; 9]).is_err());
    }

    #[test]
    fn object_identifiers_are_written_in_digits() {
        assert_eq!(dotted(&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01]), "1.2.840.113549.1.1.1");
        assert_eq!(dotted(&[0x55, 0x04, 0x05]), "2.5.4.5");
        assert_eq!(dotted(&[0x88, 0x37, 0x03]), "2.999.3");
    }
}
