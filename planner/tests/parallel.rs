//! Parallel links: switches go on by the others when one fails, before and after anybody plans for it.

use crate::lab;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use lab::model::{Walker, write};
use lab::{Random, group, host_ids, numbers_in, plan_all, random_groups, topology};
use proptest::prelude::*;
use wormcast_planner::{
    Copies, INSTANCE_BRANCH, INSTANCE_NEIGHBOUR, INSTANCE_PLAIN, MGID_BROADCAST, MGID_PORT,
    MGID_TREE_SET, Mgid, Replica, Stage, difference,
};
use wormcast_routing::topology::{Host, Link, Parts, Switch, Topology};
use wormcast_wire::{GroupId, HostId, PortId, SwitchId};

/// Up to 6 switches in a random tree with up to three links between two neighbours, a host on each.
fn doubled(random: &mut Random) -> Topology {
    let count = random.between(2, 6);
    let mut parts = Parts::default();
    let mut used = vec![1; count];
    for at in 0..count {
        parts.switches.push(Switch {
            id: SwitchId(at as u16),
            ports: 20,
        });
        parts.hosts.push(Host {
            id: HostId(at as u16),
            switch: SwitchId(at as u16),
            port: lab::port(0),
            transit: true,
        });
        let other = if at > 0 {
            random.between(0, at - 1)
        } else {
            continue;
        };
        for _ in 0..random.between(2, 3) {
            let mut end = |at: usize| {
                used[at] += 1;
                (SwitchId(at as u16), lab::port(used[at] - 1))
            };
            let ((a, a_port), (b, b_port)) = (end(at), end(other));
            parts.links.push(Link {
                a,
                a_port,
                b,
                b_port,
            });
        }
    }
    topology(parts)
}

/// Every host reaches all others, by every kind of worm that switches know how to carry.
fn check(walker: &mut Walker<'_>, state: &wormcast_planner::FabricState, members: &[HostId]) {
    for sender in walker.topology.hosts() {
        for number in numbers_in(&[state]) {
            let got = walker.send_group(sender, number);
            assert!(got.values().all(|&copies| copies == 1), "{number}: {got:?}");
        }
        let got = walker.send_group(sender, GroupId(1));
        let others = members.iter().filter(|&&member| member != sender.id);
        assert_eq!(
            got,
            others
                .map(|&member| (member, 1))
                .collect::<BTreeMap<_, _>>()
        );
        for route in &state.agents[&sender.id].routes.0 {
            assert_eq!(walker.send_unicast(sender, &route.ports), Some(route.to));
        }
        let to_root = state.agents[&sender.id].root_route.clone().expect("a tree");
        let mut at = sender.switch;
        for &port in &*to_root {
            let port = PortId::new(port).expect("a port");
            let end = walker.topology.attachment(at, port);
            let Some(wormcast_routing::topology::Attachment::Switch(next, _)) = end else {
                panic!("{end:?}")
            };
            at = next;
        }
        let got = walker.send_broadcast(at);
        assert_eq!(got.len(), walker.topology.hosts().len());
        assert!(
            got.values().all(|&copies| copies == 1),
            "broadcast: {got:?}"
        );
    }
}

proptest! {
    /// One link of each neighbour pair may stay; of the others any end may be down, for one side or both.
    /// Then the network is planned anew without them, and switches change one after another.
    #[test]
    fn a_link_that_fails_costs_nobody_a_worm(seed: u64) {
        let mut random = Random::new(seed);
        let network = doubled(&mut random);
        let members = host_ids(&network);
        let mut groups = random_groups(&mut random, &network, 3);
        // One with all members would share its number with group 1.
        groups.retain(|group| group.id != GroupId(1) && group.members.len() < members.len());
        let table = wormcast_routing::group::Scheme::all();
        let table = table.into_iter().find(|scheme| scheme.name() == "table").expect("a scheme");
        groups.push(Arc::new(group(1, table, &members)));
        groups.sort_by_key(|group| group.id);
        let state = plan_all(&network, &groups);
        let states = state.switches.clone();
        let mut walker = Walker::new(&network, states);
        check(&mut walker, &state, &members);

        let mut stays = BTreeSet::new();
        let links = random.sample(network.links(), network.links().len());
        let failed: Vec<Link> = links.into_iter().filter(|link| !stays.insert((link.a, link.b))).collect();
        for link in &failed {
            walker.down.extend([(link.a, link.a_port), (link.b, link.b_port)]);
        }
        check(&mut walker, &state, &members);

        let mut parts = Parts {
            switches: network.switches().to_vec(),
            hosts: network.hosts().to_vec(),
            ..Parts::default()
        };
        parts.links.extend(network.links().iter().filter(|link| !failed.contains(link)));
        let after = plan_all(&topology(parts), &groups);
        let mut switches: Vec<SwitchId> = after.switches.keys().copied().collect();
        for stage in [Stage::Shrink, Stage::Grow] {
            random.shuffle(&mut switches);
            for switch in &switches {
                let held = walker.states.get_mut(switch).expect("a switch");
                for update in difference(&after.switches[switch], &held.clone(), None) {
                    if update.stage == stage {
                        write(Arc::make_mut(held), &update);
                    }
                }
                // Agents have their old plan.
                check(&mut walker, &state, &members);
            }
        }
        // Now they have the new one.
        check(&mut walker, &after, &members);
        for (switch, held) in &mut walker.states {
            for update in difference(&after.switches[switch], &held.clone(), None) {
                prop_assert_eq!(update.stage, Stage::Retire);
                write(Arc::make_mut(held), &update);
            }
            prop_assert_eq!(&**held, &*after.switches[switch]);
        }
        check(&mut walker, &after, &members);

        // The links come back, one end at a time, and are used again.
        let mut ends: Vec<_> = walker.down.iter().copied().collect();
        random.shuffle(&mut ends);
        for stage in Stage::ALL {
            random.shuffle(&mut switches);
            for switch in &switches {
                let held = walker.states.get_mut(switch).expect("a switch");
                for update in difference(&state.switches[switch], &held.clone(), None) {
                    if update.stage == stage {
                        write(Arc::make_mut(held), &update);
                    }
                }
                if let Some(end) = ends.pop() {
                    walker.down.remove(&end);
                }
                for sender in walker.topology.hosts() {
                    let got = walker.send_group(sender, GroupId(1));
                    prop_assert!(got.values().all(|&copies| copies == 1), "{:?}", got);
                }
            }
        }
    }
}

/// Two switches with two links and a host each.
fn pair(second: SwitchId) -> Topology {
    let switch = |id| Switch { id, ports: 4 };
    let host = |id, switch| Host {
        id: HostId(id),
        switch,
        port: lab::port(0),
        transit: true,
    };
    let link = |port| Link {
        a: SwitchId(5),
        a_port: lab::port(port),
        b: second,
        b_port: lab::port(port + 1),
    };
    topology(Parts {
        switches: vec![switch(SwitchId(5)), switch(second)],
        hosts: vec![host(1, SwitchId(5)), host(2, second)],
        links: vec![link(1), link(2)],
        ..Parts::default()
    })
}

#[test]
fn replicas_say_whose_they_are_and_what_stands_in_for_them() {
    let state = plan_all(&pair(SwitchId(9)), &[]);
    let held = &state.switches[&SwitchId(5)];
    let replica = |port, instance, backups: &[usize]| Replica {
        port: lab::port(port),
        instance,
        backups: backups.iter().map(|&port| lab::port(port)).collect(),
    };
    let of = |mgid: u16| held.multicast[&Mgid(mgid)].clone();
    let (first, second) = (INSTANCE_BRANCH + 1, INSTANCE_BRANCH + 2);
    assert_eq!(of(MGID_PORT + 1), Copies::new([replica(1, first, &[2])]));
    assert_eq!(of(MGID_PORT + 2), Copies::new([replica(2, second, &[1])]));
    let set = Copies::new([
        replica(0, INSTANCE_PLAIN, &[]),
        replica(1, first, &[2]),
        replica(2, second, &[1]),
        replica(3, INSTANCE_PLAIN, &[]),
    ]);
    assert_eq!(of(MGID_TREE_SET + 15), set);
    let broadcast = held.multicast.get(&MGID_BROADCAST).expect("5 is the root");
    let to_other = replica(1, INSTANCE_NEIGHBOUR + 9, &[2]);
    assert_eq!(
        *broadcast,
        Copies::new([replica(0, INSTANCE_PLAIN, &[]), to_other])
    );
}

/// No number is left for it, so a worm could not be kept from going back to it.
#[test]
fn the_last_switch_of_all_has_no_backups() {
    let state = plan_all(&pair(SwitchId(0xFFFE)), &[]);
    let all = state.switches[&SwitchId(5)].multicast.values();
    let mut replicas = all.flat_map(|copies| copies.iter().copied().collect::<Vec<_>>());
    assert!(
        replicas.all(|replica| replica.backups.is_empty() && replica.instance == INSTANCE_PLAIN)
    );
}
