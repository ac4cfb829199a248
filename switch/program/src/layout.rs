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
use super::header_type::{HeaderType, read_type};
use super::json::Node;

/// Index of a word in the frame.
pub type Slot = u32;

/// Most words of the header vector.
const VECTOR_WORDS_MAX: usize = 1 << 16;

#[derive(Clone, Debug)]
pub struct Header {
    pub name: String,
    pub kind: u32,
    pub metadata: bool,
    /// Its validity; fields follow.
    pub base: Slot,
    /// The two words of its variable field.
    pub varbit: Option<Slot>,
    /// Index into [`Layout::unions`].
    pub union: Option<u32>,
}

/// A header stack: instances of one type, one after another in the frame.
#[derive(Clone, Debug)]
pub struct Stack {
    pub kind: u32,
    pub first_header: u32,
    pub size: u32,
    /// The word that holds `nextIndex`.
    pub fill: Slot,
}

/// A header union: at most one of its headers is valid.
#[derive(Clone, Debug)]
pub struct Union {
    pub headers: Vec<u32>,
}

/// A stack of header unions of one type.
#[derive(Clone, Debug)]
pub struct UnionStack {
    pub unions: Vec<u32>,
    /// Names of the members of a union, in the order of its headers.
    pub members: Vec<String>,
    /// The word that holds `nextIndex`.
    pub fill: Slot,
}

/// A reference to a field of one header instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldRef {
    pub slot: Slot,
    pub limbs: u32,
    pub width: u32,
    pub signed: bool,
    pub header: u32,
    /// The two words of a variable field.
    pub varbit: Option<Slot>,
    pub hidden: bool,
}

/// Where everything lives.
#[derive(Clone, Debug, Default)]
pub struct Layout {
    pub types: Vec<HeaderType>,
    pub headers: Vec<Header>,
    pub stacks: Vec<Stack>,
    pub unions: Vec<Union>,
    pub union_stacks: Vec<UnionStack>,
    /// Words of the header vector.
    pub words: u32,
    /// Saturating fields, and whether each is signed.
    saturating: BTreeMap<Slot, bool>,
    header_by_name: BTreeMap<String, u32>,
    stack_by_name: BTreeMap<String, u32>,
    union_by_name: BTreeMap<String, u32>,
    union_stack_by_name: BTreeMap<String, u32>,
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
            if by_name
                .insert(name.clone(), self.types.len() as u32)
                .is_some()
            {
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
            let metadata = node.flag("metadata", false)?;
            if !metadata && !self.types[kind as usize].fixed_bits.is_multiple_of(8) {
                return Err(node
                    .member("header_type")?
                    .invalid("a header type of whole bytes, since the header is not metadata"));
            }
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
                metadata,
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
                let element = &self.headers[header as usize];
                if element.kind != kind || element.metadata {
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
        let members_by_type = read_union_types(root)?;
        let mut by_id = BTreeMap::new();
        for node in root.list("header_unions")? {
            let name = node.member("name")?.string()?.to_string();
            let index = self.unions.len() as u32;
            let members = find_union_type(&node.member("union_type")?, &members_by_type)?;
            let ids = node.member("header_ids")?;
            let mut headers = Vec::new();
            for id in ids.items()? {
                let header = find_header_id(&id, header_by_id)?;
                let member = &mut self.headers[header as usize];
                if member.metadata || member.union.is_some() {
                    return Err(id.invalid("the id of a header that is in no other union"));
                }
                member.union = Some(index);
                headers.push(header);
            }
            if headers.len() != members.len() {
                return Err(ids.invalid(format!("{} header ids", members.len())));
            }
            by_id.insert(node.member("id")?.integer()?, index);
            if self.union_by_name.insert(name.clone(), index).is_some() {
                return Err(node.error(Problem::Duplicate {
                    kind: "header union",
                    name,
                }));
            }
            self.unions.push(Union { headers });
        }
        for node in root.list("header_union_stacks")? {
            let name = node.member("name")?.string()?.to_string();
            let members = find_union_type(&node.member("union_type")?, &members_by_type)?;
            let mut unions: Vec<u32> = Vec::new();
            for id in node.member("header_union_ids")?.items()? {
                let Some(&union) = by_id.get(&id.integer()?) else {
                    return Err(id.invalid("the id of a header union"));
                };
                let kinds = |union: u32| self.union_kinds(union);
                if unions
                    .first()
                    .is_some_and(|&first| kinds(first) != kinds(union))
                    || self.unions[union as usize].headers.len() != members.len()
                {
                    return Err(id.invalid("the id of a header union of the type of the stack"));
                }
                unions.push(union);
            }
            let index = self.union_stacks.len() as u32;
            self.union_stack_by_name.insert(name, index);
            self.union_stacks.push(UnionStack {
                unions,
                members: members.clone(),
                fill: 0,
            });
        }
        Ok(())
    }

    /// Types of the headers of a union.
    pub(super) fn union_kinds(&self, union: u32) -> Vec<u32> {
        let headers = self.unions[union as usize].headers.iter();
        headers
            .map(|&header| self.headers[header as usize].kind)
            .collect()
    }

    /// Gives every header and stack its place in the frame.
    fn place(&mut self, root: &Node<'_>) -> Result<(), ProgramError> {
        let mut next = 0usize;
        for header in &mut self.headers {
            let kind = &self.types[header.kind as usize];
            header.base = next as u32;
            next += kind.words as usize;
            let saturating = kind.fields.iter().filter(|field| field.saturating);
            let places = saturating.map(|field| (header.base + field.offset, field.signed));
            self.saturating.extend(places);
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
        for stack in &mut self.union_stacks {
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

    /// Whether a field is a saturating one, and then whether it is signed.
    pub(super) fn saturates(&self, slot: Slot) -> Option<bool> {
        self.saturating.get(&slot).copied()
    }

    pub(super) fn header(&self, node: &Node<'_>) -> Result<u32, ProgramError> {
        let name = node.string()?;
        self.header_by_name.get(name).copied().ok_or_else(|| {
            node.unknown(
                "header",
                name,
                self.header_by_name.keys().map(String::as_str),
            )
        })
    }

    pub(super) fn stack(&self, node: &Node<'_>) -> Result<u32, ProgramError> {
        let name = node.string()?;
        self.stack_by_name.get(name).copied().ok_or_else(|| {
            node.unknown(
                "header stack",
                name,
                self.stack_by_name.keys().map(String::as_str),
            )
        })
    }

    pub(super) fn union(&self, node: &Node<'_>) -> Result<u32, ProgramError> {
        let name = node.string()?;
        self.union_by_name.get(name).copied().ok_or_else(|| {
            node.unknown(
                "header union",
                name,
                self.union_by_name.keys().map(String::as_str),
            )
        })
    }

    pub(super) fn union_stack(&self, node: &Node<'_>) -> Result<u32, ProgramError> {
        let name = node.string()?;
        self.union_stack_by_name.get(name).copied().ok_or_else(|| {
            let names = self.union_stack_by_name.keys().map(String::as_str);
            node.unknown("header union stack", name, names)
        })
    }

    /// The stack and the position of the member that a name of each stand for.
    pub(super) fn union_stack_member(
        &self,
        stack: &Node<'_>,
        member: &Node<'_>,
    ) -> Result<(u32, u32), ProgramError> {
        let index = self.union_stack(stack)?;
        let members = &self.union_stacks[index as usize].members;
        let name = member.string()?;
        match members.iter().position(|candidate| candidate == name) {
            Some(position) => Ok((index, position as u32)),
            None => Err(member.unknown(
                "member of the union",
                name,
                members.iter().map(String::as_str),
            )),
        }
    }

    /// The field a `["header", "field"]` pair names.
    pub(super) fn field(&self, node: &Node<'_>) -> Result<FieldRef, ProgramError> {
        let [header, field] = node.tuple()?;
        let header_index = self.header(&header)?;
        let name = field.string()?;
        self.find_field(header_index, name).ok_or_else(|| {
            let kind = &self.types[self.headers[header_index as usize].kind as usize];
            field.unknown(
                "field",
                name,
                kind.fields.iter().map(|field| field.name.as_str()),
            )
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

/// Names of the members of each union type.
fn read_union_types(root: &Node<'_>) -> Result<BTreeMap<String, Vec<String>>, ProgramError> {
    let mut types = BTreeMap::new();
    for node in root.list("header_union_types")? {
        let mut members = Vec::new();
        for member in node.member("headers")?.items()? {
            let [name, _kind] = member.tuple()?;
            members.push(name.string()?.to_string());
        }
        types.insert(node.member("name")?.string()?.to_string(), members);
    }
    Ok(types)
}

fn find_union_type<'t>(
    node: &Node<'_>,
    types: &'t BTreeMap<String, Vec<String>>,
) -> Result<&'t Vec<String>, ProgramError> {
    let name = node.string()?;
    types
        .get(name)
        .ok_or_else(|| node.unknown("header union type", name, types.keys().map(String::as_str)))
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
