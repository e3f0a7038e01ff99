//! Which schemas the schema registry has, as far as records are checked for them. The registry beside this broker (in Python) says so; it
//! is also asked to look for what is new, when a record names a schema that is not known here.
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex, RwLock};
use tokio::sync::watch;

/// The ids of one subject.
pub type Ids = Arc<HashSet<i32>>;

/// Subjects and the ids of their schemas.
pub struct SchemaIds {
    /// `None` without a registry.
    subjects: RwLock<Option<HashMap<String, Ids>>>,
    questions: Mutex<Questions>,
    came: Condvar,
    /// The last question that was answered.
    answered: watch::Sender<u64>,
}

#[derive(Default)]
struct Questions {
    asked: u64,
    taken: u64,
}

impl Default for SchemaIds {
    fn default() -> Self {
        Self {
            subjects: RwLock::default(),
            questions: Mutex::default(),
            came: Condvar::new(),
            answered: watch::Sender::new(0),
        }
    }
}

impl SchemaIds {
    /// From now on a registry says what there is; nothing so far. Also when it begins anew.
    pub fn begin(&self) {
        *self.subjects.write() = Some(HashMap::new());
    }

    /// These are the ids of a subject now.
    pub fn set(&self, subject: String, ids: HashSet<i32>) {
        if let Some(subjects) = self.subjects.write().as_mut() {
            if ids.is_empty() {
                subjects.remove(&subject);
            } else {
                subjects.insert(subject, Arc::new(ids));
            }
        }
    }

    /// The ids of a subject; `None` without a registry.
    pub fn of(&self, subject: &str) -> Option<Ids> {
        let subjects = self.subjects.read();
        subjects.as_ref().map(|subjects| subjects.get(subject).cloned().unwrap_or_default())
    }

    /// Waits until all is known that the registry had when this was called; false when that takes longer than `timeout`.
    pub async fn caught_up(&self, timeout: Duration) -> bool {
        let mut answered = self.answered.subscribe();
        let asked = {
            let mut questions = self.questions.lock();
            questions.asked += 1;
            self.came.notify_one();
            questions.asked
        };
        let come = answered.wait_for(|answered| *answered >= asked);
        matches!(tokio::time::timeout(timeout, come).await, Ok(Ok(_)))
    }

    /// The next question, for whoever asks the registry; `None` when there is none for so long. It stands for all questions before.
    pub fn next_question(&self, timeout: Duration) -> Option<u64> {
        let mut questions = self.questions.lock();
        if questions.asked == questions.taken {
            self.came.wait_for(&mut questions, timeout);
        }
        if questions.asked == questions.taken {
            return None;
        }
        questions.taken = questions.asked;
        Some(questions.asked)
    }

    /// All is known that there was when the question was taken.
    pub fn answer(&self, question: u64) {
        self.answered.send_modify(|answered| *answered = (*answered).max(question));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_millis(10);
    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn without_a_registry_nothing_is_known_and_with_one_what_it_says() {
        let known = SchemaIds::default();
        assert_eq!(known.of("t-value"), None);
        known.set("t-value".into(), HashSet::from([1]));
        assert_eq!(known.of("t-value"), None);
        known.begin();
        assert_eq!(known.of("t-value"), Some(Ids::default()));
        known.set("t-value".into(), HashSet::from([1, 2]));
        assert!(known.of("t-value").is_some_and(|ids| ids.contains(&2)));
        known.set("t-value".into(), HashSet::new());
        assert_eq!(known.of("t-value"), Some(Ids::default()));
    }

    #[tokio::test]
    async fn who_asks_waits_for_an_answer_to_a_question_that_was_taken_later() {
        let known = Arc::new(SchemaIds::default());
        assert!(!known.caught_up(SOON).await);
        let registry = Arc::clone(&known);
        let answering = std::thread::spawn(move || {
            // The one before, which nobody waits for any more, or both.
            while let Some(question) = registry.next_question(LONG) {
                registry.answer(question);
                if question == 2 {
                    break;
                }
            }
        });
        assert!(known.caught_up(LONG).await);
        answering.join().unwrap();
        assert_eq!(known.next_question(SOON), None);
    }
}
