//! What an origin asks switches that gather its ACKs: who lags (`wire/SPEC.md` §3.2)?

use std::collections::VecDeque;
use wormcast_wire::{GroupId, PORT_ID_MAX, SWITCHES_CROSSED_MAX, Seq};

/// Branches in one question at most.
pub const BRANCHES_ASKED_MAX: usize = 64;
/// Requests that wait to be sent at most; a question that would be beyond is refused.
pub(crate) const DUE_MAX: usize = 256;
/// Requests whose answers are awaited at most. The oldest is forgotten: it is asked again.
pub(crate) const AWAITED_MAX: usize = 1024;
/// Answers that the shell has not taken at most. More are dropped and counted; they are asked for again.
pub const ANSWERS_MAX: usize = 1024;

/// A branch of a switch that is asked about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AskedBranch {
    /// Its number within the question.
    pub number: u32,
    /// Ports to the switch; none: the first one.
    pub route: Vec<u8>,
    pub port: u8,
}

/// Branches of which an origin is to ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BranchQuestion {
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
    #[error("{0} branches are asked about; at most {BRANCHES_ASKED_MAX} can be at once")]
    TooMany(usize),
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
pub(crate) struct Awaited {
    pub(crate) question: u32,
    pub(crate) branch: u32,
    /// Of the request; its answer has the same.
    pub(crate) sequence: u16,
    pub(crate) group: GroupId,
    pub(crate) port: u8,
    pub(crate) epoch: u32,
    pub(crate) stream: u32,
}

/// Requests on their way out, those that are awaited, and answers that came.
#[derive(Debug, Default)]
pub(crate) struct Branches {
    pub(crate) due: VecDeque<(BranchQuestion, usize)>,
    pub(crate) due_count: usize,
    pub(crate) awaited: VecDeque<Awaited>,
    pub(crate) answers: VecDeque<BranchAnswer>,
}

impl Branches {
    pub fn is_due(&self) -> bool {
        self.due_count > 0
    }

    /// The branch whose turn it is to be asked about.
    pub(crate) fn next(&mut self) -> Option<(u32, GroupId, u32, AskedBranch)> {
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
