//! What the guard of a switch asks for: where it is off, which hosts re-inject, which groups are closed, how
//! long routes may be.

mod lab;

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::sync::Arc;

use lab::{all_live, group, table};
use wormcast_planner::{ClassDNumbers, FabricState, Group, Guard, MatchValue, Planner};
use wormcast_routing::group::{Scheme, SwitchMode, SwitchParameters};
use wormcast_routing::routes::{Algorithm, Setting};
use wormcast_routing::topology::Topology;
use wormcast_wire::{GroupId, HostId, SwitchId};

fn pair() -> Topology {
    wormcast_routing::generate::from_spec("line:2").unwrap()
}

fn planned(guard: Guard, groups: &[Arc<Group>], algorithm: Algorithm) -> FabricState {
    let network = pair();
    let mut planner = Planner::new(Setting::plain(algorithm));
    planner.set_guard(guard);
    let hosts = all_live(&network);
    planner.plan(
        &network,
        &network,
        groups,
        &hosts,
        &ClassDNumbers::default(),
    )
}

#[test]
fn a_guard_that_is_off_leaves_no_trace() {
    let rates = BTreeMap::from([(HostId(0), 5)]);
    let closed = BTreeSet::from([GroupId(3)]);
    let off = planned(
        Guard {
            on: false,
            closed,
            rates,
        },
        &[],
        Algorithm::Osud,
    );
    assert_eq!(off.switches, lab::plan_all(&pair(), &[]).switches);
    let tables: BTreeSet<_> = (off.switches.values())
        .flat_map(|state| state.entries.keys().map(|key| key.table.clone()))
        .collect();
    assert!(!tables.contains("ingress.guard"));
}

/// No host re-injects worms where no route goes through one.
#[test]
fn hosts_re_inject_only_where_routes_ask_for_it() {
    let on = || Guard {
        on: true,
        ..Guard::default()
    };
    for (algorithm, expected) in [(Algorithm::Osud, 0), (Algorithm::RrmitMin, 1)] {
        let state = planned(on(), &[], algorithm);
        let found: BTreeSet<u128> = (state.switches.values())
            .flat_map(|state| state.entries.values())
            .filter(|action| action.name == "ingress.admit_host")
            .map(|action| lab::model::parameter(action, "transit"))
            .collect();
        assert_eq!(found, BTreeSet::from([expected]), "{algorithm:?}");
    }
}

/// A group with an address is open to plain hosts unless the operator closes it; one of scheme table that
/// shares its number then is open with it.
#[test]
fn groups_are_closed_to_those_who_are_no_members() {
    let guard = wormcast_routing::group::Guard::A;
    let of_table = Scheme::Switch(SwitchParameters::new(SwitchMode::Table, guard));
    let with_address = |id: u16, low: u8, members: &[HostId]| Group {
        class_d: Some(Ipv4Addr::new(239, 0, 0, low)),
        ..group(id, of_table, members)
    };
    let groups = vec![
        group(3, of_table, &[HostId(0), HostId(1)]),
        with_address(5, 7, &[HostId(0)]),
        with_address(6, 255, &[HostId(0)]),
        with_address(8, 3, &[HostId(1)]),
    ];
    let groups: Vec<Arc<Group>> = groups.into_iter().map(Arc::new).collect();
    assert!(groups.iter().all(|group| table(group).is_some()));
    // Groups 5 and 6 have one number, since they have the same members. Host 0 is at switch 0.
    let found = |state: &FabricState, table: &str| -> BTreeSet<u16> {
        let keys = state.switches[&SwitchId(0)].entries.keys();
        keys.filter(|key| key.table == table)
            .map(|key| match key.matches.last() {
                Some((_, MatchValue::Exact(number))) => *number as u16,
                _ => panic!("{key:?}"),
            })
            .collect()
    };
    let numbers = |closed: &[u16]| {
        let closed = closed.iter().copied().map(GroupId).collect();
        let guard = Guard {
            on: true,
            closed,
            ..Guard::default()
        };
        let state = planned(guard, &groups, Algorithm::Osud);
        ["ingress.open_groups", "ingress.group_senders"].map(|table| found(&state, table))
    };
    let sets = |open: &[u16], senders: &[u16]| [open, senders].map(|n| n.iter().copied().collect());
    assert_eq!(numbers(&[]), sets(&[3, 7, 255], &[5]));
    assert_eq!(numbers(&[5]), sets(&[3, 255], &[5, 7]));
    assert_eq!(numbers(&[5, 6, 8]), sets(&[], &[3, 5, 7, 255]));
}

/// All routes of the fabric fit, with some room, so that a change of routes seldom changes what switches hold.
#[test]
fn the_bound_of_routes_is_the_least_that_holds_all() {
    for (spec, expected) in [
        ("line:2", 8),
        ("line:8", 8),
        ("line:9", 16),
        ("line:17", 32),
        ("line:40", 64),
    ] {
        let network = wormcast_routing::generate::from_spec(spec).unwrap();
        let mut planner = Planner::new(Setting::plain(Algorithm::Osud));
        planner.set_guard(Guard {
            on: true,
            ..Guard::default()
        });
        let hosts = all_live(&network);
        let state = planner.plan(&network, &network, &[], &hosts, &ClassDNumbers::default());
        let bounds: BTreeSet<u128> = (state.switches.values())
            .flat_map(|state| state.entries.values())
            .filter(|action| action.name == "ingress.admit_host")
            .map(|action| lab::model::parameter(action, "route_max"))
            .collect();
        assert_eq!(bounds, BTreeSet::from([expected]), "{spec}");
    }
}
