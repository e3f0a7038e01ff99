//! WriteTxnMarkers (27): a coordinator ends transactions in partitions.
use crate::schema::messages;

messages! {
    /// The markers.
    WriteTxnMarkersRequest of WriteTxnMarkers {
        markers: Vec<WritableTxnMarker> [0+],
    }

    /// The end of one producer's transaction.
    WritableTxnMarker {
        producer_id: i64 [0+],
        producer_epoch: i16 [0+],
        /// True: commit.
        transaction_result: bool [0+],
        topics: Vec<WritableTxnMarkerTopic> [0+],
        coordinator_epoch: i32 [0+],
        /// From 2 on the epoch is one more than that of the transaction's batches (KIP-1228).
        transaction_version: i8 [2+],
    }

    /// Partitions of a topic.
    WritableTxnMarkerTopic {
        name: String [0+],
        partition_indexes: Vec<i32> [0+],
    }

    /// What became of each marker.
    WriteTxnMarkersResponse of WriteTxnMarkers {
        markers: Vec<WritableTxnMarkerResult> [0+],
    }

    /// One producer's.
    WritableTxnMarkerResult {
        producer_id: i64 [0+],
        topics: Vec<WritableTxnMarkerTopicResult> [0+],
    }

    /// Partitions of a topic.
    WritableTxnMarkerTopicResult {
        name: String [0+],
        partitions: Vec<WritableTxnMarkerPartitionResult> [0+],
    }

    /// One partition.
    WritableTxnMarkerPartitionResult {
        partition_index: i32 [0+],
        error_code: i16 [0+],
    }
}
