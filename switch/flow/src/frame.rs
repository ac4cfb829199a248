//! Frames that stop and start the sender at the other end of a link.
//!
//! PAUSE is IEEE 802.3 Annex 31B, PFC is Annex 31D and IEEE 802.1Q clause 36 (made as
//! 802.1Qbb). Both are MAC control frames (802.3 clause 31): they belong to one link and
//! are never forwarded.

use super::priority::{PRIORITIES, PrioritySet};

/// EtherType of MAC control frames (IEEE 802.3 clause 31.4.1.3).
pub const MAC_CONTROL_TYPE: u16 = 0x8808;

/// Destination of PAUSE and PFC frames; bridges do not forward it (802.1Q table 8-1).
pub const MAC_CONTROL_ADDRESS: [u8; 6] = [0x01, 0x80, 0xc2, 0x00, 0x00, 0x01];

/// Bytes of a frame without its check sequence.
pub const PAUSE_FRAME_BYTES: usize = 60;

/// Bits in which pause times count: one quantum is the time of 512 bits at the rate of the
/// link.
pub const QUANTUM_BITS: u64 = 512;

const OPCODE_PAUSE: u16 = 0x0001;
const OPCODE_PFC: u16 = 0x0101;

/// What a frame asks of the sender at the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PauseFrame {
    /// Send nothing at all for so many quanta; 0: go on.
    Pause {
        /// Quanta of 512 bit times.
        quanta: u16,
    },
    /// Send nothing of the priorities named, each for its own time; 0: go on. Priorities
    /// that are not named stay as they are.
    Pfc {
        /// Priorities the frame speaks of.
        priorities: PrioritySet,
        /// Quanta of 512 bit times, of each priority.
        quanta: [u16; PRIORITIES],
    },
}

/// A MAC control frame that says nothing we know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnknownControl {
    /// It ends before its fields do.
    Truncated,
    Opcode(u16),
}

/// Whether a frame is a MAC control frame: it ends here, whatever it says.
#[inline]
pub fn is_mac_control(frame: &[u8]) -> bool {
    frame.len() >= 14 && frame[12..14] == MAC_CONTROL_TYPE.to_be_bytes()
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]))
}

impl PauseFrame {
    /// Reads a frame for which [`is_mac_control`] holds. Bits of the priority vector beyond
    /// the eight priorities are ignored, as the standard has it.
    pub fn parse(frame: &[u8]) -> Result<Self, UnknownControl> {
        let field = |at| half(frame, at).ok_or(UnknownControl::Truncated);
        match field(14)? {
            OPCODE_PAUSE => Ok(Self::Pause { quanta: field(16)? }),
            OPCODE_PFC => {
                let priorities = PrioritySet(field(16)? as u8);
                let mut quanta = [0; PRIORITIES];
                for (priority, quanta) in quanta.iter_mut().enumerate() {
                    *quanta = field(18 + 2 * priority)?;
                }
                Ok(Self::Pfc { priorities, quanta })
            }
            opcode => Err(UnknownControl::Opcode(opcode)),
        }
    }

    /// The frame, padded to the least length of Ethernet; `source` is the address of the
    /// port that sends it.
    pub fn to_bytes(self, source: [u8; 6]) -> [u8; PAUSE_FRAME_BYTES] {
        let mut frame = [0; PAUSE_FRAME_BYTES];
        let mut put =
            |at: usize, value: u16| frame[at..at + 2].copy_from_slice(&value.to_be_bytes());
        put(12, MAC_CONTROL_TYPE);
        match self {
            Self::Pause { quanta } => {
                put(14, OPCODE_PAUSE);
                put(16, quanta);
            }
            Self::Pfc { priorities, quanta } => {
                put(14, OPCODE_PFC);
                put(16, u16::from(priorities.0));
                for (priority, quanta) in quanta.into_iter().enumerate() {
                    put(18 + 2 * priority, quanta);
                }
            }
        }
        frame[..6].copy_from_slice(&MAC_CONTROL_ADDRESS);
        frame[6..12].copy_from_slice(&source);
        frame
    }

    /// Quanta for a priority, if the frame speaks of it.
    pub fn quanta(&self, priority: u8) -> Option<u16> {
        match self {
            Self::Pause { quanta } => Some(*quanta),
            Self::Pfc { priorities, quanta } => priorities
                .contains(priority)
                .then(|| quanta[usize::from(priority)]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The bytes are written out by hand from IEEE 802.3 Annex 31D.
    #[test]
    fn pfc_byte_by_byte() {
        let mut quanta = [0; PRIORITIES];
        quanta[3] = 0xffff;
        quanta[4] = 0x0102;
        let priorities = [3, 4].into_iter().collect();
        let frame = PauseFrame::Pfc { priorities, quanta }.to_bytes([2, 0, 0, 0, 0, 9]);
        let mut expected = vec![
            0x01, 0x80, 0xc2, 0, 0, 1, 2, 0, 0, 0, 0, 9, 0x88, 0x08, 0x01, 0x01,
        ];
        expected.extend([0, 0b0001_1000, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 1, 2]);
        expected.resize(60, 0);
        assert_eq!(frame.to_vec(), expected);
        assert!(is_mac_control(&frame));
        let read = PauseFrame::parse(&frame).unwrap();
        assert_eq!(
            (read.quanta(3), read.quanta(4), read.quanta(0)),
            (Some(0xffff), Some(0x0102), None)
        );
    }

    #[test]
    fn pause_byte_by_byte() {
        let frame = PauseFrame::Pause { quanta: 0x1234 }.to_bytes([0; 6]);
        assert_eq!(frame[12..18], [0x88, 0x08, 0, 1, 0x12, 0x34]);
        assert_eq!(PauseFrame::parse(&frame).unwrap().quanta(7), Some(0x1234));
    }

    #[test]
    fn what_says_nothing() {
        let mut frame = PauseFrame::Pause { quanta: 1 }.to_bytes([0; 6]);
        frame[14..16].copy_from_slice(&[0, 2]);
        assert_eq!(PauseFrame::parse(&frame), Err(UnknownControl::Opcode(2)));
        frame[14..16].copy_from_slice(&[1, 1]);
        assert_eq!(
            PauseFrame::parse(&frame[..33]),
            Err(UnknownControl::Truncated)
        );
        assert!(PauseFrame::parse(&frame[..34]).is_ok());
        assert!(!is_mac_control(&frame[..13]));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _ = (is_mac_control(&bytes), PauseFrame::parse(&bytes));
        }

        #[test]
        fn what_is_written_is_read(set in any::<u8>(), quanta in any::<[u16; 8]>(), pfc in any::<bool>()) {
            let frame = if pfc {
                PauseFrame::Pfc { priorities: PrioritySet(set), quanta }
            } else {
                PauseFrame::Pause { quanta: quanta[0] }
            };
            prop_assert_eq!(PauseFrame::parse(&frame.to_bytes([7; 6])), Ok(frame));
        }
    }
}
