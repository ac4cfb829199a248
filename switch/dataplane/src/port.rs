//! One port: its egress queue and what stands between egress and the wire.

use std::fs::File;
use std::io::BufWriter;
use std::sync::Arc;

use super::mailbox::Mailbox;
use super::messages::MessageLink;
use wormcast_switch_flow::TokenBucket;
use wormcast_switch_flow::{FrameHold, PrioritySet};
use wormcast_switch_pipeline::{PortId, Queued};
use wormcast_switch_ports::transmit::{Departure, Flushed};
use wormcast_switch_ports::{
    EgressQueue, Impairment, InterfaceLook, LinkSender, Pace, PcapWriter, TransmitCounts,
    TransmitQueue,
};

/// A capture of one direction of a port.
pub(super) type Capture = PcapWriter<BufWriter<File>>;

/// How long a port waits before it offers a frame again that the kernel had no room for.
const RETRY_US: u64 = 50;

/// Where frames go that leave by a port.
pub(super) enum Link {
    Interface(TransmitQueue),
    /// A port of a switch in this process.
    Memory(LinkOutput),
    /// A capture that frames are written to.
    File(Capture),
    /// An interface that is not there at the moment.
    Missing,
    /// Whoever takes frames as messages.
    Messages(MessageLink),
    Cpu,
    /// Nowhere: no such port was given on the command line.
    Unattached,
}

/// The sending end of a link, and whom to tell of frames.
pub(super) struct LinkOutput {
    pub(super) sender: LinkSender,
    pub(super) receiver_mailbox: Arc<Mailbox>,
    pub(super) receiver_event: usize,
    /// Frames were put on the link without a notice to the receiver yet.
    pub(super) unannounced: bool,
}

impl Link {
    /// Whether it stands for all ports that are not there.
    pub(super) fn is_for_others(&self) -> bool {
        match self {
            Self::Unattached => true,
            Self::Messages(link) => link.is_for_others,
            _ => false,
        }
    }

    /// Whether it takes a frame now.
    #[inline]
    fn has_room(&mut self) -> bool {
        match self {
            Self::Interface(transmit) => !transmit.is_full(),
            Self::Memory(link) => link.sender.has_room(),
            Self::File(_) | Self::Messages(_) | Self::Missing | Self::Cpu | Self::Unattached => {
                true
            }
        }
    }
}

/// A packet in an egress queue, and what of the switch's buffer it holds.
pub(super) struct HeldPacket {
    pub(super) packet: Queued,
    pub(super) hold: Option<FrameHold>,
}

/// The notice of a change of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PortState {
    pub(super) up: bool,
    pub(super) enabled: bool,
    pub(super) present: bool,
    pub(super) mtu: Option<usize>,
}

/// The sending half of a port.
pub(super) struct Port {
    pub(super) number: PortId,
    pub(super) link: Link,
    pub(super) queue: EgressQueue<HeldPacket>,
    pub(super) bucket: Option<TokenBucket>,
    pub(super) impairment: Option<Impairment>,
    /// Packet rates of its queues, if they have some.
    pub(super) pace: Option<Box<Pace>>,
    pub(super) capture: Option<Capture>,
    /// Its interface was there, up and had a carrier when it was last looked at.
    pub(super) up: bool,
    /// Its interface was set up when it was last looked at, whether it had a carrier or not.
    pub(super) enabled: bool,
    /// Largest payload of a frame of its interface when it was last looked at, bytes.
    pub(super) mtu: Option<usize>,
    /// The last notice to those who watch ports; nothing before the port was there.
    pub(super) told: Option<PortState>,
    /// When it last went up or down, microseconds since the start of 1970.
    pub(super) changed_unix_us: u64,
    /// What had left by its interface when that was last closed.
    pub(super) sent_before: TransmitCounts,
    /// Frames for which there was no interface.
    pub(super) no_link: u64,
    /// Frames that were given a mark of congestion.
    pub(super) ecn_marked: u64,
    /// The kernel had no room; not before this time again.
    retry_at_us: u64,
    wait_writable: bool,
    /// The link had no room when it was last asked.
    blocked: bool,
    /// No frames are to be sent without the port: it is to be renewed.
    renewal_due: bool,
}

impl Port {
    pub(super) fn new(number: PortId, link: Link, queue: EgressQueue<HeldPacket>) -> Self {
        Self {
            number,
            link,
            queue,
            bucket: None,
            impairment: None,
            pace: None,
            capture: None,
            up: true,
            enabled: true,
            mtu: None,
            told: None,
            changed_unix_us: 0,
            sent_before: TransmitCounts::default(),
            no_link: 0,
            ecn_marked: 0,
            retry_at_us: 0,
            wait_writable: false,
            blocked: false,
            renewal_due: false,
        }
    }

    /// Takes what the kernel says of its interface, which may be gone.
    pub(super) fn saw(&mut self, look: InterfaceLook) {
        self.up = look.running;
        self.enabled = look.enabled;
        self.mtu = look.mtu;
    }

    /// What there is to tell of it.
    pub(super) fn state(&self) -> PortState {
        let present = !matches!(self.link, Link::Missing | Link::Unattached);
        PortState {
            up: self.up && present,
            enabled: self.enabled && present,
            present,
            mtu: self.mtu,
        }
    }

    /// Whether the next packet of the queue may go through egress now.
    #[inline]
    pub(super) fn may_send(&mut self, now_us: u64) -> bool {
        if let Some(bucket) = &mut self.bucket
            && !bucket.allows(now_us)
        {
            return false;
        }
        if self.impairment.is_some() {
            return true; // it holds frames, and says so when it cannot
        }
        self.make_room(now_us)
    }

    /// Whether the link takes a frame, after what it holds was sent if it must be.
    #[inline]
    fn make_room(&mut self, now_us: u64) -> bool {
        let mut room = self.link.has_room();
        if !room && now_us >= self.retry_at_us {
            self.flush(now_us);
            room = self.link.has_room();
        }
        self.blocked = !room;
        room
    }

    /// Whether a packet may go through egress at once, without being queued: nothing waits
    /// before it, and nothing holds the port back.
    #[inline]
    pub(super) fn passes(&mut self, now_us: u64) -> bool {
        self.queue.is_empty()
            && self.bucket.is_none()
            && self.pace.is_none()
            && self.impairment.is_none()
            && self.may_send(now_us)
    }

    /// Sends a pause frame before everything that waits, the kernel's queues excepted;
    /// `false` if there is no room at all.
    pub(super) fn send_first(&mut self, frame: &[u8], now_us: u64, unix_us: u64) -> bool {
        let pushed = match &mut self.link {
            Link::Interface(transmit) => transmit.push_first(frame),
            Link::Memory(link) => {
                let pushed = link.sender.has_room() && link.sender.push(frame);
                link.unannounced |= pushed;
                pushed
            }
            Link::File(_) | Link::Messages(_) | Link::Missing | Link::Cpu | Link::Unattached => {
                true
            }
        };
        if pushed {
            if let Some(capture) = &mut self.capture {
                // A full disk must not stop the switch; the capture ends short.
                let _ = capture.write(unix_us, frame);
            }
            self.flush(now_us);
        }
        pushed
    }

    /// Whether there is, or was, somebody at the other end who could be stopped.
    pub(super) fn has_neighbour(&self) -> bool {
        !matches!(
            self.link,
            Link::Cpu | Link::File(_) | Link::Messages(_) | Link::Unattached
        )
    }

    /// Whether a pause frame finds room.
    pub(super) fn has_room(&mut self, now_us: u64) -> bool {
        self.make_room(now_us)
    }

    /// A packet waits that may be sent.
    #[inline]
    pub(super) fn has_packet(&self, allowed: PrioritySet) -> bool {
        self.queue.filled().0 & allowed.0 != 0
    }

    /// Takes a frame that has passed egress. `number`: the port that the program said, which
    /// is not this one's where it stands for others.
    #[inline]
    pub(super) fn send(&mut self, number: PortId, frame: &[u8], now_us: u64, unix_us: u64) {
        if let Some(bucket) = &mut self.bucket {
            bucket.charge(frame.len());
        }
        match &mut self.impairment {
            Some(impairment) => impairment.offer(frame, now_us),
            None => self.put_on_wire(number, frame, unix_us),
        }
    }

    /// Sends what is due, as far as the kernel takes it.
    pub(super) fn send_due(&mut self, now_us: u64, unix_us: u64) {
        if self.impairment.is_some() {
            self.send_impaired(now_us, unix_us);
        }
        if now_us >= self.retry_at_us {
            self.flush(now_us);
        }
    }

    /// Begins to send what waits in the link without the port; the thread that asks sends
    /// it, while others may give the port more.
    #[inline]
    pub(super) fn depart(&mut self, now_us: u64) -> Option<Departure> {
        match &mut self.link {
            Link::Interface(transmit)
                if self.impairment.is_none() && !self.renewal_due && now_us >= self.retry_at_us =>
            {
                transmit.depart()
            }
            _ => None,
        }
    }

    /// Ends what [`depart`](Self::depart) began.
    pub(super) fn complete(&mut self, departure: Departure, now_us: u64) {
        if let Link::Interface(transmit) = &mut self.link {
            let flushed = transmit.complete(departure);
            self.flushed(flushed, now_us);
        }
    }

    /// Whether the link may be taken away or renewed: not while frames are being sent by
    /// it, which would not be counted. It is the next time it is asked.
    pub(super) fn is_at_hand(&mut self) -> bool {
        self.renewal_due = self.is_away();
        !self.renewal_due
    }

    pub(super) fn lose_link(&mut self) {
        self.keep_counts();
        self.link = Link::Missing;
    }

    fn keep_counts(&mut self) {
        if let Link::Interface(transmit) = &self.link {
            self.sent_before = transmit.counts();
        }
    }

    /// The interface was opened again.
    pub(super) fn renew_link(&mut self, mut transmit: TransmitQueue) {
        self.keep_counts();
        transmit.carry_counts(self.sent_before);
        self.link = Link::Interface(transmit);
    }

    /// Nothing is here that will be sent without another packet.
    pub(super) fn is_idle(&self) -> bool {
        let holds = |impairment: &Impairment| impairment.next_us().is_some();
        self.queue.is_empty() && !self.has_unsent() && !self.impairment.as_ref().is_some_and(holds)
    }

    /// When this port wants to be looked at again; `None`: when it is notified that its link
    /// has room.
    /// `allowed`: queues that are not paused.
    pub(super) fn next_us(&self, allowed: PrioritySet) -> Option<u64> {
        let waits = !self.wait_writable && self.has_unsent() && !self.is_away();
        let retry = waits.then_some(self.retry_at_us);
        if self.blocked {
            return retry;
        }
        let rate = match &self.bucket {
            Some(bucket) if self.has_packet(allowed) => Some(bucket.next_us()),
            _ => None,
        };
        let impaired = self.impairment.as_ref().and_then(Impairment::next_us);
        let pace = self.pace.as_ref();
        let pace = pace.and_then(|pace| pace.next_us(self.queue.filled()));
        [retry, rate, impaired, pace].into_iter().flatten().min()
    }

    /// The socket to wait for until it is writable.
    pub(super) fn awaited(&self) -> Option<&TransmitQueue> {
        match &self.link {
            Link::Interface(transmit)
                if self.wait_writable && !transmit.is_empty() && !transmit.is_away() =>
            {
                Some(transmit)
            }
            _ => None,
        }
    }

    /// Frames are being sent; whoever does so comes back.
    fn is_away(&self) -> bool {
        matches!(&self.link, Link::Interface(transmit) if transmit.is_away())
    }

    fn has_unsent(&self) -> bool {
        matches!(&self.link, Link::Interface(transmit) if transmit.is_stuck())
    }

    fn send_impaired(&mut self, now_us: u64, unix_us: u64) {
        loop {
            if !self.make_room(now_us) {
                return;
            }
            let Some(impairment) = &mut self.impairment else {
                return;
            };
            let Some(frame) = impairment.poll(now_us) else {
                return;
            };
            self.put_on_wire(self.number, &frame, unix_us);
        }
    }

    fn put_on_wire(&mut self, number: PortId, frame: &[u8], unix_us: u64) {
        let pushed = match &mut self.link {
            Link::Interface(transmit) => transmit.push(frame),
            Link::Memory(link) => {
                link.unannounced = true;
                link.sender.push(frame)
            }
            // A reader may look at the file at any time, as at one of BMv2.
            Link::File(file) => file
                .write(unix_us, frame)
                .and_then(|()| file.flush())
                .is_ok(),
            Link::Messages(link) => link.send(number, frame),
            Link::Missing | Link::Cpu | Link::Unattached => {
                self.no_link += 1;
                return;
            }
        };
        let may_fail = matches!(self.link, Link::File(_) | Link::Messages(_));
        debug_assert!(pushed || may_fail, "room was checked before");
        if !pushed {
            self.no_link += 1;
        } else if let Some(capture) = &mut self.capture {
            // A full disk must not stop the switch; the capture ends short.
            let _ = capture.write(unix_us, frame);
        }
    }

    fn flushed(&mut self, flushed: Flushed, now_us: u64) {
        self.wait_writable = flushed == Flushed::WaitWritable;
        if flushed != Flushed::Empty {
            self.retry_at_us = now_us + RETRY_US;
        }
    }

    fn flush(&mut self, now_us: u64) {
        match &mut self.link {
            Link::Interface(transmit) if transmit.is_stuck() && !transmit.is_away() => {
                let flushed = transmit.flush();
                self.flushed(flushed, now_us);
            }
            Link::Memory(link) if link.unannounced => {
                link.unannounced = false;
                link.receiver_mailbox.post(link.receiver_event);
            }
            _ => {}
        }
    }
}
