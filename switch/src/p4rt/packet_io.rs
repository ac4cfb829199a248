//! Packet-in and packet-out: metadata to the header in front of the frame, and back.

use super::proto::p4::v1::{PacketIn, PacketMetadata, PacketOut};
use super::rejection::Rejection;
use super::schema::PacketField;
use crate::pipeline::Bits;

/// Longest frame a packet-out may carry, header included.
pub const PACKET_OUT_BYTES_MAX: usize = crate::pipeline::limits::PACKET_BYTES_MAX;

/// The frame that enters the pipeline by the CPU port.
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
            (None, _) if field.is_padding => Bits::default(),
            (None, _) => {
                return Err(Rejection::invalid(format!(
                    "packet-out metadata `{}` (id {}) is missing",
                    field.name, field.id
                )));
            }
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
    let header_bytes = bits as usize / 8;
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
        assert_eq!(refuse(&[]), "packet-out metadata `port` (id 1) is missing");
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
        assert!(message.contains("more than 16384"), "{message}");
    }
}
