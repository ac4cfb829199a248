//! One switch that takes worms itself (port byte 254), and the worms.

use crate::switch::{Copy, Switch};
use crate::trains::{Scheme, Worm};

/// `ABSORBED_MAX` of p4src/shared/sizes.p4.
pub const ABSORBED_MAX: usize = 32;
/// `ABSORBED_TRAIN`.
pub const ABSORBED_TRAIN: usize = 8;
/// `TURN_LOST_US`.
pub const LOST_US: u64 = 1_000_000;
/// Frames of a channel that may wait.
pub const HELD_MAX: u16 = 16;
/// Cells of `channel_*`: of what the switch takes itself.
pub const OWN_CHANNEL: usize = 254;
/// When tests begin, µs.
pub const NOW_US: u64 = 5_000_000;
/// A port by which worms come.
pub const IN: u8 = 2;
/// A port by which they leave.
pub const OUT: u8 = 5;

/// A switch with ports 0 to 7, on which what recirculates takes time.
pub fn one_switch(scheme: Scheme, silent_us: u64) -> Switch {
    let mut switch = Switch::new(1);
    for port in 0..8 {
        switch.set_entry(
            "ingress.ports",
            &[("port", port)],
            "ingress.port_known",
            &[],
        );
    }
    if scheme == Scheme::Packet {
        switch.recirculate_slowly();
    } else {
        switch.set_wormhole(8, &mode(scheme, silent_us));
    }
    switch
}

/// The parameters of `wormhole_mode`.
pub fn mode(scheme: Scheme, silent_us: u64) -> [(&'static str, u128); 8] {
    [
        ("scheme", scheme as u128),
        ("stop_frames", 8),
        ("go_frames", 5),
        ("held_max", HELD_MAX.into()),
        ("gap_us", 0),
        ("stop_us", 10_000),
        ("idle_us", 500),
        ("silent_us", silent_us.into()),
    ]
}

/// A UNICAST worm.
pub fn worm(source: u16, sequence: u16, route: &[u8], frames: u16) -> Worm {
    Worm {
        sequence,
        is_tree: false,
        route: route.to_vec(),
        frames,
        source,
    }
}

/// The ports by which copies leave.
pub fn ports(copies: &[Copy]) -> Vec<u8> {
    copies.iter().map(|copy| copy.port).collect()
}
