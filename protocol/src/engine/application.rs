//! What applications call: writing at an origin, reading at a member.

use super::Engine;
use crate::event::{MemberState, MessageArrival, Read, UseError};
use crate::session::shared::Shared;
use crate::session::{Progress, Session, Stream};
use crate::time::Instant;
use wormcast_wire::{FailReason, GroupId, HostId};

impl Engine {
    pub(super) fn own_session(
        &mut self,
        group: GroupId,
        now: Instant,
    ) -> Result<(&mut Session, &mut Shared), UseError> {
        let host = self.shared.config.host;
        let key = (group, host);
        if !self.sessions.contains_key(&key) {
            let plan = self
                .groups
                .get(&group)
                .ok_or(UseError::UnknownGroup { group })?;
            let role = self
                .shared
                .usable_role(plan, host, 0)
                .map_err(|_| UseError::NoStructure { group })?;
            if !self.make_place() {
                let limit = self.shared.config.limits.sessions;
                return Err(UseError::SessionsFull { limit });
            }
            let number = self.shared.take_identity();
            let start = self.shared.first_seq(number);
            let stream = Stream {
                origin: host,
                number,
                start,
                choice: 0,
            };
            let plan = self
                .groups
                .get(&group)
                .ok_or(UseError::UnknownGroup { group })?;
            let timing = &self.shared.config.timing;
            let session = Session::new_origin(plan, stream, role, timing, now);
            self.sessions.insert(key, session);
        }
        match self.sessions.get_mut(&key) {
            Some(session) => Ok((session, &mut self.shared)),
            None => Err(UseError::UnknownGroup { group }),
        }
    }

    /// Origin: appends to the message being written, or begins one. Gives the bytes
    /// accepted, fewer than given when the window is full; [`Event::Writable`] tells
    /// when to go on. `end_of_message` takes effect only if all bytes are accepted; an
    /// end without bytes that cannot be taken is refused as [`UseError::EndWaits`].
    ///
    /// # Errors
    /// See [`UseError`].
    pub fn write(
        &mut self,
        group: GroupId,
        bytes: &[u8],
        end_of_message: bool,
        now: Instant,
    ) -> Result<usize, UseError> {
        let now = self.advance(now);
        let (session, shared) = self.own_session(group, now)?;
        session.write(bytes, end_of_message, shared, now)
    }

    /// Origin: the message that is begun next will have so many bytes, as far as the application
    /// can say. It is counted by them in the choice of its way ([`crate::GroupPlan::choices`]). Without it, one
    /// that ends in its first packet is counted by what it has, and any other as of unknown length.
    ///
    /// # Errors
    /// See [`UseError`].
    pub fn announce(&mut self, group: GroupId, bytes: u64, now: Instant) -> Result<(), UseError> {
        let now = self.advance(now);
        let (session, _) = self.own_session(group, now)?;
        session.announce(bytes);
        Ok(())
    }

    /// Origin: sends what has been written so far, though it fills no packet.
    ///
    /// # Errors
    /// See [`UseError`].
    pub fn flush(&mut self, group: GroupId, now: Instant) -> Result<(), UseError> {
        let now = self.advance(now);
        let (session, shared) = self.own_session(group, now)?;
        session.flush(shared, now);
        Ok(())
    }

    /// Origin: ends the message if one is begun; [`Event::Finished`] follows when
    /// all that was written is stable. More may be written afterwards.
    ///
    /// # Errors
    /// See [`UseError`].
    pub fn finish(&mut self, group: GroupId, now: Instant) -> Result<(), UseError> {
        let now = self.advance(now);
        let (session, shared) = self.own_session(group, now)?;
        session.finish(shared, now);
        Ok(())
    }

    /// Origin: gives up the message being written; members get
    /// [`Event::MessageLost`]. Without one, nothing happens.
    ///
    /// # Errors
    /// See [`UseError`].
    pub fn cancel(&mut self, group: GroupId, now: Instant) -> Result<(), UseError> {
        let now = self.advance(now);
        let (session, shared) = self.own_session(group, now)?;
        session.cancel(shared, now);
        Ok(())
    }

    /// Origin: what has been done so far; none before the first write.
    pub fn progress(&self, group: GroupId) -> Option<Progress> {
        self.sessions
            .get(&(group, self.shared.config.host))?
            .progress()
    }

    /// Origin: what is known at this moment of a message that is not stable yet, at each
    /// other member; none if there is no such message.
    pub fn member_states(
        &self,
        group: GroupId,
        message: u64,
    ) -> Option<Vec<(HostId, MemberState)>> {
        self.sessions
            .get(&(group, self.shared.config.host))?
            .member_states(message)
    }

    fn member_session(
        &mut self,
        group: GroupId,
        origin: HostId,
    ) -> Result<(&mut Session, &mut Shared), UseError> {
        let known = self.groups.contains_key(&group);
        match self.sessions.get_mut(&(group, origin)) {
            Some(session) if origin != self.shared.config.host => Ok((session, &mut self.shared)),
            _ if known => Err(UseError::UnknownOrigin { group, origin }),
            _ => Err(UseError::UnknownGroup { group }),
        }
    }

    /// Member: when the packets came of the message that is being read, until it is confirmed, aborted or lost.
    pub fn message_arrival(&self, group: GroupId, origin: HostId) -> Option<MessageArrival> {
        self.sessions.get(&(group, origin))?.message_arrival()
    }

    /// Member: reads the next bytes of the origin's stream, in order, of one message
    /// at a time. A length of 0 without `end_of_message`: nothing now.
    ///
    /// What is not read stays in the buffer pool: a member that stops reading stops
    /// the group.
    ///
    /// # Errors
    /// See [`UseError`].
    pub fn read(
        &mut self,
        group: GroupId,
        origin: HostId,
        buf: &mut [u8],
        now: Instant,
    ) -> Result<Read, UseError> {
        let now = self.advance(now);
        let (session, shared) = self.member_session(group, origin)?;
        let read = session.read(buf, shared, now)?;
        self.after_reading(group, origin);
        Ok(read)
    }

    /// Member: the message whose end has been read is safe. Only now does it count
    /// as held by this member.
    ///
    /// # Errors
    /// See [`UseError`].
    pub fn confirm(
        &mut self,
        group: GroupId,
        origin: HostId,
        now: Instant,
    ) -> Result<(), UseError> {
        let now = self.advance(now);
        let (session, shared) = self.member_session(group, origin)?;
        session.confirm(shared, now)?;
        self.after_reading(group, origin);
        Ok(())
    }

    /// Member: gives up the message being read (or whose end has been read, or the
    /// next one). The rest of it is thrown away; this host goes on forwarding it, and
    /// the origin learns the reason, which must be one of a single message
    /// ([`FailReason::Late`] is of all before).
    ///
    /// # Errors
    /// See [`UseError`].
    pub fn abort(
        &mut self,
        group: GroupId,
        origin: HostId,
        reason: FailReason,
        now: Instant,
    ) -> Result<(), UseError> {
        let now = self.advance(now);
        let (session, shared) = self.member_session(group, origin)?;
        session.abort(reason, shared, now);
        self.after_reading(group, origin);
        Ok(())
    }

    fn after_reading(&mut self, group: GroupId, origin: HostId) {
        if self
            .sessions
            .get(&(group, origin))
            .is_some_and(|session| session.detached)
        {
            self.drop_drained(group);
        }
    }
}
