//! Wakes long polls: a fetch without data watches its partitions. Each advance of a high watermark wakes consumers, each append
//! followers; another leader wakes both.
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use tokio::sync::Notify;

/// Who watches one partition.
#[derive(Debug, Default)]
pub struct Watchers {
    /// Length of `list`: an append that nobody waits for takes no lock.
    count: AtomicUsize,
    list: Mutex<Vec<Arc<Notify>>>,
}

impl Watchers {
    /// Wakes everybody.
    pub fn wake(&self) {
        if self.count.load(Ordering::SeqCst) == 0 {
            return;
        }
        for watcher in self.list.lock().iter() {
            watcher.notify_one();
        }
    }

    fn add(&self, watcher: &Arc<Notify>) {
        let mut list = self.list.lock();
        list.push(Arc::clone(watcher));
        self.count.store(list.len(), Ordering::SeqCst);
    }

    fn remove(&self, watcher: &Arc<Notify>) {
        let mut list = self.list.lock();
        if let Some(at) = list.iter().position(|other| Arc::ptr_eq(other, watcher)) {
            list.swap_remove(at);
        }
        self.count.store(list.len(), Ordering::SeqCst);
    }
}

/// One long poll's watch over several partitions; ends when dropped. Look for data after starting it: what arrives
/// later wakes it, even before it waits.
#[derive(Debug)]
pub struct Watch {
    wake: Arc<Notify>,
    over: Vec<Arc<Watchers>>,
}

impl Watch {
    /// Watches.
    pub fn over(partitions: Vec<Arc<Watchers>>) -> Self {
        let wake = Arc::new(Notify::new());
        for watchers in &partitions {
            watchers.add(&wake);
        }
        Self { wake, over: partitions }
    }

    /// Waits for the next wake-up.
    pub async fn woken(&self) {
        self.wake.notified().await;
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        for watchers in &self.over {
            watchers.remove(&self.wake);
        }
    }
}
