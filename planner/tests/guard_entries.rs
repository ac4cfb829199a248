//! What the guard of a switch asks for: where it is off, which hosts re-inject, which groups are closed, how
//! long routes may be.

use crate::lab;

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
    let sent = off.agents.values().map(|plan| (plan.host, plan.rate_bytes));
    let expected = [(HostId(0), Some(5)), (HostId(1), None)];
    assert_eq!(sent.collect::<Vec<_>>(), expected, "agents keep to it");
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

/// Another rate is a new plan for its host alone, and for its port.
#[test]
fn a_rate_concerns_one_host() {
    let network = wormcast_routing::generate::from_spec("line:3").unwrap();
    let mut planner = Planner::new(Setting::plain(Algorithm::Osud));
    let hosts = all_live(&network);
    let mut plan = |rates: &[(u16, u64)]| {
        planner.set_guard(Guard {
            on: true,
            rates: rates
                .iter()
                .map(|&(host, rate)| (HostId(host), rate))
                .collect(),
            ..Guard::default()
        });
        planner.plan(&network, &network, &[], &hosts, &ClassDNumbers::default())
    };
    let before = plan(&[(1, 7)]);
    let after = plan(&[(1, 7), (2, 9)]);
    for (host, plan) in &after.agents {
        let same = Arc::ptr_eq(plan, &before.agents[host]);
        assert_eq!(same, *host != HostId(2), "{host:?}");
    }
    let rates = |state: &FabricState| -> Vec<u64> {
        let switches = state.switches.values();
        switches
            .flat_map(|state| state.rates.values().copied())
            .collect()
    };
    assert_eq!((rates(&before), rates(&after)), (vec![7], vec![7, 9]));
    assert_eq!(after.agents[&HostId(2)].rate_bytes, Some(9));
    assert_eq!(plan(&[]).agents[&HostId(1)].rate_bytes, None);
}

/// A TREE route has two bytes for each link that the worm crosses, and the marker. A host may have as many as the
/// largest of its groups needs, and none without such a group.
#[test]
fn tree_routes_may_be_as_long_as_the_largest_multicast_of_the_host() {
    let network = wormcast_routing::generate::from_spec("line:5").unwrap();
    let guard = wormcast_routing::group::Guard::A;
    let copied = |id: u16, members: &[u16]| {
        let scheme = Scheme::Switch(SwitchParameters::new(SwitchMode::Tree, guard));
        let members: Vec<HostId> = members.iter().copied().map(HostId).collect();
        Arc::new(group(id, scheme, &members))
    };
    let hosts: Vec<u16> = network.hosts().iter().map(|host| host.id.0).collect();
    assert_eq!(hosts, [0, 1, 2, 3, 4], "one a switch");
    let bounds = |groups: &[Arc<Group>]| -> Vec<u128> {
        let mut planner = Planner::new(Setting::plain(Algorithm::Osud));
        planner.set_guard(Guard {
            on: true,
            ..Guard::default()
        });
        let hosts = all_live(&network);
        let class_d = ClassDNumbers::default();
        let state = planner.plan(&network, &network, groups, &hosts, &class_d);
        let entries = state
            .switches
            .values()
            .flat_map(|state| state.entries.values());
        let admitted = entries.filter(|action| action.name == "ingress.admit_host");
        admitted
            .map(|action| lab::model::parameter(action, "tree_max"))
            .collect()
    };
    // To hosts 1 and 2 from host 0: two links, two hosts. From host 1: one link and a host each way.
    let (small, all) = (copied(1, &[0, 1, 2]), copied(2, &[0, 1, 2, 3, 4]));
    assert_eq!(bounds(&[]), [0, 0, 0, 0, 0]);
    assert_eq!(bounds(std::slice::from_ref(&small)), [9, 9, 9, 0, 0]);
    assert_eq!(bounds(&[copied(3, &[1, 4])]), [0, 9, 0, 0, 9]);
    assert_eq!(bounds(&[small, all]), [17, 17, 17, 17, 17]);
}
