//! Header types, and how headers are cut from and written to packets.

use super::error::{Problem, ProgramError};
use super::json::{Kept, Node};
use super::width::{FIELD_BITS_MAX, ones};

/// Most fields of a header type.
const FIELDS_MAX: usize = 4096;

/// A field of a header type.
#[derive(Clone, Debug)]
pub struct Field {
    pub name: String,
    /// Width in bits; for a varbit the most it can have.
    pub width: u32,
    pub signed: bool,
    /// What does not fit becomes the nearest value that does.
    pub saturating: bool,
    pub varbit: bool,
    /// Words from the base of the header.
    pub offset: u32,
    pub limbs: u32,
}

/// A field inside a chunk.
#[derive(Clone, Copy, Debug)]
pub struct ChunkField {
    /// Words from the base of the header.
    pub offset: u32,
    pub shift: u8,
    pub mask: u64,
}

/// A piece of a header on the wire.
#[derive(Clone, Debug)]
pub enum Piece {
    /// Whole bytes, at most eight, that hold whole fields.
    Chunk { bytes: u32, fields: Vec<ChunkField> },
    /// A field of any width at any bit: word offset and width in bits.
    Wide { offset: u32, width: u32 },
    /// The variable field; starts and ends on a byte.
    Varbit,
}

#[derive(Clone, Debug)]
pub struct HeaderType {
    pub name: String,
    pub fields: Vec<Field>,
    /// Words of an instance, validity included.
    pub words: u32,
    /// Bits on the wire without the variable field.
    pub fixed_bits: u32,
    /// Index of the variable field.
    pub varbit: Option<usize>,
    /// Most bytes of the variable field.
    pub varbit_bytes_max: u32,
    pub pieces: Vec<Piece>,
    /// Bits of the variable field, of the fields before it (P4-14).
    pub(super) length: Option<Kept>,
}

pub(super) fn read_type(node: &Node<'_>) -> Result<HeaderType, ProgramError> {
    let mut kind = HeaderType {
        name: node.member("name")?.string()?.to_string(),
        fields: Vec::new(),
        words: 1,
        fixed_bits: 0,
        varbit: None,
        varbit_bytes_max: 0,
        pieces: Vec::new(),
        length: node.optional("length_exp")?.map(|length| length.kept()),
    };
    let fields = node.member("fields")?.items()?;
    if fields.len() > FIELDS_MAX {
        return Err(node.error(Problem::LimitExceeded {
            what: "fields",
            value: fields.len(),
            limit: FIELDS_MAX,
        }));
    }
    for (index, field) in fields.iter().enumerate() {
        let parts = field.items()?;
        let (name, width) = match parts.as_slice() {
            [name, width, ..] => (name.string()?.to_string(), width),
            _ => return Err(field.invalid("an array of name, width and signedness")),
        };
        let signed = match parts.get(2) {
            Some(signed) => signed.truth()?,
            None => false,
        };
        let saturating = match parts.get(3) {
            Some(saturating) => saturating.truth()?,
            None => false,
        };
        if kind.fields.iter().any(|field| field.name == name) {
            return Err(field.error(Problem::Duplicate {
                kind: "field",
                name,
            }));
        }
        let varbit = width.string().is_ok_and(|text| text == "*");
        let bits = if varbit {
            if kind.varbit.is_some() {
                return Err(field.invalid("at most one variable field in a header type"));
            }
            kind.varbit = Some(index);
            0
        } else {
            width.integer_in(i64::from(signed), FIELD_BITS_MAX as i64)? as u32
        };
        let limbs = if varbit { 2 } else { bits.div_ceil(64).max(1) };
        kind.fields.push(Field {
            name,
            width: bits,
            signed,
            saturating,
            varbit,
            offset: kind.words,
            limbs,
        });
        kind.words += limbs;
        kind.fixed_bits += bits;
    }
    if let Some(index) = kind.varbit {
        let bytes_max = node.member("max_length")?.count(FIELD_BITS_MAX / 8)? as u32;
        kind.varbit_bytes_max = bytes_max.saturating_sub(kind.fixed_bits / 8);
        kind.fields[index].width = kind.varbit_bytes_max * 8;
    }
    kind.pieces = cut_pieces(&kind.fields);
    if kind.varbit.is_some() && !varbit_aligned(&kind) {
        return Err(node.unsupported(
            "a variable field that does not start on a byte",
            "variable fields on byte boundaries",
        ));
    }
    Ok(kind)
}

fn varbit_aligned(kind: &HeaderType) -> bool {
    let before: u32 = kind
        .fields
        .iter()
        .take_while(|field| !field.varbit)
        .map(|field| field.width)
        .sum();
    before.is_multiple_of(8) && kind.fixed_bits.is_multiple_of(8)
}

/// Groups fields into runs of whole bytes of at most 64 bits.
fn cut_pieces(fields: &[Field]) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut rest = fields;
    while let Some(first) = rest.first() {
        if first.varbit {
            pieces.push(Piece::Varbit);
            rest = &rest[1..];
            continue;
        }
        let mut bits = 0;
        let mut run = 0;
        for (index, field) in rest.iter().enumerate() {
            if field.varbit || bits + field.width > 64 {
                break;
            }
            bits += field.width;
            if bits % 8 == 0 {
                run = index + 1;
            }
        }
        // A run that does not end on a byte within 64 bits goes field by field, up to the
        // next byte boundary: chunks must start on bytes.
        if run == 0 {
            let mut bits = 0;
            for field in rest {
                if field.varbit {
                    break;
                }
                run += 1;
                bits += field.width;
                pieces.push(Piece::Wide {
                    offset: field.offset,
                    width: field.width,
                });
                if bits % 8 == 0 {
                    break;
                }
            }
        } else {
            let total: u32 = rest[..run].iter().map(|field| field.width).sum();
            let mut left = total;
            let chunk = rest[..run]
                .iter()
                .map(|field| {
                    left -= field.width;
                    ChunkField {
                        offset: field.offset,
                        shift: left as u8,
                        mask: ones(field.width),
                    }
                })
                .filter(|field| field.mask != 0)
                .collect();
            pieces.push(Piece::Chunk {
                bytes: total / 8,
                fields: chunk,
            });
        }
        rest = &rest[run..];
    }
    pieces
}
