//! Members that will not have a message: what a host says of them in its ACK, and what a parent keeps of it.
//!
//! One rule holds everywhere: whoever says that everything before `stable` is confirmed names, in the same ACK, each
//! member to which that does not apply. What does not fit makes `stable` less. So no list that is full can turn a
//! failure into a success.

use std::collections::BTreeMap;
use wormcast_wire::ack::{Ack, FAILED_MAX, FailedMember, FailedSet, SETS_MAX};
use wormcast_wire::{FailReason, HostId, Seq};

/// Bytes of an ACK that sets of failed members take at most; a set has a bit for each member.
const SETS_BYTES_MAX: usize = 256;

/// A member that will not have a message, or several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub host: HostId,
    pub reason: FailReason,
    /// Of a member that lacks one message: the first packet of it that it has not confirmed. [`FailReason::Late`]: it lacks all before. If the
    /// host is dead it means nothing: all messages are concerned.
    pub at: u64,
}

impl Failure {
    /// Whether the host lives and lacks one message.
    pub fn is_of_one_message(&self) -> bool {
        !self.reason.is_host_dead() && self.reason != FailReason::Late
    }

    /// Whether it says something of messages that are not stable yet. The first of them begins at `open_from`: all may
    /// know of a part of it that it is stable while the member counted as dead, and nobody has noted that it lacks it.
    fn is_open(&self, stable: u64, open_from: u64) -> bool {
        match self.reason {
            reason if reason.is_host_dead() => true,
            FailReason::Late => self.at > stable,
            _ => self.at >= open_from,
        }
    }

    /// Whether it has to be named with the word that everything before `until` is confirmed.
    fn limits(&self, until: u64) -> bool {
        !self.is_of_one_message() || self.at < until
    }

    fn listed(&self) -> FailedMember {
        FailedMember {
            host: self.host,
            reason: self.reason,
            at: Seq::of(self.at),
        }
    }
}

/// What a child has acknowledged: how far it and all below it have confirmed, and to whom that does not apply. It stays
/// true, so of two reports the one that goes further counts, and no part of another.
#[derive(Clone, Debug)]
pub(crate) struct Report {
    stable: u64,
    failed: Vec<Failure>,
}

impl Report {
    /// Nothing is acknowledged beyond what all know to be stable.
    pub fn new(stable: u64) -> Report {
        Report {
            stable,
            failed: Vec::new(),
        }
    }

    /// Another report of the same child and epoch has come; one that goes less far came late. Whether it counts.
    pub fn take(&mut self, stable: u64, failed: impl Iterator<Item = Failure>) -> bool {
        if stable < self.stable {
            return false;
        }
        self.stable = stable;
        self.failed.clear();
        self.failed.extend(failed);
        true
    }

    /// Everything before is confirmed, except by those who have failed.
    pub fn stable(&self) -> u64 {
        self.stable
    }

    pub fn failed(&self) -> &[Failure] {
        &self.failed
    }
}

/// The failed members that an ACK names, their positions near `near`. `members` are those of the plan by which it
/// was made, ascending.
pub(crate) fn failures<'a>(
    ack: &Ack<'a>,
    near: u64,
    members: &'a [HostId],
) -> impl Iterator<Item = Failure> + use<'a> {
    let listed = ack.failed().map(move |member| Failure {
        host: member.host,
        reason: member.reason,
        at: member.at.expand(near),
    });
    let in_sets = ack.sets().flat_map(move |set| {
        let is_in = move |index: usize| {
            let byte = set.members.get(index / 8).copied().unwrap_or(0);
            byte & 1 << (index % 8) != 0
        };
        let hosts = members.iter().enumerate();
        let hosts = hosts.filter(move |(index, _)| is_in(*index));
        hosts.map(move |(_, host)| Failure {
            host: *host,
            reason: set.reason,
            at: set.at.expand(near),
        })
    });
    listed.chain(in_sets)
}

/// What an ACK says: `stable`, and every member to which that does not apply.
#[derive(Debug)]
pub(crate) struct Word {
    pub stable: u64,
    pub listed: Vec<FailedMember>,
    sets: Vec<(FailReason, u64, Vec<u8>)>,
}

impl Word {
    /// The word that everything before `stable` is confirmed, except by these. As much of it as fits into an ACK.
    /// All know that everything before `known` is stable, and the message there begins at `open_from`; `members` are
    /// those of the plan, ascending.
    pub fn new(
        stable: u64,
        (known, open_from): (u64, u64),
        mut failed: Vec<Failure>,
        members: &[HostId],
    ) -> Word {
        failed.retain(|failure| failure.is_open(known, open_from));
        // The rest is news before its time: as much of it as there is room for.
        failed.sort_by_key(|failure| (!failure.limits(stable), failure.at));
        let count = |until: u64| failed.iter().filter(|one| one.limits(until)).count();
        let breaks = || {
            let living = failed.iter().filter(|one| !one.reason.is_host_dead());
            living
                .map(|one| one.at)
                .filter(|at| (known + 1..stable).contains(at))
        };
        let fits = |until: &u64| count(*until) <= FAILED_MAX;
        let until = Some(stable).filter(fits);
        if let Some(until) = until.or_else(|| breaks().filter(fits).max()) {
            let is_last = until == stable;
            let named = failed.iter().filter(|one| is_last || one.limits(until));
            return Word {
                stable: until,
                listed: named.take(FAILED_MAX).map(Failure::listed).collect(),
                sets: Vec::new(),
            };
        }
        // Before the next break those who lack one message lack the same.
        let until = breaks().min().unwrap_or(stable);
        Word {
            stable: until,
            listed: Vec::new(),
            sets: in_sets(&failed, known, until, members),
        }
    }

    /// The sets of its members, for an ACK.
    pub fn sets(&self) -> Vec<FailedSet<'_>> {
        let sets = self.sets.iter();
        sets.map(|(reason, at, members)| FailedSet {
            reason: *reason,
            at: Seq::of(*at),
            members,
        })
        .collect()
    }
}

/// Those that have to be named, by reason. If there is no room for so many reasons, those of the fewest members give
/// way to others that say the same of the same messages.
fn in_sets(
    failed: &[Failure],
    known: u64,
    until: u64,
    members: &[HostId],
) -> Vec<(FailReason, u64, Vec<u8>)> {
    let bytes = members.len().div_ceil(8).max(1);
    let mut sets: BTreeMap<(bool, u8), (FailReason, Vec<u8>)> = BTreeMap::new();
    for failure in failed.iter().filter(|one| one.limits(until)) {
        let Ok(index) = members.binary_search(&failure.host) else {
            continue;
        };
        let key = (failure.is_of_one_message(), failure.reason as u8);
        let set = sets.entry(key);
        let (_, set) = set.or_insert_with(|| (failure.reason, vec![0; bytes]));
        set[index / 8] |= 1 << (index % 8);
    }
    let most = (SETS_BYTES_MAX / bytes).min(SETS_MAX);
    while sets.len() > most {
        let size = |set: &[u8]| set.iter().map(|byte| byte.count_ones()).sum::<u32>();
        let alike = |of_one| sets.keys().filter(|key| key.0 == of_one).count() > 1;
        let least = sets.iter().filter(|(key, _)| alike(key.0));
        let Some((&least, _)) = least.min_by_key(|(_, (_, set))| size(set)) else {
            break;
        };
        let Some((_, gone)) = sets.remove(&least) else {
            break;
        };
        let others = sets.iter_mut().filter(|(key, _)| key.0 == least.0);
        if let Some((_, (_, set))) = others.max_by_key(|(_, (_, set))| size(set)) {
            set.iter_mut()
                .zip(gone)
                .for_each(|(byte, more)| *byte |= more);
        }
    }
    let sets = sets.into_iter();
    sets.map(|((of_one, _), (reason, set))| (reason, if of_one { known } else { until }, set))
        .collect()
}
