//! Questions of requests that something beside the server answers (Python, that is). Any thread.
//!
//! How many wait at once is bounded, and so is what one address may have of that.
use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use tokio::sync::oneshot;

use crate::io::shares::{Share, Shares};

/// Too many wait, or nobody answers any more: it may be asked again later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotAsked;

/// Who waits for an answer, and its place among all that wait.
type Waits<A> = (oneshot::Sender<A>, Share);

struct State<Q, A> {
    next_id: u64,
    waiting: VecDeque<(u64, Q, Waits<A>)>,
    taken: HashMap<u64, Waits<A>>,
    closed: bool,
}

/// Questions `Q` and answers `A`.
pub struct Questions<Q, A> {
    places: Shares,
    state: Mutex<State<Q, A>>,
    asked: Condvar,
}

impl<Q, A> Questions<Q, A> {
    /// At most `most` wait at once, half of them of one address.
    pub fn new(most: u32) -> Self {
        let state = State { next_id: 0, waiting: VecDeque::new(), taken: HashMap::new(), closed: false };
        Self { places: Shares::new(most), state: Mutex::new(state), asked: Condvar::new() }
    }

    /// Asks for a client at `address`, and waits for at most `timeout`; `None` when it takes longer.
    ///
    /// # Errors
    /// [`NotAsked`].
    pub async fn ask(&self, address: IpAddr, question: Q, timeout: Duration) -> Result<Option<A>, NotAsked> {
        let place = self.places.take_now(address, 1).ok_or(NotAsked)?;
        let (reply, answer) = oneshot::channel();
        {
            let mut state = self.state.lock();
            if state.closed {
                return Err(NotAsked);
            }
            state.next_id += 1;
            let id = state.next_id;
            state.waiting.push_back((id, question, (reply, place)));
            self.asked.notify_one();
        }
        match tokio::time::timeout(timeout, answer).await {
            Ok(answered) => answered.map(Some).map_err(|_dropped| NotAsked),
            Err(_elapsed) => Ok(None),
        }
    }

    /// The next question, with the number to answer it by; `None` when there is none for so long.
    pub fn next(&self, timeout: Duration) -> Option<(u64, Q)> {
        let mut state = self.state.lock();
        if state.waiting.is_empty() && !state.closed {
            self.asked.wait_for(&mut state, timeout);
        }
        let (id, question, waits) = state.waiting.pop_front()?;
        state.taken.insert(id, waits);
        Some((id, question))
    }

    /// Answers a question that was taken.
    pub fn answer(&self, id: u64, answer: A) {
        if let Some((reply, _place)) = self.state.lock().taken.remove(&id) {
            // Who asked may wait no longer.
            let _ = reply.send(answer);
        }
    }

    /// Gives up what waits and all that comes.
    pub fn close(&self) {
        let mut state = self.state.lock();
        state.closed = true;
        state.waiting.clear();
        state.taken.clear();
        self.asked.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    const SOON: Duration = Duration::from_millis(10);
    const LONG: Duration = Duration::from_secs(60);
    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    #[tokio::test]
    async fn a_question_is_answered_by_who_takes_it() {
        let questions = Arc::new(Questions::<i32, i32>::new(4));
        let other = Arc::clone(&questions);
        let answering = std::thread::spawn(move || {
            let (id, question) = other.next(LONG).unwrap();
            other.answer(id, question + 1);
        });
        assert_eq!(questions.ask(HERE, 7, LONG).await, Ok(Some(8)));
        answering.join().unwrap();
    }

    #[tokio::test]
    async fn one_address_has_half_of_the_places_and_what_waits_too_long_has_no_answer() {
        let questions = Questions::<i32, i32>::new(2);
        assert_eq!(questions.ask(HERE, 7, SOON).await, Ok(None));
        // The first question was not taken, and has its place still.
        assert_eq!(questions.ask(HERE, 7, SOON).await, Err(NotAsked));
        let other = IpAddr::from([127, 0, 0, 2]);
        assert_eq!(questions.ask(other, 7, SOON).await, Ok(None));
        questions.close();
        assert!(questions.next(LONG).is_none());
        assert_eq!(questions.ask(HERE, 7, LONG).await, Err(NotAsked));
    }
}
