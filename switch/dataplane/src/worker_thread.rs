//! Threads that share one switch.
//!
//! Most of a packet's way is the kernel's: sending takes longer than all the rest. The
//! threads of a switch therefore take turns at its state, a batch each, and have the kernel
//! send what came of it after they have let go of it. So packets, operations and counts
//! happen in one order, as with one thread, and no packet waits for a lock of its own.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex};

use super::load::Load;
use super::mailbox::Mailbox;
use super::worker::Worker;
use wormcast_switch_ports::readiness::{Interest, Woken};
use wormcast_switch_ports::transmit::Departure;
use wormcast_switch_ports::{ReadableSet, wait};

/// How often a thread that looks for frames asks the processor to wait a little before it
/// takes the switch from the others again.
const PAUSES_A_LOOK: usize = 32;

/// What one thread of a worker has to do.
#[derive(Debug)]
pub(super) struct ThreadWork {
    /// 0 for the one that looks after everything that is not the frames of interfaces.
    pub(super) number: usize,
    /// Other threads have a share in the same switch.
    pub(super) is_shared: bool,
    /// Positions of switches at the worker that have something to do for this thread.
    ready: VecDeque<usize>,
    is_ready: Vec<bool>,
    pub(super) departures: Vec<Departed>,
}

/// Frames of one port that this thread sends.
#[derive(Debug)]
pub(super) struct Departed {
    /// The switch.
    pub(super) member: usize,
    /// Position of the port.
    pub(super) port: usize,
    pub(super) departure: Departure,
}

impl ThreadWork {
    /// `members`: switches of the worker.
    pub(super) fn new(number: usize, is_shared: bool, members: usize) -> Self {
        Self {
            number,
            is_shared,
            ready: VecDeque::with_capacity(members),
            is_ready: vec![false; members],
            departures: Vec::new(),
        }
    }

    /// The only one of a switch that nobody shares.
    pub(super) fn sole() -> Self {
        Self::new(0, false, 0)
    }

    /// Whether it looks after commands, events, times and interfaces.
    pub(super) fn leads(&self) -> bool {
        self.number == 0
    }

    pub(super) fn make_ready(&mut self, member: usize) {
        if !std::mem::replace(&mut self.is_ready[member], true) {
            self.ready.push_back(member);
        }
    }

    /// The next switch to have a turn.
    pub(super) fn next_ready(&mut self) -> Option<usize> {
        let member = self.ready.pop_front()?;
        self.is_ready[member] = false;
        Some(member)
    }

    /// Switches that have something to do.
    pub(super) fn ready(&self) -> usize {
        self.ready.len()
    }

    fn send(&mut self) {
        for departed in &mut self.departures {
            departed.departure.send();
        }
    }
}

/// What a sleeping thread waits for, beside its mailbox and the sockets that bring frames.
#[derive(Debug)]
pub(super) struct Sleep {
    pub(super) writable: Vec<Arc<OwnedFd>>,
    pub(super) timeout_us: Option<u64>,
}

impl Sleep {
    fn wait(&self, mailbox: &Mailbox, readable: &ReadableSet) -> Woken {
        let mut interests = Vec::with_capacity(2 + self.writable.len());
        interests.push(Interest::Readable(mailbox.as_fd()));
        interests.push(Interest::Readable(readable.as_fd()));
        let writable = self.writable.iter();
        interests.extend(writable.map(|socket| Interest::Writable(socket.as_fd())));
        let mut woken = wait(&interests, self.timeout_us);
        woken.error |= woken.ready && readable.has_error();
        woken
    }
}

/// One thread of a worker.
pub(super) struct WorkerThread {
    worker: Arc<Mutex<Worker>>,
    work: ThreadWork,
    mailbox: Arc<Mailbox>,
    load: Load,
    /// Sockets that bring frames for it.
    readable: ReadableSet,
}

impl WorkerThread {
    /// `mailbox`: of the first thread that of the worker.
    ///
    /// # Errors
    /// When the kernel has no descriptors left.
    pub(super) fn new(
        worker: Arc<Mutex<Worker>>,
        work: ThreadWork,
        mailbox: Arc<Mailbox>,
        load: Load,
    ) -> io::Result<Self> {
        Ok(Self {
            worker,
            work,
            mailbox,
            load,
            readable: ReadableSet::new()?,
        })
    }

    /// Works until it is told to stop, or nobody can tell it anything any more, or another
    /// thread of the worker has panicked.
    pub(super) fn run(mut self) {
        let mut reachable = true;
        while reachable && !self.mailbox.is_stopping() {
            let Ok(mut worker) = self.worker.lock() else {
                return;
            };
            let round = worker.round(&mut self.work);
            reachable = round.reachable;
            self.load.count(round.frames as u64, round.now_us);
            let idle = round.is_idle && self.work.departures.is_empty();
            let may_sleep = idle && self.load.may_sleep(round.now_us);
            let sleep = match may_sleep {
                true => worker.fall_asleep(&self.work, &self.mailbox, &mut self.readable),
                false => None,
            };
            drop(worker);
            self.work.send();
            if let Some(sleep) = sleep {
                let woken = sleep.wait(&self.mailbox, &self.readable);
                self.mailbox.wake_up(woken.first);
                let Ok(mut worker) = self.worker.lock() else {
                    return;
                };
                worker.awake(&mut self.work, woken);
            } else if idle && self.work.is_shared {
                (0..PAUSES_A_LOOK).for_each(|_| std::hint::spin_loop());
            }
        }
        if let (true, Ok(mut worker)) = (self.work.leads(), self.worker.lock()) {
            worker.end();
        }
    }
}

/// Which thread has which input: `loads` are the frames of each of late, `threads` where it
/// is now, below `count`. None if things had better stay: moving an input empties caches.
///
/// The busiest input goes to the thread with the least so far, then the next (Graham 1969,
/// longest processing time first: at most 4/3 of the least possible).
pub(super) fn spread(loads: &[u64], threads: &[usize], count: usize) -> Option<Vec<usize>> {
    let most = |threads: &[usize]| {
        let mut sums = vec![0; count];
        for (thread, load) in threads.iter().zip(loads) {
            sums[*thread] += load;
        }
        sums.into_iter().max().unwrap_or(0)
    };
    let mut order: Vec<usize> = (0..loads.len()).collect();
    order.sort_by_key(|input| std::cmp::Reverse(loads[*input]));
    let mut sums = vec![0; count];
    let mut better = threads.to_vec();
    for input in order.into_iter().filter(|input| loads[*input] > 0) {
        // Where several have as little, it stays if it can.
        let least = (0..count).min_by_key(|thread| (sums[*thread], *thread != threads[input]))?;
        better[input] = least;
        sums[least] += loads[input];
    }
    let (now, then) = (most(threads), most(&better));
    (then < now - now / 5).then_some(better)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_move_when_a_thread_has_too_much() {
        // Two busy inputs on one thread part; the idle one stays.
        let moved = spread(&[500, 0, 400], &[0, 1, 0], 2).unwrap();
        assert_eq!(moved[1], 1);
        assert_ne!(moved[0], moved[2]);
        // One that is busier than all others together has a thread of its own.
        let moved = spread(&[300, 900, 10, 10], &[0, 0, 1, 1], 2).unwrap();
        assert!([0, 2, 3].iter().all(|input| moved[*input] != moved[1]));
    }

    #[test]
    fn inputs_stay_when_little_would_be_won() {
        assert_eq!(spread(&[500, 400], &[1, 0], 2), None);
        assert_eq!(spread(&[100, 100, 100], &[0, 0, 1], 2), None);
        assert_eq!(spread(&[100, 110, 100, 90], &[0, 0, 1, 1], 2), None);
        assert_eq!(spread(&[0, 0], &[0, 0], 2), None);
        assert_eq!(spread(&[], &[], 4), None);
        assert_eq!(spread(&[9], &[0], 1), None);
    }
}
