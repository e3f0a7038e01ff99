//! Records from their file into a socket by `sendfile`, on Linux. Elsewhere the call has other arguments or none: there no part of an
//! answer is for it, and [`super::send`] copies all of them.
#[cfg(target_os = "linux")]
pub use linux::{for_sendfile, send_file};
#[cfg(not(target_os = "linux"))]
pub use other::{for_sendfile, send_file};

#[cfg(target_os = "linux")]
mod linux {
    use std::io;
    use std::os::fd::{AsRawFd, RawFd};

    use tokio::io::Interest;
    use tokio::net::TcpStream;

    use crate::io::response_queue::Part;

    /// From here on a call of its own is cheaper than a copy.
    const SENDFILE_FROM_BYTES: usize = /* 16 KiB */ 16 << 10;

    /// File, position and length of what sendfile is to send.
    pub fn for_sendfile(part: &Part) -> Option<(RawFd, u64, usize)> {
        let Part::File(slice) = part else { return None };
        let fd = slice.file.as_raw_fd().filter(|_| slice.len >= SENDFILE_FROM_BYTES)?;
        Some((fd, slice.position, slice.len))
    }

    /// Sends what the socket takes; at least one byte.
    ///
    /// # Errors
    /// Those of the socket and of the file; `UnexpectedEof` where the file ends before `position`.
    pub async fn send_file(stream: &TcpStream, file: RawFd, position: u64, len: usize) -> io::Result<usize> {
        let mut position = libc::off_t::try_from(position).map_err(io::Error::other)?;
        loop {
            stream.writable().await?;
            let sent = stream.try_io(Interest::WRITABLE, || {
                // SAFETY: both descriptors are open for as long as the stream and the queue's slice live; the call reads
                // and writes nothing of ours but `position`.
                let sent = unsafe { libc::sendfile(stream.as_raw_fd(), file, &raw mut position, len) };
                usize::try_from(sent).map_err(|_negative| io::Error::last_os_error())
            });
            match sent {
                Ok(0) => {
                    return Err(io::Error::new(
                        io::ErrorKind::UnexpectedEof,
                        "a segment is shorter than its index says",
                    ));
                }
                Err(error)
                    if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
                done => return done,
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod other {
    use std::io;
    use std::os::fd::RawFd;

    use tokio::net::TcpStream;

    use crate::io::response_queue::Part;

    /// Nothing is.
    pub fn for_sendfile(_part: &Part) -> Option<(RawFd, u64, usize)> {
        None
    }

    /// Never called, as nothing is for it.
    ///
    /// # Errors
    /// Always.
    pub async fn send_file(_: &TcpStream, _file: RawFd, _position: u64, _len: usize) -> io::Result<usize> {
        Err(io::ErrorKind::Unsupported.into())
    }
}
