//! Differences lead to the plan, one safe step after another, on switches as strict as P4Runtime.

use crate::lab;

use std::collections::BTreeMap;
use std::sync::Arc;

use lab::model::{Walker, group_number, write};
use lab::{
    Random, damage, fabric_members, numbers_in, plan_all, port, random_groups, random_topology,
};
use proptest::prelude::*;
use wormcast_planner::{
    Action, ClassDNumbers, Copies, Entity, FabricState, Group, KeyFields, MatchValue, Mgid,
    MulticastGroup, Operation, PortSet, Stage, SwitchState, Update, difference,
};
use wormcast_routing::topology::Topology;
use wormcast_wire::{GroupId, SwitchId};

/// Plans of one network before and after damage and a change of groups.
struct TwoPlans {
    network: Topology,
    old: FabricState,
    new: FabricState,
}

impl TwoPlans {
    fn new(random: &mut Random) -> TwoPlans {
        let network = random_topology(random);
        let (before, after) = (damage(random, &network), damage(random, &network));
        let groups = random_groups(random, &network, 4);
        let more = random_groups(random, &network, 1);
        let later: BTreeMap<_, Arc<Group>> = groups
            .iter()
            .skip(1)
            .chain(&more)
            .map(|group| (group.id, group.clone()))
            .collect();
        let later: Vec<_> = later.into_values().collect();
        let (old, new) = (plan_all(&before, &groups), plan_all(&after, &later));
        TwoPlans { network, old, new }
    }

    fn before(&self, switch: SwitchId) -> SwitchState {
        self.old
            .switches
            .get(&switch)
            .map_or_else(SwitchState::default, |state| (**state).clone())
    }
}

proptest! {
    #[test]
    fn updates_lead_to_the_desired_state_and_then_nothing_differs(seed: u64) {
        let plans = TwoPlans::new(&mut Random::new(seed));
        for (&switch, desired) in &plans.new.switches {
            let mut state = plans.before(switch);
            for update in difference(desired, &state.clone(), None) {
                write(&mut state, &update);
            }
            prop_assert_eq!(&state, &**desired);
            prop_assert_eq!(difference(desired, &state, None), []);
        }
    }

    #[test]
    fn stages_come_in_order_and_can_be_taken_one_by_one(seed: u64) {
        let plans = TwoPlans::new(&mut Random::new(seed));
        for (&switch, desired) in &plans.new.switches {
            let mut state = plans.before(switch);
            let at_once = difference(desired, &state, None);
            prop_assert!(at_once.is_sorted_by_key(|update| update.stage));
            let mut executed = Vec::new();
            for stage in Stage::ALL {
                let mut due = difference(desired, &state, None);
                due.retain(|update| update.stage <= stage);
                due.iter().for_each(|update| write(&mut state, update));
                executed.extend(due);
            }
            prop_assert_eq!(executed, at_once);
        }
    }

    #[test]
    fn no_worm_loops_or_arrives_twice_while_switches_change_one_after_another(seed: u64) {
        let mut random = Random::new(seed);
        let plans = TwoPlans::new(&mut random);
        let mut switches: Vec<SwitchId> = plans.new.switches.keys().copied().collect();
        let states = switches.iter().map(|&switch| (switch, Arc::new(plans.before(switch))));
        let mut walker = Walker::new(&plans.network, states); // the other switches are dead
        let senders = random.sample(plans.network.hosts(), 4);
        let mut numbers = numbers_in(&[&plans.old]);
        numbers.insert(GroupId::BROADCAST);
        for stage in [Stage::Shrink, Stage::Grow] {
            random.shuffle(&mut switches);
            for switch in &switches {
                let state = walker.states.get_mut(switch).expect("a switch");
                for update in difference(&plans.new.switches[switch], &state.clone(), None) {
                    if update.stage == stage {
                        write(Arc::make_mut(state), &update);
                    }
                }
                for sender in &senders {
                    for &number in &numbers {
                        let got = walker.send_group(sender, number);
                        prop_assert!(got.values().all(|&count| count == 1), "{:?} at {}", stage, switch);
                    }
                }
            }
        }
    }

    #[test]
    fn an_unrelated_change_touches_nothing_else(seed: u64) {
        let mut random = Random::new(seed);
        let network = random_topology(&mut random);
        let groups = random_groups(&mut random, &network, 5);
        let Some((gone, rest)) = groups.split_last() else { return Ok(()) };
        let (before, after) = (plan_all(&network, &groups), plan_all(&network, rest));
        let narrow = ClassDNumbers::default();
        let (were, left) = (fabric_members(&groups, &narrow), fabric_members(rest, &narrow));
        for (switch, desired) in &after.switches {
            for update in difference(desired, &before.switches[switch], None) {
                let Entity::Entry(entry) = &update.entity else { continue };
                let Some(number) = group_number(&entry.key) else { continue };
                prop_assert_ne!(were.get(&number), left.get(&number), "of {}", gone.id);
                let is_deleted = update.operation == Operation::Delete;
                prop_assert!(is_deleted || left.contains_key(&number));
            }
        }
    }
}

fn ports<const N: usize>(ports: [usize; N]) -> PortSet {
    ports.into_iter().map(port).collect()
}

fn state_with(mgid: u16, ports: PortSet) -> SwitchState {
    let mut state = SwitchState::default();
    state.multicast.insert(Mgid(mgid), Copies::plain(&ports));
    let matches = vec![("group".into(), MatchValue::Exact(1))];
    let key = KeyFields {
        table: "ingress.groups".into(),
        matches,
        priority: 0,
    };
    let parameters = vec![("mgid".into(), mgid.into())];
    let action = Action {
        name: "ingress.replicate".into(),
        parameters,
    };
    state.entries.insert(Arc::new(key), Arc::new(action));
    state
}

fn outline(updates: &[Update]) -> Vec<(Stage, Operation)> {
    updates
        .iter()
        .map(|update| (update.stage, update.operation))
        .collect()
}

#[test]
fn a_group_keeps_common_ports_while_it_changes() {
    let (desired, actual) = (
        state_with(0x4001, ports([2, 3])),
        state_with(0x4001, ports([1, 2])),
    );
    let group = |ports| {
        Entity::Group(MulticastGroup {
            mgid: Mgid(0x4001),
            copies: Copies::plain(&ports),
        })
    };
    let operation = Operation::Modify;
    assert_eq!(
        difference(&desired, &actual, None),
        [
            Update {
                stage: Stage::Shrink,
                operation,
                entity: group(ports([2]))
            },
            Update {
                stage: Stage::Grow,
                operation,
                entity: group(ports([2, 3]))
            },
        ]
    );
}

#[test]
fn a_group_without_common_ports_is_out_of_use_while_it_changes() {
    let (desired, actual) = (
        state_with(0x4001, ports([3])),
        state_with(0x4001, ports([1])),
    );
    assert_eq!(
        outline(&difference(&desired, &actual, None)),
        [
            (Stage::Shrink, Operation::Delete),
            (Stage::Grow, Operation::Modify),
            (Stage::Grow, Operation::Insert),
        ]
    );
}

#[test]
fn a_broadcast_tree_that_turns_round_is_taken_away_before_the_new_one_grows() {
    let state = |ports| SwitchState {
        multicast: BTreeMap::from([(Mgid(1), Copies::plain(&ports))]),
        ..SwitchState::default()
    };
    assert_eq!(
        outline(&difference(&state(ports([2])), &state(ports([1])), None)),
        [
            (Stage::Shrink, Operation::Delete),
            (Stage::Grow, Operation::Insert)
        ]
    );
}

#[test]
fn sets_of_ports_hold_any_port() {
    let all = ports([0, 63, 64, 127, 128, 253]);
    assert_eq!(
        all.iter().map(|port| port.get()).collect::<Vec<_>>(),
        [0, 63, 64, 127, 128, 253]
    );
    assert!(ports([63, 128]).is_subset(&all) && !ports([1, 128]).is_subset(&all));
    assert!(ports([]).is_empty() && !all.is_empty());
}
