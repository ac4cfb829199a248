//! Which members keep a stream back, and by how much.

use super::Session;
use crate::child::Child;
use wormcast_wire::HostId;

/// A child that has not confirmed all that this host has of a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Behind {
    pub host: HostId,
    /// Members below it. ACKs are aggregated, so it may be one of these that is behind; the child knows which.
    pub below: usize,
    /// Payload bytes that are here, have been sent by the origin, and are not confirmed by the child and by all
    /// below it.
    pub bytes: u64,
}

impl Session {
    /// Children that are behind, in the order of the plan. Those given up are not among them.
    pub fn behind(&self) -> impl Iterator<Item = Behind> + '_ {
        let end = match self.sending {
            Some(_) => self.sent_end,
            None => self.store.end(),
        };
        let living = self.children.iter().filter(|child| !child.excluded);
        let behind = living.map(move |child| {
            let held =
                (self.confirmed_by(child)..end).filter_map(|position| self.store.get(position));
            Behind {
                host: child.host,
                below: child.below.len(),
                bytes: held.map(|packet| packet.payload.len() as u64).sum(),
            }
        });
        behind.filter(|child| child.bytes > 0)
    }
}

/// How far a host is with a stream. Positions count packets, from one of the origin's choice on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StreamLag {
    /// The first packet that mattered to this host.
    pub first: u64,
    /// It holds, or has delivered, everything before; the origin has sent it.
    pub held: u64,
    /// It alone has confirmed everything before; the origin knows that all members have.
    pub confirmed: u64,
    /// Its children, in the order of the plan.
    pub children: Vec<ChildLag>,
}

/// What a child has acknowledged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ChildLag {
    pub host: HostId,
    /// Members below it.
    pub below: usize,
    /// It holds everything before.
    pub held: u64,
    /// It and all below it have confirmed everything before.
    pub confirmed: u64,
    /// It is waited for no more.
    pub given_up: bool,
}

impl Session {
    /// How far this host is, and its children as far as it knows.
    pub fn lag(&self) -> StreamLag {
        let (held, confirmed) = match &self.reception {
            None => (self.sent_end.max(self.stable), self.stable),
            Some(reception) => (self.cumulative, reception.consumed().max(self.stable)),
        };
        let child = |child: &Child| ChildLag {
            host: child.host,
            below: child.below.len(),
            held: child.cumulative().max(self.stable),
            confirmed: self.confirmed_by(child),
            given_up: child.excluded,
        };
        StreamLag {
            first: self.first,
            held,
            confirmed,
            children: self.children.iter().map(child).collect(),
        }
    }

    /// What a child and all below it have confirmed. That may have been of another set of hosts below it.
    fn confirmed_by(&self, child: &Child) -> u64 {
        if child.stable_current {
            child.stable.max(self.stable)
        } else {
            self.stable
        }
    }
}
