//! TLS: what certificates, keys and trusted roots are read from, and the rustls configurations of clients and brokers.
