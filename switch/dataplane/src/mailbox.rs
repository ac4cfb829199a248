//! What other threads, and switches on the same thread, have to tell a worker.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};

use wormcast_switch_ports::Waker;

/// Numbered events for one worker, each pending or not, and a waker for a worker that sleeps.
///
/// An event that is posted before the worker sleeps keeps it awake. One that is posted later
/// wakes it. Posting to a worker that is awake makes no system call.
#[derive(Debug)]
pub(super) struct Mailbox {
    events: Vec<AtomicU64>,
    asleep: AtomicBool,
    stopping: AtomicBool,
    waker: Waker,
}

impl Mailbox {
    /// For events with numbers below `events`.
    pub(super) fn new(events: usize) -> io::Result<Self> {
        Ok(Self {
            events: (0..events.div_ceil(64))
                .map(|_| AtomicU64::new(0))
                .collect(),
            asleep: AtomicBool::new(false),
            stopping: AtomicBool::new(false),
            waker: Waker::new()?,
        })
    }

    /// Makes an event pending; one that is pending already stays one.
    pub(super) fn post(&self, event: usize) {
        self.events[event / 64].fetch_or(1 << (event % 64), Ordering::SeqCst);
        self.wake();
    }

    /// Wakes the worker if it sleeps: what was done before is seen by it.
    pub(super) fn wake(&self) {
        // Against the fence of the sleeper: it sees what we left, or we see that it sleeps.
        fence(Ordering::SeqCst);
        if self.asleep.load(Ordering::SeqCst) && self.asleep.swap(false, Ordering::SeqCst) {
            self.waker.wake();
        }
    }

    /// Tells the worker to end.
    pub(super) fn stop(&self) {
        self.stopping.store(true, Ordering::SeqCst);
        self.wake();
    }

    /// Whether the worker shall end.
    pub(super) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    pub(super) fn take(&self, mut event: impl FnMut(usize)) {
        for (index, word) in self.events.iter().enumerate() {
            if word.load(Ordering::Relaxed) == 0 {
                continue;
            }
            let mut bits = word.swap(0, Ordering::SeqCst);
            while bits != 0 {
                event(index * 64 + bits.trailing_zeros() as usize);
                bits &= bits - 1;
            }
        }
    }

    /// Says that the worker is about to sleep; `false` if it had better not. Whether
    /// commands wait is for the worker to look at, afterwards.
    pub(super) fn fall_asleep(&self) -> bool {
        self.asleep.store(true, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        let has_event = |word: &AtomicU64| word.load(Ordering::SeqCst) != 0;
        let news = self.events.iter().any(has_event) || self.stopping.load(Ordering::SeqCst);
        if news {
            self.wake_up(false);
        }
        !news
    }

    /// Says that the worker is awake. `signalled`: the waker's descriptor was readable.
    pub(super) fn wake_up(&self, signalled: bool) {
        let still_asleep = self.asleep.swap(false, Ordering::SeqCst);
        // Whoever found it asleep wakes it, or has done so: the waker is reset now, or at the
        // latest when the next sleep ends at once.
        if signalled || !still_asleep {
            self.waker.reset();
        }
    }
}

impl AsFd for Mailbox {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.waker.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wormcast_switch_ports::readiness::Interest;
    use wormcast_switch_ports::wait;

    #[test]
    fn events_are_taken_once_and_keep_the_worker_awake() {
        let mailbox = Mailbox::new(100).unwrap();
        assert!(mailbox.fall_asleep());
        mailbox.wake_up(false);
        for event in [99, 3, 3, 64] {
            mailbox.post(event);
        }
        assert!(!mailbox.fall_asleep());
        let mut taken = Vec::new();
        mailbox.take(|event| taken.push(event));
        mailbox.take(|event| taken.push(event));
        assert_eq!(taken, [3, 64, 99]);
        assert!(mailbox.fall_asleep());
    }

    #[test]
    fn only_a_sleeper_is_woken() {
        let mailbox = Mailbox::new(1).unwrap();
        let is_signalled =
            |mailbox: &Mailbox| wait(&[Interest::Readable(mailbox.as_fd())], Some(0)).first;
        mailbox.post(0);
        assert!(!is_signalled(&mailbox));
        mailbox.take(|_| ());
        assert!(mailbox.fall_asleep());
        mailbox.post(0);
        assert!(is_signalled(&mailbox));
        mailbox.wake_up(true);
        assert!(!is_signalled(&mailbox));
        mailbox.stop();
        assert!(mailbox.is_stopping() && !mailbox.fall_asleep());
    }

    /// Every event arrives though the worker sleeps whenever it can.
    #[test]
    fn no_event_is_lost_on_a_sleeping_worker() {
        const EVENTS: usize = 5_000;
        let mailbox = Mailbox::new(1).unwrap();
        let (answer, answered) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            let mailbox = &mailbox;
            scope.spawn(move || {
                for _ in 0..EVENTS {
                    mailbox.post(0);
                    answered.recv().unwrap();
                }
            });
            let mut seen = 0;
            while seen < EVENTS {
                mailbox.take(|_| {
                    seen += 1;
                    answer.send(()).unwrap();
                });
                if seen < EVENTS && mailbox.fall_asleep() {
                    let woken = wait(&[Interest::Readable(mailbox.as_fd())], None);
                    mailbox.wake_up(woken.first);
                }
            }
        });
    }
}
