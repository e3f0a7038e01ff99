//! An answer to come.
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::sync::oneshot;

use pylog_wire::ErrorCode;

/// Where answers go.
pub type Sender<R> = oneshot::Sender<Result<R, ErrorCode>>;

/// The answer of a machine: there already, which is usual, or to be waited for. The machine has taken the event either way.
#[derive(Debug)]
pub enum Waiting<R> {
    /// It is there; `None` once taken.
    Now(Option<Result<R, ErrorCode>>),
    /// It comes. A sender that is dropped says that the machine is not here any more.
    Later(oneshot::Receiver<Result<R, ErrorCode>>),
}

impl<R> Waiting<R> {
    /// An answer that is there.
    pub fn now(answer: Result<R, ErrorCode>) -> Self {
        Self::Now(Some(answer))
    }

    /// Whether [`Waiting::take`] gives an answer.
    pub fn is_there(&self) -> bool {
        match self {
            Self::Now(_) => true,
            Self::Later(receiver) => !receiver.is_empty() || receiver.is_terminated(),
        }
    }

    /// The answer when it is there already.
    pub fn take(&mut self) -> Option<Result<R, ErrorCode>> {
        match self {
            Self::Now(answer) => answer.take(),
            Self::Later(receiver) => match receiver.try_recv() {
                Ok(answer) => Some(answer),
                Err(oneshot::error::TryRecvError::Empty) => None,
                Err(oneshot::error::TryRecvError::Closed) => Some(Err(ErrorCode::NotCoordinator)),
            },
        }
    }
}

impl<R: Unpin> Future for Waiting<R> {
    type Output = Result<R, ErrorCode>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.get_mut() {
            Self::Now(answer) => Poll::Ready(answer.take().unwrap_or(Err(ErrorCode::NotCoordinator))),
            Self::Later(receiver) => {
                Pin::new(receiver).poll(cx).map(|got| got.unwrap_or(Err(ErrorCode::NotCoordinator)))
            }
        }
    }
}
