//! v2 record batches: layout, CRC, codecs, reader, builder, partitioner.
pub mod header;
pub mod layout;
