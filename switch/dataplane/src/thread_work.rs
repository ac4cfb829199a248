//! What a thread of a worker has to do, and what it sleeps for.

use std::collections::VecDeque;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use super::mailbox::Mailbox;
use wormcast_switch_ports::readiness::{Interest, Woken};
use wormcast_switch_ports::transmit::Departure;
use wormcast_switch_ports::{ReadableSet, wait};

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

    pub(super) fn send(&mut self) {
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
    pub(super) fn wait(&self, mailbox: &Mailbox, readable: &ReadableSet) -> Woken {
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
