//! How many others' ACKs one host takes, where switches copy a message and ACKs come up a tree of members.

use super::Costs;
use wormcast_routing::structure::{ACK_DIRECT_MEMBERS, ACK_FAN_IN_MOST};

/// Members whose ACKs one host takes at least: where it takes one alone, the tree is as deep as it is long.
const FAN_IN_LEAST: usize = 2;
/// DATA packets that one ACK frame stands for (`ack_every_packets` of the protocol).
const PACKETS_PER_ACK: f64 = 4.0;
/// Bytes by which an ACK without ranges is longer than a DATA packet without payload (wire/SPEC.md §5.2, §5.3).
const ACK_BYTES_MORE: u32 = 36;

impl Costs {
    /// The fan-in k by which the last ACK of a message that is one packet is at its source first. A level of
    /// the tree takes
    ///
    /// `forward_packet_ns + packet_send_ns + l + k·a`: a host wakes up and sends its own ACK, which takes `l` on the
    /// host's link, and the host above takes those of its k children one after another.
    ///
    /// `a`, what an ACK takes there, is the larger of the processor's time, four times `acknowledgement_ns`, which
    /// is by packet, and `l`. With `levels` as many as a tree of fan-in k needs for the group, k is the one with the
    /// least `levels · (forward_packet_ns + packet_send_ns + l + k·a)`; of equals the least, since it spares hosts
    /// most. It is 2 at least, and at most [`ACK_FAN_IN_MOST`], or all others in a
    /// group of up to [`ACK_DIRECT_MEMBERS`]: so no host handles more ACKs than the source of such a group.
    pub fn ack_fan_in(&self, members: usize) -> u32 {
        let others = members.saturating_sub(1);
        let most = match members {
            0..=ACK_DIRECT_MEMBERS => others,
            _ => ACK_FAN_IN_MOST,
        };
        let fan_ins = FAN_IN_LEAST.min(most)..=most;
        let time = |fan_in: usize| self.ack_ascent_ns(others, fan_in);
        let least = fan_ins.min_by(|&a, &b| time(a).total_cmp(&time(b)));
        least.unwrap_or(1).max(1) as u32
    }

    /// What confirmations take that come up a tree of members: at each level the
    /// [`Costs::message_confirm_ns`] of those that one host takes, and one passing on for each level above the last.
    /// With one level this is what it takes where each member's comes to the source.
    pub(super) fn confirmed_by_tree_ns(&self, others: usize) -> f64 {
        let fan_in = self.ack_fan_in(others + 1) as usize;
        let levels = f64::from(levels(others, fan_in));
        let taken = fan_in.min(others) as f64 * self.message_confirm_ns;
        levels * taken + (levels - 1.0).max(0.0) * self.ack_passed_ns()
    }

    /// Time until the ACKs of so many hosts have come up a tree of that fan-in.
    fn ack_ascent_ns(&self, others: usize, fan_in: usize) -> f64 {
        let taken = (PACKETS_PER_ACK * self.acknowledgement_ns).max(self.ack_on_link_ns());
        f64::from(levels(others, fan_in)) * (self.ack_passed_ns() + fan_in as f64 * taken)
    }

    /// From when a host has what it waits for until its own ACK is on its link.
    fn ack_passed_ns(&self) -> f64 {
        self.forward_packet_ns + self.packet_send_ns + self.ack_on_link_ns()
    }

    fn ack_on_link_ns(&self) -> f64 {
        let bytes = self.packet_header_bytes + self.route_bytes_per_hop + ACK_BYTES_MORE;
        let free = 1.0 - self.utilisation;
        f64::from(bytes) * 8e9 / self.host_link_bits_per_s as f64 / free
    }
}

/// Levels of a tree of that fan-in with so many hosts below its root.
fn levels(others: usize, fan_in: usize) -> u32 {
    if fan_in <= 1 {
        return others.try_into().unwrap_or(u32::MAX);
    }
    let (mut levels, mut level, mut held) = (0, 1_usize, 0_usize);
    while held < others {
        level = level.saturating_mul(fan_in);
        held = held.saturating_add(level);
        levels += 1;
    }
    levels
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_costs_of_agents_give_few_levels_and_no_more_children_than_these_need() {
        let costs = Costs::default();
        let fan_in = |members| costs.ack_fan_in(members);
        assert_eq!([2, 3, 5, 8].map(fan_in), [1, 2, 4, 7]);
        assert_eq!([9, 13, 14, 21, 22, 31].map(fan_in), [3, 3, 4, 4, 5, 5]);
        assert_eq!([32, 85, 86, 156, 250, 1024].map(fan_in), [3, 4, 5, 5, 4, 4]);
    }

    #[test]
    fn dear_acks_make_the_tree_narrow_and_dear_levels_make_it_wide() {
        let dear_acks = Costs {
            acknowledgement_ns: 200_000.0,
            ..Costs::default()
        };
        assert_eq!(
            [8, 60, 250].map(|members| dear_acks.ack_fan_in(members)),
            [3, 2, 2]
        );
        let dear_levels = Costs {
            forward_packet_ns: 1e9,
            ..Costs::default()
        };
        assert_eq!(
            [8, 9, 31, 150].map(|members| dear_levels.ack_fan_in(members)),
            [7, 3, 5, 5]
        );
    }

    proptest! {
        #[test]
        fn the_fan_in_is_bounded_and_none_takes_less_time(
            members in 2_usize..1_100,
            acknowledgement_ns in 0.0..1e6,
            forward_packet_ns in 0.0..1e7,
            packet_send_ns in 0.0..1e5,
            link_bits_per_s in 100_000_u64..100_000_000_000,
            utilisation in 0.0..0.99,
        ) {
            let costs = Costs {
                acknowledgement_ns,
                forward_packet_ns,
                packet_send_ns,
                utilisation,
                host_link_bits_per_s: link_bits_per_s,
                ..Costs::default()
            };
            let fan_in = costs.ack_fan_in(members) as usize;
            let most = if members <= ACK_DIRECT_MEMBERS { members.saturating_sub(1) } else { ACK_FAN_IN_MOST };
            prop_assert!((FAN_IN_LEAST.min(most)..=most).contains(&fan_in), "{fan_in} of {members}");
            let others = members.saturating_sub(1);
            let chosen = costs.ack_ascent_ns(others, fan_in);
            for other in FAN_IN_LEAST.min(most)..=most {
                let time = costs.ack_ascent_ns(others, other);
                prop_assert!(chosen < time || (chosen == time && fan_in <= other), "{other} of {members}");
            }
        }
    }
}
