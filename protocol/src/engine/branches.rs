//! What an origin asks switches that gather its ACKs: who lags (`wire/SPEC.md` §3.2)?

use super::Engine;
use crate::event::Transmit;
use crate::reject::Reject;
use std::collections::VecDeque;
use wormcast_wire::gather::{self, Op, Said, flags};
use wormcast_wire::worm::Worm;
use wormcast_wire::{BufferClass, GroupId, HostId, PORT_ID_MAX, PortId, SWITCHES_CROSSED_MAX, Seq};

/// Branches in one question at most.
pub const BRANCHES_ASKED_MAX: usize = 64;
/// Requests that wait to be sent at most; a question that would be beyond is refused.
const DUE_MAX: usize = 256;
/// Requests whose answers are awaited at most. The oldest is forgotten: it is asked again.
const AWAITED_MAX: usize = 1024;
/// Answers that the shell has not taken at most. More are dropped and counted; they are asked for again.
pub const ANSWERS_MAX: usize = 1024;

/// A branch of a switch that is asked about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AskedBranch {
    /// Its number within the question.
    pub number: u32,
    /// Ports to the switch; none: the first one.
    pub route: Vec<u8>,
    /// Of the branch there.
    pub port: u8,
}

/// Branches of which an origin is to ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BranchQuestion {
    /// Number of the question.
    pub number: u32,
    /// In whose stream of this host.
    pub group: GroupId,
    /// By which switches gather.
    pub epoch: u32,
    /// At most [`BRANCHES_ASKED_MAX`].
    pub branches: Vec<AskedBranch>,
}

/// What a switch knows of a branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BranchAnswer {
    /// Number of the question.
    pub question: u32,
    /// Of the branch within it.
    pub branch: u32,
    /// What all behind it hold and have confirmed; none: nothing is known in this life of the stream.
    pub known: Option<(Seq, Seq)>,
}

/// Why switches are not asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AskError {
    /// There is no such stream.
    #[error("this host sends nothing to group {0}")]
    NoStream(GroupId),
    /// Hosts tell it alone.
    #[error("switches gather no ACKs of what this host sends to group {0}")]
    NotGathered(GroupId),
    /// Too many branches.
    #[error("{0} branches are asked about; at most {BRANCHES_ASKED_MAX} can be at once")]
    TooMany(usize),
    /// No port.
    #[error("{0} is no port; ports are 0 to {PORT_ID_MAX}")]
    NoPort(u8),
    /// Nobody is that far away.
    #[error("a route of {0} bytes leads to a switch; at most {SWITCHES_CROSSED_MAX} do")]
    TooFar(usize),
    /// Others are asked about at the moment.
    #[error("{0} requests wait to be sent; at most {DUE_MAX} do")]
    Busy(usize),
}

/// A request whose answer is awaited.
#[derive(Debug)]
struct Awaited {
    question: u32,
    branch: u32,
    /// Of the request; its answer has the same.
    sequence: u16,
    group: GroupId,
    port: u8,
    epoch: u32,
    stream: u32,
}

/// Requests on their way out, those that are awaited, and answers that came.
#[derive(Debug, Default)]
pub(super) struct Branches {
    due: VecDeque<(BranchQuestion, usize)>,
    due_count: usize,
    awaited: VecDeque<Awaited>,
    answers: VecDeque<BranchAnswer>,
}

impl Branches {
    pub fn is_due(&self) -> bool {
        self.due_count > 0
    }

    /// The branch whose turn it is to be asked about.
    fn next(&mut self) -> Option<(u32, GroupId, u32, AskedBranch)> {
        let (question, at) = self.due.front_mut()?;
        let asked = question.branches[*at].clone();
        let next = (question.number, question.group, question.epoch, asked);
        *at += 1;
        self.due_count -= 1;
        if *at == question.branches.len() {
            self.due.pop_front();
        }
        Some(next)
    }
}

impl Engine {
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

    pub(super) fn send_request(&mut self, buf: &mut [u8]) -> Option<Transmit> {
        loop {
            let (question, group, epoch, asked) = self.branches.next()?;
            let key = (group, self.shared.config.host);
            let Some(session) = self.sessions.get(&key) else {
                continue; // it is gone by now
            };
            let said = Said {
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
            let length = gather::encode(buf, mac, (key.1, sequence), &asked.route, &said);
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
    pub(super) fn take_answer(&mut self, worm: &Worm<'_>, said: &Said) -> Result<(), Reject> {
        if self.source_of_gathered(said.group) != Some(worm.header.source) {
            return Err(Reject::GatheredUnasked);
        }
        let is_asked = |asked: &Awaited| {
            (asked.sequence, asked.group, asked.port)
                == (worm.header.sequence, said.group, said.port)
                && (asked.epoch, asked.stream) == (said.epoch, said.stream)
        };
        // The last one with this number: they come again.
        let at = self.branches.awaited.iter().rposition(is_asked);
        let asked = at.and_then(|at| self.branches.awaited.remove(at));
        let asked = asked.ok_or(Reject::GatheredUnasked)?;
        if self.branches.answers.len() >= ANSWERS_MAX {
            self.shared.counters.answers_dropped += 1;
            return Ok(());
        }
        let known = said.flags & flags::KNOWN != 0;
        self.branches.answers.push_back(BranchAnswer {
            question: asked.question,
            branch: asked.branch,
            known: known.then_some((said.cumulative, said.stable)),
        });
        Ok(())
    }

    /// The next answer of a switch.
    pub fn poll_branch_answer(&mut self) -> Option<BranchAnswer> {
        self.branches.answers.pop_front()
    }
}
