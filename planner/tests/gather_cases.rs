//! Gathered ACKs: whole fabrics, and what does not fit.

use crate::lab;

use std::collections::BTreeSet;
use std::sync::Arc;

use lab::gather::{all_entries, check, slots, switch_mode};
use lab::model::parameter;
use lab::{CIRCUIT, SWITCH, all_live, group, host_ids, plan_all};
use wormcast_planner::{
    Action, ClassDNumbers, EntryKey, FabricState, GATHER_SLOTS, GATHER_SOURCE_FIRST, Group, Guard,
    MatchValue, Planner,
};
use wormcast_routing::generate::from_spec;
use wormcast_routing::group::{Scheme, SwitchMode};
use wormcast_routing::routes::{Algorithm, Setting};
use wormcast_routing::topology::{Damage, Host, Link, Parts, Switch, Topology};
use wormcast_wire::{GroupId, HostId, PortId, SwitchId};

/// All of a fabric of that kind in a group that gathers, of this scheme.
fn whole(spec: &str, scheme: Scheme) -> (Topology, FabricState, Arc<Group>) {
    let network = from_spec(spec).expect("a topology");
    let all = Arc::new(Group {
        gather: true,
        ..group(7, scheme, &host_ids(&network))
    });
    let state = plan_all(&network, std::slice::from_ref(&all));
    (network, state, all)
}

#[test]
fn all_origins_of_a_whole_fabric_are_gathered() {
    for spec in ["torus:3", "fat-tree:4", "line:5:2", "full-mesh:4:3"] {
        for mode in [SwitchMode::Tree, SwitchMode::Table, SwitchMode::Broadcast] {
            let (network, state, group) = whole(spec, switch_mode(mode));
            let members = group.members.len();
            let came = check(&network, &network, &state, &[group], &all_live(&network));
            assert_eq!(came, members * (members - 1), "{spec}");
            assert!(state.by_hosts.is_empty());
        }
    }
}

#[test]
fn a_group_that_hosts_copy_says_that_it_is_not_gathered() {
    let (_, state, group) = whole("torus:3", CIRCUIT);
    assert!(all_entries(&state).is_empty());
    assert_eq!(state.by_hosts.len(), group.members.len());
    let reason = &*state.by_hosts[0].reason;
    assert_eq!(reason, "no message of the group is copied by switches");
}

#[test]
fn an_origin_with_too_many_branches_at_a_switch_goes_by_hosts() {
    // 17 hosts at switch 0, 2 at switch 1: whoever is at 0 has 16 others there, and the way to 1.
    let mut hosts = vec![0; 17];
    hosts.extend([1, 1]);
    let network = two_switches(&hosts);
    let all = Arc::new(Group {
        gather: true,
        ..group(7, SWITCH, &host_ids(&network))
    });
    let state = plan_all(&network, std::slice::from_ref(&all));
    assert!(all_entries(&state).is_empty());
    let reasons: BTreeSet<&str> = state.by_hosts.iter().map(|one| &*one.reason).collect();
    let reason = "switch 0 would gather 17 branches; at most 16";
    assert_eq!(reasons, BTreeSet::from([reason]));
    // One fewer at switch 0: whoever is there fits, the others do not.
    let fewer = Arc::new(Group {
        members: all.members[1..].to_vec(),
        ..(*all).clone()
    });
    let state = plan_all(&network, std::slice::from_ref(&fewer));
    let alone: Vec<u16> = state.by_hosts.iter().map(|short| short.host.0).collect();
    assert_eq!(alone, Vec::<u16>::new());
    check(&network, &network, &state, &[fewer], &all_live(&network));
}

/// Hosts 0, 1, … at these of two switches.
fn two_switches(hosts: &[u16]) -> Topology {
    let mut parts = Parts::default();
    for id in [0, 1] {
        parts.switches.push(Switch {
            id: SwitchId(id),
            ports: 32,
        });
    }
    for (id, &switch) in hosts.iter().enumerate() {
        parts.hosts.push(Host {
            id: HostId(id as u16),
            switch: SwitchId(switch),
            port: lab::port(id),
            transit: true,
        });
    }
    parts.links.push(Link {
        a: SwitchId(0),
        a_port: lab::port(31),
        b: SwitchId(1),
        b_port: lab::port(31),
    });
    lab::topology(parts)
}

#[test]
fn who_finds_no_slot_waits_until_one_is_given_back() {
    let network = two_switches(&[0, 0, 1]);
    let hosts = all_live(&network);
    let pair = |number, members: [u16; 2]| {
        let number = if number < 255 { number } else { number + 1 };
        Arc::new(Group {
            gather: true,
            ..group(number, SWITCH, &members.map(HostId))
        })
    };
    let mut planner = Planner::new(Setting::plain(Algorithm::Osud));
    let mut plan = |groups: &[Arc<Group>]| {
        planner.plan(
            &network,
            &network,
            groups,
            &hosts,
            &ClassDNumbers::default(),
        )
    };
    let half = GATHER_SLOTS / 2;
    let mut groups: Vec<Arc<Group>> = (0..=half).map(|number| pair(number, [0, 1])).collect();
    let last = groups[usize::from(half)].id;
    let state = plan(&groups);
    let alone: Vec<_> = state
        .by_hosts
        .iter()
        .map(|short| (short.group, short.host.0))
        .collect();
    assert_eq!(alone, [(last, 0), (last, 1)]);
    assert_eq!(
        state.by_hosts[0].reason,
        "switch 0 gathers for 1024 origins already, the most it can"
    );
    let old = slots(&state);
    // Group 3 goes: the last has its slots, and nobody else has others.
    groups.remove(3);
    let state = plan(&groups);
    assert_eq!(state.by_hosts, []);
    check(&network, &network, &state, &groups, &hosts);
    let new = slots(&state);
    assert_eq!(new.len(), 1024);
    let moved = new
        .iter()
        .filter(|(place, slot)| old.get(place) != Some(slot));
    let moved: BTreeSet<GroupId> = moved.map(|((_, group, _), _)| *group).collect();
    assert_eq!(moved, BTreeSet::from([last]));
}

#[test]
fn epochs_come_from_what_is_given_and_are_new_after_a_restart() {
    let network = from_spec("ring:4").expect("a topology");
    let hosts = all_live(&network);
    let all = host_ids(&network);
    let of = |members: &[HostId]| {
        vec![Arc::new(Group {
            gather: true,
            ..group(7, SWITCH, members)
        })]
    };
    let mut planner = Planner::new(Setting::plain(Algorithm::Osud));
    let plan = |planner: &mut Planner, members: &[HostId]| {
        let class_d = ClassDNumbers::default();
        let state = planner.plan(&network, &network, &of(members), &hosts, &class_d);
        let sent = state.agents[&members[0]].groups[0].gathered.clone();
        (sent.map(|sent| sent.epoch), state.by_hosts.len())
    };
    planner.set_gather_epochs(100, 102);
    assert_eq!(plan(&mut planner, &all), (Some(100), 0));
    assert_eq!(plan(&mut planner, &all), (Some(100), 0));
    assert_eq!(plan(&mut planner, &all[1..]), (Some(101), 0));
    assert_eq!(planner.next_gather_epoch(), 102);
    // None is left: by hosts, until there are more.
    assert_eq!(plan(&mut planner, &all), (None, 4));
    assert_eq!(plan(&mut planner, &all), (None, 4));
    planner.set_gather_epochs(100, 110);
    assert_eq!(plan(&mut planner, &all), (Some(102), 0));
    // An earlier life of the planner may have had all before 500.
    planner.set_gather_epochs(500, 510);
    assert_eq!(plan(&mut planner, &all), (Some(500), 0));
}

#[test]
fn a_link_that_a_tree_does_not_take_changes_nothing_of_it() {
    let network = from_spec("torus:4").expect("a topology");
    let hosts = all_live(&network);
    let members = host_ids(&network)[..3].to_vec();
    let groups = [Arc::new(Group {
        gather: true,
        ..group(7, SWITCH, &members)
    })];
    let (mut same, mut other) = (0, 0);
    for link in network.links() {
        let mut planner = Planner::new(Setting::plain(Algorithm::Osud));
        let mut plan = |up: &Topology| {
            let class_d = ClassDNumbers::default();
            all_entries(&planner.plan(up, &network, &groups, &hosts, &class_d))
        };
        let before = plan(&network);
        let ends = [(link.a, link.a_port), (link.b, link.b_port)];
        let lost = Damage {
            links: BTreeSet::from([ends[0]]),
            ..Damage::default()
        };
        let after = plan(&network.without(&lost).expect("a link"));
        let takes = |((switch, key), action): (&(SwitchId, EntryKey), &Arc<Action>)| {
            let port = |port: PortId| u128::from(port.get());
            let is = |&(at, end): &(SwitchId, PortId)| {
                let by = &key.matches[2].1;
                at == *switch
                    && (parameter(action, "up") == port(end) || *by == MatchValue::Exact(port(end)))
            };
            ends.iter().any(is)
        };
        if before.iter().any(takes) {
            assert!(after.values().all(|action| parameter(action, "epoch") == 2));
            other += 1;
        } else {
            assert_eq!(after, before);
            same += 1;
        }
    }
    assert!(same > 0 && other > 0, "{same} the same, {other} others");
}

#[test]
fn hosts_with_numbers_of_switches_keep_all_from_being_gathered() {
    let parts = two_switches(&[0, 0, 1]);
    let mut hosts = parts.hosts().to_vec();
    hosts[2].id = HostId(GATHER_SOURCE_FIRST);
    let network = lab::topology(Parts {
        switches: parts.switches().to_vec(),
        hosts,
        links: parts.links().to_vec(),
        ..Parts::default()
    });
    let group = Arc::new(Group {
        gather: true,
        ..group(7, SWITCH, &[HostId(0), HostId(1)])
    });
    let state = plan_all(&network, &[group]);
    assert!(all_entries(&state).is_empty());
    assert_eq!(
        state.by_hosts[0].reason,
        "host 61440 has a number that switches take in gathered ACKs, 61440 to 65534"
    );
}

#[test]
fn the_guard_lets_members_of_gathered_groups_send_acks_to_switches() {
    let network = from_spec("ring:4:2").expect("a topology");
    let all = host_ids(&network);
    let gathers = Group {
        gather: true,
        ..group(7, SWITCH, &all[..2])
    };
    let others = group(8, SWITCH, &all[2..4]);
    let by_hosts = Group {
        gather: true,
        ..group(9, CIRCUIT, &all[4..6])
    };
    let groups = [gathers, others, by_hosts].map(Arc::new);
    let mut planner = Planner::new(Setting::plain(Algorithm::Osud));
    planner.set_guard(Guard {
        on: true,
        ..Guard::default()
    });
    let hosts = all_live(&network);
    let state = planner.plan(
        &network,
        &network,
        &groups,
        &hosts,
        &ClassDNumbers::default(),
    );
    let kinds = state.switches.values().flat_map(|state| &state.entries);
    let kinds = kinds.filter(|(_, action)| action.name == "ingress.admit_host");
    let may: BTreeSet<u128> = kinds
        .filter(|(_, action)| parameter(action, "kinds") & 1 << 5 != 0)
        .map(|(_, action)| parameter(action, "host"))
        .collect();
    assert_eq!(may, BTreeSet::from([0, 1]));
}
