//! How much buffer a lossless priority needs, and whether all of it fits.
//!
//! After a switch has decided to stop its neighbour (IEEE 802.1Q Annex N, buffer requirements of PFC),
//! frames still come for as long as the word takes to get there and the last frame takes
//! to arrive. All that must find room above the stop threshold: the headroom.

use std::collections::BTreeMap;

use super::ClassMap;
use super::pause::{PauseMode, quanta_us};
use super::priority::PrioritySet;
use super::units::BitRate;
use super::watchdog::WatchdogSettings;

/// Rate and delay of a link by default.
const LINK_RATE: &str = "1gbit";
const LINK_DELAY_US: u64 = 10;

/// Bytes a frame takes on the wire beyond its own: preamble and start delimiter 8, check
/// sequence 4, gap between frames 12 (IEEE 802.3 clause 3.1.1, 4.4.2).
pub const WIRE_OVERHEAD_BYTES: u64 = 24;

/// A PFC frame on the wire.
const PFC_WIRE_BYTES: u64 = 60 + WIRE_OVERHEAD_BYTES;

/// Longest frame of an Ethernet with the usual MTU: 1500 bytes, header, VLAN tag.
pub const FRAME_BYTES_DEFAULT: u32 = 1_518;

/// Shortest frame without its check sequence.
pub const FRAME_BYTES_MIN: u64 = 60;

/// How long this switch, or a neighbour, takes at most to act on a frame that has arrived,
/// unless said otherwise and unless pauses are too short for it.
pub const RESPONSE_US_DEFAULT: u64 = 8_000;

/// What an idle sender may catch up with at once: the burst of
/// [`TokenBucket`](crate::TokenBucket).
pub const BURST_US_DEFAULT: u64 = 1_000;

/// Room for lossy frames when the whole buffer is sized automatically.
pub const LOSSY_BYTES_DEFAULT: u64 = 8 << 20;

/// Least room for lossy frames.
pub const LOSSY_BYTES_MIN: u64 = 64 << 10;

/// Largest buffer of a switch.
pub const BUFFER_BYTES_MAX: u64 = 16 << 30;

/// One link, as its two ends see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkSettings {
    /// Rate of the link, both ways.
    pub rate: BitRate,
    /// Time a bit takes from end to end, µs.
    pub delay_us: u64,
}

/// Thresholds that were given; the others are computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GivenThresholds {
    /// Bytes held at which the neighbour is stopped.
    pub xoff: Option<u64>,
    /// Bytes held at which it may go on.
    pub xon: Option<u64>,
    /// Bytes kept for what still comes.
    pub headroom: Option<u64>,
}

/// Settings of a lossless switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LosslessSettings {
    /// Priorities that lose nothing.
    pub priorities: PrioritySet,
    /// Priority of every kind of frame.
    pub map: ClassMap,
    /// Every link without settings of its own.
    pub link: LinkSettings,
    /// Links with settings of their own, by port.
    pub links: BTreeMap<u16, LinkSettings>,
    /// Longest time this switch, or a neighbour, leaves a frame unread, µs; `None`:
    /// [`RESPONSE_US_DEFAULT`], or less where pauses are short.
    pub response_us: Option<u64>,
    /// Longest frame, bytes without check sequence.
    pub frame_bytes_max: u32,
    /// Thresholds of every port and lossless priority.
    pub thresholds: GivenThresholds,
    /// The whole buffer; `None`: what the lossless priorities need and room for lossy ones.
    pub buffer_bytes: Option<u64>,
    pub pause: PauseMode,
    /// Pause time in quanta, 1–65535.
    pub quanta: u16,
    /// The watchdog; `None`: no watchdog.
    pub watchdog: Option<WatchdogSettings>,
}

impl Default for LosslessSettings {
    /// What `--lossless` alone says.
    fn default() -> Self {
        Self {
            priorities: [3, 4].into_iter().collect(),
            map: ClassMap::default(),
            link: LinkSettings {
                rate: LINK_RATE.parse().expect("a rate"),
                delay_us: LINK_DELAY_US,
            },
            links: BTreeMap::new(),
            response_us: None,
            frame_bytes_max: FRAME_BYTES_DEFAULT,
            thresholds: GivenThresholds::default(),
            buffer_bytes: None,
            pause: PauseMode::Pfc,
            quanta: u16::MAX,
            watchdog: Some(WatchdogSettings::default()),
        }
    }
}

/// When the buffer of one port and one lossless priority stops its neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thresholds {
    /// Bytes held at which the neighbour may go on.
    pub xon: u64,
    /// Bytes held above which it is stopped.
    pub xoff: u64,
    /// Bytes kept for what still comes after that.
    pub headroom: u64,
}

impl Thresholds {
    /// Most bytes the buffer holds.
    pub fn limit(&self) -> u64 {
        self.xoff + self.headroom
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortPlan {
    pub link: LinkSettings,
    /// Of each of its lossless priorities.
    pub thresholds: Thresholds,
    /// Response time the thresholds allow for, µs.
    pub response_us: u64,
    /// Frames that may arrive before the switch looks, all of them as short as can be.
    pub ring_frames: u64,
}

/// Buffers of all ports, which fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BufferPlan {
    /// Ports, by number.
    pub ports: BTreeMap<u16, PortPlan>,
    pub buffer_bytes: u64,
    /// Of it, what is kept for lossless priorities.
    pub lossless_bytes: u64,
    /// Of it, what all lossy frames share.
    pub lossy_bytes: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// XON, XOFF and a frame are not in order.
    #[error(
        "thresholds xon={xon} and xoff={xoff} cannot be: XON must be less than XOFF, and XOFF at least \
         one frame ({frame} bytes)"
    )]
    Thresholds {
        xon: u64,
        xoff: u64,
        /// Longest frame.
        frame: u64,
    },
    /// A pause ends before anybody can act on its repetition.
    #[error(
        "port {port}: with a response time of {response_us} us and a link delay of {delay_us} us a pause \
         of {pause_us} us (--pause-quanta at --link-rate) may end before it is refreshed: twice their sum \
         must not exceed half the pause; give a shorter --response-time (at most {} us), more \
         --pause-quanta or a lower --link-rate",
        (pause_us / 4).saturating_sub(*delay_us)
    )]
    Response {
        port: u16,
        response_us: u64,
        /// Delay of the link, µs.
        delay_us: u64,
        /// Length of a pause, µs.
        pause_us: u64,
    },
    /// The headrooms and thresholds do not fit the buffer.
    #[error(
        "the buffer is too small: {ports} ports with {priorities} lossless priorities need {xoff_bytes} \
         bytes up to XOFF and {headroom_bytes} bytes of headroom, and lossy frames {LOSSY_BYTES_MIN} \
         bytes: {} together; --buffer-bytes is {buffer_bytes} (at most {BUFFER_BYTES_MAX})",
        xoff_bytes + headroom_bytes + LOSSY_BYTES_MIN
    )]
    Buffer {
        ports: usize,
        /// Lossless priorities.
        priorities: usize,
        /// XOFF thresholds of all.
        xoff_bytes: u64,
        headroom_bytes: u64,
        buffer_bytes: u64,
    },
}

/// Bytes a link carries in a time, rounded up.
pub fn bytes_in(rate: BitRate, time_us: u64) -> u64 {
    let bits = u128::from(rate.bits_per_s()) * u128::from(time_us);
    u64::try_from(bits.div_ceil(8_000_000)).unwrap_or(u64::MAX)
}

/// Headroom of one port and priority, bytes.
///
/// What the link carries while the stop is on its way and is acted on — own response time
/// until the frame that crosses XOFF is read, delay, the neighbour's response time, delay
/// of its last bit, and a burst it may have saved up — and, as in Annex N, a longest frame
/// that has just begun at either end and the PFC frame itself.
pub fn headroom_bytes(
    link: LinkSettings,
    response_us: u64,
    burst_us: u64,
    frame_bytes: u32,
) -> u64 {
    let time_us = 2 * link.delay_us + 2 * response_us + burst_us;
    let frame = u64::from(frame_bytes) + WIRE_OVERHEAD_BYTES;
    bytes_in(link.rate, time_us) + 2 * frame + PFC_WIRE_BYTES
}

impl LosslessSettings {
    pub fn link_of(&self, port: u16) -> LinkSettings {
        self.links.get(&port).copied().unwrap_or(self.link)
    }

    /// Plans the buffers of these ports, or says why they cannot be.
    pub fn plan(&self, ports: &[u16]) -> Result<BufferPlan, PlanError> {
        let mut plans = BTreeMap::new();
        let (mut xoff_bytes, mut headroom_all) = (0u64, 0u64);
        let priorities = self.priorities.len() as u64;
        for &port in ports {
            let plan = self.plan_port(port)?;
            xoff_bytes = xoff_bytes.saturating_add(plan.thresholds.xoff.saturating_mul(priorities));
            headroom_all =
                headroom_all.saturating_add(plan.thresholds.headroom.saturating_mul(priorities));
            plans.insert(port, plan);
        }
        let lossless_bytes = xoff_bytes.saturating_add(headroom_all);
        let automatic = lossless_bytes.saturating_add(LOSSY_BYTES_DEFAULT);
        let buffer_bytes = self.buffer_bytes.unwrap_or(automatic);
        let fits = lossless_bytes
            .checked_add(LOSSY_BYTES_MIN)
            .is_some_and(|needed| needed <= buffer_bytes);
        if !fits || buffer_bytes > BUFFER_BYTES_MAX {
            return Err(PlanError::Buffer {
                ports: ports.len(),
                priorities: self.priorities.len(),
                xoff_bytes,
                headroom_bytes: headroom_all,
                buffer_bytes,
            });
        }
        Ok(BufferPlan {
            ports: plans,
            buffer_bytes,
            lossless_bytes,
            lossy_bytes: buffer_bytes - lossless_bytes,
        })
    }

    /// Plans one port, whatever the others need.
    pub fn plan_port(&self, port: u16) -> Result<PortPlan, PlanError> {
        let link = self.link_of(port);
        let pause_us = quanta_us(self.quanta, link.rate);
        // A pause is refreshed at half its time; the refresh may be sent late by our
        // response time, and read late by the neighbour's.
        let longest_us = (pause_us / 4).saturating_sub(link.delay_us);
        let response_us = self
            .response_us
            .unwrap_or_else(|| RESPONSE_US_DEFAULT.min(longest_us));
        if response_us > longest_us {
            return Err(PlanError::Response {
                port,
                response_us,
                delay_us: link.delay_us,
                pause_us,
            });
        }
        let frame = u64::from(self.frame_bytes_max);
        let headroom = self.thresholds.headroom.unwrap_or_else(|| {
            headroom_bytes(link, response_us, BURST_US_DEFAULT, self.frame_bytes_max)
        });
        // Enough that a port that is allowed to go on does not run dry meanwhile.
        let xoff = self
            .thresholds
            .xoff
            .unwrap_or_else(|| bytes_in(link.rate, 1_000 + 2 * link.delay_us).max(16 * frame));
        let xon = self.thresholds.xon.unwrap_or(xoff / 2);
        if xon >= xoff || xoff < frame {
            return Err(PlanError::Thresholds { xon, xoff, frame });
        }
        let unread_us = response_us + BURST_US_DEFAULT + 2 * link.delay_us;
        let shortest = FRAME_BYTES_MIN + WIRE_OVERHEAD_BYTES;
        Ok(PortPlan {
            link,
            thresholds: Thresholds {
                xon,
                xoff,
                headroom,
            },
            response_us,
            ring_frames: bytes_in(link.rate, unread_us).div_ceil(shortest) + 2,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn settings() -> LosslessSettings {
        LosslessSettings {
            watchdog: None,
            ..LosslessSettings::default()
        }
    }

    /// 1 Gbit/s carries 125 bytes a microsecond.
    #[test]
    fn headroom_by_hand() {
        let link = settings().link;
        let time_us = 2 * 10 + 2 * 300 + 50;
        let expected = 125 * time_us + 2 * (1_518 + 24) + 84;
        assert_eq!(headroom_bytes(link, 300, 50, 1_518), expected);
    }

    #[test]
    fn a_plan_adds_up() {
        let plan = settings().plan(&[1, 2, 3]).unwrap();
        let port = plan.ports[&2];
        assert_eq!(port.response_us, 8_000);
        assert_eq!(
            port.thresholds.headroom,
            125 * (20 + 16_000 + 1_000) + 3_084 + 84
        );
        assert_eq!(
            (port.thresholds.xoff, port.thresholds.xon),
            (127_500, 63_750)
        );
        assert_eq!(plan.lossless_bytes, 6 * port.thresholds.limit());
        assert_eq!(plan.buffer_bytes, plan.lossless_bytes + LOSSY_BYTES_DEFAULT);
        assert_eq!(port.ring_frames, (125u64 * 9_020).div_ceil(84) + 2);
    }

    #[test]
    fn fast_links_have_short_pauses_and_response_times() {
        let mut fast = settings();
        let rate = "10gbit".parse().unwrap();
        fast.links.insert(2, LinkSettings { rate, delay_us: 1 });
        let plan = fast.plan(&[1, 2]).unwrap();
        assert_eq!(plan.ports[&2].response_us, 3_356 / 4 - 1);
        assert_eq!(plan.ports[&1].response_us, 8_000);
        fast.response_us = Some(5_000);
        let error = fast.plan(&[1, 2]).unwrap_err().to_string();
        assert!(error.starts_with("port 2: with a response time of 5000 us and a link delay of 1 us a pause of 3356 us"), "{error}");
        assert!(error.contains("at most 838 us"), "{error}");
    }

    #[test]
    fn what_does_not_fit_is_refused_with_its_numbers() {
        let mut small = settings();
        small.buffer_bytes = Some(1_000_000);
        let error = small.plan(&[1, 2, 3, 4]).unwrap_err().to_string();
        assert_eq!(
            error,
            "the buffer is too small: 4 ports with 2 lossless priorities need 1020000 bytes up to \
             XOFF and 17045344 bytes of headroom, and lossy frames 65536 bytes: 18130880 together; \
             --buffer-bytes is 1000000 (at most 17179869184)"
        );
        small.buffer_bytes = Some(18_130_880);
        assert_eq!(
            small.plan(&[1, 2, 3, 4]).unwrap().lossy_bytes,
            LOSSY_BYTES_MIN
        );
        small.buffer_bytes = Some(u64::MAX);
        assert!(small.plan(&[1]).is_err());
    }

    #[test]
    fn thresholds_in_order() {
        let mut bad = settings();
        bad.thresholds = GivenThresholds {
            xoff: Some(5_000),
            xon: Some(5_000),
            headroom: None,
        };
        assert!(
            bad.plan(&[1])
                .unwrap_err()
                .to_string()
                .contains("xon=5000 and xoff=5000 cannot be")
        );
        bad.thresholds = GivenThresholds {
            xoff: Some(1_000),
            xon: None,
            headroom: None,
        };
        assert!(bad.plan(&[1]).is_err());
        bad.thresholds = GivenThresholds {
            xoff: Some(2_000),
            xon: Some(0),
            headroom: Some(0),
        };
        assert_eq!(bad.plan(&[1]).unwrap().ports[&1].thresholds.limit(), 2_000);
    }
}
