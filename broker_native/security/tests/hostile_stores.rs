//! A store that lies about a length or a count costs an error, not memory.
//!
//! Each position of real stores is overwritten with each hostile length, as 16 and as 32 bits and in the forms of DER. This file has a process
//! for itself because it counts the allocations of one thread. The stores have no integrity to check, or are read without their password.
// The lint's exception for tests does not reach helpers of integration tests.
#![allow(clippy::expect_used)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::fs;
use std::path::Path;

use pylog_security::tls::TlsSettings;
use pylog_security::tls::files::Files;
use pylog_security::tls::material::{Identity, Trust};
use pylog_security::tls::throwaway::{Authority, Usage, Wanted};
use x509_parser::pem::parse_x509_pem;

#[path = "../src/tls/tests/bags.rs"]
mod bags;

/// What reading one of these stores of some kilobytes may allocate in all, in bytes: copies of it, and what is made of its certificates.
const ALLOWED_BYTES: usize = 256 * 1024;
/// The same of a store with very many keys, for each of its bytes.
const ALLOWED_FOR_EACH_BYTE: usize = 64;

thread_local! {
    static ALLOCATED_BYTES: Cell<usize> = const { Cell::new(0) };
}

/// The system's allocator, counting what the thread asks for.
struct Counting;

// SAFETY: every call goes to the system's allocator unchanged; counting does not allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = ALLOCATED_BYTES.try_with(|bytes| bytes.set(bytes.get().saturating_add(layout.size())));
        // SAFETY: the caller's promises are those of `System`.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: `pointer` came from `System`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Reads `bytes` as a key store and as a trust store, and says what that allocated.
fn cost(path: &Path, bytes: &[u8]) -> usize {
    fs::write(path, bytes).expect("a temporary file");
    let location = path.to_str().map(str::to_owned);
    let settings = TlsSettings {
        keystore_location: location.clone(),
        truststore_location: location,
        ..TlsSettings::default()
    };
    let before = ALLOCATED_BYTES.get();
    let _ = Identity::read(&settings, &mut Files::new());
    let _ = Trust::read(&settings, &mut Files::new());
    ALLOCATED_BYTES.get() - before
}

#[test]
fn lengths_and_counts_that_lie_do_not_allocate() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("store");
    let lies: [&[u8]; 6] = [
        &[0x7f, 0xff],
        &[0xff, 0xff],
        &[0x7f, 0xff, 0xff, 0xf0],
        &[0xff, 0xff, 0xff, 0xff],
        &[0x84, 0x7f, 0xff, 0xff, 0xff],
        &[0x83, 0xff, 0xff, 0xff],
    ];
    for name in ["java17-trust.jks", "java17-ec.jks", "java17-trust-open.p12", "openssl-open.p12"] {
        let whole = fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name))
            .expect("a fixture");
        for position in 0..whole.len() {
            for lie in lies {
                let mut bytes = whole.clone();
                let end = (position + lie.len()).min(bytes.len());
                bytes[position..end].copy_from_slice(&lie[..end - position]);
                let cost = cost(&path, &bytes);
                assert!(cost <= ALLOWED_BYTES, "{name}: {lie:02x?} at {position} allocated {cost} bytes");
            }
        }
    }
}

/// A certificate of about 60 kB.
fn large_certificate() -> Vec<u8> {
    let authority = Authority::new("large", 0, 4_000_000_000).expect("an authority");
    let hosts = (0..2_500).map(|number| format!("host-{number}.broker.test")).collect();
    let (common_name, not_before, not_after, usage) = ("large".into(), 0, 4_000_000_000, Usage::Server);
    let issued = authority.issue(&Wanted { common_name, hosts, not_before, not_after, usage });
    let issued = issued.expect("a certificate").certificate;
    parse_x509_pem(issued.as_bytes()).expect("PEM").1.contents
}

#[test]
fn keys_that_share_a_certificate_do_not_each_have_a_copy_of_it() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let certificate = large_certificate();
    assert!(certificate.len() > 50_000, "{}", certificate.len());
    for id in [None, Some(&b"shared"[..])] {
        let mut all = vec![bags::key(&[], id); 8_000];
        all.push(bags::certificate(&certificate, id));
        let bytes = bags::store(&bags::safe(&all), &[]);
        let cost = cost(&folder.path().join("store"), &bytes);
        assert!(cost <= bytes.len() * ALLOWED_FOR_EACH_BYTE, "{} bytes allocated {cost} bytes", bytes.len());
    }
}
