//! Reads the files that settings name, within a limit, and tells later whether they have changed.
//!
//! [`Files`] belongs to one configuration: what it read is what [`Files::changed`] compares with. It is asked about once a second by a thread
//! of the caller's; it costs a `stat` for each file, and reading those whose time or size are new. A file that is not there, or not
//! any more, is a state like another, so a failed load is not tried again before something changes.
use std::fs::{File, Metadata};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use aws_lc_rs::digest::{SHA256, digest};
use zeroize::Zeroizing;

use super::error::{Place, TlsError};

/// No store of keys or certificates has more bytes: the roots of an operating system take less than one MiB.
pub const MAX_STORE_BYTES: usize = 8 << 20;

/// What one looks at first: a file that is replaced or written has another of these.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    fn of(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}

#[derive(Debug, Clone)]
struct Seen {
    path: PathBuf,
    stamp: Option<Stamp>,
    content: Option<[u8; 32]>,
}

/// The files that a configuration was read from, as they were.
#[derive(Debug, Clone, Default)]
pub struct Files {
    seen: Vec<Seen>,
}

impl Files {
    /// None yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads the file that the setting `option` names, and remembers it.
    pub fn read(&mut self, option: &'static str, path: &str) -> Result<Zeroizing<Vec<u8>>, TlsError> {
        let place = Place::file(option, path);
        let path = PathBuf::from(path);
        let read = read_bounded(&path);
        let (stamp, content) = match &read {
            Ok((stamp, bytes)) => (Some(stamp.clone()), Some(content_of(bytes))),
            Err(_) => (std::fs::metadata(&path).ok().map(|metadata| Stamp::of(&metadata)), None),
        };
        self.seen.push(Seen { path, stamp, content });
        let (_, bytes) =
            read.map_err(|error| TlsError::Unreadable { place: place.clone(), reason: reason(&error) })?;
        if bytes.len() > MAX_STORE_BYTES {
            return Err(TlsError::TooLarge { place, limit: MAX_STORE_BYTES });
        }
        Ok(bytes)
    }

    /// The paths, in the order in which they were read.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.seen.iter().map(|seen| seen.path.as_path())
    }

    /// Whether any of them has other bytes than when it was read. A file that was only touched has not changed.
    pub fn changed(&mut self) -> bool {
        self.seen.iter_mut().any(Seen::has_changed)
    }
}

impl Seen {
    fn has_changed(&mut self) -> bool {
        let now = std::fs::metadata(&self.path).ok().map(|metadata| Stamp::of(&metadata));
        if now == self.stamp {
            return false;
        }
        match (read_bounded(&self.path), self.content) {
            (Ok((stamp, bytes)), Some(content)) if content_of(&bytes) == content => {
                self.stamp = Some(stamp);
                false
            }
            _ => true,
        }
    }
}

/// One byte more than the limit at most, so that a file beyond it is noticed. What is no plain file (a pipe would wait) is refused.
fn read_bounded(path: &Path) -> std::io::Result<(Stamp, Zeroizing<Vec<u8>>)> {
    if !std::fs::metadata(path)?.is_file() {
        return Err(std::io::Error::other("it is no file"));
    }
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    let mut bytes =
        Zeroizing::new(Vec::with_capacity(metadata.len().min(MAX_STORE_BYTES as u64) as usize + 1));
    file.take(MAX_STORE_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    Ok((Stamp::of(&metadata), bytes))
}

fn content_of(bytes: &[u8]) -> [u8; 32] {
    let mut content = [0; 32];
    content.copy_from_slice(digest(&SHA256, bytes).as_ref());
    content
}

fn reason(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => "there is no such file".into(),
        std::io::ErrorKind::PermissionDenied => "this user may not read it".into(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn read(path: &Path) -> (Files, Result<Zeroizing<Vec<u8>>, TlsError>) {
        let mut files = Files::new();
        let read = files.read("ssl.keystore.location", path.to_str().unwrap());
        (files, read)
    }

    #[test]
    fn a_file_has_changed_when_its_bytes_have_and_not_when_it_was_only_touched() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.pem");
        fs::write(&path, "one").unwrap();
        let mut files = read(&path).0;
        assert!(!files.changed());
        fs::write(&path, "one").unwrap();
        assert!(!files.changed());
        fs::write(&path, "two").unwrap();
        assert!(files.changed() && files.changed());
    }

    #[test]
    fn a_file_that_another_takes_the_place_of_or_that_goes_has_changed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.pem");
        fs::write(&path, "one").unwrap();
        let mut files = read(&path).0;
        fs::write(folder.path().join("new"), "two").unwrap();
        fs::rename(folder.path().join("new"), &path).unwrap();
        assert!(files.changed());
        let mut files = read(&path).0;
        fs::remove_file(&path).unwrap();
        assert!(files.changed());
    }

    #[test]
    fn a_file_that_is_not_there_is_said_and_has_changed_when_it_comes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.pem");
        let (mut files, read) = read(&path);
        let error = read.unwrap_err().to_string();
        assert!(error.ends_with("(ssl.keystore.location) cannot be read: there is no such file"), "{error}");
        assert!(!files.changed());
        fs::write(&path, "one").unwrap();
        assert!(files.changed());
    }

    #[test]
    fn folders_and_files_beyond_the_limit_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        assert!(read(folder.path()).1.unwrap_err().to_string().contains("it is no file"));
        let path = folder.path().join("large");
        File::create(&path).unwrap().set_len(1 << 40).unwrap();
        assert!(matches!(read(&path).1, Err(TlsError::TooLarge { limit: MAX_STORE_BYTES, .. })));
    }
}
