//! Packet-in and packet-out: metadata to the header in front of the frame, and back.
//!
//! The header has the fields one after another, and as many bits behind them as fill up the last
//! byte: p4c gives a header that is not whole bytes a field for them, which the P4Info does not
//! have.

use super::fit::{Bound, misfit};
use super::proto::p4::config::v1::ControllerPacketMetadata;
use super::proto::p4::config::v1::controller_packet_metadata::Metadata;
use super::proto::p4::v1::{PacketIn, PacketMetadata, PacketOut};
use super::rejection::Rejection;
use super::schema::PacketField;
use super::types::Types;
use wormcast_switch_program::Bits;
use wormcast_switch_program::{HeaderTypeInfo, Program};

/// What p4c calls the field that fills up the last byte of a header, and adds a number to where a
/// field of the program has that name.
const FILLING: &str = "_padding";

/// Longest frame a packet-out may carry, header included.
pub const PACKET_OUT_BYTES_MAX: usize = wormcast_switch_pipeline::limits::PACKET_BYTES_MAX;

/// The fields of the header of packet-ins or packet-outs, which the P4Info calls `header`.
pub fn bind_fields(
    metadata: &ControllerPacketMetadata,
    header: &str,
    types: &Types<'_>,
    program: &Program,
) -> Bound<Vec<PacketField>> {
    let mut types_of_headers = program.header_types().iter();
    let header_type = types_of_headers.find(|candidate| has_these_fields(candidate, metadata));
    let bind_one = |(place, field): (usize, &Metadata)| {
        let of_program = header_type.map(|header| header.fields[place].width_bits);
        let what = format!("packet metadata `{header}`: field `{}`", field.name);
        let named = field.type_name.as_ref();
        let is_called = matches!(field.name.as_str(), "pad" | "_pad" | "padding" | "_padding");
        let mut annotations = field.annotations.iter();
        Ok(PacketField {
            id: field.id,
            name: field.name.clone(),
            value: types.packet_field(named, field.bitwidth, of_program, what)?,
            is_padding: is_called || annotations.any(|annotation| annotation == "@padding"),
        })
    };
    let fields = metadata.metadata.iter().enumerate().map(bind_one);
    let fields: Vec<PacketField> = fields.collect::<Bound<_>>()?;
    let bits: u64 = fields
        .iter()
        .map(|field| u64::from(field.value.width_bits))
        .sum();
    let most = 8 * PACKET_OUT_BYTES_MAX as u64;
    if bits > most {
        return misfit(format!(
            "packet metadata `{header}` has {bits} bits, more than the {most} of the longest packet"
        ));
    }
    Ok(fields)
}

/// Whether a header of the program has the fields of the P4Info, and behind them only what fills
/// up the last byte.
fn has_these_fields(candidate: &HeaderTypeInfo, metadata: &ControllerPacketMetadata) -> bool {
    let wanted = &metadata.metadata;
    let Some((fields, rest)) = candidate.fields.split_at_checked(wanted.len()) else {
        return false;
    };
    let names = wanted.iter().map(|field| &field.name);
    fields.iter().map(|field| &field.name).eq(names)
        && rest
            .iter()
            .all(|field| field.name.starts_with(FILLING) && field.width_bits < 8)
}

/// Names of the fields that a packet-out leaves out, but for those that only fill up a byte.
pub fn missing<'f>(packet: &PacketOut, fields: &'f [PacketField]) -> Vec<&'f str> {
    let is_given = |field: &PacketField| {
        let mut given = packet.metadata.iter();
        given.any(|metadata| metadata.metadata_id == field.id)
    };
    let missing = fields
        .iter()
        .filter(|field| !field.is_padding && !is_given(field));
    missing.map(|field| field.name.as_str()).collect()
}

/// The frame that enters the pipeline by the CPU port. Metadata that the packet-out does not have
/// are 0.
pub fn frame_of_packet_out(
    packet: &PacketOut,
    fields: &[PacketField],
) -> Result<Vec<u8>, Rejection> {
    for metadata in &packet.metadata {
        if !fields.iter().any(|field| field.id == metadata.metadata_id) {
            return Err(Rejection::invalid(format!(
                "packet-out has no metadata with the id {}; it has {}",
                metadata.metadata_id,
                list_fields(fields)
            )));
        }
    }
    let mut header = BitWriter::default();
    for field in fields {
        let mut given = packet
            .metadata
            .iter()
            .filter(|given| given.metadata_id == field.id);
        let value = match (given.next(), given.next()) {
            (Some(metadata), None) => field.value.parse(&metadata.value).map_err(|rejection| {
                rejection.within(format_args!("packet-out metadata `{}`", field.name))
            })?,
            // PI fills with zeros, and controllers of BMv2 rely on it.
            (None, _) => Bits::default(),
            (Some(_), Some(_)) => {
                return Err(Rejection::invalid(format!(
                    "packet-out metadata `{}` (id {}) is there twice",
                    field.name, field.id
                )));
            }
        };
        header.write(&value, field.value.width_bits);
    }
    let mut frame = header.bytes;
    frame.extend_from_slice(&packet.payload);
    if frame.len() > PACKET_OUT_BYTES_MAX {
        return Err(Rejection::invalid(format!(
            "the packet-out has {} bytes with its header, more than {PACKET_OUT_BYTES_MAX}",
            frame.len()
        )));
    }
    Ok(frame)
}

/// The message for a frame that left by the CPU port; `None` if it is too short for the
/// header.
pub fn packet_in_of_frame(frame: &[u8], fields: &[PacketField]) -> Option<PacketIn> {
    let bits: u32 = fields.iter().map(|field| field.value.width_bits).sum();
    let header_bytes = bits.div_ceil(8) as usize;
    let (header, payload) = frame.split_at_checked(header_bytes)?;
    let mut position = 0;
    let mut metadata = Vec::new();
    for field in fields {
        let value = read_bits(header, position, field.value.width_bits);
        metadata.push(PacketMetadata {
            metadata_id: field.id,
            value: field.value.write(&value),
        });
        position += field.value.width_bits as usize;
    }
    Some(PacketIn {
        payload: payload.to_vec(),
        metadata,
    })
}

fn list_fields(fields: &[PacketField]) -> String {
    if fields.is_empty() {
        return "none".to_owned();
    }
    let names = fields
        .iter()
        .map(|field| format!("{} ({})", field.id, field.name));
    names.collect::<Vec<_>>().join(", ")
}

/// Packs values from the most significant bit on.
#[derive(Default)]
struct BitWriter {
    bytes: Vec<u8>,
    bits: usize,
}

impl BitWriter {
    fn write(&mut self, value: &Bits, width_bits: u32) {
        let padded = value.to_padded_bytes(width_bits);
        for index in (0..width_bits as usize).rev() {
            let bit = padded[padded.len() - 1 - index / 8] >> (index % 8) & 1;
            if self.bits.is_multiple_of(8) {
                self.bytes.push(0);
            }
            let last = self.bits / 8;
            self.bytes[last] |= bit << (7 - self.bits % 8);
            self.bits += 1;
        }
    }
}

fn read_bits(bytes: &[u8], position: usize, width_bits: u32) -> Bits {
    let mut value = vec![0; width_bits.div_ceil(8) as usize];
    let count = value.len();
    for index in 0..width_bits as usize {
        let at = position + width_bits as usize - 1 - index;
        let bit = bytes[at / 8] >> (7 - at % 8) & 1;
        value[count - 1 - index / 8] |= bit << (index % 8);
    }
    Bits::from_bytes(&value)
}

#[cfg(test)]
mod tests {
    use super::super::values::ValueType;
    use super::*;

    fn fields() -> Vec<PacketField> {
        let field = |id, name: &str, width_bits, is_padding| PacketField {
            id,
            name: name.to_owned(),
            value: ValueType::plain(width_bits),
            is_padding,
        };
        vec![field(1, "port", 9, false), field(2, "pad", 7, true)]
    }

    fn packet_out(metadata: &[(u32, &[u8])]) -> PacketOut {
        let metadata = metadata.iter().map(|(metadata_id, value)| PacketMetadata {
            metadata_id: *metadata_id,
            value: value.to_vec(),
        });
        PacketOut {
            payload: b"frame".to_vec(),
            metadata: metadata.collect(),
        }
    }

    #[test]
    fn packet_out_becomes_header_and_frame() {
        let packet = packet_out(&[(1, &[1, 0x03])]);
        let frame = frame_of_packet_out(&packet, &fields()).unwrap();
        assert_eq!(frame, [&[0x81, 0x80][..], b"frame"].concat());
    }

    #[test]
    fn metadata_that_is_left_out_is_zero() {
        let packet = packet_out(&[(2, &[5])]);
        assert_eq!(missing(&packet, &fields()), ["port"]);
        let frame = frame_of_packet_out(&packet, &fields()).unwrap();
        assert_eq!(frame, [&[0x00, 0x05][..], b"frame"].concat());
        let packet = packet_out(&[(1, &[3])]);
        assert!(missing(&packet, &fields()).is_empty());
        let frame = frame_of_packet_out(&packet_out(&[]), &fields()).unwrap();
        assert_eq!(frame, [&[0x00, 0x00][..], b"frame"].concat());
    }

    /// Two ports of 9 bits, as PINS has them, and a field of none.
    #[test]
    fn the_last_byte_is_filled_up() {
        let mut fields = fields();
        fields[1].value = ValueType::plain(9);
        fields[1].is_padding = false;
        let mut none = fields[1].clone();
        (none.id, none.value) = (3, ValueType::plain(0));
        fields.push(none);
        let packet = packet_out(&[(1, &[3]), (2, &[1, 0xff]), (3, &[0])]);
        let frame = frame_of_packet_out(&packet, &fields).unwrap();
        assert_eq!(frame, [&[0x01, 0xff, 0xc0][..], b"frame"].concat());
        let packet = packet_in_of_frame(&frame, &fields).unwrap();
        assert_eq!(packet.payload, b"frame");
        let values = packet
            .metadata
            .iter()
            .map(|metadata| metadata.value.as_slice());
        assert_eq!(values.collect::<Vec<_>>(), [&[3][..], &[1, 0xff], &[0]]);
        assert_eq!(packet_in_of_frame(&[0x01, 0xff], &fields), None);
    }

    #[test]
    fn packet_in_is_read_back_canonically() {
        let packet = packet_in_of_frame(&[0x01, 0x85, 7, 8], &fields()).unwrap();
        assert_eq!(packet.payload, [7, 8]);
        assert_eq!(packet.metadata[0].value, [3]);
        assert_eq!(packet.metadata[1].value, [5]);
        assert_eq!(packet_in_of_frame(&[0x01], &fields()), None);
        assert_eq!(packet_in_of_frame(&[1], &[]).unwrap().payload, [1]);
    }

    #[test]
    fn metadata_that_does_not_fit_is_refused() {
        let refuse = |metadata: &[(u32, &[u8])]| {
            frame_of_packet_out(&packet_out(metadata), &fields())
                .unwrap_err()
                .message
        };
        assert_eq!(
            refuse(&[(1, &[1]), (7, &[1])]),
            "packet-out has no metadata with the id 7; it has 1 (port), 2 (pad)"
        );
        assert_eq!(
            refuse(&[(1, &[1]), (1, &[1])]),
            "packet-out metadata `port` (id 1) is there twice"
        );
        assert_eq!(
            refuse(&[(1, &[2, 0])]),
            "packet-out metadata `port`: value 0x200 does not fit into 9 bits (at most 0x1ff)"
        );
        let mut long = packet_out(&[(1, &[1])]);
        long.payload = vec![0; PACKET_OUT_BYTES_MAX];
        let message = frame_of_packet_out(&long, &fields()).unwrap_err().message;
        assert!(message.contains("more than 65791"), "{message}");
    }
}
