//! Calculations (checksums and hashes) and their inputs.

use super::error::ProgramError;
use super::json::Node;
use super::layout::{Layout, Slot};

/// Algorithms of BMv2 that this switch has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// Internet checksum (RFC 1071).
    Checksum16,
    /// CRC-32 of IEEE 802.3.
    Crc32,
    /// CRC-16/ARC.
    Crc16,
    /// CRC-16 whose parameters a control plane may change; CRC-16/ARC until it does.
    Crc16Custom,
    /// CRC-32 whose parameters a control plane may change; that of IEEE 802.3 until it does.
    Crc32Custom,
    /// CRC-16/CCITT-FALSE.
    CrcCcitt,
    /// The first eight bytes as an integer.
    Identity,
    /// XXH64 with seed 0.
    Xxh64,
    /// FNV-1 of signed bytes with shifts and additions at the end: `hash_ex` of BMv2.
    HashEx,
    /// Exclusive or of 16-bit words.
    Xor16,
    /// Exclusive or of 32-bit words.
    Xor32,
}

#[derive(Clone, Debug)]
pub enum InputPart {
    /// A field; skipped when its header is not valid.
    Field {
        slot: Slot,
        width: u32,
        valid: Option<Slot>,
    },
    /// A variable field; skipped when its header is not valid.
    Varbit { slot: Slot, valid: Slot },
    /// Constant bits, most significant first.
    Constant { bytes: Vec<u8>, width: u32 },
    /// A header; skipped when not valid.
    Header(u32),
    /// All bytes after the headers.
    Payload,
}

#[derive(Clone, Debug)]
pub struct Calculation {
    pub algorithm: Algorithm,
    pub input: Vec<InputPart>,
}

/// A checksum to verify after the parser or to update before the deparser.
#[derive(Clone, Debug)]
pub struct Checksum {
    pub calculation: u32,
    pub target: Slot,
    pub target_width: u32,
    /// Validity of the header of the target.
    pub target_valid: Slot,
    /// Code and word of the condition.
    pub condition: Option<(u32, Slot)>,
}

/// Widest constant of an input, bits.
const CONSTANT_BITS_MAX: usize = 16_384;

pub(super) fn read_algorithm(node: &Node<'_>) -> Result<Algorithm, ProgramError> {
    Ok(match node.string()? {
        "csum16" | "cksum16" => Algorithm::Checksum16,
        "crc32" => Algorithm::Crc32,
        "crc32_custom" => Algorithm::Crc32Custom,
        "crc16" => Algorithm::Crc16,
        "crc16_custom" => Algorithm::Crc16Custom,
        "crcCCITT" => Algorithm::CrcCcitt,
        "identity" => Algorithm::Identity,
        "xxh64" | "bmv2_hash" => Algorithm::Xxh64,
        "hash_ex" => Algorithm::HashEx,
        "xor16" => Algorithm::Xor16,
        "xor32" => Algorithm::Xor32,
        name => {
            return Err(node.unsupported(
                format!("algorithm \"{name}\""),
                "csum16, crc32, crc32_custom, crc16, crc16_custom, crcCCITT, identity, xor16, xor32, \
                 xxh64, bmv2_hash, hash_ex",
            ));
        }
    })
}

pub(super) fn read_input(
    nodes: &[Node<'_>],
    layout: &Layout,
) -> Result<Vec<InputPart>, ProgramError> {
    let mut input = Vec::new();
    let mut with_payload = false;
    for node in nodes {
        let kind_node = node.member("type")?;
        match kind_node.string()? {
            "field" => {
                let field = layout.field(&node.member("value")?)?;
                let header = &layout.headers[field.header as usize];
                input.push(match field.varbit {
                    Some(slot) => InputPart::Varbit {
                        slot,
                        valid: header.base,
                    },
                    None => InputPart::Field {
                        slot: field.slot,
                        width: field.width,
                        valid: (!header.metadata).then_some(header.base),
                    },
                });
            }
            "hexstr" => {
                let width = node.member("bitwidth")?.count(CONSTANT_BITS_MAX)? as u32;
                let value = node.member("value")?;
                let bits = crate::Bits::from_bytes(&value.hex_bytes()?);
                if bits.width_bits() > width {
                    return Err(value.invalid(format!("a value of at most {width} bits")));
                }
                input.push(InputPart::Constant {
                    bytes: bits.to_padded_bytes(width),
                    width,
                });
            }
            "header" => input.push(InputPart::Header(layout.header(&node.member("value")?)?)),
            // BMv2 puts the payload last wherever it is named.
            "payload" => with_payload = true,
            name => {
                return Err(kind_node.unsupported(
                    format!("input of type \"{name}\""),
                    "field, hexstr, header, payload",
                ));
            }
        }
    }
    if with_payload {
        input.push(InputPart::Payload);
    }
    Ok(input)
}
