//! What answers say to readers that may see this broker's data directory: where it is, and the nonce by which they find out.
//!
//! A reader that proved it (`client/src/read/local`) asks where records lie instead of for the records. What it reads there is decided
//! as for any other fetch, by the high watermark or the last stable offset, rights and quotas; only the copying is its own.
use pylog_log::loggers::BROKER;
use pylog_log::warn;
use pylog_storage::{LogManager, LogSlice};
use pylog_wire::messages::fetch::InDirectory;
use uuid::Uuid;

/// See the module.
#[derive(Debug)]
pub struct LocalReads {
    directory: String,
    nonce: Uuid,
}

impl LocalReads {
    /// Of a broker that just started; `None` where nobody could read its files.
    pub fn begin(logs: &LogManager) -> Option<Self> {
        let dir = logs.dir();
        // A path that is not UTF-8 cannot be said in an answer.
        let directory = dir.to_str().filter(|_| dir.is_absolute())?.to_owned();
        match logs.leave_nonce() {
            Ok(nonce) => Some(Self { directory, nonce }),
            Err(error) => {
                warn!(target: BROKER, "readers on this machine use the network, not the data directory: {error}");
                None
            }
        }
    }

    /// Where the data directory is.
    pub fn place(&self) -> InDirectory {
        InDirectory { directory: self.directory.clone(), nonce: self.nonce, ..InDirectory::default() }
    }

    /// Where the bytes of `slice` lie; `None` when no name leads there.
    pub fn of(&self, slice: &LogSlice) -> Option<InDirectory> {
        let file = slice.file.identity()?;
        Some(InDirectory {
            segment: slice.segment,
            inode: i64::try_from(file.inode).ok()?,
            made_ns: file.made_ns,
            position: i64::try_from(slice.position).ok()?,
            size: i32::try_from(slice.len).ok()?,
            next_offset: slice.next_offset,
            ..self.place()
        })
    }
}
