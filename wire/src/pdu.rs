//! Host PDUs (SPEC §5): the common header, DATA, NACK, REPAIR and STATUS.

use crate::ack::{self, Ack};
use crate::{BufferClass, GroupId, HostId, Seq};
use crate::{DecodeError, put_u16, put_u32, u16_at, u32_at};

/// Flag bits of a PDU.
pub mod flags {
    pub use crate::pdu_flags::*;
}

/// Bytes of the common header without the optional origin.
pub const COMMON_LENGTH: usize = 12;
/// Bytes of the origin field, where it is present.
pub const ORIGIN_LENGTH: usize = 2;
/// Bytes of the choice field, where it is present.
pub const CHOICE_LENGTH: usize = 1;
/// Most structures that a stream may choose from: the choice field is 0 to 15.
pub const CHOICES_MAX: usize = 16;
/// Bytes of the DATA body before the payload.
pub const DATA_LENGTH: usize = 10;
/// Least bytes of a PDU: with Ethernet and worm header 60, so that no link pads.
pub const LENGTH_MIN: usize = 34;
const VERSION: u8 = 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Type {
    /// A packet of a stream.
    Data = 0,
    /// Acknowledgement, to the parent.
    Ack = 1,
    /// No buffer, to the parent.
    Nack = 2,
    /// A parent asks the origin to serve a child.
    Repair = 3,
    /// A parent tells a child what is stable, and may ask it to answer.
    Status = 4,
    /// Shows the way of a worm to whoever gets it.
    Probe = 5,
}

/// Fields every PDU has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Common {
    pub group: GroupId,
    /// The host whose stream it concerns.
    pub origin: HostId,
    /// Which life of the origin: its incarnation.
    pub stream: u32,
}

/// Body of a DATA packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Data<'a> {
    /// Its number in the stream.
    pub seq: Seq,
    /// All members hold everything before `seq - stable_offset`.
    pub stable_offset: u16,
    /// When this hop sent it, µs of the sender's clock.
    pub tx_time: u32,
    /// First packet of a message.
    pub first: bool,
    /// Last packet of a message.
    pub last: bool,
    /// With `last`: the message is void.
    pub cancel: bool,
    /// What it is admitted against.
    pub class: BufferClass,
    /// The receiver acknowledges at once.
    pub ack_now: bool,
    /// By which structure of the plan the packet travels.
    pub choice: u8,
    /// Bytes of the message.
    pub payload: &'a [u8],
}

/// Body of a NACK: no buffer for a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nack {
    pub seq: Seq,
    /// The pool that was full.
    pub class: BufferClass,
}

/// Body of a REPAIR request: `child` misses `from..to`, and its parent no longer
/// holds them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repair {
    /// The child to serve.
    pub child: HostId,
    /// The class of the edge to it.
    pub class: BufferClass,
    /// First packet missed.
    pub from: Seq,
    /// The packet after the last one missed.
    pub to: Seq,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// All members hold everything before it.
    pub stable: Seq,
    /// The receiver acknowledges at once.
    pub ack_now: bool,
    /// By which structure of the plan the stream travels.
    pub choice: u8,
    /// From a member to the origin: no application there takes the message at `stable`.
    pub unclaimed: bool,
    /// From a member to the origin: the application there takes the message at `stable` slower than it comes.
    pub slow: bool,
    /// From a member to the sequencer of an ordered group: it does not know the place of the message
    /// whose first packet is `stable`.
    pub order_wanted: bool,
    /// With `order_wanted`, the answer to a member that asked: all have begun to read what comes before that message.
    pub order_next: bool,
}

/// Body of a PROBE. Its `stream` is the number of the trace that it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// Which of the ways that the sender traces.
    pub way: u16,
    /// How often the sender has sent a probe along it, this one included.
    pub attempt: u16,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body<'a> {
    /// A packet of a stream.
    Data(Data<'a>),
    Ack(Ack<'a>),
    /// No buffer.
    Nack(Nack),
    /// Ask the origin to serve a child.
    Repair(Repair),
    /// What is stable.
    Status(Status),
    /// Shows the way of a worm.
    Probe(Probe),
}

/// A decoded PDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pdu<'a> {
    pub common: Common,
    pub body: Body<'a>,
}

/// CRC-32 (IEEE 802.3) over the worm's source and the PDU with its CRC field zero.
/// Switches recompute the worm checksum, so the source is protected here.
fn crc(source: HostId, pdu: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&source.0.to_be_bytes());
    hasher.update(&pdu[..4]);
    hasher.update(&[0; 4]);
    hasher.update(&pdu[8..]);
    hasher.finalize()
}

/// Reads a PDU from the payload of a worm that `source` built.
pub fn decode(source: HostId, bytes: &[u8]) -> Result<Pdu<'_>, DecodeError> {
    if bytes.len() < LENGTH_MIN {
        return Err(DecodeError::Truncated);
    }
    if crc(source, bytes) != u32_at(bytes, 4) {
        return Err(DecodeError::PduChecksum);
    }
    if bytes[0] >> 4 != VERSION {
        return Err(DecodeError::PduVersion);
    }
    let flags = bytes[1];
    let mut end = bytes.len();
    if flags & flags::PADDED != 0 {
        let padding = usize::from(bytes[end - 1]);
        if padding == 0 || padding > LENGTH_MIN - COMMON_LENGTH {
            return Err(DecodeError::PduMalformed);
        }
        end -= padding;
    }
    let mut start = COMMON_LENGTH;
    let origin = if flags & flags::ORIGIN != 0 {
        start += ORIGIN_LENGTH;
        HostId(u16_at(bytes, COMMON_LENGTH))
    } else {
        source
    };
    let choice_flag = match bytes[0] & 0xF {
        code if code == Type::Data as u8 => flags::DATA_CHOICE,
        code if code == Type::Status as u8 => flags::STATUS_CHOICE,
        _ => 0,
    };
    let mut choice = 0;
    if flags & choice_flag != 0 {
        choice = bytes[start];
        start += CHOICE_LENGTH;
        if choice == 0 || usize::from(choice) >= CHOICES_MAX {
            return Err(DecodeError::PduMalformed);
        }
    }
    let body = bytes.get(start..end).ok_or(DecodeError::PduMalformed)?;
    let common = Common {
        group: GroupId(u16_at(bytes, 2)),
        origin,
        stream: u32_at(bytes, 8),
    };
    let exactly = |length: usize| {
        if body.len() == length {
            Ok(())
        } else {
            Err(DecodeError::PduMalformed)
        }
    };
    let class = if flags & flags::CLASS2 != 0 {
        BufferClass::Two
    } else {
        BufferClass::One
    };
    let body = match bytes[0] & 0xF {
        code if code == Type::Data as u8 => {
            if body.len() < DATA_LENGTH {
                return Err(DecodeError::PduMalformed);
            }
            let last = flags & flags::LAST != 0;
            let cancel = flags & flags::CANCEL != 0;
            if cancel && !last {
                return Err(DecodeError::PduMalformed);
            }
            Body::Data(Data {
                seq: Seq(u32_at(body, 0)),
                stable_offset: u16_at(body, 4),
                tx_time: u32_at(body, 6),
                first: flags & flags::FIRST != 0,
                last,
                cancel,
                class,
                ack_now: flags & flags::ACK_NOW != 0,
                choice,
                payload: &body[DATA_LENGTH..],
            })
        }
        code if code == Type::Ack as u8 => Body::Ack(ack::decode(flags, body)?),
        code if code == Type::Nack as u8 => {
            exactly(4)?;
            Body::Nack(Nack {
                seq: Seq(u32_at(body, 0)),
                class,
            })
        }
        code if code == Type::Repair as u8 => {
            exactly(10)?;
            Body::Repair(Repair {
                child: HostId(u16_at(body, 0)),
                class,
                from: Seq(u32_at(body, 2)),
                to: Seq(u32_at(body, 6)),
            })
        }
        code if code == Type::Status as u8 => {
            exactly(4)?;
            Body::Status(Status {
                stable: Seq(u32_at(body, 0)),
                ack_now: flags & flags::ACK_NOW != 0,
                choice,
                unclaimed: flags & flags::UNCLAIMED != 0,
                slow: flags & flags::SLOW != 0,
                order_wanted: flags & flags::ORDER_WANTED != 0,
                order_next: flags & flags::ORDER_NEXT != 0,
            })
        }
        code if code == Type::Probe as u8 => {
            exactly(4)?;
            Body::Probe(Probe {
                way: u16_at(body, 0),
                attempt: u16_at(body, 2),
            })
        }
        _ => return Err(DecodeError::PduType),
    };
    Ok(Pdu { common, body })
}

/// Most bytes the PDU takes, for a payload or list of that many bytes.
pub fn length_of(common: &Common, source: HostId, body: &Body<'_>) -> usize {
    let origin = match body {
        Body::Data(_) if common.origin == source => 0,
        _ => ORIGIN_LENGTH,
    };
    let choice = match choice_of(body) {
        (_, 0) => 0,
        _ => CHOICE_LENGTH,
    };
    let body = match body {
        Body::Data(data) => DATA_LENGTH + data.payload.len(),
        Body::Ack(ack) => ack.length(),
        Body::Nack(_) | Body::Status(_) | Body::Probe(_) => 4,
        Body::Repair(_) => 10,
    };
    (COMMON_LENGTH + origin + choice + body).max(LENGTH_MIN)
}

/// The flag that says that the choice field is present, and the choice.
fn choice_of(body: &Body<'_>) -> (u8, u8) {
    match body {
        Body::Data(data) => (flags::DATA_CHOICE, data.choice),
        Body::Status(status) => (flags::STATUS_CHOICE, status.choice),
        Body::Ack(_) | Body::Nack(_) | Body::Repair(_) | Body::Probe(_) => (0, 0),
    }
}

/// Writes a PDU to the front of `out`, which must have room for [`length_of`]
/// bytes; gives the bytes written.
pub fn encode(out: &mut [u8], source: HostId, common: &Common, body: &Body<'_>) -> usize {
    let mut flags = 0;
    let mut at = COMMON_LENGTH;
    let is_data = matches!(body, Body::Data(_));
    if !is_data || common.origin != source {
        flags |= flags::ORIGIN;
        put_u16(out, COMMON_LENGTH, common.origin.0);
        at += ORIGIN_LENGTH;
    }
    let (choice_flag, choice) = choice_of(body);
    if choice != 0 {
        flags |= choice_flag;
        out[at] = choice;
        at += CHOICE_LENGTH;
    }
    let bit = |set: bool, flag: u8| if set { flag } else { 0 };
    let class_flag = |class| bit(class == BufferClass::Two, flags::CLASS2);
    let kind = match body {
        Body::Data(data) => {
            flags |= bit(data.first, flags::FIRST)
                | bit(data.last, flags::LAST)
                | bit(data.cancel, flags::CANCEL)
                | bit(data.ack_now, flags::ACK_NOW)
                | class_flag(data.class);
            put_u32(out, at, data.seq.0);
            put_u16(out, at + 4, data.stable_offset);
            put_u32(out, at + 6, data.tx_time);
            at += DATA_LENGTH;
            out[at..at + data.payload.len()].copy_from_slice(data.payload);
            at += data.payload.len();
            Type::Data
        }
        Body::Ack(ack) => {
            flags |= bit(ack.echo.is_some(), flags::ECHO) | bit(ack.has_sets(), flags::SETS);
            at += ack.encode(&mut out[at..]);
            Type::Ack
        }
        Body::Nack(nack) => {
            flags |= class_flag(nack.class);
            put_u32(out, at, nack.seq.0);
            at += 4;
            Type::Nack
        }
        Body::Repair(repair) => {
            flags |= class_flag(repair.class);
            put_u16(out, at, repair.child.0);
            put_u32(out, at + 2, repair.from.0);
            put_u32(out, at + 6, repair.to.0);
            at += 10;
            Type::Repair
        }
        Body::Status(status) => {
            flags |= bit(status.ack_now, flags::ACK_NOW) | bit(status.unclaimed, flags::UNCLAIMED);
            flags |= bit(status.slow, flags::SLOW) | bit(status.order_wanted, flags::ORDER_WANTED);
            flags |= bit(status.order_next, flags::ORDER_NEXT);
            put_u32(out, at, status.stable.0);
            at += 4;
            Type::Status
        }
        Body::Probe(probe) => {
            put_u16(out, at, probe.way);
            put_u16(out, at + 2, probe.attempt);
            at += 4;
            Type::Probe
        }
    };
    if at < LENGTH_MIN {
        flags |= flags::PADDED;
        out[at..LENGTH_MIN].fill(0);
        out[LENGTH_MIN - 1] = (LENGTH_MIN - at) as u8;
        at = LENGTH_MIN;
    }
    out[0] = VERSION << 4 | kind as u8;
    out[1] = flags;
    put_u16(out, 2, common.group.0);
    put_u32(out, 4, 0);
    put_u32(out, 8, common.stream);
    let sum = crc(source, &out[..at]);
    put_u32(out, 4, sum);
    at
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn data_of_every_kind_is_decoded_as_it_was_encoded(
            numbers in any::<(u32, u16, u32, u32)>(),
            flags in any::<(bool, bool, bool, bool, bool)>(),
            hosts in (0u16..4, 0u16..4),
            choice in 0u8..CHOICES_MAX as u8,
            payload in proptest::collection::vec(any::<u8>(), 0..1_400),
        ) {
            let (seq, stable_offset, tx_time, stream) = numbers;
            let (first, last, cancel, class2, ack_now) = flags;
            let common = Common { group: GroupId(7), origin: HostId(hosts.0), stream };
            let body = Body::Data(Data {
                seq: Seq(seq),
                stable_offset,
                tx_time,
                first,
                last,
                cancel: cancel && last,
                class: if class2 { BufferClass::Two } else { BufferClass::One },
                ack_now,
                choice,
                payload: &payload,
            });
            let source = HostId(hosts.1);
            let mut bytes = vec![0xAA; length_of(&common, source, &body)];
            prop_assert_eq!(encode(&mut bytes, source, &common, &body), bytes.len());
            prop_assert_eq!(decode(source, &bytes), Ok(Pdu { common, body }));
        }

        #[test]
        fn random_bytes_never_panic_even_with_a_right_checksum(
            mut bytes in proptest::collection::vec(any::<u8>(), 0..200),
        ) {
            let source = HostId(1);
            let _ = decode(source, &bytes);
            if bytes.len() >= LENGTH_MIN {
                bytes[0] = VERSION << 4 | bytes[0] & 0xF;
                let sum = crc(source, &bytes);
                put_u32(&mut bytes, 4, sum);
                let _ = decode(source, &bytes);
            }
        }
    }
}
