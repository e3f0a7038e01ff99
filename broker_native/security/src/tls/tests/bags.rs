//! PKCS#12 stores of any bags, in the open and without a MAC: keys and certificates in whatever number and with whatever ids.
//!
//! Also compiled into `tests/hostile_stores.rs`: nothing of the crate is used here.
const INTEGER: u8 = 0x02;
const OCTET_STRING: u8 = 0x04;
const OID: u8 = 0x06;
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const CONTEXT_0: u8 = 0xa0;
const DATA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x07, 0x01];
const KEY_BAG: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x0c, 0x0a, 0x01, 0x01];
const CERTIFICATE_BAG: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x0c, 0x0a, 0x01, 0x03];
const X509_CERTIFICATE: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x09, 0x16, 0x01];
const LOCAL_KEY_ID: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x09, 0x15];

/// An element of DER with `parts` in it.
pub fn element(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let body = parts.concat();
    let length = match u32::try_from(body.len()) {
        Ok(short @ 0..=0x7f) => vec![short as u8],
        Ok(long) => [&[0x84][..], &long.to_be_bytes()].concat(),
        Err(_) => Vec::new(),
    };
    [&[tag][..], &length, &body].concat()
}

/// The bag of a key that is not encrypted.
pub fn key(bytes: &[u8], id: Option<&[u8]>) -> Vec<u8> {
    bag(KEY_BAG, bytes, id)
}

/// The bag of a certificate.
pub fn certificate(der: &[u8], id: Option<&[u8]>) -> Vec<u8> {
    let der = element(CONTEXT_0, &[&element(OCTET_STRING, &[der])]);
    bag(CERTIFICATE_BAG, &element(SEQUENCE, &[&element(OID, &[X509_CERTIFICATE]), &der]), id)
}

fn bag(kind: &[u8], value: &[u8], id: Option<&[u8]>) -> Vec<u8> {
    let id = id.map(|id| element(SET, &[&element(OCTET_STRING, &[id])]));
    let attribute = id.map(|id| element(SEQUENCE, &[&element(OID, &[LOCAL_KEY_ID]), &id]));
    let attributes = attribute.map(|attribute| element(SET, &[&attribute])).unwrap_or_default();
    element(SEQUENCE, &[&element(OID, &[kind]), &element(CONTEXT_0, &[value]), &attributes])
}

/// The AuthenticatedSafe of `bags`.
pub fn safe(bags: &[Vec<u8>]) -> Vec<u8> {
    let bags: Vec<&[u8]> = bags.iter().map(Vec::as_slice).collect();
    element(SEQUENCE, &[&data(&element(SEQUENCE, &bags))])
}

/// A store of `safe`; `mac` is its MacData, or nothing.
pub fn store(safe: &[u8], mac: &[u8]) -> Vec<u8> {
    element(SEQUENCE, &[&element(INTEGER, &[&[3]]), &data(safe), mac])
}

fn data(content: &[u8]) -> Vec<u8> {
    let content = element(CONTEXT_0, &[&element(OCTET_STRING, &[content])]);
    element(SEQUENCE, &[&element(OID, &[DATA]), &content])
}
