//! How long frames of groups may be where links carry different ones, held against a walk along every route.

use crate::lab;

use std::collections::BTreeMap;
use std::sync::Arc;

use lab::{
    CIRCUIT, Random, SWITCH, all_live, group, host_ids, port, random_groups, random_topology, table,
};
use proptest::prelude::*;
use wormcast_planner::{
    AgentGroup, AgentPlan, ClassDNumbers, FabricState, Group, MGID_GROUP_FIRST, Mgid, MtuLimits,
    Planner, RouteTable, digest_agents,
};
use wormcast_routing::group::{Guard, Least, Scheme, SwitchMode, SwitchParameters};
use wormcast_routing::routes::{Algorithm, Setting};
use wormcast_routing::topology::{Attachment, Host, Link, Parts, Switch, Topology};
use wormcast_wire::{HostId, MTU_MIN, PortId, SchemeName, SwitchId};

fn both_ends(link: &Link, bytes: u16) -> [((SwitchId, PortId), u16); 2] {
    [
        ((link.a, link.a_port), bytes),
        ((link.b, link.b_port), bytes),
    ]
}

/// Some links between switches and some links of hosts, down to less than an agent can use.
fn random_mtu_limits(random: &mut Random, topology: &Topology) -> MtuLimits {
    let sizes = [100, 576, 1500, 4000];
    let mut mtu_limits = MtuLimits::new();
    for link in topology.links() {
        if random.chance(20) {
            mtu_limits.extend(both_ends(link, *random.choose(&sizes)));
        }
    }
    for host in topology.hosts() {
        if random.chance(10) {
            mtu_limits.insert((host.switch, host.port), *random.choose(&sizes));
        }
    }
    mtu_limits
}

/// What a route carries, and the link of the host that it starts at.
fn walk(topology: &Topology, mtu_limits: &MtuLimits, from: HostId, ports: &[u8]) -> u16 {
    let start = topology.host(from).expect("it is there");
    let at = |end| mtu_limits.get(&end).copied().unwrap_or(u16::MAX);
    let mut least = at((start.switch, start.port));
    let mut switch = start.switch;
    for &number in ports {
        let out = PortId::new(number).expect("a port");
        match topology.attachment(switch, out) {
            Some(Attachment::Switch(next, _)) => {
                least = least.min(at((switch, out)));
                switch = next;
            }
            Some(Attachment::Host(_)) => least = least.min(at((switch, out))),
            None => return least,
        }
    }
    least
}

fn carried(
    topology: &Topology,
    mtu_limits: &MtuLimits,
    plan: &AgentPlan,
    group: &AgentGroup,
) -> u16 {
    let mut least = walk(topology, mtu_limits, plan.host, &[]);
    for RouteTable(routes) in [&*plan.routes, &*plan.tree_routes] {
        for route in routes
            .iter()
            .filter(|route| group.members.contains(&route.to))
        {
            least = least.min(walk(topology, mtu_limits, plan.host, &route.ports));
        }
    }
    let by_root = group
        .structures
        .iter()
        .any(|one| one.scheme == SchemeName::Broadcast);
    if let (true, Some(root)) = (by_root, &plan.root_route) {
        least = least.min(walk(topology, mtu_limits, plan.host, root));
    }
    for link in group
        .trees
        .iter()
        .flat_map(|trees| trees.trees.iter().flatten())
    {
        least = least.min(
            mtu_limits
                .get(&(link.a, link.a_port))
                .copied()
                .unwrap_or(u16::MAX),
        );
    }
    least
}

fn planner(mtu_limits: &MtuLimits) -> Planner {
    let mut planner = Planner::new(Setting::plain(Algorithm::Rrmit));
    planner.set_mtu_limits(mtu_limits.clone());
    planner
}

fn plan(planner: &mut Planner, topology: &Topology, groups: &[Arc<Group>]) -> FabricState {
    let class_d = ClassDNumbers::default();
    planner.plan(topology, topology, groups, &all_live(topology), &class_d)
}

fn mtus(state: &FabricState) -> BTreeMap<u16, Option<u16>> {
    let groups = state.agents.values().flat_map(|plan| &plan.groups);
    groups.map(|group| (group.id.0, group.mtu)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Every route between members, to the root for BROADCAST worms and along trees of its own carries the frames of
    /// a group, and some link of them carries no longer ones.
    #[test]
    fn frames_are_as_long_as_the_narrowest_link_carries(seed in any::<u64>()) {
        let mut random = Random::new(seed);
        let topology = random_topology(&mut random);
        let groups = random_groups(&mut random, &topology, 4);
        let mtu_limits = random_mtu_limits(&mut random, &topology);
        let state = plan(&mut planner(&mtu_limits), &topology, &groups);
        for asked in &groups {
            let members = state.agents.values().filter_map(|plan| {
                let group = plan.groups.iter().find(|group| group.id == asked.id)?;
                Some((group, carried(&topology, &mtu_limits, plan, group)))
            });
            let members: Vec<(&Arc<AgentGroup>, u16)> = members.collect();
            let Some(&(group, _)) = members.first() else { continue };
            let least = members.iter().map(|&(_, carried)| carried).min().unwrap();
            let wanted = (least < u16::MAX).then(|| least.max(MTU_MIN as u16));
            if table(asked).flatten().is_some() {
                // Switches know the tree; agents do not.
                prop_assert!(group.mtu.unwrap_or(u16::MAX) <= wanted.unwrap_or(u16::MAX));
            } else {
                prop_assert_eq!(group.mtu, wanted, "group {}", asked.id);
            }
        }
    }

    /// What changes while a network is planned gives what a new planner would, and back again.
    #[test]
    fn a_change_of_mtus_is_planned_like_from_scratch(seed in any::<u64>()) {
        let mut random = Random::new(seed);
        let topology = random_topology(&mut random);
        let groups = random_groups(&mut random, &topology, 4);
        let mut running = planner(&MtuLimits::new());
        let before = plan(&mut running, &topology, &groups);
        prop_assert!(mtus(&before).values().all(Option::is_none));
        for mtu_limits in [random_mtu_limits(&mut random, &topology), MtuLimits::new()] {
            running.set_mtu_limits(mtu_limits.clone());
            let state = plan(&mut running, &topology, &groups);
            let scratch = plan(&mut planner(&mtu_limits), &topology, &groups);
            prop_assert_eq!(digest_agents(&state.agents), digest_agents(&scratch.agents));
            prop_assert_eq!(mtus(&state), mtus(&scratch));
            // Switches and routes are not concerned.
            prop_assert!(state.touched.is_some_and(|touched| touched.values().all(Vec::is_empty)));
            prop_assert_eq!(state.routes.changed, 0);
        }
    }
}

/// Switches 0 to 3 in a ring, a host on each. The link 2-3 is in no shortest route but that of its ends.
fn ring() -> Topology {
    let mut parts = Parts::default();
    for at in 0..4_u16 {
        parts.switches.push(Switch {
            id: SwitchId(at),
            ports: 4,
        });
        parts.hosts.push(Host {
            id: HostId(at),
            switch: SwitchId(at),
            port: port(0),
            transit: true,
        });
        let (a, b) = (SwitchId(at), SwitchId((at + 1) % 4));
        parts.links.push(Link {
            a,
            a_port: port(1),
            b,
            b_port: port(2),
        });
    }
    Topology::new_split(parts).expect("a ring")
}

fn planned_mtu(mtu_limits: &MtuLimits, scheme: Scheme, members: &[u16]) -> Option<u16> {
    let topology = ring();
    let members: Vec<HostId> = members.iter().copied().map(HostId).collect();
    let groups = [Arc::new(group(7, scheme, &members))];
    mtus(&plan(&mut planner(mtu_limits), &topology, &groups))[&7]
}

#[test]
fn a_group_that_does_not_cross_the_narrow_link_has_long_frames() {
    let mtu_limits: MtuLimits = both_ends(
        ring()
            .links()
            .iter()
            .find(|link| link.a == SwitchId(2))
            .expect("2-3"),
        1500,
    )
    .into();
    assert_eq!(planned_mtu(&mtu_limits, CIRCUIT, &[0, 1]), None);
    assert_eq!(planned_mtu(&mtu_limits, CIRCUIT, &[2, 3]), Some(1500));
    assert_eq!(planned_mtu(&mtu_limits, SWITCH, &[0, 1]), None);
    let own_host = MtuLimits::from([((SwitchId(1), port(0)), 1400)]);
    assert_eq!(planned_mtu(&own_host, CIRCUIT, &[0, 1]), Some(1400));
    assert_eq!(planned_mtu(&own_host, CIRCUIT, &[2, 3]), None);
    // One alone sends nothing, and will when others come.
    assert_eq!(planned_mtu(&own_host, CIRCUIT, &[1]), Some(1400));
}

/// Switches copy numbers of scheme `table` with guard C along trees that are not sent to agents.
#[test]
fn a_tree_that_only_switches_know_counts_too() {
    let topology = ring();
    let number = 7;
    for least in Least::ALL {
        let mut own = SwitchParameters::new(SwitchMode::Table, Guard::C);
        own.least = least;
        let members = host_ids(&topology)[..3].to_vec();
        let groups = [Arc::new(group(number, Scheme::Switch(own), &members))];
        let state = plan(&mut planner(&MtuLimits::new()), &topology, &groups);
        let is_copied_by = |link: &Link| {
            let mgid = Mgid(MGID_GROUP_FIRST + number);
            let copies = state.switches[&link.a].multicast.get(&mgid);
            copies.is_some_and(|copies| copies.ports().contains(link.a_port))
        };
        let copied: Vec<&Link> = topology
            .links()
            .iter()
            .filter(|link| is_copied_by(link))
            .collect();
        assert!(copied.len() >= 2);
        for link in copied {
            let mtu_limits = both_ends(link, 2000).into();
            assert_eq!(
                planned_mtu(&mtu_limits, Scheme::Switch(own), &[0, 1, 2]),
                Some(2000)
            );
        }
    }
}
