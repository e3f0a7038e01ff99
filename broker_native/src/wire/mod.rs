//! Sans-IO codec of Kafka's wire protocol.
