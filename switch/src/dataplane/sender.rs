//! Threads that only send: a switch hands frames over to them and goes on with the next
//! packet, since sending takes longer than all the rest of a packet's way.
//!
//! Between a switch and a sender is one link in memory for each port. When a sender does
//! not keep up, its links are full and packets wait in the egress queues, as they do when
//! the switch sends itself.

use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::clock::Clock;
use super::load::Load;
use super::mailbox::Mailbox;
use super::port::LinkOutput;
use super::port_set::PortSet;
use crate::ports::readiness::Interest;
use crate::ports::transmit::Flushed;
use crate::ports::{LinkReceiver, TransmitCounts, TransmitQueue, wait};

/// How long a port waits before it offers a frame again that the kernel had no room for.
const RETRY_US: u64 = 50;

/// What the switch and the sender of one of its ports share.
#[derive(Debug, Default)]
pub(super) struct Shared {
    counts: [AtomicU64; 6],
    /// The interface was opened again: to be used from now on.
    renewed: Mutex<Option<TransmitQueue>>,
    is_renewed: AtomicBool,
}

impl Shared {
    /// Counts of the port so far.
    pub(super) fn counts(&self) -> TransmitCounts {
        let [frames, bytes, bad_length, interface_down, failed, retried] =
            [0, 1, 2, 3, 4, 5].map(|index: usize| self.counts[index].load(Ordering::Relaxed));
        TransmitCounts {
            frames,
            bytes,
            bad_length,
            interface_down,
            failed,
            retried,
        }
    }

    fn publish(&self, counts: TransmitCounts) {
        let values = [
            counts.frames,
            counts.bytes,
            counts.bad_length,
            counts.interface_down,
            counts.failed,
            counts.retried,
        ];
        for (cell, value) in self.counts.iter().zip(values) {
            cell.store(value, Ordering::Relaxed);
        }
    }
}

/// The switch's end of a port whose frames a sender sends.
pub(super) struct RemoteOutput {
    pub(super) link: LinkOutput,
    pub(super) shared: Arc<Shared>,
}

impl RemoteOutput {
    /// Sends by an interface that was opened again.
    pub(super) fn renew(&mut self, transmit: TransmitQueue) {
        let mut renewed = (self.shared.renewed.lock()).unwrap_or_else(PoisonError::into_inner);
        *renewed = Some(transmit);
        self.shared.is_renewed.store(true, Ordering::Release);
        drop(renewed);
        self.link.receiver_mailbox.post(self.link.receiver_letter);
    }
}

/// The sender's end of a port.
pub(super) struct RemotePort {
    pub(super) receiver: LinkReceiver,
    pub(super) transmit: TransmitQueue,
    pub(super) shared: Arc<Shared>,
    pub(super) switch_mailbox: Arc<Mailbox>,
    /// Tells the switch that there is room.
    pub(super) room_letter: usize,
    /// What sockets before the present one sent.
    before: TransmitCounts,
    retry_at_us: u64,
    waits_for_socket: bool,
}

/// What is left after a turn of a port.
#[derive(Debug, PartialEq, Eq)]
enum Left {
    Nothing,
    More,
    UntilTime(u64),
    UntilWritable,
}

impl RemotePort {
    /// A port that has not sent yet.
    pub(super) fn new(
        receiver: LinkReceiver,
        transmit: TransmitQueue,
        shared: Arc<Shared>,
        switch_mailbox: Arc<Mailbox>,
        room_letter: usize,
    ) -> Self {
        Self {
            receiver,
            transmit,
            shared,
            switch_mailbox,
            room_letter,
            before: TransmitCounts::default(),
            retry_at_us: 0,
            waits_for_socket: false,
        }
    }

    /// Sends at most a batch. Gives what is left, and the frames taken.
    fn turn(&mut self, now_us: u64) -> (Left, usize) {
        if self.shared.is_renewed.swap(false, Ordering::Acquire) {
            let mut renewed = (self.shared.renewed.lock()).unwrap_or_else(PoisonError::into_inner);
            if let Some(transmit) = renewed.take() {
                self.before = self.counts();
                self.transmit = transmit;
                self.retry_at_us = 0;
                self.waits_for_socket = false;
            }
        }
        if !self.waits_for_socket && now_us < self.retry_at_us {
            return (Left::UntilTime(self.retry_at_us), 0);
        }
        let mut taken = 0;
        while !self.transmit.is_full() {
            let transmit = &mut self.transmit;
            if self.receiver.receive(1, |frame| _ = transmit.push(frame)) == 0 {
                break;
            }
            taken += 1;
        }
        if taken > 0 && self.receiver.takes_waiting() {
            self.switch_mailbox.post(self.room_letter);
        }
        let flushed = self.transmit.flush();
        self.shared.publish(self.counts());
        self.waits_for_socket = flushed == Flushed::WaitWritable;
        let left = match flushed {
            Flushed::WaitWritable => Left::UntilWritable,
            Flushed::WaitTime => {
                self.retry_at_us = now_us + RETRY_US;
                Left::UntilTime(self.retry_at_us)
            }
            Flushed::Empty if self.receiver.is_ready() => Left::More,
            Flushed::Empty => Left::Nothing,
        };
        (left, taken)
    }

    fn counts(&self) -> TransmitCounts {
        let (before, now) = (self.before, self.transmit.counts());
        TransmitCounts {
            frames: before.frames + now.frames,
            bytes: before.bytes + now.bytes,
            bad_length: before.bad_length + now.bad_length,
            interface_down: before.interface_down + now.interface_down,
            failed: before.failed + now.failed,
            retried: before.retried + now.retried,
        }
    }
}

/// A thread that sends for some ports. The letter of a port says that it has frames.
pub(super) struct Sender {
    clock: Clock,
    ports: Vec<RemotePort>,
    mailbox: Arc<Mailbox>,
    ready: PortSet,
    load: Load,
}

impl Sender {
    /// Letters are positions in `ports`.
    pub(super) fn new(
        clock: Clock,
        load: Load,
        ports: Vec<RemotePort>,
        mailbox: Arc<Mailbox>,
    ) -> Self {
        Self {
            clock,
            ready: PortSet::new(ports.len()),
            ports,
            mailbox,
            load,
        }
    }

    /// Sends until it is told to stop.
    pub(super) fn run(mut self) {
        while !self.mailbox.is_stopping() {
            let ready = &mut self.ready;
            self.mailbox.take(|letter| ready.insert(letter));
            let now_us = self.clock.now_us();
            let (mut more, mut next_us, mut frames) = (false, None, 0);
            let mut from = 0;
            while let Some(position) = self.ready.next(from) {
                from = position + 1;
                let (left, taken) = self.ports[position].turn(now_us);
                frames += taken;
                match left {
                    Left::Nothing => self.ready.remove(position),
                    Left::More => more = true,
                    Left::UntilTime(at_us) => {
                        next_us = Some(next_us.map_or(at_us, |next_us: u64| next_us.min(at_us)));
                    }
                    Left::UntilWritable => {}
                }
            }
            self.load.count(frames as u64, now_us);
            if !more && self.load.may_sleep(now_us) {
                self.sleep(next_us);
            }
        }
    }

    /// Sleeps until there is something to send.
    fn sleep(&self, next_us: Option<u64>) {
        let now_us = self.clock.now_us();
        let timeout_us = next_us.map(|at_us| at_us.saturating_sub(now_us));
        if timeout_us == Some(0) || !self.mailbox.fall_asleep() {
            return;
        }
        let mut interests = vec![Interest::Readable(self.mailbox.as_fd())];
        for port in self.ports.iter().filter(|port| port.waits_for_socket) {
            interests.push(Interest::Writable(port.transmit.as_fd()));
        }
        let woken = wait(&interests, timeout_us);
        self.mailbox.wake_up(woken.first);
    }
}
