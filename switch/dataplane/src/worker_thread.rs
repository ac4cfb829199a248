//! Threads that share one switch.
//!
//! Most of a packet's way is the kernel's: sending takes longer than all the rest. The
//! threads of a switch therefore take turns at its state, a batch each, and have the kernel
//! send what came of it after they have let go of it. So packets, operations and counts
//! happen in one order, as with one thread, and no packet waits for a lock of its own.

use std::io;
use std::sync::{Arc, Mutex};

use super::load::Load;
use super::mailbox::Mailbox;
use super::thread_work::ThreadWork;
use super::worker::Worker;
use wormcast_switch_ports::ReadableSet;

/// How often a thread that looks for frames asks the processor to wait a little before it
/// takes the switch from the others again.
const PAUSES_A_LOOK: usize = 32;

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

    /// Works until it is stopped, or nobody can tell it anything any more, or another
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
            let sleep = if may_sleep {
                worker.fall_asleep(&self.work, &self.mailbox, &mut self.readable)
            } else {
                None
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
