//! Messages of the event log as they are sent.

/// What happened. Ids are those of the program's JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogEvent {
    /// A frame came in by this port.
    PacketIn(i32),
    /// A frame goes out by this port.
    PacketOut(i32),
    ParserStart(i32),
    /// This parser has ended, with or without an error.
    ParserDone(i32),
    ParserExtract(i32),
    DeparserStart(i32),
    DeparserDone(i32),
    DeparserEmit(i32),
    /// The turn of this checksum came, whether its condition held or not.
    ChecksumUpdate(i32),
    PipelineStart(i32),
    PipelineDone(i32),
    /// A condition was looked at.
    ConditionEval {
        condition: i32,
        holds: bool,
    },
    /// A table has an entry for the packet.
    TableHit {
        table: i32,
        /// Handle of the entry.
        entry: i32,
    },
    /// This table has no entry for the packet.
    TableMiss(i32),
    ActionExecute(i32),
    /// Another program runs. Of no packet: the fields that name one are 0.
    ConfigChange,
}

/// Number of [`LogEvent::ConfigChange`]; the others count from 0.
const CONFIG_CHANGE: i32 = 999;

/// A message: an event and the packet that it is about. As bytes it is the number of the
/// event in four, the device id in eight, a context in four, signature, packet and copy in
/// eight each, and up to two numbers of four bytes that depend on the event. Numbers are
/// little-endian, as BMv2 has them on the machines it runs on. Contexts, of which BMv2's
/// v1model has one, are 0.
///
/// Source: `msg_hdr_t` and the structures after it in BMv2's `event_logger.cpp`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogMessage {
    pub device_id: u64,
    /// XXH64 with seed 0 of the packet as it came in, by which it can be found at several
    /// switches.
    pub signature: u64,
    /// Number of the packet among those that were traced.
    pub packet: u64,
    /// Number of the copy that left its queue, 0 before.
    pub copy: u64,
    pub event: LogEvent,
}

impl LogEvent {
    /// Its number, and what comes after the head.
    fn parts(self) -> (i32, [Option<i32>; 2]) {
        match self {
            Self::PacketIn(port) => (0, [Some(port), None]),
            Self::PacketOut(port) => (1, [Some(port), None]),
            Self::ParserStart(parser) => (2, [Some(parser), None]),
            Self::ParserDone(parser) => (3, [Some(parser), None]),
            Self::ParserExtract(header) => (4, [Some(header), None]),
            Self::DeparserStart(deparser) => (5, [Some(deparser), None]),
            Self::DeparserDone(deparser) => (6, [Some(deparser), None]),
            Self::DeparserEmit(header) => (7, [Some(header), None]),
            Self::ChecksumUpdate(checksum) => (8, [Some(checksum), None]),
            Self::PipelineStart(pipeline) => (9, [Some(pipeline), None]),
            Self::PipelineDone(pipeline) => (10, [Some(pipeline), None]),
            Self::ConditionEval { condition, holds } => {
                (11, [Some(condition), Some(i32::from(holds))])
            }
            Self::TableHit { table, entry } => (12, [Some(table), Some(entry)]),
            Self::TableMiss(table) => (13, [Some(table), None]),
            Self::ActionExecute(action) => (14, [Some(action), None]),
            Self::ConfigChange => (CONFIG_CHANGE, [None, None]),
        }
    }

    /// The event with a number and what came after the head.
    fn of(number: i32, rest: &[i32]) -> Option<Self> {
        Some(match (number, rest) {
            (0, &[port]) => Self::PacketIn(port),
            (1, &[port]) => Self::PacketOut(port),
            (2, &[parser]) => Self::ParserStart(parser),
            (3, &[parser]) => Self::ParserDone(parser),
            (4, &[header]) => Self::ParserExtract(header),
            (5, &[deparser]) => Self::DeparserStart(deparser),
            (6, &[deparser]) => Self::DeparserDone(deparser),
            (7, &[header]) => Self::DeparserEmit(header),
            (8, &[checksum]) => Self::ChecksumUpdate(checksum),
            (9, &[pipeline]) => Self::PipelineStart(pipeline),
            (10, &[pipeline]) => Self::PipelineDone(pipeline),
            (11, &[condition, holds]) => Self::ConditionEval {
                condition,
                holds: holds != 0,
            },
            (12, &[table, entry]) => Self::TableHit { table, entry },
            (13, &[table]) => Self::TableMiss(table),
            (14, &[action]) => Self::ActionExecute(action),
            (CONFIG_CHANGE, []) => Self::ConfigChange,
            _ => return None,
        })
    }
}

impl LogMessage {
    /// That another program runs.
    pub fn config_change(device_id: u64) -> Self {
        Self {
            device_id,
            signature: 0,
            packet: 0,
            copy: 0,
            event: LogEvent::ConfigChange,
        }
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        let (number, rest) = self.event.parts();
        let mut bytes = Vec::with_capacity(48);
        bytes.extend(number.to_le_bytes());
        bytes.extend(self.device_id.to_le_bytes());
        bytes.extend([0; 4]);
        for number in [self.signature, self.packet, self.copy] {
            bytes.extend(number.to_le_bytes());
        }
        for number in rest.into_iter().flatten() {
            bytes.extend(number.to_le_bytes());
        }
        bytes
    }

    /// What a message says; `None` for what is none.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (number, bytes) = bytes.split_first_chunk::<4>()?;
        let (device_id, bytes) = bytes.split_first_chunk::<8>()?;
        let (_context, bytes) = bytes.split_first_chunk::<4>()?;
        let (signature, bytes) = bytes.split_first_chunk::<8>()?;
        let (packet, bytes) = bytes.split_first_chunk::<8>()?;
        let (copy, bytes) = bytes.split_first_chunk::<8>()?;
        let (rest, []) = bytes.as_chunks::<4>() else {
            return None;
        };
        let rest = rest.iter().map(|number| i32::from_le_bytes(*number));
        let event = LogEvent::of(i32::from_le_bytes(*number), &rest.collect::<Vec<i32>>())?;
        Some(Self {
            device_id: u64::from_le_bytes(*device_id),
            signature: u64::from_le_bytes(*signature),
            packet: u64::from_le_bytes(*packet),
            copy: u64::from_le_bytes(*copy),
            event,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// As the packed structures of BMv2 lie in memory.
    #[test]
    fn as_bmv2_has_them() {
        let message = |event| LogMessage {
            device_id: 7,
            signature: 0x0102_0304_0506_0708,
            packet: 9,
            copy: 2,
            event,
        };
        let hit = LogEvent::TableHit {
            table: 3,
            entry: 0x0100_0002,
        };
        let bytes = b"\x0c\0\0\0\x07\0\0\0\0\0\0\0\0\0\0\0\x08\x07\x06\x05\x04\x03\x02\x01\
            \x09\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0\x03\0\0\0\x02\0\0\x01";
        assert_eq!(message(hit).to_bytes(), bytes);
        let mut bytes = [0; 40];
        bytes[..5].copy_from_slice(b"\xe7\x03\0\0\x07");
        assert_eq!(LogMessage::config_change(7).to_bytes(), bytes);
        let numbers: Vec<i32> = (0..15).chain([CONFIG_CHANGE]).collect();
        for number in numbers {
            let of = |rest: &[i32]| LogEvent::of(number, rest);
            let event = of(&[5]).or(of(&[5, 1])).or(of(&[])).unwrap();
            assert_eq!(event.parts().0, number);
            let bytes = message(event).to_bytes();
            assert_eq!(LogMessage::from_bytes(&bytes), Some(message(event)));
        }
    }

    proptest! {
        #[test]
        fn bytes_that_are_none_are_refused(
            number in prop_oneof![0..16_i32, Just(CONFIG_CHANGE), any::<i32>()],
            rest in prop::collection::vec(prop_oneof![Just(0), any::<u8>()], 0..60),
        ) {
            let bytes = [number.to_le_bytes().as_slice(), &rest].concat();
            if let Some(message) = LogMessage::from_bytes(&bytes) {
                prop_assert_eq!(message.to_bytes().len(), bytes.len());
            }
        }
    }
}
