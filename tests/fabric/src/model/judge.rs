//! What must hold, by what programs noted.

use super::Run;
use crate::crowd::{Fate, Ident, Outcome, Sent, Taken};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// What a receiver is told of a message that its origin has forgotten.
const FORGOTTEN: &str = "its origin restarted";

/// Where a message stands among those of its origin: the life of the stream, and the number there.
type Place = (u32, u64);

/// What the receivers of a host took.
struct Host<'r> {
    id: u16,
    taken: &'r [Taken],
}

/// What all programs noted.
struct Notes<'r> {
    hosts: Vec<Host<'r>>,
    sent: BTreeMap<IdentKey, &'r Sent>,
    takers: BTreeMap<IdentKey, Vec<(u16, &'r Taken)>>,
    /// Messages without content, by group and origin.
    empty: BTreeMap<(u16, u16), Vec<&'r Sent>>,
}

type IdentKey = (u16, u16, u32, u32, u32);

fn key(ident: &Ident) -> IdentKey {
    let Ident {
        group,
        origin,
        life,
        writer,
        counter,
        ..
    } = *ident;
    (group, origin, life, writer, counter)
}

impl<'r> Notes<'r> {
    fn of(run: &'r Run) -> Notes<'r> {
        let hosts = &run.scenario.fabric.hosts;
        let all = hosts.values().flat_map(|host| &host.crowd.record.sent);
        let mut empty: BTreeMap<(u16, u16), Vec<&Sent>> = BTreeMap::new();
        for sent in all.clone().filter(|sent| sent.ident.size == 0) {
            let of = (sent.ident.group, sent.ident.origin);
            empty.entry(of).or_default().push(sent);
        }
        let mut takers: BTreeMap<IdentKey, Vec<(u16, &Taken)>> = BTreeMap::new();
        for host in hosts.values() {
            for taken in &host.crowd.record.taken {
                if let Some(ident) = taken.ident() {
                    let given = takers.entry(key(&ident)).or_default();
                    given.push((host.id, taken));
                }
            }
        }
        Notes {
            takers,
            hosts: hosts
                .values()
                .map(|host| Host {
                    id: host.id,
                    taken: &host.crowd.record.taken,
                })
                .collect(),
            sent: all.map(|sent| (key(&sent.ident), sent)).collect(),
            empty,
        }
    }

    fn sent_of(&self, taken: &Taken) -> Option<&'r Sent> {
        self.sent.get(&key(&taken.ident()?)).copied()
    }

    fn place_of(&self, taken: &Taken) -> Option<Place> {
        let sent = self.sent_of(taken)?;
        Some((sent.ident.life, sent.number?))
    }

    fn host(&self, id: u16) -> Option<&Host<'r>> {
        self.hosts.iter().find(|host| host.id == id)
    }

    fn takers(&self, ident: &Ident) -> &[(u16, &'r Taken)] {
        self.takers.get(&key(ident)).map_or(&[], Vec::as_slice)
    }

    /// When a host confirmed the message, whole: the first time.
    fn confirmed_us(&self, host: u16, sent: &Sent) -> Option<u64> {
        let is_whole = |taken: &Taken| {
            taken.ident() == Some(sent.ident)
                && (taken.group, taken.origin) == (sent.ident.group, sent.ident.origin)
                && taken.length == Some(sent.ident.size)
                && taken.hash == sent.hash
        };
        let takers = self.takers(&sent.ident).iter();
        let confirmed = takers.filter_map(|(taker, taken)| match taken.fate {
            Fate::Confirmed(at_us) if *taker == host && is_whole(taken) => Some(at_us),
            _ => None,
        });
        confirmed.min()
    }

    /// All that is known of a message.
    fn history(&self, sent: &Sent) -> String {
        let mut text = format!("{sent:?}\n");
        for (host, taken) in self.takers(&sent.ident) {
            let _ = writeln!(text, "host {host}: {taken:?}");
        }
        text
    }

    /// All that a host took of an origin.
    fn stream(&self, host: u16, group: u16, origin: u16) -> String {
        let mut text = format!("what host {host} took of host {origin} in group {group}:\n");
        for taken in self.host(host).map_or(&[][..], |host| host.taken) {
            if (taken.group, taken.origin) == (group, origin) {
                let place = self.place_of(taken);
                let _ = writeln!(
                    text,
                    "  life {} at {} ms: {place:?} {:?} bytes, {:?}",
                    taken.life,
                    taken.begun_us / 1_000,
                    taken.length,
                    taken.fate
                );
            }
        }
        text
    }
}

impl Run {
    /// Something has no end.
    pub(super) fn fail_unsettled(&self) {
        let notes = Notes::of(self);
        let mut text = String::new();
        for host in self.scenario.fabric.hosts.values() {
            let crowd = &host.crowd;
            let open = |taken: &&Taken| taken.fate == Fate::Open;
            for taken in crowd.record.taken.iter().filter(open) {
                let place = notes.place_of(taken);
                let _ = writeln!(text, "host {}: {place:?} is half: {taken:?}", host.id);
            }
            let awaits = |sent: &&Sent| sent.outcome == Outcome::Awaited;
            for sent in crowd.record.sent.iter().filter(awaits) {
                let _ = writeln!(text, "no outcome: {sent:?}");
            }
            if !crowd.is_settled() && crowd.record.awaited == 0 {
                let _ = writeln!(text, "host {}: not all is written", host.id);
            }
        }
        panic!("{text}\n{}", self.scenario.report());
    }

    pub(super) fn judge(&self) {
        let notes = Notes::of(self);
        for host in self.scenario.fabric.hosts.values() {
            for sent in &host.crowd.record.sent {
                self.judge_outcome(&notes, sent);
                self.judge_states(&notes, sent);
            }
        }
        for host in &notes.hosts {
            judge_taken(&notes, host);
        }
        self.judge_empty(&notes);
        self.judge_order(&notes);
    }

    /// 1, 4, 5 and 6.
    fn judge_outcome(&self, notes: &Notes<'_>, sent: &Sent) {
        let ident = &sent.ident;
        let fail = |text: String| -> ! {
            panic!(
                "{text}\n{}\n{}",
                notes.history(sent),
                self.scenario.report()
            )
        };
        let outcome = match &sent.outcome {
            Outcome::Reported(outcome) => outcome,
            Outcome::Awaited => fail("no outcome".to_owned()),
            Outcome::Void => return,
            Outcome::Closed(reason) => {
                let (group, origin) = (ident.group, ident.origin);
                let was_killed = self.killed.contains(&origin);
                let has_left = self.left.contains(&(group, origin));
                let is_settled = was_killed || has_left;
                if !is_settled && reason != "its program is gone" {
                    fail(format!("the sender was closed: {reason}"));
                }
                return;
            }
        };
        let stayed = |host: &&u16| !self.left.contains(&(ident.group, **host));
        for host in self.members[&ident.group].iter().filter(stayed) {
            if *host != ident.origin && !outcome.contains_key(host) {
                fail(format!("host {host} is not named"));
            }
        }
        let [begun_us, _, settled_us] = sent.times_us;
        let is_calm = begun_us >= self.last_us;
        for (host, reason) in outcome {
            let Some(reason) = reason else {
                let confirmed_us = notes.confirmed_us(*host, sent);
                if ident.size > 0 && confirmed_us.is_none_or(|at_us| at_us > settled_us) {
                    let (group, origin) = (ident.group, ident.origin);
                    let stream = notes.stream(*host, group, origin);
                    fail(format!("host {host} is said to have it\n{stream}"));
                }
                continue;
            };
            if *host == ident.origin {
                if is_calm || reason.starts_with("returned other") {
                    fail(format!("at its origin: {reason}"));
                }
                continue;
            }
            let hosts = &self.scenario.fabric.hosts;
            let reader = hosts[host].crowd.readers.get(&ident.group);
            let was_there = reader.is_some_and(|reader| reader.was_there(begun_us, settled_us));
            // Of an origin that a plan leaves out members take nothing.
            let was_out = self.left.contains(&(ident.group, ident.origin))
                || self.left_out.contains(&ident.origin);
            let is_spoilt = was_out || self.away_us > self.exclude_us / 2;
            if was_there && (is_calm || !is_spoilt) {
                let stream = notes.stream(*host, ident.group, ident.origin);
                fail(format!("host {host} was there: {reason}\n{stream}"));
            }
        }
    }

    /// 1, of what was told before the outcome.
    fn judge_states(&self, notes: &Notes<'_>, sent: &Sent) {
        for &(at_us, host, said) in &sent.states {
            let confirmed_us = notes.confirmed_us(host, sent);
            let outcome = match &sent.outcome {
                Outcome::Reported(outcome) => outcome.get(&host),
                _ => None,
            };
            let is_wrong = if said {
                sent.ident.size > 0 && confirmed_us.is_none_or(|own_us| own_us > at_us)
            } else {
                // One that was removed, or away, may have come back.

                !self.left.contains(&(sent.ident.group, host))
                    && !self.killed.contains(&host)
                    && outcome.is_some_and(Option::is_none)
            };
            assert!(
                !is_wrong,
                "host {host} was said at {at_us} µs to have it: {said}\n{}",
                notes.history(sent)
            );
        }
    }

    /// Messages without content are known by their neighbours: for each that a member is said to have, it confirmed one
    /// that may be it; and it confirmed no more than there were.
    fn judge_empty(&self, notes: &Notes<'_>) {
        for (&(group, origin), empty) in &notes.empty {
            for host in notes.hosts.iter().filter(|host| host.id != origin) {
                let mut gaps = gaps_of(notes, host, (group, origin));
                let has = |sent: &&&Sent| match &sent.outcome {
                    Outcome::Reported(outcome) => {
                        outcome.get(&host.id).is_some_and(Option::is_none)
                    }
                    _ => false,
                };
                let place = |sent: &&Sent| Some((sent.ident.life, sent.number?));
                let mut said: Vec<Place> = empty.iter().filter(has).filter_map(place).collect();
                said.sort_unstable();
                for place in said {
                    let fits =
                        |gap: &&mut Gap| gap.confirmed > 0 && gap.from < place && place < gap.to;
                    let gap = gaps.iter_mut().filter(fits).min_by_key(|gap| gap.to);
                    let Some(gap) = gap else {
                        panic!(
                            "host {} is said to have {place:?}, without content\n{}",
                            host.id,
                            notes.stream(host.id, group, origin)
                        );
                    };
                    gap.confirmed -= 1;
                }
            }
        }
    }

    /// Any two members of an ordered group were given what both were given in the same order; all of it while nothing
    /// befell them or the sequencer, else what was written in the end.
    fn judge_order(&self, notes: &Notes<'_>) {
        let groups = self.scenario.controller.groups.iter();
        for group in groups.filter(|group| group.ordered) {
            let id = group.id.0;
            let changed =
                |host: u16| self.killed.contains(&host) || self.left.contains(&(id, host));
            let sequencers = &self.sequencers[&id];
            let is_steady = sequencers.len() == 1
                && !sequencers.iter().any(|host| changed(*host))
                && self.away_us <= self.exclude_us / 2;
            let given = |host: &Host<'_>| -> Vec<IdentKey> {
                let all = is_steady && !changed(host.id);
                let of_group = host.taken.iter().filter(|taken| taken.group == id);
                let sent = of_group.filter_map(|taken| notes.sent_of(taken));
                // Messages of hosts that are members no longer may be read at any time.
                let counts = |sent: &&Sent| {
                    all && !changed(sent.ident.origin) || sent.times_us[0] >= self.last_us
                };
                sent.filter(counts).map(|sent| key(&sent.ident)).collect()
            };
            let all: Vec<(u16, Vec<IdentKey>)> = notes
                .hosts
                .iter()
                .map(|host| (host.id, given(host)))
                .collect();
            for (at, (host, ours)) in all.iter().enumerate() {
                for (other, theirs) in &all[..at] {
                    let places: BTreeMap<&IdentKey, usize> = theirs.iter().zip(0..).collect();
                    let common = ours.iter().filter_map(|one| places.get(one));
                    let common: Vec<usize> = common.copied().collect();
                    assert!(
                        common.is_sorted(),
                        "ordered group {id}: host {host} was given {ours:?}\nhost {other} {theirs:?}"
                    );
                }
            }
        }
    }
}

/// Messages without content that came between two others.
struct Gap {
    from: Place,
    to: Place,
    confirmed: u64,
}

fn gaps_of(notes: &Notes<'_>, host: &Host<'_>, (group, origin): (u16, u16)) -> Vec<Gap> {
    const LAST: Place = (u32::MAX, u64::MAX);
    let of_stream = |taken: &&Taken| (taken.group, taken.origin) == (group, origin);
    let lives: BTreeSet<u32> = host.taken.iter().map(|taken| taken.life).collect();
    let mut gaps = Vec::new();
    for life in lives {
        let mut gap = Gap {
            from: (0, 0),
            to: LAST,
            confirmed: 0,
        };
        let taken = host.taken.iter().filter(of_stream);
        for taken in taken.filter(|taken| taken.life == life) {
            if taken.length == Some(0) {
                gap.confirmed += u64::from(matches!(taken.fate, Fate::Confirmed(_)));
            } else if let Some(place) = notes.place_of(taken) {
                gap.to = place;
                gaps.push(std::mem::replace(
                    &mut gap,
                    Gap {
                        from: place,
                        to: LAST,
                        confirmed: 0,
                    },
                ));
            }
        }
        gaps.push(gap);
    }
    gaps
}

/// 2 and 3.
fn judge_taken(notes: &Notes<'_>, host: &Host<'_>) {
    let mut last: BTreeMap<(u32, u16, u16), Place> = BTreeMap::new();
    let mut seen: BTreeSet<(u32, IdentKey)> = BTreeSet::new();
    for taken in host.taken {
        let fail = |text: &str| {
            let stream = notes.stream(host.id, taken.group, taken.origin);
            panic!("host {}: {text}: {taken:?}\n{stream}", host.id)
        };
        if taken.fate == Fate::Open {
            fail("half a message");
        }
        let Some(ident) = taken.ident() else {
            if taken.length.is_some_and(|length| length > 0) {
                fail("a message without its beginning");
            }
            continue;
        };
        let Some(sent) = notes.sent.get(&key(&ident)) else {
            fail("nobody wrote it");
            continue;
        };
        if (ident.group, ident.origin) != (taken.group, taken.origin) || sent.ident != ident {
            fail("a message gone astray");
        }
        if let Some(length) = taken.length
            && (length != ident.size || taken.hash != sent.hash)
        {
            fail(&format!("not what was written: {sent:?}"));
        }
        if taken.length.is_some() && sent.outcome == Outcome::Void {
            fail(&format!("whole, though it was not ended: {sent:?}"));
        }
        if seen.contains(&(taken.life, key(&ident))) {
            fail("given twice");
        }
        if matches!(&taken.fate, Fate::Lost(reason) if reason == FORGOTTEN) {
            // A host that has it all the same may pass it on from its beginning.
            continue;
        }
        seen.insert((taken.life, key(&ident)));
        if let Some(number) = sent.number {
            let place = (ident.life, number);
            let before = last.insert((taken.life, taken.group, taken.origin), place);
            if before.is_some_and(|before| before >= place) {
                fail(&format!("{place:?} after {before:?}"));
            }
        }
    }
}
