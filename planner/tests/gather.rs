//! Gathered ACKs: in every plan the ACK of every member reaches the origin.

use crate::lab;

use std::collections::BTreeMap;
use std::sync::Arc;

use lab::gather::{Life, all_entries, check, gathering, lives, slots};
use lab::model::write;
use lab::{Random, all_live, change_groups, damage, random_groups, random_topology};
use proptest::prelude::*;
use wormcast_planner::{
    ClassDNumbers, Entity, FabricState, Operation, Planner, Stage, SwitchState, TABLE_GATHER,
    difference,
};
use wormcast_routing::routes::{Algorithm, Setting};
use wormcast_routing::topology::Topology;
use wormcast_wire::{GroupId, SwitchId};

proptest! {
    /// Groups come, go and change, links fail and come back, hosts too: every plan is whole, and what is
    /// marked as touched is all that differs. A group whose members and entries stay keeps its epoch; none
    /// has one twice. Slots stay.
    #[test]
    fn every_ack_reaches_its_origin(seed: u64) {
        change_again_and_again(seed)?;
    }

    /// Entries go before any comes, and none changes in its place.
    #[test]
    fn entries_of_two_plans_are_never_side_by_side(seed: u64) {
        let mut random = Random::new(seed);
        let network = random_topology(&mut random);
        if network.hosts().is_empty() {
            return Ok(());
        }
        let mut planner = Planner::new(Setting::plain(Algorithm::Osud));
        let hosts = all_live(&network);
        let mut groups = random_groups(&mut random, &network, 4);
        groups = gathering(&mut random, groups);
        let mut plan = |up: &Topology, groups: &[_]| {
            let state = planner.plan(up, &network, groups, &hosts, &ClassDNumbers::default());
            planner.settle();
            state
        };
        let old = plan(&network, &groups);
        let up = damage(&mut random, &network);
        let changed = change_groups(&mut random, &network, &groups);
        let new = plan(&up, &gathering(&mut random, changed));
        if let Some(bridge) = &new.routes.bridge {
            let mut sent = bridge.values().flat_map(|plan| &plan.groups);
            prop_assert!(sent.all(|group| group.gathered.is_none()));
        }
        for (switch, wanted) in &new.switches {
            for update in difference(wanted, &old.switches[switch], None) {
                let Entity::Entry(entry) = &update.entity else {
                    continue;
                };
                if entry.key.table == TABLE_GATHER {
                    match update.stage {
                        Stage::Shrink => prop_assert_eq!(update.operation, Operation::Delete),
                        Stage::Grow => prop_assert_eq!(update.operation, Operation::Insert),
                        other => prop_assert!(false, "{:?}", other),
                    }
                }
            }
        }
    }
}

/// Gives how many ACKs came to their origins.
fn change_again_and_again(seed: u64) -> Result<usize, TestCaseError> {
    let mut random = Random::new(seed);
    let network = random_topology(&mut random);
    if network.hosts().is_empty() {
        return Ok(0);
    }
    let mut planner = Planner::new(Setting::plain(Algorithm::Osud));
    let mut groups = Vec::new();
    let mut hosts = all_live(&network);
    let mut up = network.clone();
    let mut announced: BTreeMap<SwitchId, Arc<SwitchState>> = BTreeMap::new();
    let mut ever: BTreeMap<(GroupId, u32), Life> = BTreeMap::new();
    let mut before: Option<FabricState> = None;
    let mut acknowledged = 0;
    for _ in 0..10 {
        let fresh = if groups.is_empty() {
            random_groups(&mut random, &network, 4)
        } else {
            change_groups(&mut random, &network, &groups)
        };
        groups = gathering(&mut random, fresh);
        if random.chance(30) {
            up = if random.chance(50) {
                damage(&mut random, &network)
            } else {
                network.clone()
            };
        }
        if random.chance(30) {
            hosts = all_live(&network);
            hosts.live.retain(|_| random.chance(80));
        }
        let state = planner.plan(&up, &network, &groups, &hosts, &ClassDNumbers::default());
        planner.settle();
        acknowledged += check(&up, &network, &state, &groups, &hosts);
        let now = lives(&state, &groups);
        for (epoch, life) in now {
            let known = ever.entry(epoch).or_insert_with(|| life.clone());
            prop_assert_eq!(known, &life, "an epoch came twice");
        }
        if let Some(touched) = &state.touched {
            let nothing = SwitchState::default();
            for (switch, state) in &state.switches {
                let named = touched.get(switch).map_or(&[][..], |places| places);
                let before = announced.get(switch).map_or(&nothing, |state| &**state);
                let mut there = before.clone();
                difference(state, before, Some(named))
                    .iter()
                    .for_each(|update| write(&mut there, update));
                prop_assert_eq!(&there, &**state);
            }
        }
        if let Some(before) = &before {
            let (old, new) = (slots(before), slots(&state));
            for (place, slot) in &new {
                prop_assert!(old.get(place).is_none_or(|old| old == slot), "{:?}", place);
            }
        }
        // Nothing has changed: nor does an epoch.
        let again = planner.plan(&up, &network, &groups, &hosts, &ClassDNumbers::default());
        prop_assert_eq!(all_entries(&again), all_entries(&state));
        announced.extend(state.switches.clone());
        before = Some(state);
    }
    Ok(acknowledged)
}

/// The test above tests something.
#[test]
fn many_acks_are_gathered() {
    let acknowledged = (0..20).map(|seed| change_again_and_again(seed).expect("no failure"));
    let acknowledged: usize = acknowledged.sum();
    assert!(acknowledged > 10_000, "{acknowledged}");
}
