//! The broker that a thread works for. A process may have several brokers; each thread of a server works for one of them.
use std::cell::Cell;
use std::marker::PhantomData;

thread_local! {
    static BROKER: Cell<Option<i32>> = const { Cell::new(None) };
}

/// The `node.id` of the broker that this thread works for now.
pub fn current() -> Option<i32> {
    BROKER.get()
}

/// Lets this thread work for the broker `id` from now on.
pub fn belong_to(id: i32) {
    BROKER.set(Some(id));
}

/// Lets this thread work for the broker `id` until the guard is dropped.
#[must_use = "the thread works for the broker until the guard is dropped"]
pub fn enter(id: i32) -> Guard {
    Guard { before: BROKER.replace(Some(id)), _in_this_thread: PhantomData }
}

/// What [`enter`] returns. It cannot be sent to another thread.
#[derive(Debug)]
pub struct Guard {
    before: Option<i32>,
    _in_this_thread: PhantomData<*const ()>,
}

impl Drop for Guard {
    fn drop(&mut self) {
        BROKER.set(self.before);
    }
}

/// Wraps `work` for a new thread, which then works for the same broker as this thread.
pub fn carried<T>(work: impl FnOnce() -> T) -> impl FnOnce() -> T {
    let id = current();
    move || {
        BROKER.set(id);
        work()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guard_ends_what_it_began_and_a_new_thread_goes_on_with_it() {
        assert_eq!(current(), None);
        let outer = enter(1);
        {
            let _inner = enter(2);
            assert_eq!(current(), Some(2));
            assert_eq!(std::thread::spawn(carried(current)).join().unwrap(), Some(2));
            assert_eq!(std::thread::spawn(current).join().unwrap(), None);
        }
        assert_eq!(current(), Some(1));
        drop(outer);
        assert_eq!(current(), None);
    }
}
