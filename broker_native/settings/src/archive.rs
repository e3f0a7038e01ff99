//! Settings of a broker's archive, which Python alone reads: where it is, and how logs are copied to it.
use crate::declare::settings;

settings! { rows
    /// Most bytes of memory for parts of the archive that were read for clients, and are kept for who reads on. Only pylog has
    /// this setting.
    "archive.cache.bytes" LONG = /* 16 MiB */ 16 << 20, at_least(1);
    /// Level of zstandard by which segments are compressed in the archive. Only pylog has this setting.
    "archive.compression.level" INT = 3, between(1, 22);
    /// Whether segments are compressed in frames of 8 MiB in which zstandard looks for what repeats at long distances, instead of
    /// frames of 1 MiB. It pays where large values are alike; who reads one record then decompresses 8 MiB. Only pylog has this
    /// setting.
    "archive.compression.long.range" BOOLEAN = false;
    /// Bytes of an object of the archive at which it is complete. So much memory is taken while one is copied, and some MiB
    /// more. Only pylog has this setting.
    "archive.segment.bytes" LONG = /* 16 MiB */ 16 << 20, at_least(1);
    /// Where the archive is that topics with remote.storage.enable are copied to: a path, or a URL of S3, GCS, HDFS or anything
    /// else that pyarrow or fsspec opens. All brokers of a cluster need the same. Not set: no topic can be archived. Only pylog
    /// has this setting.
    "archive.url" STRING = None::<&str>, high();
    /// Most bytes a second that this broker copies to the archive, before compression.
    "remote.log.manager.copy.max.bytes.per.second" LONG = i64::MAX, at_least(1);
    /// How often the broker looks for segments to copy to the archive, and to delete there.
    "remote.log.manager.task.interval.ms" LONG = /* 30 s */ 30_000, at_least(1);
    /// Threads that read the archive for clients.
    "remote.log.reader.threads" INT = 4, between(1, 256);
}
