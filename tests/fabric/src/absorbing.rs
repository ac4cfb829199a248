//! One switch that takes worms itself (port byte 254), and the worms.

use wormcast_wire::HostId;
use wormcast_wire::wormhole::signal::{self, Signal};

use crate::switch::{Copy, Switch};
use crate::trains::{OWN_CHANNEL, Scheme, Worm, frame_of};

/// `ABSORBED_MAX` of p4src/shared/sizes.p4.
pub const ABSORBED_MAX: usize = 32;
pub const ABSORBED_TRAIN: usize = 8;
/// `TURN_LOST_US`.
pub const LOST_US: u64 = 1_000_000;
/// Frames of a channel that may wait.
pub const HELD_MAX: u16 = 16;
/// When tests begin, µs.
pub const NOW_US: u64 = 5_000_000;
/// A port by which worms come.
pub const IN: u8 = 2;
/// A port by which they leave.
pub const OUT: u8 = 5;

/// Flags of a frame: HEAD.
pub const HEAD: u8 = 0x02;
pub const TAIL: u8 = 0x04;
pub const TRAIN: u8 = 0x40;
/// Of `channel_state_t`: a worm has the channel.
pub const OPEN: u64 = 2;
/// The longest silence of a train, µs.
pub const SILENT_US: u64 = 50_000;

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

/// A switch and its clock.
pub struct Lone {
    pub switch: Switch,
    pub now_us: u64,
    scheme: Scheme,
}

/// What left by a port: flags and position.
pub type Left = (u8, u8, u16);

impl Lone {
    /// One in the mode of a scheme.
    pub fn new(scheme: Scheme) -> Lone {
        Lone {
            switch: one_switch(scheme, SILENT_US),
            now_us: NOW_US,
            scheme,
        }
    }

    /// A frame comes; nothing goes round meanwhile.
    pub fn give(&mut self, worm: &Worm, position: u16, port: u8) -> Vec<Copy> {
        self.now_us += 1;
        let frame = frame_of(worm, position, self.scheme);
        self.switch.forward(&frame, port, self.now_us, |_| 0)
    }

    /// Frames of a train come that the switch takes.
    pub fn take(&mut self, worm: &Worm, positions: std::ops::Range<u16>, port: u8) {
        for position in positions {
            let copies = self.give(worm, position, port);
            assert!(copies.is_empty(), "{position}: {copies:?}");
        }
    }

    /// All that waits goes round so often; what leaves.
    pub fn round(&mut self, times: usize) -> Vec<Left> {
        let mut left = Vec::new();
        for _ in 0..times {
            self.now_us += 1;
            left.extend(self.switch.go_round(self.now_us).iter().map(left_of));
        }
        left
    }

    /// Frames that it dropped for a reason.
    pub fn dropped(&self, reason: usize) -> u64 {
        self.switch.counter("drops", reason)
    }

    /// How often something happened to trains.
    pub fn event(&self, event: usize) -> u64 {
        self.switch.counter("trains", event)
    }

    /// What a register has of the switch's own channel.
    pub fn own(&self, register: &str) -> u64 {
        self.switch.register(register, OWN_CHANNEL)
    }

    /// Frames that it holds by what it counts.
    pub fn held(&self) -> u64 {
        self.own("channel_came") - self.own("channel_gone")
    }

    /// Another train has all the room there is, and goes out whole.
    pub fn is_free(&mut self, sequence: u16) {
        assert_eq!((self.switch.waiting(), self.held()), (0, 0));
        assert!(self.own("channel_state") != OPEN, "a worm has the channel");
        assert_eq!(self.own("channel_outputs"), 0);
        let frames = ABSORBED_MAX as u16;
        let train = worm(7, sequence, &[254, OUT], frames);
        self.take(&train, 0..frames, 1);
        assert_eq!(self.round(2 * ABSORBED_MAX), whole(frames));
        assert_eq!((self.held(), self.own("channel_outputs")), (0, 0));
        assert_eq!(self.switch.register("absorbed_train", 0), 0);
    }
}

pub fn left_of(copy: &Copy) -> Left {
    let position = u16::from_be_bytes([copy.frame[26], copy.frame[27]]);
    (copy.port, copy.frame[15], position)
}

/// A train as it leaves by the usual port.
pub fn whole(frames: u16) -> Vec<Left> {
    let flags = |position| {
        let head = if position == 0 { HEAD } else { 0 };
        TRAIN | head | if position + 1 == frames { TAIL } else { 0 }
    };
    let left = (0..frames).map(|position| (OUT, flags(position), position));
    left.collect()
}

/// A worm goes back by a port as RESET, and nothing else leaves.
#[track_caller]
pub fn is_reset(copies: &[Copy], port: u8, worm: &Worm) {
    assert_eq!(ports(copies), [port], "back to where it came from");
    let reset = signal::decode(&copies[0].frame).expect("a signal").signal;
    assert_eq!(reset, Signal::Reset(HostId(worm.source), worm.sequence));
}
