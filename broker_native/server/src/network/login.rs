//! A client's login: its SaslHandshake and SaslAuthenticate requests, from the frame to the answer.
//!
//! What a request means is [`Session`]'s to say. Here it is decoded and answered; passwords that were sent (PLAIN) are hashed by threads
//! for that, everything else at once. A login that fails is answered after `connection.failed.authentication.delay.ms`: whoever
//! guesses passwords waits, and holds nothing but a socket and a small task meanwhile. One line of the log says who failed and why,
//! limited by the client's address; it has no secret, and what the client calls itself is escaped.
use std::sync::Arc;
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use tokio::sync::oneshot;

use super::session::{Next, Session, Turn};
use crate::call::{Call, Origin, Reply};
use crate::decide::{Kind, Question};
use crate::dispatch::call_of;
use crate::io::response_queue::Answer;
use crate::shared::Shared;
use pylog_log::loggers::NETWORK;
use pylog_log::{debug, warn};
use pylog_wire::messages::{
    SaslAuthenticateRequest, SaslAuthenticateResponse, SaslHandshakeRequest, SaslHandshakeResponse,
};
use pylog_wire::{ErrorCode, Message, Reader, RequestHeader};

/// What comes of a request.
pub enum Said {
    /// This is sent, and the connection goes on.
    GoOn(Reply),
    /// This is sent, if anything, and the connection ends.
    Over(Reply),
}

/// Serves a request of a login.
///
/// # Errors
/// It cannot be read, or the broker stops: the sentence why the connection ends.
pub async fn turn(
    session: &mut Session,
    shared: &Arc<Shared>,
    from: &Origin,
    next: Next,
    body: Bytes,
) -> Result<Said, String> {
    if next == Next::Token {
        let turn = step(session, shared, from, body).await?;
        return Ok(raw(shared, from, turn).await);
    }
    let mut reader = Reader::new(body);
    let header = RequestHeader::decode(&mut reader).map_err(|error| error.to_string())?;
    let call = call_of(shared, from, header);
    match next {
        Next::Handshake => handshake(session, &call, from, read(reader, &call)?).await,
        _ => {
            let request: SaslAuthenticateRequest = read(reader, &call)?;
            let turn = step(session, shared, from, request.auth_bytes).await?;
            Ok(with_header(&call, from, turn).await)
        }
    }
}

fn read<R: Message>(mut reader: Reader, call: &Call) -> Result<R, String> {
    R::decode(&mut reader, call.version).map_err(|error| error.to_string())
}

async fn handshake(
    session: &mut Session,
    call: &Call,
    from: &Origin,
    request: SaslHandshakeRequest,
) -> Result<Said, String> {
    let begun = session.handshake(call.version, &request.mechanism);
    let mechanisms = session.mechanisms().iter().map(|mechanism| mechanism.name().to_owned()).collect();
    let answer =
        |error: ErrorCode| call.answer(&SaslHandshakeResponse { error_code: error.code(), mechanisms });
    match begun {
        Ok(()) => Ok(Said::GoOn(answer(ErrorCode::None))),
        Err((error, cause)) => {
            failed(&call.shared, from, &cause).await;
            Ok(Said::Over(answer(error)))
        }
    }
}

/// Takes the next message of the mechanism.
async fn step(
    session: &mut Session,
    shared: &Arc<Shared>,
    from: &Origin,
    token: Bytes,
) -> Result<Turn, String> {
    let mut exchange = session.exchange().ok_or("a login that had not begun went on")?;
    let security = shared.security.now();
    let now_ms = shared.clock.now_ms();
    let (exchange, step) = if exchange.is_slow() {
        let hashing = move || {
            let step = exchange.step(&token, &security.credentials, now_ms);
            (exchange, step)
        };
        shared.passwords.run(from.peer.ip(), hashing).await.map_err(|why| why.to_string())?
    } else {
        let step = exchange.step(&token, &security.credentials, now_ms);
        (exchange, step)
    };
    if shared.security.wants_keys(shared.clock.steady_ms()) {
        // Nobody waits: who made the token may try again.
        let (reply, _) = oneshot::channel();
        shared.decider.ask(Question { kind: Kind::ReadKeys, json: "{}".into(), reply });
    }
    let mechanism = exchange.mechanism();
    let turn = session.stepped(exchange, step, shared.clock.steady_ms());
    if let (Turn::LoggedIn { lifetime_ms, .. }, Some(principal)) = (&turn, session.principal()) {
        shared.metrics.logins.increment();
        let name = pylog_security::sasl::shown::shown(principal.name());
        let (peer, listener) = (from.peer, &from.listener);
        debug!(
            target: NETWORK, client = %peer.ip(),
            "{peer} is logged in at the listener {listener} as {name} by {mechanism}, for {lifetime_ms} ms (0: for ever)"
        );
    }
    Ok(turn)
}

/// The answer to a SaslAuthenticate.
async fn with_header(call: &Call, from: &Origin, turn: Turn) -> Said {
    let answer = |bytes: Vec<u8>, session_lifetime_ms| {
        let auth_bytes = bytes.into();
        Said::GoOn(call.answer(&SaslAuthenticateResponse {
            auth_bytes,
            session_lifetime_ms,
            ..Default::default()
        }))
    };
    match turn {
        Turn::Challenge(bytes) => answer(bytes, 0),
        Turn::Refused { bytes, cause } => {
            failed(&call.shared, from, &cause).await;
            answer(bytes, 0)
        }
        Turn::LoggedIn { bytes, lifetime_ms } => answer(bytes, lifetime_ms),
        Turn::Failed { sentence, cause } => {
            if let Some(cause) = cause {
                failed(&call.shared, from, &cause).await;
            }
            Said::Over(call.answer(&SaslAuthenticateResponse {
                error_code: ErrorCode::SaslAuthenticationFailed.code(),
                error_message: Some(sentence),
                ..Default::default()
            }))
        }
    }
}

/// The answer to a message without a header; a client that failed is told nothing, as there is no way to.
async fn raw(shared: &Shared, from: &Origin, turn: Turn) -> Said {
    let framed = |bytes: Vec<u8>| {
        let mut frame = BytesMut::with_capacity(bytes.len() + size_of::<u32>());
        frame.put_u32(u32::try_from(bytes.len()).unwrap_or(0));
        frame.put_slice(&bytes);
        Said::GoOn(Reply::Answer(Answer::of(frame.freeze())))
    };
    match turn {
        Turn::Challenge(bytes) | Turn::LoggedIn { bytes, .. } => framed(bytes),
        Turn::Refused { bytes, cause } => {
            failed(shared, from, &cause).await;
            framed(bytes)
        }
        Turn::Failed { cause, .. } => {
            if let Some(cause) = cause {
                failed(shared, from, &cause).await;
            }
            Said::Over(Reply::Nothing)
        }
    }
}

/// Says that a login failed, and waits before the client is told.
async fn failed(shared: &Shared, from: &Origin, cause: &str) {
    shared.metrics.failed_logins.increment();
    let (peer, listener) = (from.peer, &from.listener);
    warn!(target: NETWORK, client = %peer.ip(), "the login of {peer} at the listener {listener} failed: {cause}");
    let delay_ms = shared.settings.sasl.connection_failed_authentication_delay_ms;
    tokio::select! {
        () = tokio::time::sleep(Duration::from_millis(delay_ms)) => {}
        () = shared.shutdown.wait() => {}
    }
}
