//! Cuts the bytes of a connection into requests: a 4-byte length, then that many bytes. Sans-IO.
//!
//! All complete requests of one read are handled before the next read. A request is handed out as a [`Frame`], which
//! owns the whole buffer meanwhile, so that records can be sliced from it and then changed in place without a copy.
use bytes::{Bytes, BytesMut};

/// Bytes of the length before each request.
const PREFIX_LEN: usize = 4;
/// Smallest request: api key, version, correlation id.
const REQUEST_MIN_BYTES: usize = 8;

/// How a client that speaks TLS begins: a record of a handshake.
const TLS_HANDSHAKE: [u8; 2] = [0x16, 0x03];

/// A length that no request can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.sentence())]
pub struct FrameError {
    /// What the peer wrote.
    pub claimed: i32,
    /// What is allowed.
    pub bounds: Bounds,
}

/// How long requests may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// The smallest allowed.
    pub min_bytes: usize,
    /// The largest allowed.
    pub max_bytes: usize,
    /// The setting that says so.
    pub setting: &'static str,
}

impl Bounds {
    /// Of requests with a header, of at most `max_bytes` by `setting`.
    pub fn of_requests(max_bytes: usize, setting: &'static str) -> Self {
        Self { min_bytes: REQUEST_MIN_BYTES, max_bytes, setting }
    }
}

impl FrameError {
    fn sentence(&self) -> String {
        let Self { claimed, bounds: Bounds { min_bytes, max_bytes, setting } } = self;
        if claimed.to_be_bytes().starts_with(&TLS_HANDSHAKE) {
            return "it speaks TLS, and this listener does not: set its security.protocol to PLAINTEXT or SASL_PLAINTEXT, or use another \
                    port"
                .into();
        }
        format!("a request of {claimed} bytes is not within [{min_bytes}, {max_bytes}] ({setting})")
    }
}

/// One request.
#[derive(Debug)]
pub struct Frame {
    whole: Bytes,
    start: usize,
    end: usize,
}

impl Frame {
    /// The request's bytes, without the length; a slice, not a copy.
    pub fn body(&self) -> Bytes {
        self.whole.slice(self.start..self.end)
    }

    /// Where `part`, a slice of [`Frame::body`], lies in it.
    pub fn range_of(&self, part: &[u8]) -> Option<std::ops::Range<usize>> {
        let base = self.whole.as_ptr() as usize + self.start;
        let start = (part.as_ptr() as usize).checked_sub(base)?;
        let end = start.checked_add(part.len())?;
        (end <= self.end - self.start).then_some(start..end)
    }

    /// Lets `work` change the request's bytes. In place when no slice of it is alive any more, else on a copy.
    pub fn edit<R>(&mut self, work: impl FnOnce(&mut [u8]) -> R) -> R {
        let mut bytes = thaw(std::mem::take(&mut self.whole));
        let done = work(bytes.get_mut(self.start..self.end).unwrap_or_default());
        self.whole = bytes.freeze();
        done
    }

    #[cfg(test)]
    fn of(bytes: &[u8]) -> Self {
        Self { whole: Bytes::copy_from_slice(bytes), start: 0, end: bytes.len() }
    }
}

/// The bytes read and not handled yet.
#[derive(Debug)]
pub struct Inbox {
    bytes: BytesMut,
    at: usize,
    bounds: Bounds,
}

impl Inbox {
    /// An empty inbox without a buffer.
    pub fn new(bounds: Bounds) -> Self {
        Self { bytes: BytesMut::new(), at: 0, bounds }
    }

    /// Other bounds for the requests that are not taken out yet.
    pub fn set_bounds(&mut self, bounds: Bounds) {
        self.bounds = bounds;
    }

    /// Takes the next complete request out; give it back with [`Inbox::handled`].
    ///
    /// # Errors
    /// [`FrameError`]: the connection is of no use any more.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, FrameError> {
        let Some(size) = self.claimed()? else { return Ok(None) };
        let start = self.at + PREFIX_LEN;
        let end = start + size;
        if self.bytes.len() < end {
            return Ok(None);
        }
        let whole = std::mem::take(&mut self.bytes).freeze();
        Ok(Some(Frame { whole, start, end }))
    }

    /// Takes a handled request's buffer back, with the bytes behind the request.
    pub fn handled(&mut self, frame: Frame) {
        (self.at, self.bytes) = match frame.whole.try_into_mut() {
            Ok(bytes) => (frame.end, bytes),
            // Somebody still reads the request.
            Err(held) => (0, BytesMut::from(held.get(frame.end..).unwrap_or_default())),
        };
        if self.at == self.bytes.len() {
            self.bytes.clear();
            self.at = 0;
        }
    }

    /// How large the buffer must be for the request that has begun to arrive, length included; `None` when not known.
    ///
    /// # Errors
    /// [`FrameError`].
    pub fn wanted_bytes(&self) -> Result<Option<usize>, FrameError> {
        Ok(self.claimed()?.map(|size| size + PREFIX_LEN))
    }

    /// Whether nothing waits in the buffer.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Whether there is a buffer.
    pub fn has_buffer(&self) -> bool {
        self.bytes.capacity() > 0
    }

    /// Bytes that the buffer can take without growing, once handled requests are moved out of the way.
    pub fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    /// Moves what waits to the front, so that all space behind it can be read into.
    pub fn compact(&mut self) {
        if self.at > 0 {
            let len = self.bytes.len();
            self.bytes.copy_within(self.at..len, 0);
            self.bytes.truncate(len - self.at);
            self.at = 0;
        }
    }

    /// Goes on in another, larger buffer; returns the old one.
    pub fn replace_buffer(&mut self, mut buffer: BytesMut) -> BytesMut {
        buffer.extend_from_slice(self.bytes.get(self.at..).unwrap_or_default());
        self.at = 0;
        std::mem::replace(&mut self.bytes, buffer)
    }

    /// Where the next bytes are to be read into (behind those that wait).
    pub fn buffer(&mut self) -> &mut BytesMut {
        &mut self.bytes
    }

    /// Gives the buffer up; only when it [`is_empty`](Inbox::is_empty).
    pub fn release(&mut self) -> BytesMut {
        self.at = 0;
        std::mem::take(&mut self.bytes)
    }

    fn claimed(&self) -> Result<Option<usize>, FrameError> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let Some(prefix) = rest.first_chunk::<PREFIX_LEN>() else { return Ok(None) };
        let claimed = i32::from_be_bytes(*prefix);
        match usize::try_from(claimed) {
            Ok(size) if (self.bounds.min_bytes..=self.bounds.max_bytes).contains(&size) => Ok(Some(size)),
            _ => Err(FrameError { claimed, bounds: self.bounds }),
        }
    }
}

/// Bytes that can be changed: the same when nobody else holds them, else a copy.
fn thaw(bytes: Bytes) -> BytesMut {
    bytes.try_into_mut().unwrap_or_else(|shared| BytesMut::from(shared.as_ref()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn up_to(max_bytes: usize) -> Bounds {
        Bounds::of_requests(max_bytes, "socket.request.max.bytes")
    }

    fn request(body: &[u8]) -> Vec<u8> {
        let mut bytes = (body.len() as i32).to_be_bytes().to_vec();
        bytes.extend_from_slice(body);
        bytes
    }

    #[test]
    fn requests_of_one_read_come_out_in_order_and_the_cut_one_waits() {
        let mut inbox = Inbox::new(up_to(100));
        inbox.buffer().extend_from_slice(&request(b"first---"));
        inbox.buffer().extend_from_slice(&request(b"second--"));
        inbox.buffer().extend_from_slice(&request(b"third---")[..7]);
        for expected in [b"first---", b"second--"] {
            let frame = inbox.next_frame().unwrap().unwrap();
            assert_eq!(frame.body(), expected.as_slice());
            inbox.handled(frame);
        }
        assert!(inbox.next_frame().unwrap().is_none());
        inbox.compact();
        inbox.buffer().extend_from_slice(&request(b"third---")[7..]);
        assert_eq!(inbox.next_frame().unwrap().unwrap().body(), b"third---".as_slice());
    }

    #[test]
    fn a_request_is_changed_in_place_when_nobody_holds_a_slice() {
        let mut inbox = Inbox::new(up_to(100));
        inbox.buffer().extend_from_slice(&request(b"0123456789"));
        let mut frame = inbox.next_frame().unwrap().unwrap();
        let before = frame.body().as_ptr();
        let range = frame.range_of(&frame.body()[3..5]).unwrap();
        assert_eq!(range, 3..5);
        frame.edit(|bytes| bytes[range].copy_from_slice(b"xy"));
        assert_eq!(frame.body(), b"012xy56789".as_slice());
        assert_eq!(frame.body().as_ptr(), before);
    }

    #[test]
    fn a_held_slice_keeps_its_bytes_when_the_request_is_changed() {
        let mut frame = Frame::of(b"0123456789");
        let held = frame.body();
        frame.edit(|bytes| bytes[0] = b'x');
        assert_eq!(held, b"0123456789".as_slice());
        assert_eq!(frame.body(), b"x123456789".as_slice());
    }

    #[test]
    fn the_beginning_of_tls_is_told_from_a_length() {
        let mut inbox = Inbox::new(up_to(100 << 20));
        inbox.buffer().extend_from_slice(&[0x16, 0x03, 0x01, 0x02, 0x00]);
        assert!(inbox.next_frame().unwrap_err().to_string().starts_with("it speaks TLS"));
    }

    #[test]
    fn impossible_lengths_are_refused_before_a_buffer_grows() {
        for claimed in [-2, -1, 0, 7, 101, i32::MAX - 15] {
            let mut inbox = Inbox::new(up_to(100));
            inbox.buffer().extend_from_slice(&claimed.to_be_bytes());
            assert_eq!(inbox.next_frame().unwrap_err(), FrameError { claimed, bounds: up_to(100) });
            assert!(inbox.wanted_bytes().is_err());
        }
    }
}
