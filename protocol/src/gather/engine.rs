//! Gathered ACKs that come, and what an origin asks switches that gather them: who lags (`wire/SPEC.md` §3.2)?

use crate::engine::Engine;
use crate::event::Transmit;
use crate::gather::branches::{
    ANSWERS_MAX, AWAITED_MAX, AskError, Awaited, BRANCHES_ASKED_MAX, BranchAnswer, BranchQuestion,
    DUE_MAX,
};
use crate::reject::Reject;
use crate::time::Instant;
use wormcast_wire::gather::{self, Announcement, Op, flags};
use wormcast_wire::worm::Worm;
use wormcast_wire::{BufferClass, GroupId, HostId, PortId, SWITCHES_CROSSED_MAX, Seq};

impl Engine {
    /// An ACK that switches have gathered.
    pub(crate) fn take_gathered(&mut self, worm: &Worm<'_>, now: Instant) -> Result<(), Reject> {
        let gathered = gather::decode(worm)?;
        if !self.groups.contains_key(&gathered.group) {
            return Err(Reject::UnknownGroup);
        }
        if gathered.origin != self.shared.config.host {
            return Err(Reject::GatheredUnasked);
        }
        if gathered.op == Op::Answer {
            return self.take_answer(worm, &gathered);
        }
        let session = self.sessions.get_mut(&(gathered.group, gathered.origin));
        let session = session.ok_or(Reject::UnknownStream)?;
        session.handle_gathered(&gathered, worm.header.source, &mut self.shared, now)
    }

    /// Asks switches about branches, each once.
    ///
    /// # Errors
    /// [`AskError`]; none is asked then.
    pub fn ask_branches(&mut self, question: BranchQuestion) -> Result<(), AskError> {
        let (host, group) = (self.shared.config.host, question.group);
        let count = question.branches.len();
        if count > BRANCHES_ASKED_MAX {
            return Err(AskError::TooMany(count));
        }
        for asked in &question.branches {
            let ports = asked.route.iter().chain([&asked.port]);
            if let Some(port) = ports.copied().find(|port| PortId::new(*port).is_none()) {
                return Err(AskError::NoPort(port));
            }
            if asked.route.len() > SWITCHES_CROSSED_MAX {
                return Err(AskError::TooFar(asked.route.len()));
            }
        }
        if !self.sessions.contains_key(&(group, host)) {
            return Err(AskError::NoStream(group));
        }
        if self.source_of_gathered(group).is_none() {
            return Err(AskError::NotGathered(group));
        }
        let waiting = self.branches.due_count + count;
        if waiting > DUE_MAX {
            return Err(AskError::Busy(waiting));
        }
        if count > 0 {
            self.branches.due_count = waiting;
            self.branches.due.push_back((question, 0));
        }
        Ok(())
    }

    /// From whom gathered ACKs of this host's stream come.
    fn source_of_gathered(&self, group: GroupId) -> Option<HostId> {
        let gathered = self.groups.get(&group)?.gathered.as_ref()?;
        gathered.origins.get(&self.shared.config.host).copied()
    }

    pub(crate) fn send_request(&mut self, buf: &mut [u8]) -> Option<Transmit> {
        loop {
            let (question, group, epoch, asked) = self.branches.next()?;
            let key = (group, self.shared.config.host);
            let Some(session) = self.sessions.get(&key) else {
                continue; // it is gone by now
            };
            let announced = Announcement {
                op: Op::Request,
                flags: 0,
                group,
                origin: key.1,
                port: asked.port,
                epoch,
                stream: session.stream,
                cumulative: Seq(0),
                stable: Seq(0),
            };
            let sequence = self.shared.next_worm();
            if self.branches.awaited.len() >= AWAITED_MAX {
                self.branches.awaited.pop_front();
            }
            self.branches.awaited.push_back(Awaited {
                question,
                branch: asked.number,
                sequence,
                group,
                port: asked.port,
                epoch,
                stream: session.stream,
            });
            let mac = self.shared.config.mac;
            let length = gather::encode(buf, mac, (key.1, sequence), &asked.route, &announced);
            self.shared.counters.sent_frames += 1;
            self.shared.counters.sent_bytes += length as u64;
            return Some(Transmit {
                length,
                class: BufferClass::One,
                train_bytes_max: 0,
            });
        }
    }

    /// A switch has answered. It does not say which one it is: the number of the worm does.
    fn take_answer(&mut self, worm: &Worm<'_>, announced: &Announcement) -> Result<(), Reject> {
        if self.source_of_gathered(announced.group) != Some(worm.header.source) {
            return Err(Reject::GatheredUnasked);
        }
        let is_asked = |asked: &Awaited| {
            (asked.sequence, asked.group, asked.port)
                == (worm.header.sequence, announced.group, announced.port)
                && (asked.epoch, asked.stream) == (announced.epoch, announced.stream)
        };
        // The last one with this number: they come again.
        let at = self.branches.awaited.iter().rposition(is_asked);
        let asked = at.and_then(|at| self.branches.awaited.remove(at));
        let asked = asked.ok_or(Reject::GatheredUnasked)?;
        if self.branches.answers.len() >= ANSWERS_MAX {
            self.shared.counters.answers_dropped += 1;
            return Ok(());
        }
        let known = announced.flags & flags::KNOWN != 0;
        self.branches.answers.push_back(BranchAnswer {
            question: asked.question,
            branch: asked.branch,
            known: known.then_some((announced.cumulative, announced.stable)),
        });
        Ok(())
    }

    /// The next answer of a switch.
    pub fn poll_branch_answer(&mut self) -> Option<BranchAnswer> {
        self.branches.answers.pop_front()
    }
}
