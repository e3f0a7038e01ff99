//! The broker's sockets, connections and request handlers.
