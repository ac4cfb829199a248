//! The postal model (NIC §5.5): F(t), and trees that inform as many hosts as can be.

use std::collections::BTreeSet;

use proptest::prelude::*;
use wormcast_routing::structure::Structure;
use wormcast_wire::{BufferClass, HostId};

/// F(t): hosts informed after t send times, the source included: 1 for t < λ, else F(t−1) + F(t−λ).
fn hosts_informed(time: u32, lambda: u32) -> u64 {
    let mut informed: Vec<u64> = Vec::new();
    for at in 0..=time as usize {
        let before = at.checked_sub(lambda as usize);
        informed.push(before.map_or(1, |before| informed[at - 1] + informed[before]));
    }
    informed[time as usize]
}

/// How many hosts have the message after each send time, by the edges of the tree.
fn informed(structure: &Structure, times: u32) -> Vec<u64> {
    let lambda = structure.lambda();
    let edges = structure.edges();
    (0..=times)
        .map(|time| {
            1 + edges
                .iter()
                .filter(|edge| edge.step + lambda - 1 <= time)
                .count() as u64
        })
        .collect()
}

#[test]
fn a_full_tree_informs_as_many_as_the_recurrence_at_every_time() {
    for lambda in 1..=6 {
        for time in 0..=24 {
            let hosts = hosts_informed(time, lambda);
            if hosts > 1000 {
                break;
            }
            let order: Vec<HostId> = (0..hosts as u16).map(HostId).collect();
            let source = order[order.len() / 3];
            let structure = Structure::postal(order, source, lambda).unwrap();
            let expected: Vec<u64> = (0..=time)
                .map(|time| hosts_informed(time, lambda))
                .collect();
            assert_eq!(
                informed(&structure, time),
                expected,
                "λ {lambda}, {hosts} hosts"
            );
        }
    }
}

/// The least time of any tree: the first child gets j of the hosts and has them λ later,
/// the source goes on with the rest one send time later.
fn best_times(hosts: usize, lambda: u64) -> Vec<u64> {
    let mut best = vec![0u64; hosts + 1];
    for hosts in 2..=hosts {
        best[hosts] = (1..hosts)
            .map(|first| u64::max(lambda + best[first], 1 + best[hosts - first]))
            .min()
            .unwrap();
    }
    best
}

#[test]
fn no_tree_is_quicker() {
    for lambda in 1..=9u32 {
        let best = best_times(300, lambda.into());
        for (hosts, &best) in best.iter().enumerate().skip(1) {
            let order: Vec<HostId> = (0..hosts as u16).map(HostId).collect();
            let structure = Structure::postal(order, HostId(0), lambda).unwrap();
            assert_eq!(structure.steps(1), best, "{hosts} hosts, λ {lambda}");
        }
    }
}

#[test]
fn with_lambda_1_it_is_the_binomial_tree() {
    for hosts in 1..=130u16 {
        let order: Vec<HostId> = (0..hosts).map(HostId).collect();
        let postal = Structure::postal(order.clone(), HostId(0), 1).unwrap();
        let binomial = Structure::k_binomial(order, HostId(0), 16).unwrap();
        assert_eq!(postal.edges(), binomial.edges());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn children_come_after_their_parents_unless_the_parent_is_the_source(
        members in prop::collection::btree_set(any::<u16>().prop_map(|id| id % 5000), 1..120),
        source in any::<prop::sample::Index>(),
        lambda in 1u32..12,
    ) {
        let order: Vec<HostId> = members.into_iter().map(HostId).collect();
        let source = order[source.index(order.len())];
        let structure = Structure::postal(order.clone(), source, lambda).unwrap();
        let mut reached = BTreeSet::from([source]);
        let mut classes = vec![(source, BufferClass::One)];
        for edge in structure.edges() {
            prop_assert!(edge.from == source || edge.from < edge.to, "{:?}", edge);
            prop_assert!(reached.contains(&edge.from) && reached.insert(edge.to), "{:?}", edge);
            // Class 2 from the one send against the order on, and never before.
            let held = classes.iter().find(|(host, _)| *host == edge.from).unwrap().1;
            let turns = edge.to < edge.from;
            prop_assert!(!(turns && held == BufferClass::Two));
            let expected = if turns { BufferClass::Two } else { held };
            prop_assert_eq!(edge.class, expected);
            classes.push((edge.to, edge.class));
        }
        prop_assert_eq!(reached.len(), order.len());
    }
}
