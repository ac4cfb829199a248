//! The figures of PACKET §4, and the schedule replayed packet by packet.

use wormcast_routing::structure::k_binomial::{optimal_k, steps, steps_of_one};
use wormcast_routing::structure::{CircuitVariant, Structure};
use wormcast_wire::HostId;

/// (optimal k, steps) for messages of 1, 2, 3, 4, 8, 16, 32, 64 packets.
const OPTIMA: [(usize, [(u32, u64); 8]); 4] = [
    (
        4,
        [
            (2, 2),
            (1, 4),
            (1, 5),
            (1, 6),
            (1, 10),
            (1, 18),
            (1, 34),
            (1, 66),
        ],
    ),
    (
        16,
        [
            (4, 4),
            (2, 7),
            (2, 9),
            (2, 11),
            (2, 19),
            (1, 30),
            (1, 46),
            (1, 78),
        ],
    ),
    (
        64,
        [
            (6, 6),
            (2, 10),
            (2, 12),
            (2, 14),
            (2, 22),
            (2, 38),
            (2, 70),
            (1, 126),
        ],
    ),
    (
        256,
        [
            (8, 8),
            (3, 12),
            (2, 15),
            (2, 17),
            (2, 25),
            (2, 41),
            (2, 73),
            (2, 137),
        ],
    ),
];

#[test]
fn the_optimal_k_is_that_of_the_table() {
    for (hosts, row) in OPTIMA {
        for (packets, expected) in [1, 2, 3, 4, 8, 16, 32, 64].into_iter().zip(row) {
            let k = optimal_k(hosts, packets);
            assert_eq!(
                (k, steps(hosts, packets, k)),
                expected,
                "{hosts} hosts, {packets} packets"
            );
        }
    }
}

#[test]
fn three_packets_to_three_hosts_take_five_steps_in_a_line_and_six_in_the_binomial_tree() {
    let order = [HostId(0), HostId(1), HostId(2), HostId(3)];
    let in_line = Structure::k_binomial(order, HostId(0), 1).unwrap();
    let binomial = Structure::k_binomial(order, HostId(0), 2).unwrap();
    assert_eq!((in_line.steps(3), binomial.steps(3)), (5, 6));
    assert_eq!((steps(4, 3, 1), steps(4, 3, 2)), (5, 6));
    let circuit = Structure::circuit(order, HostId(0), CircuitVariant::OmitLast).unwrap();
    assert_eq!(
        circuit.edges(),
        in_line.edges(),
        "a line is a circuit without its last hop"
    );
}

/// Hosts covered if every covered host covers a new one each step, k times.
fn grow(steps: u32, k: u32) -> u64 {
    let mut served = vec![0u32];
    for _ in 0..steps {
        let able = served.iter().filter(|sends| **sends < k).count();
        for sends in served.iter_mut().filter(|sends| **sends < k) {
            *sends += 1;
        }
        served.extend(vec![0; able]);
    }
    served.len() as u64
}

#[test]
fn as_many_hosts_are_covered_as_when_the_tree_is_grown() {
    for k in 1..=6 {
        for steps in 0..=10 {
            // So many hosts, and not one more, have a packet after these steps.
            let covered = grow(steps, k) as usize;
            assert_eq!(steps_of_one(covered, k), steps, "{covered} hosts, k {k}");
            assert_eq!(
                steps_of_one(covered + 1, k),
                steps + 1,
                "{covered} hosts, k {k}"
            );
        }
    }
    assert_eq!(steps_of_one(1, 3), 0);
}

/// When the last host has received the last packet, counted by a clock that moves step
/// by step, every host sending at most one packet in each.
fn replay(parents: &[usize], packets: usize) -> u64 {
    let hosts = parents.len();
    let children: Vec<Vec<usize>> = (0..hosts)
        .map(|host| (1..hosts).filter(|&child| parents[child] == host).collect())
        .collect();
    let mut has = vec![0; hosts];
    has[0] = packets;
    let mut sent = vec![0; hosts];
    let mut step = 0;
    while has.iter().any(|&count| count < packets) {
        step += 1;
        let mut arrivals = Vec::new();
        for host in 0..hosts {
            let fan_out = children[host].len();
            if fan_out > 0 && sent[host] < has[host] * fan_out {
                arrivals.push(children[host][sent[host] % fan_out]);
                sent[host] += 1;
            }
        }
        for host in arrivals {
            has[host] += 1;
        }
    }
    step
}

/// Parents of the hosts by their place in the order of the first packet's sends, so
/// that children of a host are in the order of its sends. Hosts are numbered from 0.
fn parents_of(structure: &Structure) -> Vec<usize> {
    let mut place = vec![usize::MAX; structure.order().len()];
    place[usize::from(structure.source().0)] = 0;
    let mut parents = vec![0];
    for edge in structure.edges() {
        place[usize::from(edge.to.0)] = parents.len();
        parents.push(place[usize::from(edge.from.0)]);
    }
    parents
}

#[test]
fn the_schedule_takes_the_steps_of_the_formula() {
    for hosts in 2..=128u16 {
        let order: Vec<HostId> = (0..hosts).map(HostId).collect();
        for k in 1..=7 {
            let source = HostId(hosts * 3 / 7);
            let structure = Structure::k_binomial(order.clone(), source, k).unwrap();
            let parents = parents_of(&structure);
            assert_eq!(parents.len(), usize::from(hosts));
            for packets in 1..=16 {
                let expected = steps(usize::from(hosts), packets, k);
                let replayed = replay(&parents, packets as usize);
                assert_eq!(structure.steps(packets), replayed);
                // A source with fewer than k children is quicker than the formula, which
                // has it send k times; at the optimal k that never happens.
                assert!(replayed <= expected, "n {hosts} k {k} m {packets}");
                if packets == 1 || k == optimal_k(usize::from(hosts), packets) {
                    assert_eq!(replayed, expected, "n {hosts} k {k} m {packets}");
                }
            }
        }
    }
}

/// When each packet has reached the last host, First-Packet-First-Served, all in one go:
/// packets never wait for later ones. Also the most children of a host.
fn replay_all(parents: &[usize], packets: usize) -> (Vec<u64>, usize) {
    let mut children = vec![Vec::new(); parents.len()];
    for (place, &parent) in parents.iter().enumerate().skip(1) {
        children[parent].push(place);
    }
    let mut arrivals = vec![vec![0u64; packets]; parents.len()];
    let mut last = vec![0u64; packets];
    for (host, below) in children.iter().enumerate() {
        let mut busy = 0;
        for packet in 0..packets {
            busy = arrivals[host][packet].max(busy);
            for &child in below {
                busy += 1;
                arrivals[child][packet] = busy;
            }
            last[packet] = last[packet].max(busy);
        }
    }
    // The last packet so far: an early packet may still be under way elsewhere.
    for packet in 1..packets {
        last[packet] = last[packet].max(last[packet - 1]);
    }
    (last, children.iter().map(Vec::len).max().unwrap_or(0))
}

/// Every group of up to 512 hosts, every message of up to 64 packets, every k.
#[test]
fn the_formula_holds_for_every_group_and_message() {
    const PACKETS: usize = 64;
    let mut exact = 0u32;
    let mut fewer = 0u32;
    for hosts in 2..=512usize {
        let order: Vec<HostId> = (0..hosts as u16).map(HostId).collect();
        let k_most = hosts.next_power_of_two().trailing_zeros();
        let mut best = vec![(u64::MAX, 0); PACKETS];
        for k in 1..=k_most {
            let structure = Structure::k_binomial(order.clone(), HostId(0), k).unwrap();
            let parents = parents_of(&structure);
            let (replayed, fan_out) = replay_all(&parents, PACKETS);
            assert!(fan_out <= k as usize, "n {hosts} k {k}");
            for packets in 1..=PACKETS as u32 {
                let found = replayed[packets as usize - 1];
                let formula = steps(hosts, packets, k);
                // The formula has the source send k times. If the hosts run out before,
                // no host has k children, and the tree is as quick as its own fan-out.
                let own =
                    u64::from(steps_of_one(hosts, k)) + u64::from(packets - 1) * fan_out as u64;
                assert_eq!(found, own, "n {hosts} k {k} m {packets}");
                if fan_out == k as usize || packets == 1 {
                    assert_eq!(found, formula, "n {hosts} k {k} m {packets}")
                } else {
                    assert!(found < formula, "n {hosts} k {k} m {packets}")
                }
                *(if found == formula {
                    &mut exact
                } else {
                    &mut fewer
                }) += 1;
                // The library counts without replaying; that takes its time here.
                if packets.is_power_of_two() || hosts < 64 {
                    assert_eq!(structure.steps(packets), found);
                }
                let best = &mut best[packets as usize - 1];
                *best = (*best).min((formula, k));
                if k == optimal_k(hosts, packets) {
                    assert_eq!(found, formula, "n {hosts} k {k} m {packets}");
                }
            }
        }
        for (packets, best) in (1..).zip(best) {
            let k = optimal_k(hosts, packets);
            assert_eq!((steps(hosts, packets, k), k), best, "n {hosts} m {packets}");
        }
    }
    assert_eq!(
        exact + fewer,
        64 * (2..=512u32)
            .map(|n| n.next_power_of_two().trailing_zeros())
            .sum::<u32>()
    );
    assert!(fewer < exact / 4, "{fewer} of {exact}");
}

/// All trees of so many hosts, each child after its parent, as parents by place.
fn all_trees(hosts: usize) -> Vec<Vec<usize>> {
    let mut trees = vec![vec![0]];
    for place in 1..hosts {
        trees = trees
            .iter()
            .flat_map(|tree| {
                (0..place).map(move |parent| tree.iter().copied().chain([parent]).collect())
            })
            .collect();
    }
    trees
}

#[test]
fn no_tree_is_quicker_than_the_optimal_one() {
    for hosts in 2..=7 {
        let trees = all_trees(hosts);
        for packets in 1..=6 {
            let best = trees
                .iter()
                .map(|tree| replay(tree, packets as usize))
                .min()
                .unwrap();
            let k = optimal_k(hosts, packets);
            assert_eq!(
                steps(hosts, packets, k),
                best,
                "{hosts} hosts, {packets} packets"
            );
        }
    }
}

#[test]
fn the_optimal_k_is_the_best_of_all() {
    for hosts in 2..=200 {
        for packets in 1..=40 {
            let best = (1..=12)
                .map(|k| (steps(hosts, packets, k), k))
                .min()
                .unwrap();
            let k = optimal_k(hosts, packets);
            assert_eq!((steps(hosts, packets, k), k), best);
        }
    }
}

#[test]
fn sends_go_to_the_places_of_fig_11() {
    // Sixteen hosts, k = 2: N = 1, 2, 4, 7, 12, 20, so T1 is 5; the source sends 12
    // places from the right end, and 3 hosts are left for the second send.
    let order: Vec<HostId> = (0..16).map(HostId).collect();
    let structure = Structure::k_binomial(order, HostId(0), 2).unwrap();
    let role = |host| structure.role_of(HostId(host)).unwrap();
    let children = |host| {
        role(host)
            .children
            .iter()
            .map(|child| child.0.0)
            .collect::<Vec<_>>()
    };
    assert_eq!(children(0), [4, 1]);
    assert_eq!(children(4), [9, 5]);
    assert_eq!(children(1), [2]);
    assert_eq!(role(2).parent, Some(HostId(1)));
    assert_eq!(children(2), [3]);
}

/// T(λ, k, m) is the schedule's steps where λ is 1, and those of a tree of the postal model where it is the tree's own.
#[test]
fn the_time_for_a_lambda_is_that_of_the_schedule() {
    for hosts in [2, 5, 16, 33] {
        let order: Vec<HostId> = (0..hosts).map(HostId).collect();
        for parameter in 1..=6 {
            let tree = Structure::k_binomial(order.clone(), HostId(1), parameter).unwrap();
            let postal = Structure::postal(order.clone(), HostId(1), parameter).unwrap();
            for packets in [1, 2, 7] {
                assert_eq!(tree.time_at(1.0, packets), 1_000 * tree.steps(packets));
                let own = postal.time_at(parameter.into(), packets);
                assert_eq!(own, 1_000 * postal.steps(packets));
                assert!(tree.time_at(2.25, packets) >= 1_250 + tree.time_at(1.0, packets));
            }
        }
    }
}
