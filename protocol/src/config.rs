//! Settings of an engine, fixed at its start, and every limit it keeps.

use thiserror::Error;
use wormcast_wire::{HostId, MTU_MAX, MTU_MIN, Seq};

/// Most packets an origin may have in its window beyond what is stable, and most
/// that a receiver accepts beyond the first one it misses. The 16-bit stable
/// offset of DATA packets needs it to stay below 2^16.
pub const WINDOW_PACKETS_MAX: u32 = 32_768;
/// Packets that any window has room for.
pub const WINDOW_PACKETS_LEAST: u64 = 16;

/// Settings of an engine.
#[derive(Clone, Debug)]
pub struct EngineConfig {
    pub host: HostId,
    /// Source MAC address of the frames it sends.
    pub mac: [u8; 6],
    /// Interface MTU: bytes of a frame after its 14-byte Ethernet header,
    /// [`MTU_MIN`]..=[`MTU_MAX`]. Worm header, route, PDU header and payload share it.
    pub mtu: usize,
    /// Seed of everything random in the engine (the first sequence number of its
    /// streams). The same seed and the same calls give the same run.
    pub seed: u64,
    /// Tells one life of this host's agent from the next. It must grow (RFC 1982
    /// order) from one start to the next, and faster than this host opens streams, which
    /// are numbered from it: milliseconds since 1970, truncated to 32 bits, will do.
    pub incarnation: u32,
    /// The first sequence number of streams this host originates. None: follows
    /// from the seed.
    pub first_seq: Option<Seq>,
    /// Bounds of tables, windows and pools.
    pub limits: Limits,
    pub timing: Timing,
}

impl EngineConfig {
    /// A configuration with the default limits and times.
    pub fn new(host: HostId, mac: [u8; 6], mtu: usize, seed: u64, incarnation: u32) -> Self {
        EngineConfig {
            host,
            mac,
            mtu,
            seed,
            incarnation,
            first_seq: None,
            limits: Limits::default(),
            timing: Timing::default(),
        }
    }

    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        let limits = &self.limits;
        let timing = &self.timing;
        let between = |name, value: u64, least: u64, most: u64| {
            if (least..=most).contains(&value) {
                Ok(())
            } else {
                Err(ConfigError {
                    name,
                    value,
                    least,
                    most,
                })
            }
        };
        between("host", self.host.0.into(), 0, 65_534)?;
        between("mtu", self.mtu as u64, MTU_MIN as u64, MTU_MAX as u64)?;
        between("groups", limits.groups as u64, 1, 65_535)?;
        between("sessions", limits.sessions as u64, 1, 65_535)?;
        between("sessions_kept", limits.sessions_kept as u64, 1, 65_535)?;
        between("children", limits.children as u64, 1, 65_535)?;
        between(
            "origin_window_packets",
            limits.origin_window_packets.into(),
            WINDOW_PACKETS_LEAST,
            WINDOW_PACKETS_MAX.into(),
        )?;
        let pool_least = 16 * self.mtu as u64;
        between(
            "pool_class1_bytes",
            limits.pool_class1_bytes as u64,
            pool_least,
            1 << 40,
        )?;
        between(
            "pool_class2_bytes",
            limits.pool_class2_bytes as u64,
            pool_least,
            1 << 40,
        )?;
        between("events", limits.events as u64, 16, 1 << 20)?;
        between(
            "route_reserve_bytes",
            limits.route_reserve_bytes as u64,
            1,
            self.mtu as u64 / 4,
        )?;
        between("ack_every_packets", timing.ack_every_packets.into(), 1, 256)?;
        between("ack_delay_us", timing.ack_delay_us, 100, 50_000)?;
        between(
            "queue_delay_target_us",
            timing.queue_delay_target_us,
            200,
            100_000,
        )?;
        between(
            "probe_interval_us_max",
            timing.probe_interval_us_max,
            10_000,
            10_000_000,
        )?;
        between(
            "member_timeout_us",
            timing.member_timeout_us,
            100_000,
            600_000_000,
        )?;
        between(
            "member_exclude_us",
            timing.member_exclude_us,
            timing.member_timeout_us,
            86_400_000_000,
        )?;
        Ok(())
    }
}

/// Bounds of tables, windows and pools; what happens when each is full is said at
/// the field, and a counter of [`crate::Counters`] or [`crate::SessionStatistics`]
/// tells.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Groups this host is a member of. Full: `set_group` fails.
    pub groups: usize,
    /// Streams, one for each (group, origin). Full: an origin's `write` fails, a
    /// received packet of a new stream is rejected (`sessions_full`); streams idle
    /// and fully delivered are given up first.
    pub sessions: usize,
    /// Streams above which a new one takes the place of one that is idle and fully
    /// delivered, so that many groups do not make every packet dear.
    pub sessions_kept: usize,
    /// Children this host serves in one stream. More: `set_group` fails at the
    /// first use of the structure, reported as [`crate::Event::StructureRejected`].
    pub children: usize,
    /// Packets an origin holds beyond what is stable. Full: `write` accepts nothing.
    pub origin_window_packets: u32,
    /// Bytes of buffers that an origin holds beyond what is stable; as many packets as [`WINDOW_PACKETS_LEAST`] whatever
    /// their length. Full: `write` accepts nothing. Half of a member's pool, so that a member behind a slow link has room
    /// for all of a stream that is under way, however large the frames are.
    pub origin_window_bytes: usize,
    /// Received packets of class one, bytes of memory. Full: NACK to the parent.
    pub pool_class1_bytes: usize,
    /// Received packets of class two, bytes of memory. Full: NACK to the parent.
    pub pool_class2_bytes: usize,
    /// For experiments alone: one pool of the size of both for all packets, as if there were no buffer
    /// classes (WORM §8.2). What a packet carries that finds no room is lost for good, here and at all hosts
    /// behind: it counts as received, and nothing but its number is passed on (`drops.overflow`).
    pub unclassed: bool,
    /// Events not yet polled. Full: one that only informs is dropped and counted (`events_dropped`); others are kept.
    pub events: usize,
    /// Route bytes an origin leaves room for in each packet at least; more where its own routes to members are
    /// longer than half of that. A route at a host that forwards that is longer still makes that child unreachable
    /// for full packets.
    pub route_reserve_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            groups: 16_384,
            sessions: 4_096,
            sessions_kept: 256,
            children: 1_024,
            origin_window_packets: 8_192,
            origin_window_bytes: 12 << 20,
            pool_class1_bytes: 24 << 20,
            pool_class2_bytes: 24 << 20,
            unclassed: false,
            events: 65_536,
            route_reserve_bytes: 20,
        }
    }
}

/// Times and rates.
#[derive(Clone, Debug)]
pub struct Timing {
    /// Received data packets after which an ACK goes out at once.
    pub ack_every_packets: u32,
    /// Longest time an ACK waits for more packets, µs.
    pub ack_delay_us: u64,
    /// Queueing delay that congestion control aims at, µs.
    pub queue_delay_target_us: u64,
    /// Longest time between two probes of a silent child, µs; short, so that a
    /// transfer resumes soon after the fabric has healed.
    pub probe_interval_us_max: u64,
    /// Silence of a child that owes an answer after which it is reported, µs. It stays
    /// a child: silence is no failure.
    pub member_timeout_us: u64,
    /// Silence after which, no new plan having come, a child and all below it are
    /// given up, so that the others finish, µs. Longer than any pause of a host that
    /// is alive.
    pub member_exclude_us: u64,
}

impl Default for Timing {
    fn default() -> Self {
        Timing {
            ack_every_packets: 4,
            ack_delay_us: 2_000,
            queue_delay_target_us: 5_000,
            probe_interval_us_max: 200_000,
            member_timeout_us: 4_000_000,
            member_exclude_us: 60_000_000,
        }
    }
}

/// A field of [`EngineConfig`] out of its bounds.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{name} is {value}; it must be {least} to {most}")]
pub struct ConfigError {
    pub name: &'static str,
    pub value: u64,
    pub least: u64,
    pub most: u64,
}
