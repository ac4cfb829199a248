//! Every structure reaches every member once, for every source, and never reverses its
//! buffer classes twice.

use std::collections::BTreeSet;

use proptest::prelude::*;
use wormcast_routing::ids::HostId;
use wormcast_routing::structure::{
    BufferClass, CircuitVariant, Edge, RootedTree, Structure, TreeVariant, buffers,
};

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
    ]
}

/// Replays the sends: nobody sends what it has not got, or two packets in one step.
fn check_edges(structure: &Structure, name: usize) {
    let source = structure.source();
    let edges = structure.edges();
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
        received.push((edge.to, edge.step));
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
        .map(|edge| u64::from(edge.step))
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

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

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
