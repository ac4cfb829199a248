//! Records of hops that switches write into a traced worm (SPEC §2.2).

use crate::header;
use crate::{DecodeError, SwitchId, put_u16, put_u32, u16_at, u32_at};

/// Bytes before the records: how many there are, and how many have room.
pub const HEADER_LENGTH: usize = 2;
/// Bytes of a record.
pub const RECORD_LENGTH: usize = 16;
/// [`Record::stay_us`] stands for this time or a longer one.
pub const STAY_US_MAX: u32 = 0xFF_FFFF;
/// [`Record::queue`] stands for this many frames or more.
pub const QUEUE_MAX: u16 = u16::MAX;

/// What a switch says of a worm that leaves it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// The switch, by the id its controller gave it.
    pub switch: SwitchId,
    /// Hops of the worm as it leaves: 1 at the first switch.
    pub hop: u8,
    /// The port by which it came in.
    pub ingress_port: u8,
    /// The port by which it leaves; [`crate::worm::RECIRCULATE_PORT`]: it begins again at the same switch.
    pub egress_port: u8,
    /// From its arrival at the switch to the end of its queue, µs; at most [`STAY_US_MAX`].
    pub stay_us: u32,
    /// Frames it leaves behind in its queue; at most [`QUEUE_MAX`].
    pub queue: u16,
    /// When it left its queue, µs of the clock of the switch, modulo 2^32.
    pub left_us: u32,
}

impl Record {
    /// Reads a record; nothing if its check is wrong.
    fn read(bytes: &[u8]) -> Option<Record> {
        (check(bytes) == u16_at(bytes, 14)).then(|| Record {
            switch: SwitchId(u16_at(bytes, 0)),
            hop: bytes[2],
            ingress_port: bytes[3],
            egress_port: bytes[4],
            stay_us: u32_at(bytes, 4) & STAY_US_MAX,
            queue: u16_at(bytes, 8),
            left_us: u32_at(bytes, 10),
        })
    }

    /// Its bytes, as a switch writes them.
    pub fn to_bytes(&self) -> [u8; RECORD_LENGTH] {
        let mut bytes = [0; RECORD_LENGTH];
        put_u16(&mut bytes, 0, self.switch.0);
        bytes[2] = self.hop;
        bytes[3] = self.ingress_port;
        put_u32(&mut bytes, 4, self.stay_us.min(STAY_US_MAX));
        bytes[4] = self.egress_port;
        put_u16(&mut bytes, 8, self.queue);
        put_u32(&mut bytes, 10, self.left_us);
        let check = check(&bytes);
        put_u16(&mut bytes, 14, check);
        bytes
    }
}

/// The RFC 1071 checksum of a record, its last two bytes taken as zero.
fn check(record: &[u8]) -> u16 {
    let mut padded = [0; header::HEADER_LENGTH + 4];
    // The checksum of a worm leaves out its bytes 10 and 11; a record has its own at 14.
    padded[..10].copy_from_slice(&record[..10]);
    padded[12..].copy_from_slice(&record[10..14]);
    header::checksum(&padded)
}

/// The records of a worm, as received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trace<'a> {
    /// Records that the worm takes at most.
    pub room: u8,
    records: &'a [u8],
}

impl<'a> Trace<'a> {
    /// Parts what stands behind the route of a traced worm in records and payload.
    ///
    /// # Errors
    /// If the frame ends inside the records.
    pub(crate) fn split(bytes: &'a [u8]) -> Result<(Trace<'a>, &'a [u8]), DecodeError> {
        let [count, room, rest @ ..] = bytes else {
            return Err(DecodeError::Truncated);
        };
        let length = usize::from(*count) * RECORD_LENGTH;
        let (records, payload) = rest
            .split_at_checked(length)
            .ok_or(DecodeError::Truncated)?;
        let trace = Trace {
            room: *room,
            records,
        };
        Ok((trace, payload))
    }

    /// Writes the header of a trace without records to the front of `out`.
    pub fn begin(out: &mut [u8], room: u8) {
        out[..HEADER_LENGTH].copy_from_slice(&[0, room]);
    }

    /// How many records there are.
    pub fn count(&self) -> usize {
        self.records.len() / RECORD_LENGTH
    }

    /// The records that can be believed of a worm with so many hops, oldest first: their check is right,
    /// and each is of a later hop than those before it.
    pub fn believed(&self, hops: u8) -> Vec<Record> {
        let mut newest_first: Vec<Record> = Vec::with_capacity(self.count());
        for bytes in self.records.chunks_exact(RECORD_LENGTH) {
            let below = newest_first
                .last()
                .map_or(u16::from(hops) + 1, |record| record.hop.into());
            if let Some(record) = Record::read(bytes)
                && (1..below).contains(&record.hop.into())
            {
                newest_first.push(record);
            }
        }
        newest_first.reverse();
        newest_first
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_record() -> impl Strategy<Value = Record> {
        let numbers = any::<(u16, u8, u8, u8, u16, u32)>();
        (numbers, 0..=STAY_US_MAX).prop_map(|(numbers, stay_us)| {
            let (switch, hop, ingress_port, egress_port, queue, left_us) = numbers;
            Record {
                switch: SwitchId(switch),
                hop,
                ingress_port,
                egress_port,
                stay_us,
                queue,
                left_us,
            }
        })
    }

    fn trace_of(records: &[Record]) -> Vec<u8> {
        let mut bytes = vec![records.len() as u8, 64];
        let newest_first = records.iter().rev();
        newest_first.for_each(|record| bytes.extend(record.to_bytes()));
        bytes
    }

    fn way(hops: &[u8]) -> Vec<Record> {
        let record = |&hop: &u8| Record {
            switch: SwitchId(300 + u16::from(hop)),
            hop,
            ingress_port: 1,
            egress_port: 2,
            stay_us: 3,
            queue: 4,
            left_us: 5,
        };
        hops.iter().map(record).collect()
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(record in any_record()) {
            prop_assert_eq!(Record::read(&record.to_bytes()), Some(record));
        }

        #[test]
        fn one_flipped_bit_of_a_record_is_noticed(record in any_record(), bit in 0usize..128) {
            let mut bytes = record.to_bytes();
            bytes[bit / 8] ^= 1 << (bit % 8);
            prop_assert_eq!(Record::read(&bytes), None);
        }

        #[test]
        fn random_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300), hops: u8) {
            if let Ok((trace, payload)) = Trace::split(&bytes) {
                prop_assert_eq!(2 + 16 * trace.count() + payload.len(), bytes.len());
                prop_assert!(trace.believed(hops).len() <= trace.count());
            }
        }
    }

    #[test]
    fn records_are_parted_from_the_payload() {
        let records = way(&[1, 2, 4]);
        let mut bytes = trace_of(&records);
        bytes.extend(b"payload");
        let (trace, payload) = Trace::split(&bytes).expect("whole");
        assert_eq!(
            (trace.room, trace.count(), payload),
            (64, 3, &b"payload"[..])
        );
        assert_eq!(trace.believed(4), records);
        assert_eq!(
            Trace::split(&bytes[..2 + 3 * 16 - 1]),
            Err(DecodeError::Truncated)
        );
        assert_eq!(Trace::split(&[0]), Err(DecodeError::Truncated));
    }

    #[test]
    fn what_contradicts_itself_is_not_believed() {
        let believed = |records: &[Record], hops| {
            let bytes = trace_of(records);
            let (trace, _) = Trace::split(&bytes).expect("whole");
            trace.believed(hops)
        };
        assert_eq!(
            believed(&way(&[1, 2, 3]), 2),
            way(&[1, 2]),
            "beyond the hops of the worm"
        );
        assert_eq!(believed(&way(&[2, 2, 3]), 3), way(&[2, 3]), "a hop twice");
        assert_eq!(believed(&way(&[0, 1]), 3), way(&[1]), "no hop");
        let zeros = [1, 64, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let (trace, _) = Trace::split(&zeros).expect("whole");
        assert_eq!(trace.believed(9), [], "zeros are no record");
    }
}
