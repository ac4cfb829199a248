//! The plan, held against a model of the switches: every member once, no loop, routes that arrive.

use crate::lab;

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::sync::Arc;

use lab::model::{Got, Walker};
use lab::{
    CIRCUIT, Random, all_live, damage, fabric_members, group, host_ids, plan, plan_all, port,
    random_groups, random_topology, table, table_number, topology,
};
use proptest::prelude::*;
use wormcast_planner::cost::Costs;
use wormcast_planner::{
    AgentGroup, AgentPlan, CUT_OFF, ClassDNumbers, FabricState, Group, GroupScheme, Hosts, Leaf,
    NOT_LIVE, NOT_LOCATED, PLAIN, PlannedRoute, Planner, RouteTable, SwitchState, allocate_mgids,
    digest_agents,
};
use wormcast_routing::group::Scheme;
use wormcast_routing::routes::{Algorithm, Setting};
use wormcast_routing::structure::Recipe;
use wormcast_routing::topology::{Host, Link, Parts, Switch, Topology};
use wormcast_routing::updown::UpDown;
use wormcast_wire::{GroupId, HostId, SwitchId};

struct Case {
    topology: Topology,
    groups: Vec<Arc<Group>>,
    state: FabricState,
}

/// A network, every other one damaged.
fn random_case(seed: u64) -> Case {
    let mut random = Random::new(seed);
    let whole = random_topology(&mut random);
    let groups = random_groups(&mut random, &whole, 4);
    let topology = if seed.is_multiple_of(2) {
        whole
    } else {
        damage(&mut random, &whole)
    };
    let state = plan_all(&topology, &groups);
    Case {
        topology,
        groups,
        state,
    }
}

/// One copy for each of these but the sender.
fn once(members: &BTreeSet<HostId>, part: &Topology, sender: HostId) -> Got {
    let here = members
        .iter()
        .filter(|&&host| part.host(host).is_ok() && host != sender);
    here.map(|&host| (host, 1)).collect()
}

/// Whether copies of a number may go along a tree of its own.
fn is_own(groups: &[Arc<Group>], number: GroupId) -> bool {
    let own = |group: &Arc<Group>| {
        table(group).flatten().is_some() && table_number(groups, group) == Some(number)
    };
    groups.iter().any(own)
}

/// How often a worm of the host reaches each leaf along these links.
fn along(links: &[Link], leaves: &[Leaf], host: HostId) -> Got {
    let mut got = Got::new();
    let Some(start) = leaves.iter().find(|leaf| leaf.host == host) else {
        return got;
    };
    let mut open = vec![(start.switch, None)];
    while let Some((at, from)) = open.pop() {
        for leaf in leaves
            .iter()
            .filter(|leaf| leaf.switch == at && leaf.host != host)
        {
            *got.entry(leaf.host).or_default() += 1;
        }
        for link in links.iter().filter(|link| Some(*link) != from) {
            for (end, other) in [(link.a, link.b), (link.b, link.a)] {
                if end == at {
                    open.push((other, Some(link)));
                }
            }
        }
    }
    got
}

fn spanning_tree(part: &Topology) -> (SwitchId, Vec<Link>) {
    let updown = UpDown::new(part, None).unwrap();
    (updown.root(part), updown.tree_links(part))
}

fn walker<'t>(topology: &'t Topology, state: &FabricState) -> Walker<'t> {
    Walker::new(topology, state.switches.clone())
}

/// The states of switches with nothing but what their ports lead to, or with everything else.
fn with_roles(
    switches: &BTreeMap<SwitchId, Arc<SwitchState>>,
    roles: bool,
) -> BTreeMap<SwitchId, SwitchState> {
    let part = |state: &Arc<SwitchState>| {
        let mut part = SwitchState::clone(state);
        part.entries
            .retain(|key, _| (key.table == "ingress.port_roles") == roles);
        if roles {
            part.multicast.clear();
            part.defaults.clear();
        }
        part
    };
    let parts = switches
        .iter()
        .map(|(&switch, state)| (switch, part(state)));
    parts.collect()
}

fn routes(table: &RouteTable) -> BTreeMap<HostId, Arc<[u8]>> {
    let pair = |route: &PlannedRoute| (route.to, route.ports.clone());
    table.0.iter().map(pair).collect()
}

proptest! {
    #[test]
    fn group_worms_reach_every_member_once_from_anywhere(seed: u64) {
        let Case { topology, groups, state } = random_case(seed);
        let mut walker = walker(&topology, &state);
        for part in topology.split() {
            let everyone = host_ids(&part).into_iter().collect();
            for sender in part.hosts() {
                for (number, members) in fabric_members(&groups, &ClassDNumbers::default()) {
                    if is_own(&groups, number) && !members.contains(&sender.id) {
                        // A tree of its own leads to members alone, and only they send along it.
                        continue;
                    }
                    let got = walker.send_group(sender, number);
                    prop_assert_eq!(got, once(&members, &part, sender.id), "group {}", number);
                }
                let got = walker.send_group(sender, GroupId::BROADCAST);
                prop_assert_eq!(got, once(&everyone, &part, sender.id));
            }
        }
    }

    #[test]
    fn group_worms_cross_no_link_that_leads_to_no_member(seed: u64) {
        let Case { topology, groups, state } = random_case(seed);
        let mut walker = walker(&topology, &state);
        for part in topology.split() {
            for sender in part.hosts() {
                let routes = routes(&state.agents[&sender.id].tree_routes);
                for (number, members) in fabric_members(&groups, &ClassDNumbers::default()) {
                    if is_own(&groups, number) {
                        continue;
                    }
                    walker.crossed.clear();
                    walker.send_group(sender, number);
                    let crossed = std::mem::take(&mut walker.crossed);
                    for member in once(&members, &part, sender.id).into_keys() {
                        prop_assert_eq!(walker.send_unicast(sender, &routes[&member]), Some(member));
                    }
                    prop_assert_eq!(crossed, walker.crossed.clone(), "copies keep to the tree routes");
                }
            }
        }
    }

    /// Agents of a group of scheme `table` use the number under which switches know its members; those
    /// of a group with trees of its own have ways along each that lead to all other members.
    #[test]
    fn agents_and_switches_agree_on_what_is_copied(seed: u64) {
        let Case { topology, groups, state } = random_case(seed);
        let mut walker = walker(&topology, &state);
        for group in &groups {
            for (&host, sent) in &state.agents {
                let Some(sent) = sent.group(group.id) else { continue };
                prop_assert_eq!(sent.number, table_number(&groups, group));
                let sender = topology.host(host).unwrap();
                let part = topology.split().into_iter().find(|part| part.host(host).is_ok());
                let part = part.unwrap();
                let wanted = once(&group.members.iter().copied().collect(), &part, host);
                if let Some(number) = sent.number {
                    let got = walker.send_group(&sender, number);
                    let is_shared = groups.iter().any(|other| {
                        other.class_d.is_some_and(|address| u16::from(address.octets()[3]) == number.0)
                    });
                    prop_assert!(got == wanted || is_shared, "{:?} is not {:?}", got, wanted);
                }
                let Some(trees) = &sent.trees else { continue };
                for links in &trees.trees {
                    prop_assert_eq!(along(links, &trees.leaves, host), wanted.clone());
                }
            }
        }
    }

    #[test]
    fn class_d_packets_reach_the_union_of_groups_that_share_low_bits(seed: u64) {
        let Case { topology, groups, state } = random_case(seed);
        let mut walker = walker(&topology, &state);
        let members = fabric_members(&groups, &ClassDNumbers::default());
        for part in topology.split() {
            for sender in part.hosts() {
                for (group, address) in groups.iter().filter_map(|g| Some((g, g.class_d?))) {
                    let union = &members[&GroupId(u16::from(address.octets()[3]))];
                    prop_assert!(group.members.iter().all(|member| union.contains(member)));
                    let got = walker.send_class_d(sender, address);
                    prop_assert_eq!(got, once(union, &part, sender.id));
                }
                for unknown in [[239, 1, 1, 200], [239, 1, 1, 129], [223, 1, 1, 1]] {
                    prop_assert!(walker.send_class_d(sender, Ipv4Addr::from(unknown)).is_empty());
                }
            }
        }
    }

    #[test]
    fn broadcast_from_the_root_reaches_every_host_once(seed: u64) {
        let Case { topology, state, .. } = random_case(seed);
        let mut walker = walker(&topology, &state);
        for part in topology.split() {
            let everyone: Got = host_ids(&part).into_iter().map(|host| (host, 1)).collect();
            prop_assert_eq!(walker.send_broadcast(spanning_tree(&part).0), everyone);
        }
    }

    #[test]
    fn agents_have_routes_to_every_host_they_can_reach(seed: u64) {
        let Case { topology, state, .. } = random_case(seed);
        let mut walker = walker(&topology, &state);
        for part in topology.split() {
            let tree = spanning_tree(&part).1.into_iter();
            let in_tree: BTreeSet<_> =
                tree.flat_map(|link| [(link.a, link.a_port), (link.b, link.b_port)]).collect();
            for host in part.hosts() {
                let sent = &state.agents[&host.id];
                let others: Vec<HostId> =
                    host_ids(&part).into_iter().filter(|&other| other != host.id).collect();
                for RouteTable(routes) in [&*sent.routes, &*sent.tree_routes] {
                    let named: Vec<HostId> = routes.iter().map(|route| route.to).collect();
                    prop_assert_eq!(&named, &others);
                    for PlannedRoute { to: other, ports: route, .. } in routes {
                        walker.crossed.clear();
                        prop_assert_eq!(walker.send_unicast(host, route), Some(*other));
                    }
                }
                for PlannedRoute { ports: route, .. } in &sent.tree_routes.0 {
                    walker.crossed.clear();
                    walker.send_unicast(host, route);
                    prop_assert!(walker.crossed.is_subset(&in_tree));
                }
            }
        }
    }

    #[test]
    fn groups_of_agents_hang_together(seed: u64) {
        let Case { groups, state, .. } = random_case(seed);
        let short: BTreeSet<_> = state.shortfalls.iter().map(|s| (s.group, s.host)).collect();
        for wanted in &groups {
            let served: Vec<HostId> = wanted.members.iter().copied()
                .filter(|&member| !short.contains(&(wanted.id, member))).collect();
            let sent: BTreeMap<HostId, _> = state.agents.iter()
                .filter_map(|(&host, sent)| Some((host, sent.group(wanted.id)?))).collect();
            prop_assert_eq!(sent.keys().copied().collect::<Vec<_>>(), served.clone());
            for group in sent.values() {
                prop_assert_eq!(&group.members, &served);
                prop_assert_eq!(*group, sent[&served[0]], "all are told the same");
                let mut order = group.structures[0].order.clone();
                order.sort_unstable();
                prop_assert_eq!(&order, &served);
                if let Recipe::Tree(tree, _) = &group.structures[0].recipe {
                    let edges: Vec<_> = tree.edges().collect();
                    let mut children: Vec<_> = edges.iter().map(|e| e.1).collect();
                    children.sort_unstable();
                    prop_assert_eq!(&children[..], &served[1..], "one parent each but the root");
                    prop_assert!(edges.iter().all(|(parent, child)| parent < child));
                } else {
                    let is_tree = matches!(wanted.scheme, GroupScheme::One(Scheme::Tree { .. }));
                    prop_assert!(!is_tree);
                }
            }
        }
    }

    #[test]
    fn the_same_input_gives_the_same_plan(seed: u64) {
        let Case { topology, mut groups, state } = random_case(seed);
        groups.reverse();
        let again = plan_all(&topology, &groups);
        prop_assert_eq!(&again.switches, &state.switches);
        prop_assert_eq!(digest_agents(&again.agents), digest_agents(&state.agents));
    }

    #[test]
    fn plans_that_differ_have_another_digest(seed: u64) {
        let Case { topology, mut groups, state } = random_case(seed);
        if groups.is_empty() || state.agents.values().all(|sent| sent.groups.is_empty()) {
            return Ok(());
        }
        groups.iter_mut().for_each(|group| Arc::make_mut(group).name.push('x'));
        let other = plan_all(&topology, &groups);
        prop_assert_ne!(digest_agents(&other.agents), digest_agents(&state.agents));
    }

    #[test]
    fn what_is_suspected_moves_routes_and_costs_nobody_a_membership(seed: u64) {
        let mut random = Random::new(seed);
        let known = random_topology(&mut random);
        let groups = random_groups(&mut random, &known, 4);
        let up = damage(&mut random, &known);
        let state = plan(&up, &known, &groups, &all_live(&known));
        let whole = plan_all(&known, &groups);
        prop_assert_eq!(&state.shortfalls, &whole.shortfalls);
        let named: Vec<SwitchId> = up.switches().iter().map(|switch| switch.id).collect();
        let planned: Vec<SwitchId> = state.switches.keys().copied().collect();
        prop_assert_eq!(planned, named, "a suspected switch keeps what it has");
        let mut alone = Planner::new(Setting::plain(Algorithm::Osud));
        alone.restore_order(state.routes.in_force.clone());
        let (hosts, class_d) = (all_live(&known), ClassDNumbers::default());
        let alone = alone.plan(&up, &up, &groups, &hosts, &class_d);
        prop_assert_eq!(with_roles(&state.switches, false), with_roles(&alone.switches, false));
        let (sent, led) = (with_roles(&state.switches, true), with_roles(&whole.switches, true));
        for (switch, entries) in &sent {
            prop_assert_eq!(entries, &led[switch], "where its ports led is known as before");
        }
        let parts = up.split();
        let part_of = |host| parts.iter().position(|part| part.host(host).is_ok());
        let (mut standing, mut everything) = (walker(&up, &state), walker(&known, &whole));
        for host in known.hosts() {
            let (sent, before) = (&state.agents[&host.id], &whole.agents[&host.id]);
            let groups = |plan: &AgentPlan| -> Vec<_> {
                let known = |group: &Arc<AgentGroup>| {
                    (group.id, group.members.clone(), group.structures.clone(), group.number)
                };
                plan.groups.iter().map(known).collect()
            };
            prop_assert_eq!(groups(sent), groups(before));
            for RouteTable(routes) in [&*sent.routes, &*sent.tree_routes] {
                let others: Vec<HostId> = routes.iter().map(|route| route.to).collect();
                let known: Vec<HostId> = before.routes.0.iter().map(|route| route.to).collect();
                prop_assert_eq!(others, known);
                for PlannedRoute { to: other, ports: route, .. } in routes {
                    let part = part_of(host.id);
                    let joined = part.is_some() && part == part_of(*other);
                    let walker = if joined { &mut standing } else { &mut everything };
                    prop_assert_eq!(walker.send_unicast(host, route), Some(*other));
                }
            }
        }
    }

    #[test]
    fn agents_are_told_nothing_new_when_everything_is_suspected(seed: u64) {
        let mut random = Random::new(seed);
        let known = random_topology(&mut random);
        let groups = random_groups(&mut random, &known, 4);
        let state = plan(&Topology::empty(), &known, &groups, &all_live(&known));
        prop_assert_eq!(&state.agents, &plan_all(&known, &groups).agents);
        prop_assert!(state.switches.is_empty());
    }

    #[test]
    fn a_gone_member_is_told_of_its_groups_and_nobody_of_it(seed: u64) {
        let mut random = Random::new(seed);
        let topology = random_topology(&mut random);
        let groups = random_groups(&mut random, &topology, 4);
        let mut hosts = all_live(&topology);
        hosts.live.retain(|_| random.chance(70));
        let state = plan(&topology, &topology, &groups, &hosts);
        let before = plan_all(&topology, &groups);
        for (host, sent) in &state.agents {
            if hosts.live.contains(host) {
                let mut members = sent.groups.iter().flat_map(|group| &group.members);
                prop_assert!(members.all(|member| hosts.live.contains(member)));
            } else {
                prop_assert_eq!(&sent.groups, &before.agents[host].groups, "it is where it was");
            }
        }
    }

    #[test]
    fn replication_groups_keep_their_number_while_others_come_and_go(seed: u64) {
        let mut random = Random::new(seed);
        let numbers = random.sample(&(0..0x4000).map(GroupId).collect::<Vec<_>>(), 500);
        let before = allocate_mgids(numbers.iter().copied()).unwrap();
        let after = allocate_mgids(numbers[100..].iter().copied()).unwrap();
        prop_assert!(numbers[100..].iter().all(|number| after[number] == before[number]));
    }
}

#[test]
fn equal_residues_get_replication_groups_of_their_own_and_too_many_are_refused() {
    let crowded = allocate_mgids([5, 5 + 0x4000, 6, 5 + 0x8000].map(GroupId)).unwrap();
    assert_eq!(crowded.values().collect::<BTreeSet<_>>().len(), 4);
    assert!(
        crowded
            .values()
            .all(|mgid| (0x4000..=0x7fff).contains(&mgid.0))
    );
    let refused = allocate_mgids((0..=0x4000).map(GroupId)).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "16385 groups; a switch has room for 16384"
    );
}

/// A host on each of as many switches in a row; with `cut` the last link is missing.
fn line(hosts: &[u16], cut: bool) -> Topology {
    let mut parts = Parts::default();
    for (n, &host) in hosts.iter().enumerate() {
        let id = SwitchId(n as u16);
        parts.switches.push(Switch { id, ports: 4 });
        parts.hosts.push(Host {
            id: HostId(host),
            switch: id,
            port: port(0),
            transit: true,
        });
        if n > 0 && !(cut && n + 1 == hosts.len()) {
            let a = SwitchId(n as u16 - 1);
            parts.links.push(Link {
                a,
                a_port: port(1),
                b: id,
                b_port: port(2),
            });
        }
    }
    topology(parts)
}

fn shortfalls(state: &FabricState) -> BTreeMap<u16, &str> {
    state
        .shortfalls
        .iter()
        .map(|short| (short.host.0, &*short.reason))
        .collect()
}

fn hosts<const N: usize>(numbers: [u16; N]) -> Vec<HostId> {
    numbers.map(HostId).to_vec()
}

#[test]
fn members_that_cannot_take_part_are_named_with_the_reason() {
    let network = line(&[1, 2, 3, 4], true);
    let group = Arc::new(group(1, CIRCUIT, &hosts([1, 2, 3, 4, 9])));
    let known = Hosts {
        agents: hosts([1, 2, 4]).into_iter().collect(),
        live: hosts([1, 4]).into_iter().collect(),
        ..Hosts::default()
    };
    let state = plan(&network, &network, &[group], &known);
    let expected = [(9, NOT_LOCATED), (3, PLAIN), (2, NOT_LIVE), (4, CUT_OFF)];
    assert_eq!(shortfalls(&state), BTreeMap::from(expected));
    let members = |host| -> Vec<Vec<HostId>> {
        let sent = state.agents[&HostId(host)].groups.iter();
        sent.map(|group| group.members.clone()).collect()
    };
    assert_eq!(members(1), [hosts([1])]);
    assert!(members(4).is_empty());
    assert_eq!(members(2), [hosts([1, 2])], "once back, it is a member");
    let routes = routes(&state.agents[&HostId(2)].routes);
    assert_eq!(
        routes.into_keys().collect::<Vec<_>>(),
        hosts([1, 3]),
        "it still has routes"
    );
}

#[test]
fn a_divided_group_stays_where_most_members_are() {
    let group = Arc::new(group(1, CIRCUIT, &hosts([1, 5, 6])));
    let state = plan_all(&line(&[5, 6, 1], true), &[group]);
    assert_eq!(shortfalls(&state), BTreeMap::from([(1, CUT_OFF)]));
}

#[test]
fn sets_of_many_ports_go_to_every_port_there_is() {
    for (ports, high, low) in [
        (3, 0, 7),
        (128, 0, u128::MAX),
        (254, (1 << 126) - 1, u128::MAX),
    ] {
        let switches = vec![Switch {
            id: SwitchId(1),
            ports,
        }];
        let state = plan_all(
            &topology(Parts {
                switches,
                ..Parts::default()
            }),
            &[],
        );
        let action = &state.switches[&SwitchId(1)].defaults["ingress.tree_sets"];
        assert_eq!(lab::model::parameter(action, "high"), high);
        assert_eq!(lab::model::parameter(action, "low"), low);
    }
}

/// Where switches copy, the plan says how many ACKs a host takes; costs that are set later change it.
#[test]
fn the_costs_say_how_many_acks_a_host_takes() {
    let topology = wormcast_routing::generate::from_spec("irregular:16:1:4:4").unwrap();
    let members = host_ids(&topology);
    let groups = [
        Arc::new(group(1, lab::SWITCH, &members[..60])),
        Arc::new(group(2, lab::SWITCH, &members[..8])),
    ];
    let mut planner = Planner::new(Setting::plain(Algorithm::Osud));
    let mut fan_ins = |costs: Option<Costs>| {
        if let Some(costs) = costs {
            planner.set_costs(costs);
        }
        let hosts = all_live(&topology);
        let state = planner.plan(
            &topology,
            &topology,
            &groups,
            &hosts,
            &ClassDNumbers::default(),
        );
        let sent = &state.agents[&members[3]];
        [1, 2].map(|number| {
            let group = sent.group(GroupId(number)).unwrap();
            match group.structures[0].recipe {
                Recipe::Copied { fan_in } => fan_in,
                ref other => panic!("{other:?}"),
            }
        })
    };
    assert_eq!(fan_ins(None), [4, 7], "few levels");
    let dear_acks = Costs {
        acknowledgement_ns: 200_000.0,
        ..Costs::default()
    };
    assert_eq!(fan_ins(Some(dear_acks)), [2, 3], "few ACKs");
}

/// k-binomial and postal without a parameter: trees by the length of messages, in one order that is sent once, by
/// the costs; with one a single tree.
#[test]
fn trees_by_the_length_of_messages_share_an_order() {
    let topology = wormcast_routing::generate::from_spec("irregular:16:1:4:4").unwrap();
    let members: Vec<HostId> = host_ids(&topology).into_iter().take(16).collect();
    let schemes = [
        Scheme::KBinomial { k: None },
        Scheme::Postal { lambda: None },
        Scheme::KBinomial { k: Some(2) },
        Scheme::Postal { lambda: Some(3) },
    ];
    let groups = (1..).zip(schemes);
    let mut groups: Vec<Group> = groups
        .map(|(id, scheme)| group(id, scheme, &members))
        .collect();
    groups.push(Group {
        packets: 12,
        ..group(5, schemes[0], &members)
    });
    let groups: Vec<Arc<Group>> = groups.into_iter().map(Arc::new).collect();
    let mut planner = Planner::new(Setting::plain(Algorithm::Osud));
    let mut planned = |costs: Costs| {
        planner.set_costs(costs);
        let hosts = all_live(&topology);
        let numbers = ClassDNumbers::default();
        let state = planner.plan(&topology, &topology, &groups, &hosts, &numbers);
        state.agents[&members[3]].clone()
    };
    let plan = planned(Costs::default());
    let digest =
        |plan: &Arc<AgentPlan>| digest_agents(&BTreeMap::from([(plan.host, plan.clone())]));
    for id in [1, 2] {
        let group = plan.group(GroupId(id)).unwrap();
        assert_eq!(group.structures.len(), 3);
        let orders: BTreeSet<_> = group.structures.iter().map(|one| &one.order).collect();
        assert_eq!(orders.len(), 1);
    }
    let trees = |plan: &AgentPlan, id: u16| -> Vec<Recipe> {
        let group = plan.group(GroupId(id)).unwrap();
        group
            .structures
            .iter()
            .map(|one| one.recipe.clone())
            .collect()
    };
    let k = |k| Recipe::KBinomial { k };
    assert_eq!(trees(&plan, 1), [k(4), k(2), k(1)]);
    assert_eq!(trees(&plan, 3), [k(2)]);
    assert_eq!(trees(&plan, 4), [Recipe::Postal { lambda: 3 }]);
    assert_eq!(trees(&plan, 5), [k(2)]);
    // A tree other than the first changes the digest too.
    let slow = planned(Costs {
        forward_packet_ns: 3e6,
        ..Costs::default()
    });
    assert_eq!(trees(&slow, 1), trees(&plan, 1));
    let bounds = |plan: &AgentPlan| {
        let group = plan.group(GroupId(1)).unwrap();
        let bounds: Vec<u64> = group.structures.iter().map(|one| one.bytes_most).collect();
        bounds
    };
    assert!(
        bounds(&slow)[1] > 2 * bounds(&plan)[1],
        "a long way makes chains slow"
    );
    assert_ne!(digest(&slow), digest(&plan));
}
