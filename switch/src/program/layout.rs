//! Where every header, field and stack lives in the frame of words that a packet is
//! processed in, and how headers are cut from and written to packets.
//!
//! A frame is one array of 64-bit words:
//!
//! | words | content |
//! |---|---|
//! | header vector | for each header instance its validity, then its fields; then the fill of each stack |
//! | reserved | zero, the drop port |
//! | arguments | of the action that runs |
//! | temporaries | of expressions |
//! | constants | of the program |
//!
//! A field takes ⌈width / 64⌉ words, least significant first, unused high bits zero. A
//! `varbit` takes two words, its length in bits and where its bytes begin in the packet:
//! nothing can be computed with it, so its bytes are always bytes of the packet.

use std::collections::BTreeMap;

use super::error::{Problem, ProgramError};
use super::json::Node;

/// Index of a word in the frame.
pub(crate) type Slot = u32;

/// Widest field, bits.
pub(crate) const FIELD_BITS_MAX: usize = 16_384;
/// Most words of the header vector.
const VECTOR_WORDS_MAX: usize = 1 << 16;
/// Most fields of a header type.
const FIELDS_MAX: usize = 4096;

/// A field of a header type.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    pub(crate) name: String,
    /// Width in bits; for a varbit the most it can have.
    pub(crate) width: u32,
    pub(crate) signed: bool,
    pub(crate) varbit: bool,
    /// Words from the base of the header.
    pub(crate) offset: u32,
    pub(crate) limbs: u32,
}

/// A field inside a chunk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChunkField {
    /// Words from the base of the header.
    pub(crate) offset: u32,
    pub(crate) shift: u8,
    pub(crate) mask: u64,
}

/// A piece of a header on the wire.
#[derive(Clone, Debug)]
pub(crate) enum Piece {
    /// Whole bytes, at most eight, that hold whole fields.
    Chunk {
        bytes: u32,
        fields: Vec<ChunkField>,
    },
    /// A field of any width at any bit: word offset and width in bits.
    Wide { offset: u32, width: u32 },
    /// The variable field; starts and ends on a byte.
    Varbit,
}

/// A header type.
#[derive(Clone, Debug)]
pub(crate) struct HeaderType {
    pub(crate) name: String,
    pub(crate) fields: Vec<Field>,
    /// Words of an instance, validity included.
    pub(crate) words: u32,
    /// Bits on the wire without the variable field.
    pub(crate) fixed_bits: u32,
    /// Index of the variable field.
    pub(crate) varbit: Option<usize>,
    /// Most bytes of the variable field.
    pub(crate) varbit_bytes_max: u32,
    pub(crate) pieces: Vec<Piece>,
}

/// A header instance.
#[derive(Clone, Debug)]
pub(crate) struct Header {
    pub(crate) name: String,
    pub(crate) kind: u32,
    pub(crate) metadata: bool,
    /// Its validity; fields follow.
    pub(crate) base: Slot,
    /// The two words of its variable field.
    pub(crate) varbit: Option<Slot>,
    /// Index into [`Layout::unions`].
    pub(crate) union: Option<u32>,
}

/// A header stack: instances of one type, one after another in the frame.
#[derive(Clone, Debug)]
pub(crate) struct Stack {
    pub(crate) kind: u32,
    pub(crate) first_header: u32,
    pub(crate) size: u32,
    /// The word that holds `nextIndex`.
    pub(crate) fill: Slot,
}

/// A header union: at most one of its headers is valid.
#[derive(Clone, Debug)]
pub(crate) struct Union {
    pub(crate) headers: Vec<u32>,
}

/// A reference to a field of one header instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FieldRef {
    pub(crate) slot: Slot,
    pub(crate) limbs: u32,
    pub(crate) width: u32,
    pub(crate) signed: bool,
    pub(crate) header: u32,
    /// The two words of a variable field.
    pub(crate) varbit: Option<Slot>,
    /// The hidden validity field.
    pub(crate) hidden: bool,
}

/// Where everything lives.
#[derive(Clone, Debug, Default)]
pub(crate) struct Layout {
    pub(crate) types: Vec<HeaderType>,
    pub(crate) headers: Vec<Header>,
    pub(crate) stacks: Vec<Stack>,
    pub(crate) unions: Vec<Union>,
    /// Words of the header vector.
    pub(crate) words: u32,
    header_by_name: BTreeMap<String, u32>,
    stack_by_name: BTreeMap<String, u32>,
    union_by_name: BTreeMap<String, u32>,
    aliases: BTreeMap<String, (String, String)>,
}

impl Layout {
    pub(super) fn read(root: &Node<'_>) -> Result<Layout, ProgramError> {
        let mut layout = Layout::default();
        let type_by_name = layout.read_types(root)?;
        let header_by_id = layout.read_headers(root, &type_by_name)?;
        layout.read_stacks(root, &type_by_name, &header_by_id)?;
        layout.read_unions(root, &header_by_id)?;
        layout.place(root)?;
        for alias in root.list("field_aliases")? {
            let [name, target] = alias.tuple()?;
            let [header, field] = target.tuple()?;
            layout.aliases.insert(
                name.string()?.to_string(),
                (header.string()?.to_string(), field.string()?.to_string()),
            );
            layout.field(&target)?;
        }
        Ok(layout)
    }

    fn read_types(&mut self, root: &Node<'_>) -> Result<BTreeMap<String, u32>, ProgramError> {
        let mut by_name = BTreeMap::new();
        for node in root.member("header_types")?.items()? {
            let kind = read_type(&node)?;
            let name = kind.name.clone();
            if by_name.insert(name.clone(), self.types.len() as u32).is_some() {
                return Err(node.error(Problem::Duplicate {
                    kind: "header type",
                    name,
                }));
            }
            self.types.push(kind);
        }
        Ok(by_name)
    }

    fn read_headers(
        &mut self,
        root: &Node<'_>,
        type_by_name: &BTreeMap<String, u32>,
    ) -> Result<BTreeMap<i64, u32>, ProgramError> {
        let mut by_id = BTreeMap::new();
        for node in root.member("headers")?.items()? {
            let name = node.member("name")?.string()?.to_string();
            let kind = find_type(&node.member("header_type")?, type_by_name)?;
            let index = self.headers.len() as u32;
            let id = node.member("id")?.integer()?;
            if by_id.insert(id, index).is_some()
                || self.header_by_name.insert(name.clone(), index).is_some()
            {
                return Err(node.error(Problem::Duplicate {
                    kind: "header",
                    name,
                }));
            }
            self.headers.push(Header {
                name,
                kind,
                metadata: node.flag("metadata", false)?,
                base: 0,
                varbit: None,
                union: None,
            });
        }
        Ok(by_id)
    }

    fn read_stacks(
        &mut self,
        root: &Node<'_>,
        type_by_name: &BTreeMap<String, u32>,
        header_by_id: &BTreeMap<i64, u32>,
    ) -> Result<(), ProgramError> {
        for node in root.list("header_stacks")? {
            let name = node.member("name")?.string()?.to_string();
            let kind = find_type(&node.member("header_type")?, type_by_name)?;
            let ids = node.member("header_ids")?;
            let mut first_header = None;
            let mut size = 0;
            for id in ids.items()? {
                let header = find_header_id(&id, header_by_id)?;
                let first = *first_header.get_or_insert(header);
                if header != first + size {
                    return Err(ids.invalid("ids of headers that were declared one after another"));
                }
                if self.headers[header as usize].kind != kind {
                    return Err(id.invalid("the id of a header of the type of the stack"));
                }
                size += 1;
            }
            let Some(first_header) = first_header else {
                return Err(ids.invalid("at least one header id"));
            };
            let index = self.stacks.len() as u32;
            if self.stack_by_name.insert(name.clone(), index).is_some() {
                return Err(node.error(Problem::Duplicate {
                    kind: "header stack",
                    name,
                }));
            }
            self.stacks.push(Stack {
                kind,
                first_header,
                size,
                fill: 0,
            });
        }
        Ok(())
    }

    fn read_unions(
        &mut self,
        root: &Node<'_>,
        header_by_id: &BTreeMap<i64, u32>,
    ) -> Result<(), ProgramError> {
        for node in root.list("header_unions")? {
            let name = node.member("name")?.string()?.to_string();
            let index = self.unions.len() as u32;
            let mut headers = Vec::new();
            for id in node.member("header_ids")?.items()? {
                let header = find_header_id(&id, header_by_id)?;
                self.headers[header as usize].union = Some(index);
                headers.push(header);
            }
            if self.union_by_name.insert(name.clone(), index).is_some() {
                return Err(node.error(Problem::Duplicate {
                    kind: "header union",
                    name,
                }));
            }
            self.unions.push(Union { headers });
        }
        if let Some(stack) = root.list("header_union_stacks")?.first() {
            return Err(stack.unsupported("a stack of header unions", "header unions and header stacks"));
        }
        Ok(())
    }

    /// Gives every header and stack its place in the frame.
    fn place(&mut self, root: &Node<'_>) -> Result<(), ProgramError> {
        let mut next = 0usize;
        for header in &mut self.headers {
            let kind = &self.types[header.kind as usize];
            header.base = next as u32;
            next += kind.words as usize;
            if next > VECTOR_WORDS_MAX {
                break;
            }
            header.varbit = kind
                .varbit
                .map(|field| header.base + kind.fields[field].offset);
        }
        for stack in &mut self.stacks {
            stack.fill = next as u32;
            next += 1;
        }
        if next > VECTOR_WORDS_MAX {
            return Err(root.error(Problem::LimitExceeded {
                what: "words of headers",
                value: next,
                limit: VECTOR_WORDS_MAX,
            }));
        }
        self.words = next as u32;
        Ok(())
    }

    pub(super) fn header(&self, node: &Node<'_>) -> Result<u32, ProgramError> {
        let name = node.string()?;
        self.header_by_name.get(name).copied().ok_or_else(|| {
            node.unknown("header", name, self.header_by_name.keys().map(String::as_str))
        })
    }

    pub(super) fn stack(&self, node: &Node<'_>) -> Result<u32, ProgramError> {
        let name = node.string()?;
        self.stack_by_name.get(name).copied().ok_or_else(|| {
            node.unknown("header stack", name, self.stack_by_name.keys().map(String::as_str))
        })
    }

    pub(super) fn union(&self, node: &Node<'_>) -> Result<u32, ProgramError> {
        let name = node.string()?;
        self.union_by_name.get(name).copied().ok_or_else(|| {
            node.unknown("header union", name, self.union_by_name.keys().map(String::as_str))
        })
    }

    /// The field a `["header", "field"]` pair names.
    pub(super) fn field(&self, node: &Node<'_>) -> Result<FieldRef, ProgramError> {
        let [header, field] = node.tuple()?;
        let header_index = self.header(&header)?;
        let name = field.string()?;
        self.find_field(header_index, name).ok_or_else(|| {
            let kind = &self.types[self.headers[header_index as usize].kind as usize];
            field.unknown("field", name, kind.fields.iter().map(|field| field.name.as_str()))
        })
    }

    fn find_field(&self, header: u32, name: &str) -> Option<FieldRef> {
        let instance = &self.headers[header as usize];
        if name == "$valid$" {
            return Some(FieldRef {
                slot: instance.base,
                limbs: 1,
                width: 1,
                signed: false,
                header,
                varbit: None,
                hidden: true,
            });
        }
        let kind = &self.types[instance.kind as usize];
        let field = kind.fields.iter().find(|field| field.name == name)?;
        Some(FieldRef {
            slot: instance.base + field.offset,
            limbs: field.limbs,
            width: field.width,
            signed: field.signed,
            header,
            varbit: if field.varbit { instance.varbit } else { None },
            hidden: false,
        })
    }

    /// A field the switch itself uses, by the name BMv2 gives it, aliases considered.
    pub(super) fn intrinsic(&self, header: &str, field: &str) -> Option<FieldRef> {
        let (header, field) = match self.aliases.get(&format!("{header}.{field}")) {
            Some((header, field)) => (header.as_str(), field.as_str()),
            None => (header, field),
        };
        let header = *self.header_by_name.get(header)?;
        self.find_field(header, field)
                .filter(|field| field.limbs == 1)
    }
}

fn find_type(node: &Node<'_>, by_name: &BTreeMap<String, u32>) -> Result<u32, ProgramError> {
    let name = node.string()?;
    by_name
        .get(name)
        .copied()
        .ok_or_else(|| node.unknown("header type", name, by_name.keys().map(String::as_str)))
}

fn find_header_id(node: &Node<'_>, by_id: &BTreeMap<i64, u32>) -> Result<u32, ProgramError> {
    let id = node.integer()?;
    by_id.get(&id).copied().ok_or_else(|| {
        let choices = match (by_id.first_key_value(), by_id.last_key_value()) {
            (Some((first, _)), Some((last, _))) => format!("ids from {first} to {last}"),
            _ => "none".to_string(),
        };
        node.error(Problem::UnknownReference {
            kind: "header id",
            name: id.to_string(),
            choices,
        })
    })
}

fn read_type(node: &Node<'_>) -> Result<HeaderType, ProgramError> {
    let mut kind = HeaderType {
        name: node.member("name")?.string()?.to_string(),
        fields: Vec::new(),
        words: 1,
        fixed_bits: 0,
        varbit: None,
        varbit_bytes_max: 0,
        pieces: Vec::new(),
    };
    if let Some(expression) = node.optional("length_exp")? {
        return Err(expression.unsupported(
            "a header type with a length expression (P4-14)",
            "extract_VL with the length as an argument",
        ));
    }
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
        if let Some(saturating) = parts.get(3)
            && saturating.boolean()?
        {
            return Err(saturating.unsupported("a saturating field", "fields that wrap"));
        }
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
    before % 8 == 0 && kind.fixed_bits % 8 == 0
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

/// Ones in the low bits of a word.
pub(crate) fn ones(width: u32) -> u64 {
    if width >= 64 {
        u64::MAX
    } else {
        (1 << width) - 1
    }
}
