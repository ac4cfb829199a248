//! Which priority a frame has: from its VLAN tag, its buffer class as a worm, or its DSCP.

use std::str::FromStr;

use super::priority::PRIORITIES;

/// EtherType of worm frames and where their flags are (wire/SPEC.md §1, §2).
const WORM_TYPE: u16 = 0x88b5;
const WORM_FLAGS_AT: usize = 1;
const WORM_CLASS2: u8 = 1;

const IPV4_TYPE: u16 = 0x0800;
const IPV6_TYPE: u16 = 0x86dd;
pub(super) const VLAN_TYPES: [u16; 2] = [0x8100, 0x88a8];

/// Values of the DSCP field (RFC 2474).
const DSCPS: usize = 64;

/// Priority of every kind of frame.
///
/// The first of these that fits decides: a VLAN tag (its PCP), a worm (its buffer class),
/// IPv4 or IPv6 (the DSCP), anything else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassMap {
    worm: [u8; 2],
    pcp: [u8; PRIORITIES],
    dscp: [u8; DSCPS],
    other: u8,
}

/// Priority of worms of buffer class 1, of PCP 3 and of DSCP 24–31.
pub const CLASS_1_PRIORITY: u8 = 3;
/// Priority of worms of buffer class 2, of PCP 4 and of DSCP 32–39.
pub const CLASS_2_PRIORITY: u8 = 4;

impl Default for ClassMap {
    /// Two lossless classes and one lossy, on the priorities 3, 4 and 0. A DSCP goes by
    /// its class selector (RFC 2474 §4.2.2), its three high bits.
    fn default() -> Self {
        let of_class = |class: usize| match class as u8 {
            CLASS_1_PRIORITY => CLASS_1_PRIORITY,
            CLASS_2_PRIORITY => CLASS_2_PRIORITY,
            _ => 0,
        };
        Self {
            worm: [CLASS_1_PRIORITY, CLASS_2_PRIORITY],
            pcp: std::array::from_fn(of_class),
            dscp: std::array::from_fn(|dscp| of_class(dscp >> 3)),
            other: 0,
        }
    }
}

#[inline]
pub(super) fn ether_type(frame: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*frame.get(at)?, *frame.get(at + 1)?]))
}

impl ClassMap {
    /// Priority of a frame, 0–7.
    #[inline]
    pub fn priority(&self, frame: &[u8]) -> u8 {
        self.find(frame).unwrap_or(self.other)
    }

    #[inline]
    fn find(&self, frame: &[u8]) -> Option<u8> {
        let kind = ether_type(frame, 12)?;
        match kind {
            WORM_TYPE => {
                let flags = *frame.get(14 + WORM_FLAGS_AT)?;
                Some(self.worm[usize::from(flags & WORM_CLASS2)])
            }
            IPV4_TYPE => Some(self.dscp[usize::from(*frame.get(15)? >> 2)]),
            IPV6_TYPE => {
                // Version, then eight bits of traffic class (RFC 8200 §3).
                let traffic_class = ether_type(frame, 14)? >> 4;
                Some(self.dscp[usize::from(traffic_class as u8 >> 2)])
            }
            _ if VLAN_TYPES.contains(&kind) => {
                let pcp = *frame.get(14)? >> 5;
                Some(self.pcp[usize::from(pcp)])
            }
            _ => None,
        }
    }

    /// Priorities that some frame can have.
    pub fn used(&self) -> super::PrioritySet {
        let all = self.worm.iter().chain(&self.pcp).chain(&self.dscp);
        all.chain([&self.other]).copied().collect()
    }

    /// Applies one argument of `--lossless-map`: `worm1=3,pcp5=4,dscp24-31=3,other=0`.
    /// What it does not name stays as it is.
    pub fn apply(&mut self, argument: &str) -> Result<(), ClassMapError> {
        let mut changed = self.clone();
        for pair in argument.split(',') {
            changed.set(pair.trim())?;
        }
        *self = changed;
        Ok(())
    }

    fn set(&mut self, pair: &str) -> Result<(), ClassMapError> {
        let error = || ClassMapError(pair.to_owned());
        let (key, value) = pair.split_once('=').ok_or_else(error)?;
        let priority: u8 = value.trim().parse().map_err(|_| error())?;
        if usize::from(priority) >= PRIORITIES {
            return Err(error());
        }
        let (name, range) = match key.trim().find(|first: char| first.is_ascii_digit()) {
            Some(at) => key.trim().split_at(at),
            None => (key.trim(), ""),
        };
        let (cells, first): (&mut [u8], usize) = match name {
            "worm" => (&mut self.worm, 1),
            "pcp" => (&mut self.pcp, 0),
            "dscp" => (&mut self.dscp, 0),
            "other" if range.is_empty() => {
                self.other = priority;
                return Ok(());
            }
            _ => return Err(error()),
        };
        let (low, high) = range.split_once('-').unwrap_or((range, range));
        let number =
            |text: &str| -> Option<usize> { text.parse::<usize>().ok()?.checked_sub(first) };
        let (low, high) = (
            number(low).ok_or_else(error)?,
            number(high).ok_or_else(error)?,
        );
        if low > high {
            return Err(error());
        }
        cells.get_mut(low..=high).ok_or_else(error)?.fill(priority);
        Ok(())
    }
}

impl FromStr for ClassMap {
    type Err = ClassMapError;

    /// The default map, changed as [`apply`](Self::apply) does.
    fn from_str(text: &str) -> Result<Self, ClassMapError> {
        let mut map = Self::default();
        map.apply(text)?;
        Ok(map)
    }
}

/// Part of a map that cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` does not map frames to a priority: it must be KEY=PRIORITY with KEY worm1, worm2, pcp0 to \
     pcp7, dscp0 to dscp63 (or a range like dscp24-31) or other, and PRIORITY 0 to 7"
)]
pub struct ClassMapError(String);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn frame(kind: u16, payload: &[u8]) -> Vec<u8> {
        let mut frame = vec![0; 12];
        frame.extend(kind.to_be_bytes());
        frame.extend(payload);
        frame
    }

    #[test]
    fn default_classes() {
        let map = ClassMap::default();
        let priority = |kind, payload: &[u8]| map.priority(&frame(kind, payload));
        assert_eq!(priority(WORM_TYPE, &[0x10, 0b0110]), 3);
        assert_eq!(priority(WORM_TYPE, &[0x10, 0b0111]), 4);
        assert_eq!(
            priority(0x8100, &[0x60, 5, 0x88, 0xb5, 0x10, 1]),
            3,
            "the tag goes first"
        );
        assert_eq!(priority(0x8100, &[0x80, 5]), 4);
        assert_eq!(priority(0x88a8, &[0xe0, 5]), 0);
        assert_eq!(priority(IPV4_TYPE, &[0x45, 26 << 2 | 1]), 3);
        assert_eq!(priority(IPV4_TYPE, &[0x45, 46 << 2]), 0);
        // Traffic class 0x80: DSCP 32.
        assert_eq!(priority(IPV6_TYPE, &[0x68, 0x00, 0, 0]), 4);
        assert_eq!(priority(0x88cc, &[2, 7]), 0);
        assert_eq!(map.used(), [0, 3, 4].into_iter().collect());
    }

    #[test]
    fn maps_are_changed_in_part() {
        let map: ClassMap = "worm2=5,pcp7=6,dscp46=5,dscp0-7=1,other=2".parse().unwrap();
        let priority = |kind, payload: &[u8]| map.priority(&frame(kind, payload));
        assert_eq!(priority(WORM_TYPE, &[0x10, 0]), 3);
        assert_eq!(priority(WORM_TYPE, &[0x10, 1]), 5);
        assert_eq!(priority(0x8100, &[0xe0, 0]), 6);
        assert_eq!(priority(IPV4_TYPE, &[0x45, 46 << 2]), 5);
        assert_eq!(priority(IPV4_TYPE, &[0x45, 7 << 2]), 1);
        assert_eq!(priority(0x88cc, &[]), 2);
    }

    #[test]
    fn what_is_no_map() {
        for bad in [
            "",
            "worm",
            "worm0=1",
            "worm3=1",
            "pcp8=1",
            "dscp64=1",
            "dscp9-8=1",
            "other=8",
            "other1=1",
            "x=1",
            "pcp=1",
            "pcp1=-1",
        ] {
            let error = bad.parse::<ClassMap>().unwrap_err().to_string();
            assert!(
                error.starts_with(&format!("`{bad}` does not map")),
                "{error}"
            );
        }
        let mut map = ClassMap::default();
        assert!(map.apply("worm1=7,pcp9=1").is_err());
        assert_eq!(map, ClassMap::default(), "all or nothing");
    }

    proptest! {
        #[test]
        fn any_frame_has_a_priority(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            prop_assert!(ClassMap::default().priority(&bytes) < 8);
        }
    }
}
