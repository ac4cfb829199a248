//! Trees by the length of messages: of few levels for short ones, of few children of a host for long ones (PACKET §4.3.1,
//! NIC §5.5).
//!
//! A group has three, however large it is, so that the number of one means the same when members come or go in the middle of a
//! message. In groups of so few that all trees are alike they are three times the same. More would gain little: to 32 members
//! nothing with k-binomial trees, to 1,000 a sixth for some lengths.

use crate::auto::SHORTEST;
use crate::cost::Costs;
use wormcast_routing::structure::postal::LAMBDA_MAX;
use wormcast_routing::structure::{Recipe, StructureError};
use wormcast_wire::HostId;

/// Largest parameter of a postal tree that is tried, but λ itself.
const TRIED_MAX: u32 = 16;
/// A chain of more hosts is not tried. In one that is much longer, what is under way there and back may be more than a window
/// holds, and the last hosts believe a restart of the origin's agent late (RULES.md, "Failure").
const CHAIN_MAX: u32 = 100;

/// Trees with a parameter that is to be chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Trees {
    /// k from 1 to ⌈log2 n⌉; 1 is a chain.
    KBinomial,
    /// Those made for λ, and for less: their hosts have fewer children.
    Postal,
}

/// A tree and its T(λ, k, m), in thousandths of a send time: of the first packet, and of each after it. No host of these trees has
/// more children than the source, so packets keep the pace of the source.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Timed {
    recipe: Recipe,
    first: u64,
    each: u64,
}

impl Timed {
    fn time(&self, packets: u64) -> u64 {
        let more = packets.saturating_sub(1);
        self.first.saturating_add(more.saturating_mul(self.each))
    }

    /// The most packets for which it takes no longer than one that takes less for each, or the same.
    fn packets_no_slower_than(&self, other: &Timed) -> u64 {
        match other.first.checked_sub(self.first) {
            None => 0,
            Some(ahead) => match self.each.saturating_sub(other.each) {
                0 => u64::MAX,
                loses => 1 + ahead / loses,
            },
        }
    }
}

impl Trees {
    fn all(self, members: usize, lambdas: &[f64]) -> Vec<Recipe> {
        let members = members.max(2) as u32;
        match self {
            Trees::KBinomial => {
                let most = members.next_power_of_two().trailing_zeros();
                let least = if members > CHAIN_MAX { 2 } else { 1 };
                (least..=most).map(|k| Recipe::KBinomial { k }).collect()
            }
            Trees::Postal => {
                // From there on the source serves everyone.
                let most = LAMBDA_MAX.min(members - 1);
                let own = lambdas.iter().map(|lambda| lambda.ceil() as u32);
                let mut all: Vec<u32> = (1..=TRIED_MAX).chain(own).collect();
                all.iter_mut().for_each(|one| *one = (*one).clamp(1, most));
                all.sort_unstable();
                all.dedup();
                let postal = |lambda| Recipe::Postal { lambda };
                all.into_iter().map(postal).collect()
            }
        }
    }

    /// Those trees where λ is that.
    fn timed(trees: &[Recipe], members: usize, lambda: f64) -> Result<Vec<Timed>, StructureError> {
        let order: Vec<HostId> = (0..members as u16).map(HostId).collect();
        let timed = |recipe: &Recipe| {
            let tree = recipe.structure(order.clone(), HostId(0))?;
            let first = tree.time_at(lambda, 1);
            Ok(Timed {
                recipe: recipe.clone(),
                first,
                each: tree.time_at(lambda, 2) - first,
            })
        };
        trees.iter().map(timed).collect()
    }

    /// The tree that takes the least time for so many packets; of equals the first, with the smallest parameter.
    pub(super) fn best(
        self,
        members: usize,
        lambda: f64,
        packets: u64,
    ) -> Result<Recipe, StructureError> {
        let trees = Trees::timed(&self.all(members, &[lambda]), members, lambda)?;
        Ok(trees[quickest(&trees, packets)].recipe.clone())
    }

    /// For messages of any length, by ascending length: the longest that takes a tree, in bytes, and the tree. λ is that of
    /// the costs over so many switches.
    pub(super) fn by_length(
        self,
        costs: &Costs,
        switches: u32,
        members: usize,
    ) -> Result<Vec<(u64, Recipe)>, StructureError> {
        let full = costs.packet_payload_bytes.max(1);
        let shortest = full.min(SHORTEST);
        // Short packets have a larger λ: the time on the way is the same, sends follow each other faster.
        let lambdas = [shortest, full].map(|payload| costs.lambda(payload, switches));
        let all = self.all(members, &lambdas);
        let short = quickest(&Trees::timed(&all, members, lambdas[0])?, 1);
        let trees = Trees::timed(&all, members, lambdas[1])?;
        let short = &trees[short];
        let long = trees.iter().min_by_key(|tree| (tree.each, tree.first));
        let long = long.unwrap_or(short);
        if short == long {
            let bounds = [1, 2, u64::MAX];
            return Ok(bounds.map(|bound| (bound, long.recipe.clone())).into());
        }
        // Where these two take the same time, another one gains most.
        let even = short.packets_no_slower_than(long).clamp(1, u32::MAX.into());
        let between = (trees.iter())
            .filter(|tree| (long.each..=short.each).contains(&tree.each))
            .min_by_key(|tree| tree.time(even))
            .unwrap_or(long);
        let full = u64::from(full);
        let bytes = |packets: u64| packets.saturating_mul(full);
        let short_most = match short.packets_no_slower_than(between) {
            // Packets that are not full still take it.
            0 => (u64::from(shortest) * full).isqrt(),
            packets => bytes(packets.min(even)),
        };
        let between_most = match between.packets_no_slower_than(long) {
            // It is the long one.
            u64::MAX => 0,
            packets => bytes(packets),
        };
        Ok(vec![
            (short_most, short.recipe.clone()),
            (between_most.max(short_most + full), between.recipe.clone()),
            (u64::MAX, long.recipe.clone()),
        ])
    }
}

/// The place of the tree that takes the least time for so many packets, of equals the first.
fn quickest(trees: &[Timed], packets: u64) -> usize {
    (0..trees.len())
        .min_by_key(|&place| trees[place].time(packets))
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// When the last host has the last packet, in thousandths of a send time: every host sends a packet to all its children,
    /// one after the other, and then the next packet that has come.
    fn simulated(tree: &Recipe, members: usize, lambda: f64, packets: usize) -> u64 {
        let order: Vec<HostId> = (0..members as u16).map(HostId).collect();
        let tree = tree.structure(order, HostId(0)).expect("a tree");
        let mut children: BTreeMap<HostId, Vec<HostId>> = BTreeMap::new();
        for edge in tree.edges() {
            children.entry(edge.from).or_default().push(edge.to);
        }
        let flight = ((lambda - 1.0) * 1e3).round() as u64;
        let mut had = BTreeMap::from([(HostId(0), vec![0; packets])]);
        let (mut open, mut last) = (vec![HostId(0)], 0);
        while let Some(host) = open.pop() {
            let mut free = 0;
            for packet in 0..packets {
                free = had[&host][packet].max(free);
                for &child in children.get(&host).into_iter().flatten() {
                    free += 1_000;
                    had.entry(child).or_default().push(free + flight);
                }
            }
            last = had[&host][packets - 1].max(last);
            open.extend(children.get(&host).into_iter().flatten());
        }
        assert_eq!(had.len(), members);
        last
    }

    fn fewest(trees: &[Recipe], members: usize, lambda: f64, packets: usize) -> (u64, &Recipe) {
        let times = trees.iter();
        let times = times.map(|tree| (simulated(tree, members, lambda, packets), tree));
        times.min_by_key(|(time, _)| *time).expect("there is one")
    }

    fn costs(switch_hop_ns: f64, packet_send_ns: f64, header: u32) -> Costs {
        Costs {
            switch_hop_ns,
            packet_send_ns,
            packet_header_bytes: header,
            ..Costs::free(100_000_000)
        }
    }

    proptest! {
        #[test]
        fn the_best_tree_is_that_of_all_tried_packet_by_packet(
            members in 2_usize..70, packets in 1_usize..80, lambda in 1.0..20.0_f64, postal: bool,
        ) {
            let trees = if postal { Trees::Postal } else { Trees::KBinomial };
            let all = trees.all(members, &[lambda]);
            let (time, tree) = fewest(&all, members, lambda, packets);
            prop_assert_eq!(&trees.best(members, lambda, packets as u64).expect("there is one"), tree);
            let known = Trees::timed(&all, members, lambda).expect("trees");
            let known = &known[all.iter().position(|one| one == tree).expect("it is of them")];
            prop_assert_eq!(known.time(packets as u64), time);
        }

        /// Of the three each message takes the quickest, and another tree would gain little.
        #[test]
        fn each_message_takes_the_best_of_three(
            members in 3_usize..70, packets in 1_usize..300, postal: bool,
            hop_ns in 0.0..2_000_000.0_f64, send_ns in 0.0..50_000.0_f64, header in 0_u32..100,
        ) {
            let costs = costs(hop_ns, send_ns, header);
            let trees = if postal { Trees::Postal } else { Trees::KBinomial };
            let three = trees.by_length(&costs, 2, members).expect("trees");
            prop_assert_eq!(three.len(), 3);
            prop_assert!(three.windows(2).all(|pair| pair[0].0 < pair[1].0));
            prop_assert_eq!(three[2].0, u64::MAX);
            let lambda = costs.lambda(costs.packet_payload_bytes, 2);
            let bytes = packets as u64 * u64::from(costs.packet_payload_bytes);
            let taken = &three.iter().find(|(most, _)| bytes <= *most).expect("the last").1;
            let time = simulated(taken, members, lambda, packets);
            let own: Vec<Recipe> = three.iter().map(|(_, tree)| tree.clone()).collect();
            if packets > 1 {
                prop_assert_eq!(time, fewest(&own, members, lambda, packets).0);
            }
            let short = costs.lambda(SHORTEST, 2);
            let all = trees.all(members, &[lambda, short]);
            let least = fewest(&all, members, lambda, packets).0;
            let most = if postal { 1.6 } else { 1.3 };
            prop_assert!(time as f64 <= most * least as f64, "{time} instead of {least}");
            prop_assert_eq!(&three[0].1, fewest(&all, members, short, 1).1);
        }
    }

    /// What the documents say of 16 members: the binomial tree for one packet, two children for 12, a chain for a file.
    #[test]
    fn sixteen_members_have_three_trees() {
        let three = Trees::KBinomial.by_length(&Costs::default(), 2, 16);
        let three = three.expect("trees");
        let k = |k| Recipe::KBinomial { k };
        let trees: Vec<Recipe> = three.iter().map(|(_, tree)| tree.clone()).collect();
        assert_eq!(trees, [k(4), k(2), k(1)]);
        let bounds: Vec<u64> = three.iter().map(|(most, _)| most / 1444).collect();
        assert!(
            (1..4).contains(&bounds[0]) && (20..60).contains(&bounds[1]),
            "{bounds:?}"
        );
        for members in 1..=3 {
            let alike = Trees::KBinomial.by_length(&Costs::default(), 2, members);
            let alike = alike.expect("trees");
            assert_eq!(alike.len(), 3, "{members} members");
            assert!(alike.iter().all(|(_, tree)| *tree == k(1)));
        }
    }

    #[test]
    fn no_chain_is_longer_than_a_window_and_a_restart_bear() {
        for (members, long) in [(100, 1), (101, 2), (151, 2), (1_024, 2)] {
            let three = Trees::KBinomial.by_length(&Costs::default(), 2, members);
            let three = three.expect("trees");
            assert_eq!(
                three[2].1,
                Recipe::KBinomial { k: long },
                "{members} members"
            );
        }
    }
}
