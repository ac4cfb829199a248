//! Notifications as they are sent.

/// Bytes before what a notification is about.
const HEAD_BYTES: usize = 32;

const LEARNED: [u8; 4] = *b"LEA|";
const AGED: [u8; 4] = *b"AGE|";
const PORTS: [u8; 4] = *b"PRT|";

/// A notification. As bytes it is a topic of four, the device id in eight, 20 that depend
/// on the topic, and then what it is about. Numbers are little-endian, as BMv2 has them on
/// the machines it runs on, but for those of samples, which are as in packets.
///
/// Source: `msg_hdr_t` of BMv2's `learning.h`, `ageing.h` and `port_monitor.h`. Contexts,
/// of which BMv2's v1model has one, are 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notification {
    /// Samples of a learning list.
    Learned {
        /// Id of the list in the program's JSON.
        list: i32,
        /// Names the samples for the acknowledgement; counts from 0 in each list.
        buffer: u64,
        /// How many there are.
        samples: u32,
        /// Their fields one after another, each of whole bytes.
        data: Vec<u8>,
    },
    /// Entries of a table that no packet has found for their timeouts.
    Aged {
        /// Id of the table in the program's JSON.
        table: i32,
        /// Counts such notifications from 0, over all tables.
        buffer: u64,
        /// Handles of the entries.
        entries: Vec<u32>,
    },
    /// Ports that have gone up or down, by number.
    Ports(Vec<(u16, bool)>),
}

impl Notification {
    pub fn to_bytes(&self, device_id: u64) -> Vec<u8> {
        let (topic, length) = match self {
            Self::Learned { data, .. } => (LEARNED, data.len()),
            Self::Aged { entries, .. } => (AGED, 4 * entries.len()),
            Self::Ports(ports) => (PORTS, 8 * ports.len()),
        };
        let mut bytes = Vec::with_capacity(HEAD_BYTES + length);
        bytes.extend(topic);
        bytes.extend(device_id.to_le_bytes());
        match self {
            Self::Learned {
                list,
                buffer,
                samples,
                data,
            } => {
                bytes.extend([0; 4]);
                bytes.extend(list.to_le_bytes());
                bytes.extend(buffer.to_le_bytes());
                bytes.extend(samples.to_le_bytes());
                bytes.extend(data);
            }
            Self::Aged {
                table,
                buffer,
                entries,
            } => {
                bytes.extend([0; 4]);
                bytes.extend(buffer.to_le_bytes());
                bytes.extend(table.to_le_bytes());
                bytes.extend((entries.len() as u32).to_le_bytes());
                bytes.extend(entries.iter().flat_map(|handle| handle.to_le_bytes()));
            }
            Self::Ports(ports) => {
                bytes.extend((ports.len() as u32).to_le_bytes());
                bytes.extend([0; 16]);
                for (number, is_up) in ports {
                    bytes.extend(i32::from(*number).to_le_bytes());
                    bytes.extend(i32::from(*is_up).to_le_bytes());
                }
            }
        }
        bytes
    }

    /// The device id and the notification of a message; `None` for what is none.
    pub fn from_bytes(bytes: &[u8]) -> Option<(u64, Self)> {
        let (head, rest) = bytes.split_first_chunk::<HEAD_BYTES>()?;
        let word = |at: usize| -> Option<u32> {
            let bytes = head.get(at..at + 4)?.try_into().ok()?;
            Some(u32::from_le_bytes(bytes))
        };
        let long = |at: usize| -> Option<u64> {
            let bytes = head.get(at..at + 8)?.try_into().ok()?;
            Some(u64::from_le_bytes(bytes))
        };
        let words = |count: Option<u32>| -> Option<Vec<u32>> {
            let (words, over) = rest.as_chunks::<4>();
            let is_whole = over.is_empty() && words.len() == count? as usize;
            is_whole.then(|| words.iter().map(|word| u32::from_le_bytes(*word)).collect())
        };
        let notification = match head.first_chunk::<4>() {
            Some(&LEARNED) => Self::Learned {
                list: word(16)? as i32,
                buffer: long(20)?,
                samples: word(28)?,
                data: rest.to_vec(),
            },
            Some(&AGED) => Self::Aged {
                buffer: long(16)?,
                table: word(24)? as i32,
                entries: words(word(28))?,
            },
            Some(&PORTS) => {
                let words = words(word(12)?.checked_mul(2))?;
                let ports = words.chunks(2).map(|port| {
                    let number = u16::try_from(port[0]).ok()?;
                    Some((number, port[1] != 0))
                });
                Self::Ports(ports.collect::<Option<_>>()?)
            }
            _ => return None,
        };
        Some((long(4)?, notification))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// As the structures of BMv2 lie in memory.
    #[test]
    fn as_bmv2_has_them() {
        let learned = Notification::Learned {
            list: 1,
            buffer: 0x0102_0304_0506_0708,
            samples: 2,
            data: vec![0xaa, 0xbb],
        };
        let bytes = b"LEA|\x07\0\0\0\0\0\0\0\0\0\0\0\x01\0\0\0\x08\x07\x06\x05\x04\x03\x02\x01\
            \x02\0\0\0\xaa\xbb";
        assert_eq!(learned.to_bytes(7), bytes);
        let aged = Notification::Aged {
            table: 5,
            buffer: 3,
            entries: vec![0, 0x0100_0002],
        };
        let bytes = b"AGE|\x07\0\0\0\0\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\0\x05\0\0\0\x02\0\0\0\
            \0\0\0\0\x02\0\0\x01";
        assert_eq!(aged.to_bytes(7), bytes);
        let ports = Notification::Ports(vec![(511, true), (1, false)]);
        let bytes = [
            b"PRT|\x07\0\0\0\0\0\0\0\x02\0\0\0".as_slice(),
            &[0; 16],
            b"\xff\x01\0\0\x01\0\0\0\x01\0\0\0\0\0\0\0",
        ]
        .concat();
        assert_eq!(ports.to_bytes(7), bytes);
        for notification in [learned, aged, ports] {
            let bytes = notification.to_bytes(u64::MAX);
            assert_eq!(
                Notification::from_bytes(&bytes),
                Some((u64::MAX, notification))
            );
        }
    }

    proptest! {
        #[test]
        fn bytes_that_are_none_are_refused(
            topic in prop_oneof![Just(LEARNED), Just(AGED), Just(PORTS), any::<[u8; 4]>()],
            rest in prop::collection::vec(prop_oneof![Just(0), any::<u8>()], 0..64),
        ) {
            let bytes = [topic.as_slice(), &rest].concat();
            // What is read is all that was there, but for bytes that mean nothing.
            if let Some((device_id, notification)) = Notification::from_bytes(&bytes) {
                prop_assert_eq!(notification.to_bytes(device_id).len(), bytes.len());
            }
        }
    }
}
