//! Bytes in and out, and what bounds them: nothing here knows a request.
//!
//! | file | what it owns |
//! |---|---|
//! | [`frames`], [`buffers`] | bytes into requests; borrowed buffers |
//! | [`budget`] | bytes of requests in memory (`queued.max.request.bytes`) |
//! | [`response_queue`], [`send`], `sendfile` | answers on their way out; records straight from their file |
//! | [`room`] | bytes of answers and of large requests (`queued.max.response.bytes`) |
//! | [`slow`] | the threads of requests that take long (`num.io.threads`) |
//! | [`shares`] | units that the clients of a broker share |
pub mod budget;
pub mod buffers;
pub mod frames;
pub mod response_queue;
pub mod room;
pub mod send;
mod sendfile;
pub mod shares;
pub mod slow;
