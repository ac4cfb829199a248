//! Every structure reaches every member once, for every source, and never reverses its
//! buffer classes twice.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use wormcast_routing::structure::{
    CircuitVariant, Discipline, Edge, RootedTree, Structure, StructureError, TreeVariant, buffers,
};
use wormcast_wire::{BufferClass, HostId};

fn hosts(members: &BTreeSet<u16>) -> Vec<HostId> {
    members.iter().map(|&member| HostId(member)).collect()
}

/// A distance between hosts that is no more regular than a real one.
fn hops(a: HostId, b: HostId) -> Option<u32> {
    let mixed = (u32::from(a.0) ^ u32::from(b.0)).wrapping_mul(0x9E37_79B9);
    Some(1 + mixed % 7)
}

fn all_structures(order: &[HostId], source: HostId, fan_out: u32, k: u32) -> Vec<Structure> {
    let tree = RootedTree::build(order, fan_out, hops).unwrap();
    vec![
        Structure::repeat(order, source).unwrap(),
        Structure::circuit(order, source, CircuitVariant::OmitLast).unwrap(),
        Structure::circuit(order, source, CircuitVariant::Return).unwrap(),
        Structure::circuit(order, source, CircuitVariant::Ordered).unwrap(),
        Structure::tree(tree.clone(), source, TreeVariant::Unordered).unwrap(),
        Structure::tree(tree, source, TreeVariant::Ordered).unwrap(),
        Structure::k_binomial(order, source, k).unwrap(),
        Structure::postal(order, source, k).unwrap(),
        Structure::u_torus(order, source).unwrap(),
        Structure::s_torus(order, source).unwrap(),
        Structure::md_torus(order, source, &rings_of(order.len(), k as usize)).unwrap(),
        Structure::mu_torus(order, source, k).unwrap(),
        Structure::acknowledgement(order, source, k as usize).unwrap(),
    ]
}

/// So many members in rings of 1 to `most`, of all lengths in turn.
fn rings_of(members: usize, most: usize) -> Vec<usize> {
    let mut rings = Vec::new();
    let mut left = members;
    while left > 0 {
        rings.push((rings.len() % most + 1).min(left));
        left -= rings[rings.len() - 1];
    }
    rings
}

/// Replays the sends: nobody sends what it has not got, or two packets in one step.
fn check_edges(structure: &Structure, name: usize) {
    let source = structure.source();
    let edges = structure.edges();
    let flight = structure.lambda() - 1;
    let mut busy = BTreeSet::new();
    let mut received: Vec<(HostId, u32)> = vec![(source, 0)];
    for edge in &edges {
        assert!(
            busy.insert((edge.from, edge.step)),
            "structure {name}: {edge:?} at a busy host"
        );
        let has = received
            .iter()
            .any(|&(host, step)| host == edge.from && step < edge.step);
        assert!(has, "structure {name}: {edge:?} before it has the packet");
        received.push((edge.to, edge.step + flight));
    }
    let ordered = matches!(name, 3 | 5);
    let first = structure.order()[0];
    for &member in structure.order().iter() {
        let times = edges.iter().filter(|edge| edge.to == member).count();
        let alone = structure.order().len() == 1;
        let expected = match (
            ordered && source != first,
            member == source,
            name == 2 && !alone,
        ) {
            (true, ..) => 1,
            (false, true, false) => 0,
            (false, true, true) => 1,
            (false, false, _) => 1,
        };
        assert_eq!(
            times, expected,
            "structure {name}: member {member} of source {source}"
        );
    }
    let last = edges
        .iter()
        .map(|edge| u64::from(edge.step + flight))
        .max()
        .unwrap_or(0);
    assert_eq!(structure.steps(1), last, "structure {name}");
}

/// The roles, asked for one by one, are the edges.
fn check_roles(structure: &Structure) {
    let mut edges: Vec<(HostId, HostId, BufferClass)> = structure
        .edges()
        .iter()
        .map(
            |Edge {
                 from, to, class, ..
             }| (*from, *to, *class),
        )
        .collect();
    let mut from_roles = Vec::new();
    for &member in structure.order().iter() {
        let role = structure.role_of(member).unwrap();
        for (child, class) in role.children.iter().chain(&role.submit) {
            from_roles.push((member, *child, *class));
            let there = structure.role_of(*child).unwrap();
            assert_eq!(there.parent, Some(member));
            if *child != structure.source() || role.submit.is_some() {
                assert!(there.class == *class || *child == structure.source());
            }
            // At most one reversal: never back from class 2 to class 1.
            if role.submit.is_none() {
                assert!(*class >= role.class, "{member} to {child}");
            }
        }
        let listed: Vec<HostId> = structure
            .edges()
            .iter()
            .filter(|edge| edge.from == member)
            .map(|edge| edge.to)
            .collect();
        let asked: Vec<HostId> = role
            .submit
            .iter()
            .chain(&role.children)
            .map(|to| to.0)
            .collect();
        assert_eq!(
            listed, asked,
            "sends of {member} are in the order of its children"
        );
    }
    edges.sort();
    from_roles.sort();
    assert_eq!(edges, from_roles);
}

/// When the last packet arrives, replayed host by host and packet by packet from the
/// roles alone; a host sends one packet a step.
fn replay(structure: &Structure, packets: usize, discipline: Discipline) -> u64 {
    let source = structure.source();
    let flight = u64::from(structure.lambda()) - 1;
    let own = structure.role_of(source).unwrap();
    let mut arrivals = BTreeMap::new();
    let mut last = 0;
    let mut open = vec![source];
    let mut source_busy = 0;
    if let Some((root, _)) = own.submit {
        arrivals.insert(root, (1..=packets as u64).collect::<Vec<_>>());
        source_busy = packets as u64;
        open = vec![root];
    } else {
        arrivals.insert(source, vec![0; packets]);
    }
    while let Some(host) = open.pop() {
        let children = structure.role_of(host).unwrap().children;
        let here = arrivals[&host].clone();
        let mut there = vec![vec![0; packets]; children.len()];
        let mut busy = if host == source { source_busy } else { 0 };
        let turns: Vec<(usize, usize)> = match discipline {
            Discipline::Fpfs => (0..packets)
                .flat_map(|packet| (0..children.len()).map(move |child| (packet, child)))
                .collect(),
            Discipline::Fcfs => (0..children.len())
                .flat_map(|child| (0..packets).map(move |packet| (packet, child)))
                .collect(),
        };
        for (packet, child) in turns {
            busy = u64::max(busy, here[packet]) + 1;
            there[child][packet] = busy + flight;
            last = last.max(busy + flight);
        }
        for ((child, _), there) in children.into_iter().zip(there) {
            if let Entry::Vacant(vacant) = arrivals.entry(child) {
                vacant.insert(there);
                open.push(child);
            }
        }
    }
    last
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn steps_are_those_of_the_replay(
        members in prop::collection::btree_set(0u16..2000, 1..30),
        source in any::<prop::sample::Index>(),
        fan_out in 1u32..6,
        k in 1u32..7,
        packets in 1u32..12,
    ) {
        let order = hosts(&members);
        let source = order[source.index(order.len())];
        for (name, structure) in all_structures(&order, source, fan_out, k).iter().enumerate() {
            for discipline in [Discipline::Fpfs, Discipline::Fcfs] {
                let replayed = replay(structure, packets as usize, discipline);
                let steps = structure.steps_under(packets, discipline);
                prop_assert_eq!(steps, replayed, "structure {} {:?}", name, discipline);
            }
            let first = structure.edges_under(packets, Discipline::Fpfs);
            prop_assert!(name == 3 || name == 5 || first == structure.edges());
        }
    }

    #[test]
    fn every_member_is_reached_once(
        members in prop::collection::btree_set(0u16..2000, 1..40),
        source in any::<prop::sample::Index>(),
        fan_out in 1u32..6,
        k in 1u32..7,
    ) {
        let order = hosts(&members);
        let source = order[source.index(order.len())];
        for (name, structure) in all_structures(&order, source, fan_out, k).iter().enumerate() {
            check_edges(structure, name);
            check_roles(structure);
        }
    }

    #[test]
    fn requests_for_buffers_form_no_cycle(
        members in prop::collection::btree_set(0u16..2000, 1..16),
        fan_out in 1u32..6,
        k in 1u32..7,
    ) {
        let order = hosts(&members);
        let all: Vec<Vec<Structure>> =
            order.iter().map(|&source| all_structures(&order, source, fan_out, k)).collect();
        for scheme in 0..all[0].len() {
            let of_all_sources = all.iter().map(|structures| &structures[scheme]);
            // In a circuit that returns, the last request is for the source's own copy.
            if scheme != 2 {
                prop_assert_eq!(buffers::find_cycle(of_all_sources), None, "scheme {}", scheme);
            }
        }
    }
}

/// No host takes ACKs of more than it may, and no tree of that fan-in is less deep.
#[test]
fn acks_come_up_the_flattest_tree() {
    for members in 1..300u16 {
        let order: Vec<HostId> = (0..members).map(|host| HostId(7 * host)).collect();
        for fan_in in [1, 2, 3, 5, 300] {
            let source = order[usize::from(members) * 2 / 3];
            let tree = Structure::acknowledgement(&order[..], source, fan_in).unwrap();
            let mut depth = BTreeMap::from([(source, 0u32)]);
            let mut children: BTreeMap<HostId, usize> = BTreeMap::new();
            for edge in tree.edges() {
                depth.insert(edge.to, depth[&edge.from] + 1);
                *children.entry(edge.from).or_default() += 1;
            }
            assert!(children.values().all(|count| *count <= fan_in));
            let (mut held, mut level, mut least) = (1, 1, 0);
            while held < usize::from(members) {
                level *= fan_in;
                held += level;
                least += 1;
            }
            let deepest = depth.values().max().copied().unwrap_or(0);
            assert_eq!(deepest, least, "{members} members, fan-in {fan_in}");
        }
    }
}

#[test]
fn parameters_out_of_bounds_are_refused() {
    let order = [HostId(1), HostId(2), HostId(5)];
    let refused = |structure: Result<Structure, StructureError>| structure.unwrap_err().to_string();
    assert_eq!(
        refused(Structure::postal(order, HostId(1), 0)),
        "lambda 0 is outside 1 to 1024"
    );
    assert_eq!(
        refused(Structure::postal(order, HostId(1), 1025)),
        "lambda 1025 is outside 1 to 1024"
    );
    assert_eq!(
        refused(Structure::mu_torus(order, HostId(1), 0)),
        "r is 0; it is 1 at least"
    );
    assert_eq!(
        refused(Structure::md_torus(order, HostId(1), &[1, 1])),
        "rings of [1, 1] members do not hold the 3 there are"
    );
    assert_eq!(
        refused(Structure::u_torus(order, HostId(3))),
        "host 3 is not a member; members are 1, 2, 5"
    );
}

#[test]
fn without_classes_two_sources_deadlock() {
    // WORM Fig. 6: X holds A and requests B, Y holds B and requests A. The two classes
    // are what keeps these four requests from closing.
    let order = [HostId(1), HostId(2)];
    let both: Vec<Structure> = order
        .iter()
        .map(|&source| Structure::circuit(order, source, CircuitVariant::OmitLast).unwrap())
        .collect();
    assert_eq!(buffers::find_cycle(&both), None);
    let requests: Vec<Edge> = both.iter().flat_map(Structure::edges).collect();
    assert_eq!((requests[0].from, requests[0].to), (HostId(1), HostId(2)));
    assert_eq!((requests[1].from, requests[1].to), (HostId(2), HostId(1)));
    assert_ne!(requests[0].class, requests[1].class);
}

#[test]
fn mixed_orders_can_deadlock_and_it_is_found() {
    // A circuit goes up in class 1, a tree climbs down the ids in class 1: groups of the
    // two schemes must not share buffers.
    let order = [HostId(1), HostId(2)];
    let circuit = Structure::circuit(order, HostId(1), CircuitVariant::OmitLast).unwrap();
    let tree = RootedTree::build(&order, 3, hops).unwrap();
    let tree = Structure::tree(tree, HostId(2), TreeVariant::Unordered).unwrap();
    let cycle = buffers::find_cycle([&circuit, &tree]).unwrap();
    assert_eq!(
        cycle,
        [(HostId(1), BufferClass::One), (HostId(2), BufferClass::One)]
    );
}
