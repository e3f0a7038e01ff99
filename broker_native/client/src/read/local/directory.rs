//! A broker's data directory, seen from here: the proof, and segments below it.
//!
//! Everything is opened relative to a handle, so that a path that comes to mean something else is not followed.
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use rustix::fs::{CWD, Mode, OFlags, openat};
use uuid::Uuid;

use super::doubt::Doubt;
use crate::metadata::topic_id;
use crate::metadata::topic_partition::TopicPartition;
use pylog_wire::messages::fetch::InDirectory;

/// The file of the data directory that holds the nonce; the broker's name for it is `names::LOCAL_READS`.
const NONCE_FILE: &str = "local-reads";
/// The file of a partition's directory that holds the topic's id, in Kafka's format.
const PARTITION_METADATA: &str = "partition.metadata";
/// More than either of the two has.
const SMALL_FILE_BYTES: u64 = 4 << 10;

/// A directory of which it was proved that it is the broker's.
#[derive(Debug)]
pub(super) struct DataDirectory {
    handle: OwnedFd,
    nonce: Uuid,
    partition: Option<PartitionDirectory>,
}

#[derive(Debug)]
struct PartitionDirectory {
    of: TopicPartition,
    handle: OwnedFd,
    /// The segment that was read last, by base offset, number and when it was made.
    segment: Option<((i64, i64, i64), Arc<File>)>,
}

impl DataDirectory {
    /// Opens the directory that a broker names, if it has the broker's nonce.
    pub fn prove(place: &InDirectory) -> Result<Self, Doubt> {
        let path = place.directory.as_str();
        if path.is_empty() || place.nonce.is_nil() {
            return Err(Doubt::lasting("the broker lets nobody read its files"));
        }
        if !path.starts_with('/') {
            return Err(Doubt::lasting(format!("{path} is no absolute path")));
        }
        let unseen = |cause: std::io::Error| {
            Doubt::lasting(format!("the broker's data directory {path} is not to be seen here: {cause}"))
        };
        let handle = openat(CWD, path, DIRECTORY, Mode::empty()).map_err(|cause| unseen(cause.into()))?;
        let held = small_file(&handle, NONCE_FILE).map_err(unseen)?;
        if topic_id::parse(held.trim()) != Ok(place.nonce) {
            return Err(Doubt::lasting(format!(
                "the directory {path} is not that of the broker, or of another start"
            )));
        }
        Ok(Self { handle, nonce: place.nonce, partition: None })
    }

    /// Whether it is the one that an answer means.
    pub fn is(&self, place: &InDirectory) -> bool {
        self.nonce == place.nonce
    }

    /// The file that an answer names.
    pub fn segment(&mut self, of: &TopicPartition, place: &InDirectory) -> Result<Arc<File>, Doubt> {
        let partition = match self.partition.take().filter(|partition| partition.of == *of) {
            Some(partition) => self.partition.insert(partition),
            None => self.partition.insert(PartitionDirectory::open(&self.handle, of)?),
        };
        partition.segment(place)
    }
}

impl PartitionDirectory {
    fn open(data: &OwnedFd, of: &TopicPartition) -> Result<Self, Doubt> {
        let name = of.to_string();
        let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
        if !name.bytes().all(legal) {
            return Err(Doubt::lasting(format!("{name} is no name of a directory")));
        }
        let handle = openat(data, name.as_str(), DIRECTORY, Mode::empty())
            .map_err(|cause| of_file(&name, &cause.into()))?;
        let metadata = small_file(&handle, PARTITION_METADATA)
            .map_err(|cause| of_file(&format!("{name}/{PARTITION_METADATA}"), &cause))?;
        let id = metadata.lines().find_map(|line| line.strip_prefix("topic_id:"));
        match id.map(|id| topic_id::parse(id.trim())) {
            Some(Ok(id)) if id == of.topic_id => Ok(Self { of: of.clone(), handle, segment: None }),
            _ => Err(Doubt::passing(format!("the directory {name} is that of another topic of this name"))),
        }
    }

    fn segment(&mut self, place: &InDirectory) -> Result<Arc<File>, Doubt> {
        let named = (place.segment, place.inode, place.made_ns);
        if let Some((_, file)) = self.segment.as_ref().filter(|(held, _)| *held == named) {
            return Ok(Arc::clone(file));
        }
        let name = format!("{:020}.log", place.segment);
        let shown = || format!("{}/{name}", self.of);
        let file = regular_file(&self.handle, &name).map_err(|cause| of_file(&shown(), &cause))?;
        if identity(&file).map_err(|cause| of_file(&shown(), &cause))? != (place.inode, place.made_ns) {
            return Err(Doubt::passing(format!("the file {} was replaced", shown())));
        }
        // Advice, which macOS has no call for: without it the kernel reads ahead less far.
        #[cfg(target_os = "linux")]
        let _ = rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::Sequential);
        let file = Arc::new(file);
        self.segment = Some((named, Arc::clone(&file)));
        Ok(file)
    }
}

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// A file that may not be read never may; one that is not there was removed meanwhile.
fn of_file(name: &str, cause: &std::io::Error) -> Doubt {
    let reason = format!("{name} cannot be read: {cause}");
    match cause.kind() {
        ErrorKind::PermissionDenied => Doubt::lasting(reason),
        _ => Doubt::passing(reason),
    }
}

/// The number of a file and when it was made, in nanoseconds, as its broker reads them (`FileIdentity`).
fn identity(file: &File) -> std::io::Result<(i64, i64)> {
    let file = file.metadata()?;
    let made = file.created()?.duration_since(UNIX_EPOCH).map_err(std::io::Error::other)?;
    let made_ns = i64::try_from(made.as_nanos()).map_err(std::io::Error::other)?;
    Ok((i64::try_from(file.ino()).map_err(std::io::Error::other)?, made_ns))
}

/// A link is not followed, and opening a pipe would block.
fn regular_file(directory: &OwnedFd, name: &str) -> std::io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(openat(directory.as_fd(), name, flags, Mode::empty())?);
    if file.metadata()?.is_file() { Ok(file) } else { Err(ErrorKind::InvalidInput.into()) }
}

fn small_file(directory: &OwnedFd, name: &str) -> std::io::Result<String> {
    let mut text = String::new();
    regular_file(directory, name)?.take(SMALL_FILE_BYTES).read_to_string(&mut text)?;
    Ok(text)
}
