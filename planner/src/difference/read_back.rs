//! A part of what a switch holds, read back: whether it is what was written.

use std::collections::BTreeMap;

use crate::model::copies::Copies;
use crate::model::state::{Name, SwitchState};

/// What is read at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    Entries(Name),
    Groups,
    Defaults,
    /// How fast worms may come by ports.
    Rates,
}

/// How much of it is other than was written, and not by whoever wrote it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Strayed {
    /// Is not there any more.
    pub missing: usize,
    pub changed: usize,
    /// Was never written.
    pub extra: usize,
}

/// Puts a part as it was found in the place of what was taken to be there.
pub fn read_back(held: &mut SwitchState, part: &Part, found: SwitchState) -> Strayed {
    match part {
        Part::Entries(table) => {
            let is_of_part = |key: &crate::model::state::EntryKey| key.table == *table;
            let mut found = found.entries;
            found.retain(|key, _| is_of_part(key));
            let strayed = compare(&held.entries, &found, is_of_part);
            held.entries.retain(|key, _| !is_of_part(key));
            held.entries.extend(found);
            strayed
        }
        Part::Groups => {
            let mut found = found.multicast;
            let has_backups = |copies: &Copies| copies.iter().any(|one| !one.backups.is_empty());
            if !found.values().any(has_backups) {
                take_as_held(&mut found, &held.multicast, same_but_for_backups);
            }
            replace(&mut held.multicast, found)
        }
        Part::Defaults => replace(&mut held.defaults, found.defaults),
        Part::Rates => {
            let mut found = found.rates;
            take_as_held(&mut found, &held.rates, is_as_fast);
            replace(&mut held.rates, found)
        }
    }
}

/// Some targets overlook backups.
fn same_but_for_backups(held: &Copies, found: &Copies) -> bool {
    let plain =
        |copies: &Copies| -> Vec<_> { copies.iter().map(|one| (one.port, one.instance)).collect() };
    plain(held) == plain(found)
}

/// Some targets round rates.
fn is_as_fast(held: &u64, found: &u64) -> bool {
    held.abs_diff(*found) <= 1 + held / 1000
}

/// What a target tells in another form than it was written in counts as written.
fn take_as_held<K: Ord, V: Clone>(
    found: &mut BTreeMap<K, V>,
    held: &BTreeMap<K, V>,
    is_same: impl Fn(&V, &V) -> bool,
) {
    for (key, value) in found {
        if let Some(held) = held.get(key)
            && is_same(held, value)
        {
            value.clone_from(held);
        }
    }
}

fn replace<K: Ord, V: PartialEq>(held: &mut BTreeMap<K, V>, found: BTreeMap<K, V>) -> Strayed {
    let strayed = compare(held, &found, |_| true);
    *held = found;
    strayed
}

fn compare<K: Ord, V: PartialEq>(
    held: &BTreeMap<K, V>,
    found: &BTreeMap<K, V>,
    is_of_part: impl Fn(&K) -> bool,
) -> Strayed {
    let mut strayed = Strayed::default();
    for (key, value) in held.iter().filter(|(key, _)| is_of_part(key)) {
        match found.get(key) {
            None => strayed.missing += 1,
            Some(there) if there != value => strayed.changed += 1,
            Some(_) => {}
        }
    }
    strayed.extra = found.keys().filter(|key| !held.contains_key(key)).count();
    strayed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::copies::Replica;
    use crate::model::ids::Mgid;
    use crate::model::state::{Action, KeyFields, MatchValue};
    use std::sync::Arc;
    use wormcast_wire::PortId;

    fn entry(table: &'static str, number: u128, port: u128) -> (Arc<KeyFields>, Arc<Action>) {
        let key = KeyFields {
            table: table.into(),
            matches: vec![("number".into(), MatchValue::Exact(number))],
            priority: 0,
        };
        let action = Action {
            name: "to".into(),
            parameters: vec![("port".into(), port)],
        };
        (Arc::new(key), Arc::new(action))
    }

    fn state(entries: impl IntoIterator<Item = (Arc<KeyFields>, Arc<Action>)>) -> SwitchState {
        SwitchState {
            entries: entries.into_iter().collect(),
            ..SwitchState::default()
        }
    }

    #[test]
    fn what_is_missing_changed_and_extra_of_a_table_is_counted_and_others_stay() {
        let kept = entry("b", 1, 1);
        let mut held = state([
            entry("a", 1, 1),
            entry("a", 2, 2),
            entry("a", 3, 3),
            kept.clone(),
        ]);
        let there = [entry("a", 1, 1), entry("a", 2, 7), entry("a", 9, 9)];
        let part = Part::Entries("a".into());
        let strayed = read_back(&mut held, &part, state(there.clone()));
        let expected = Strayed {
            missing: 1,
            changed: 1,
            extra: 1,
        };
        assert_eq!(strayed, expected);
        assert_eq!(held, state(there.into_iter().chain([kept])));
        let again = read_back(&mut held.clone(), &part, held);
        assert_eq!(again, Strayed::default());
    }

    #[test]
    fn a_target_that_overlooks_backups_or_rounds_rates_holds_what_was_written() {
        let port = |number| PortId::new(number).expect("a port");
        let copies = |to: u8, backups: &[u8]| {
            Copies::new([Replica {
                port: port(to),
                instance: 1,
                backups: backups.iter().map(|&number| port(number)).collect(),
            }])
        };
        let with = |to, backups: &[u8], rate| {
            let mut state = SwitchState::default();
            state.multicast.insert(Mgid(7), copies(to, backups));
            state.rates.insert(port(3), rate);
            state
        };
        let (held, none) = (with(2, &[4], 1_000_000), Strayed::default());
        let changed = Strayed { changed: 1, ..none };
        for (part, found, expected) in [
            (Part::Groups, with(2, &[], 0), none),
            (Part::Groups, with(5, &[], 0), changed),
            (Part::Groups, with(2, &[5], 0), changed),
            (Part::Rates, with(2, &[], 999_999), none),
            (Part::Rates, with(2, &[], 900_000), changed),
        ] {
            let mut state = held.clone();
            assert_eq!(read_back(&mut state, &part, found), expected, "{part:?}");
            assert_eq!(state == held, expected == none);
        }
    }

    #[test]
    fn groups_defaults_and_rates_are_whole_parts() {
        let mut held = state([entry("a", 1, 1)]);
        held.multicast.insert(Mgid(7), Copies::new([]));
        let port = PortId::new(3).expect("a port");
        held.rates.insert(port, 5);
        held.defaults.insert("a".into(), entry("a", 1, 1).1);
        for part in [Part::Groups, Part::Rates, Part::Defaults] {
            let strayed = read_back(&mut held, &part, SwitchState::default());
            assert_eq!((strayed.missing, strayed.changed, strayed.extra), (1, 0, 0));
        }
        assert_eq!(held, state([entry("a", 1, 1)]));
    }
}
