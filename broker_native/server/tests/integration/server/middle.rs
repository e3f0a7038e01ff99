//! A go-between before a broker: it passes requests and answers on, and does to some what networks and brokers do.
//!
//! The asker's connection outlives those to the broker, so that an asker goes on with what a restarted broker has forgotten.
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::{Error, ErrorKind, Read, Result, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use pylog_wire::messages::ApiVersionsResponse;
use pylog_wire::{ApiKey, Chunk, message};
use socket2::SockRef;

use crate::server::support::TIMEOUT;

/// What becomes of one answer to a fetch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The connection ends before it.
    Cut,
    /// The connection is reset in its middle.
    Half,
    /// One bit of a record is another.
    Flip,
    /// The request comes twice, and the answer to the second goes back.
    Twice,
    /// It belongs to another request.
    Stranger,
}

/// All of them.
pub const FAULTS: [Fault; 5] = [Fault::Cut, Fault::Half, Fault::Flip, Fault::Twice, Fault::Stranger];
/// An answer to a fetch that is longer has records, whose last bytes come shortly before its end.
const WITH_RECORDS: usize = 200;
const FROM_END: usize = 20;
/// The error of a whole answer to a fetch stands behind the correlation id, the header's tags and the throttle time.
const FETCH_ERROR: std::ops::Range<usize> = 9..11;

/// Listens until it is dropped.
pub struct Middle {
    pub port: u16,
    shared: Arc<Shared>,
}

struct Shared {
    behind: AtomicU16,
    planned: Mutex<VecDeque<Fault>>,
    /// APIs, and the highest version that the broker seems to speak.
    newest: BTreeMap<ApiKey, i16>,
    asked: Mutex<BTreeMap<i16, BTreeSet<i16>>>,
    fetch_errors: Mutex<BTreeSet<i16>>,
    gate: Mutex<Gate>,
    opened: Condvar,
    ended: AtomicBool,
}

/// Where requests of one API stand still.
#[derive(Default)]
struct Gate {
    closed_for: Option<i16>,
    /// How many of each API came there so far.
    came: BTreeMap<i16, usize>,
}

impl Middle {
    /// Before the broker at port `behind`, which seems to speak some APIs up to other versions than it does.
    pub fn before(behind: u16, newest: &[(ApiKey, i16)]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = Arc::new(Shared {
            behind: AtomicU16::new(behind),
            planned: Mutex::default(),
            newest: newest.iter().copied().collect(),
            asked: Mutex::default(),
            fetch_errors: Mutex::default(),
            gate: Mutex::default(),
            opened: Condvar::new(),
            ended: AtomicBool::new(false),
        });
        let listening = Arc::clone(&shared);
        std::thread::spawn(move || {
            for asker in listener.incoming() {
                if listening.is_over() {
                    return;
                }
                let serving = Arc::clone(&listening);
                // An asker that goes ends its thread.
                std::thread::spawn(move || _ = serving.serve(asker.unwrap()));
            }
        });
        Self { port, shared }
    }

    /// The broker is at another port now.
    pub fn moved(&self, behind: u16) {
        self.shared.behind.store(behind, Ordering::SeqCst);
    }

    /// Does this to the next answer that it can be done to.
    pub fn plan(&self, fault: Fault) {
        self.shared.planned.lock().unwrap().push_back(fault);
    }

    /// Whether all that was planned is done.
    pub fn is_done(&self) -> bool {
        self.shared.planned.lock().unwrap().is_empty()
    }

    /// The versions in which `key` was asked.
    pub fn asked(&self, key: ApiKey) -> Vec<i16> {
        let asked = self.shared.asked.lock().unwrap();
        asked.get(&key.code()).into_iter().flatten().copied().collect()
    }

    /// From now on requests of `key` are passed on only after [`Middle::release`].
    pub fn hold(&self, key: ApiKey) {
        self.shared.gate.lock().unwrap().closed_for = Some(key.code());
    }

    /// Passes on what was held.
    pub fn release(&self) {
        self.shared.gate.lock().unwrap().closed_for = None;
        self.shared.opened.notify_all();
    }

    /// How many requests of `key` have come, passed on or held.
    pub fn count(&self, key: ApiKey) -> usize {
        self.shared.gate.lock().unwrap().came.get(&key.code()).copied().unwrap_or(0)
    }

    /// The errors of whole answers to fetches that were passed on.
    pub fn fetch_errors(&self) -> BTreeSet<i16> {
        self.shared.fetch_errors.lock().unwrap().clone()
    }
}

impl Drop for Middle {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::SeqCst);
        self.release();
        // The listener looks up.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

impl Shared {
    fn is_over(&self) -> bool {
        self.ended.load(Ordering::SeqCst)
    }

    fn serve(&self, mut asker: TcpStream) -> Result<()> {
        asker.set_nodelay(true)?;
        let mut broker = None;
        loop {
            let request = read(&mut asker)?;
            let (key, version) = (number(&request[..2]), number(&request[2..4]));
            self.asked.lock().unwrap().entry(key).or_default().insert(version);
            self.pass_the_gate(key);
            let mut answer = self.ask(&mut broker, &request)?;
            if key == ApiKey::ApiVersions.code() {
                answer = self.aged(&answer, version);
            }
            let fault = (key == ApiKey::Fetch.code()).then(|| self.fault(&answer)).flatten();
            match fault {
                None => {}
                Some(Fault::Cut) => return Ok(()),
                Some(Fault::Half) => {
                    asker.write_all(&framed(&answer)[..answer.len() / 2])?;
                    return SockRef::from(&asker).set_linger(Some(Duration::ZERO));
                }
                Some(Fault::Flip) => {
                    let at = answer.len() - FROM_END;
                    answer[at] ^= 4;
                }
                Some(Fault::Twice) => answer = self.ask(&mut broker, &request)?,
                Some(Fault::Stranger) => answer[3] ^= 1,
            }
            if key == ApiKey::Fetch.code() {
                self.fetch_errors.lock().unwrap().insert(number(&answer[FETCH_ERROR]));
            }
            asker.write_all(&framed(&answer))?;
        }
    }

    fn pass_the_gate(&self, key: i16) {
        let mut gate = self.gate.lock().unwrap();
        *gate.came.entry(key).or_default() += 1;
        let closed = |gate: &mut Gate| gate.closed_for == Some(key) && !self.is_over();
        drop(self.opened.wait_timeout_while(gate, TIMEOUT, closed).unwrap());
    }

    /// What is to be done to this answer.
    fn fault(&self, answer: &[u8]) -> Option<Fault> {
        let mut planned = self.planned.lock().unwrap();
        match planned.front() {
            Some(Fault::Flip) if answer.len() < WITH_RECORDS => None,
            _ => planned.pop_front(),
        }
    }

    /// Asks the broker, again when its connection ended: it may have been restarted.
    fn ask(&self, broker: &mut Option<TcpStream>, request: &[u8]) -> Result<Vec<u8>> {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            let tried = self.try_to_ask(broker, request);
            if tried.is_ok() || self.is_over() || Instant::now() > deadline {
                return tried;
            }
            *broker = None;
            std::thread::yield_now();
        }
    }

    fn try_to_ask(&self, broker: &mut Option<TcpStream>, request: &[u8]) -> Result<Vec<u8>> {
        if broker.is_none() {
            let stream = TcpStream::connect(("127.0.0.1", self.behind.load(Ordering::SeqCst)))?;
            stream.set_nodelay(true)?;
            stream.set_read_timeout(Some(TIMEOUT))?;
            *broker = Some(stream);
        }
        let stream = broker.as_mut().ok_or(ErrorKind::NotConnected)?;
        stream.write_all(&framed(request))?;
        read(stream)
    }

    /// The answer to ApiVersions of a broker of another age.
    fn aged(&self, answer: &[u8], version: i16) -> Vec<u8> {
        let (header, mut body) =
            message::decode_response::<ApiVersionsResponse>(answer.to_vec().into(), version).unwrap();
        for (key, newest) in &self.newest {
            let mut spoken = body.api_keys.iter_mut();
            spoken.find(|api| api.api_key == key.code()).unwrap().max_version = *newest;
        }
        let chunks = message::response_frame(&body, version, header.correlation_id).unwrap();
        let mut bytes = Vec::new();
        for chunk in chunks {
            let Chunk::Bytes(part) = chunk else { panic!("no records") };
            bytes.extend_from_slice(&part);
        }
        bytes.split_off(4)
    }
}

fn number(bytes: &[u8]) -> i16 {
    i16::from_be_bytes(bytes.try_into().unwrap())
}

fn framed(body: &[u8]) -> Vec<u8> {
    [&u32::try_from(body.len()).unwrap().to_be_bytes()[..], body].concat()
}

/// The next frame, without its length.
fn read(stream: &mut TcpStream) -> Result<Vec<u8>> {
    let mut prefix = [0; 4];
    stream.read_exact(&mut prefix)?;
    let len = usize::try_from(u32::from_be_bytes(prefix)).map_err(|_| Error::from(ErrorKind::InvalidData))?;
    let mut body = vec![0; len];
    stream.read_exact(&mut body)?;
    Ok(body)
}
