//! Messages that no application takes, or that one takes slowly: what a member tells the origin, so that whoever
//! sends learns it at once and not when the member gives the message up, or others wait.

use super::Engine;
use super::reports::UNREAD_MAX;
use crate::event::Unread;
use crate::reject::Reject;
use wormcast_wire::pdu::{Body, Common, Status};
use wormcast_wire::{BufferClass, GroupId, HostId, Seq};

impl Engine {
    /// Member: whether something of the origin's stream waits to be read or confirmed.
    pub fn has_message(&self, group: GroupId, origin: HostId) -> bool {
        self.sessions
            .get(&(group, origin))
            .is_some_and(|session| session.unread().is_some())
    }

    /// Member: whether the end of the message that is being read, or is next, has come.
    pub fn has_end(&self, group: GroupId, origin: HostId) -> bool {
        let session = self.sessions.get(&(group, origin));
        session.is_some_and(super::Session::has_end)
    }

    /// Member: of the message that is being read, what has come in order and waits to be read: its bytes, and those of the
    /// buffers that it takes, of which there are [`Engine::pool_bytes_max`].
    pub fn unread_bytes(&self, group: GroupId, origin: HostId) -> (usize, usize) {
        let session = self.sessions.get(&(group, origin));
        session.map_or((0, 0), |session| session.unread_bytes(&self.shared.pools))
    }

    /// Member: tells the origin that a message has begun to come that no application takes; or, `slow`, that one takes it
    /// slower than it comes. Nothing happens if none has.
    pub fn report_unread(&mut self, group: GroupId, origin: HostId, slow: bool) {
        if self.has_message(group, origin) {
            self.reports.due.insert((group, origin), slow);
        }
    }

    /// Member of an ordered group: asks the sequencer for the place of a message, which is given by
    /// its origin, the life of the stream and its first packet (`wire/SPEC.md` §5.7).
    pub fn ask_for_order(
        &mut self,
        group: GroupId,
        sequencer: HostId,
        (origin, stream, start): (HostId, u32, Seq),
    ) {
        self.announce_order(group, sequencer, (origin, stream, start), false);
    }

    /// Sequencer of an ordered group: tells a member that asked that the message is next, all having begun to read what
    /// comes before it.
    pub fn notify_next(&mut self, group: GroupId, member: HostId, message: (HostId, u32, Seq)) {
        self.announce_order(group, member, message, true);
    }

    fn announce_order(
        &mut self,
        group: GroupId,
        to: HostId,
        (origin, stream, start): (HostId, u32, Seq),
        is_next: bool,
    ) {
        if self.groups.contains_key(&group) {
            let announced = (stream, start, is_next);
            self.reports
                .orders_due
                .insert(((group, origin), to), announced);
        }
    }

    fn send_order(&mut self, buf: &mut [u8]) -> Option<crate::event::Transmit> {
        while let Some((key, announced)) = self.reports.orders_due.pop_first() {
            let (((group, origin), to), (stream, start, order_next)) = (key, announced);
            let common = Common {
                group,
                origin,
                stream,
            };
            let body = Body::Status(Status {
                stable: start,
                ack_now: false,
                choice: 0,
                unclaimed: false,
                slow: false,
                order_wanted: true,
                order_next,
            });
            let class = BufferClass::One;
            let sent = self.shared.encode_to(buf, to, class, &common, &body);
            if sent.is_some() {
                return sent;
            }
        }
        None
    }

    /// Origin: the next report of a member that nobody there takes a message, or slowly.
    pub fn poll_unread(&mut self) -> Option<Unread> {
        self.reports.notices.pop_first()
    }

    /// Writes the next report to an origin, or what is asked or told of an order.
    pub(super) fn send_unread(&mut self, buf: &mut [u8]) -> Option<crate::event::Transmit> {
        if let Some(sent) = self.send_order(buf) {
            return Some(sent);
        }
        while let Some((key, slow)) = self.reports.due.pop_first() {
            let (group, origin) = key;
            // Of a stream that is gone, or read meanwhile, there is nothing to tell.
            let Some(session) = self.sessions.get(&key) else {
                continue;
            };
            let Some(position) = session.unread() else {
                continue;
            };
            let common = Common {
                group,
                origin,
                stream: session.stream,
            };
            let body = Body::Status(Status {
                stable: Seq::of(position),
                ack_now: false,
                choice: 0,
                unclaimed: !slow,
                slow,
                order_wanted: false,
                order_next: false,
            });
            let class = BufferClass::One;
            let shared = &mut self.shared;
            let sent = shared.encode_to(buf, origin, class, &common, &body);
            if sent.is_some() {
                return sent;
            }
        }
        None
    }

    /// Origin: a member says that nobody takes the message at `at`, or slowly. One that is settled, or
    /// was never written, is no news.
    pub(super) fn take_unread(
        &mut self,
        common: Common,
        (at, slow): (Seq, bool),
        host: HostId,
    ) -> Result<(), Reject> {
        let (session, _) = self.known_stream(common)?;
        let Some(message) = session.message_at(at) else {
            return Err(Reject::UnknownStream);
        };
        let group = common.group;
        if self.reports.notices.len() >= UNREAD_MAX {
            self.shared.counters.unread_dropped += 1;
            return Ok(());
        }
        self.reports.notices.insert(Unread {
            group,
            message,
            host,
            slow,
        });
        Ok(())
    }
}
