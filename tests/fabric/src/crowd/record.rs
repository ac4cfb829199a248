//! What programs did and were told. Those who receive note it by themselves: nothing of it comes from an agent's
//! counters, or from those who send.

use super::content::{Hash, IDENT_BYTES, Ident};
use std::collections::BTreeMap;

/// What the program that wrote a message was told of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was never ended: cancelled, or its program or agent was gone before. Nobody may take it whole.
    Void,
    /// It waits for its outcome.
    Awaited,
    /// Of each member: none if it has it, or why it does not.
    Reported(BTreeMap<u16, Option<String>>),
    /// The sender was closed first: for what reason.
    Closed(String),
}

/// A message that was written.
#[derive(Clone, Debug)]
pub struct Sent {
    pub ident: Ident,
    /// Of all its bytes.
    pub hash: Hash,
    /// Its number on the stream, once the agent had all of it.
    pub number: Option<u64>,
    /// When its writing began, its end was taken, its outcome came, µs.
    pub times_us: [u64; 3],
    /// What its program was told.
    pub outcome: Outcome,
    /// Members that it was told of before the outcome, with the time, µs: true if the member was said to have it.
    pub states: Vec<(u64, u16, bool)>,
}

/// What became of a message at a receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Begun, and not yet over.
    Open,
    /// Confirmed, and the agent took that, at this time, µs.
    Confirmed(u64),
    /// The program gave it up.
    Aborted,
    /// The agent said that the rest will not come, or refused the confirmation.
    Lost(String),
    /// The program closed, or its connection broke.
    Dropped,
    AgentGone,
}

/// A message that a receiver began to take.
#[derive(Clone, Debug)]
pub struct Taken {
    /// The host whose message it is, as the agent says.
    pub origin: u16,
    /// The group of the receiver.
    pub group: u16,
    /// Which life of the agent here, and stay in the group.
    pub life: u32,
    /// Its first bytes.
    pub head: Vec<u8>,
    /// Of all bytes so far.
    pub hash: Hash,
    pub bytes: u64,
    /// Its length, once its end has come.
    pub length: Option<u64>,
    /// When it began, µs.
    pub begun_us: u64,
    pub fate: Fate,
}

impl Taken {
    /// Which it says it is, if its beginning has come.
    pub fn ident(&self) -> Option<Ident> {
        Ident::parse(&self.head)
    }

    pub(super) fn add(&mut self, bytes: &[u8]) {
        let missing = (IDENT_BYTES - self.head.len()).min(bytes.len());
        self.head.extend_from_slice(&bytes[..missing]);
        self.hash.add(bytes);
        self.bytes += bytes.len() as u64;
    }
}

/// All that programs of a host did and were told, in the order in which it began.
#[derive(Debug, Default)]
pub struct Record {
    pub sent: Vec<Sent>,
    pub taken: Vec<Taken>,
    /// Of those, how many have not come to an end.
    pub open: usize,
    /// Messages that wait for their outcome.
    pub awaited: usize,
}

impl Record {
    pub(super) fn settle(&mut self, index: usize, outcome: Outcome, now_us: u64) {
        let sent = &mut self.sent[index];
        if sent.outcome == Outcome::Awaited {
            self.awaited -= 1;
        }
        sent.times_us[2] = now_us;
        sent.outcome = outcome;
    }

    pub(super) fn finish(&mut self, index: usize, fate: Fate) {
        let taken = &mut self.taken[index];
        if taken.fate == Fate::Open {
            self.open -= 1;
            taken.fate = fate;
        }
    }
}
