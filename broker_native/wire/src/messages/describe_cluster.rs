//! DescribeCluster (60): the brokers and the controller, without topics.
use super::metadata::OPERATIONS_NOT_ASKED;
use crate::schema::messages;

messages! {
    /// Asks for the cluster.
    DescribeClusterRequest of DescribeCluster {
        include_cluster_authorized_operations: bool [0+],
        /// 1: brokers; 2: controllers.
        endpoint_type: i8 [1+] = 1,
        include_fenced_brokers: bool [2+],
    }

    /// The cluster.
    DescribeClusterResponse of DescribeCluster {
        throttle_time_ms: i32 [0+],
        error_code: i16 [0+],
        error_message: Option<String> [0+],
        endpoint_type: i8 [1+] = 1,
        cluster_id: String [0+],
        controller_id: i32 [0+] = -1,
        brokers: Vec<DescribeClusterBroker> [0+],
        cluster_authorized_operations: i32 [0+] = OPERATIONS_NOT_ASKED,
    }

    /// A broker and where to reach it.
    DescribeClusterBroker {
        broker_id: i32 [0+],
        host: String [0+],
        port: i32 [0+],
        rack: Option<String> [0+],
        is_fenced: bool [2+],
    }
}
