//! Parsers: states, what they extract, and where they go next.

use std::collections::BTreeMap;

use super::assemble::Assembler;
use super::code::{Lookahead, Op, UnionField};
use super::error::{Problem, ProgramError};
use super::expression::{Data, Value};
use super::json::Node;
use super::layout::Slot;
use super::named::Objects;
use super::scope::Scope;

/// Furthest bit a lookahead reaches.
const LOOKAHEAD_BITS_MAX: usize = 16_384;

/// A part of the key that a state selects its successor by.
#[derive(Clone, Copy, Debug)]
pub struct KeyPart {
    /// Words with the value; the code of the state leaves it there.
    pub slot: Slot,
    /// Width in bits.
    pub width: u32,
}

/// What the key is compared with.
#[derive(Clone, Debug)]
pub enum Case {
    /// Equal under a mask. One word for each word of the key.
    Value { value: Vec<u64>, mask: Vec<u64> },
    /// A member of a value set, under a mask.
    Set { set: u32, mask: Option<Vec<u64>> },
}

/// A state of a parser.
#[derive(Clone, Debug)]
pub struct State {
    /// Start of its code.
    pub code: u32,
    pub key: Vec<KeyPart>,
    pub cases: Vec<(Case, Option<u32>)>,
    pub default: Option<u32>,
}

/// A parser; states refer to each other by index.
#[derive(Clone, Debug, Default)]
pub struct Parser {
    pub states: Vec<State>,
    pub start: Option<u32>,
    /// Largest number of words of a key.
    pub key_words: u32,
}

pub(super) fn read(
    node: &Node<'_>,
    objects: &Objects<'_>,
    assembler: &mut Assembler<'_>,
    value_sets: &[super::description::ValueSetInfo],
) -> Result<Parser, ProgramError> {
    let state_nodes = node.member("parse_states")?.items()?;
    let mut by_name = BTreeMap::new();
    for (index, state) in state_nodes.iter().enumerate() {
        let name = state.member("name")?.string()?;
        if by_name.insert(name, index as u32).is_some() {
            return Err(state.error(Problem::Duplicate {
                kind: "parse state",
                name: name.to_string(),
            }));
        }
    }
    let reader = Reader {
        objects,
        by_name: &by_name,
        value_sets,
    };
    let mut parser = Parser {
        start: reader.state_named(node.optional("init_state")?)?,
        ..Parser::default()
    };
    for state in &state_nodes {
        let state = reader.state(state, assembler)?;
        let words = state.key.iter().map(|part| part.width.div_ceil(64).max(1));
        parser.key_words = parser.key_words.max(words.sum());
        parser.states.push(state);
    }
    Ok(parser)
}

struct Reader<'r> {
    objects: &'r Objects<'r>,
    by_name: &'r BTreeMap<&'r str, u32>,
    value_sets: &'r [super::description::ValueSetInfo],
}

impl Reader<'_> {
    fn state_named(&self, node: Option<Node<'_>>) -> Result<Option<u32>, ProgramError> {
        let Some(node) = node else { return Ok(None) };
        let name = node.string()?;
        match self.by_name.get(name) {
            Some(&state) => Ok(Some(state)),
            None => Err(node.unknown("parse state", name, self.by_name.keys().copied())),
        }
    }

    fn state(&self, node: &Node<'_>, assembler: &mut Assembler<'_>) -> Result<State, ProgramError> {
        let code = assembler.here();
        for op in node.list("parser_ops")? {
            assembler.release();
            self.operation(&op, assembler)?;
        }
        assembler.release();
        let mut key = Vec::new();
        for part in node.list("transition_key")? {
            key.push(self.key_part(&part, assembler)?);
        }
        assembler.emit(Op::End);
        let mut state = State {
            code,
            key,
            cases: Vec::new(),
            default: None,
        };
        for transition in node.list("transitions")? {
            self.transition(&transition, &mut state)?;
        }
        Ok(state)
    }

    fn operation(
        &self,
        node: &Node<'_>,
        assembler: &mut Assembler<'_>,
    ) -> Result<(), ProgramError> {
        let scope = &self.objects.scope;
        let parameters = node.member("parameters")?;
        match node.member("op")?.string()? {
            "extract" => {
                let [what] = parameters.tuple()?;
                self.extract(&what, None, assembler)
            }
            "extract_VL" => {
                let [what, length] = parameters.tuple()?;
                let length_value = scope.data(&length)?;
                let bits = assembler.word(&length_value, &length)?;
                self.extract(&what, Some(bits), assembler)
            }
            "set" => {
                let [to, from] = parameters.tuple()?;
                self.set(&to, &from, assembler)
            }
            "verify" => {
                let [condition_node, error] = parameters.tuple()?;
                let condition = scope.logic(&condition_node)?;
                let condition = assembler.logic(&condition, &condition_node)?;
                let skip = assembler.here();
                assembler.emit(Op::JumpIfNonZero {
                    condition,
                    target: 0,
                });
                let error_value = scope.data(&error)?;
                let error = assembler.word(&error_value, &error)?;
                assembler.emit(Op::Raise { error });
                let end = assembler.here();
                assembler.set_jump(skip, end);
                Ok(())
            }
            "advance" => {
                let [distance] = parameters.tuple()?;
                let value = scope.data(&distance)?;
                let bits = assembler.word(&value, &distance)?;
                assembler.emit(Op::Advance { bits });
                Ok(())
            }
            "shift" => {
                let [distance] = parameters.tuple()?;
                let bits = distance.count(LOOKAHEAD_BITS_MAX / 8)? as u64 * 8;
                let bits = assembler.constant(&[bits]);
                assembler.emit(Op::Advance { bits });
                Ok(())
            }
            "primitive" => {
                let [primitive] = parameters.tuple()?;
                let name = primitive.member("op")?.string()?;
                self.objects
                    .primitive(assembler, &primitive, name, &primitive.list("parameters")?)
            }
            name => Err(node.member("op")?.unsupported(
                format!("parser operation \"{name}\""),
                "extract, extract_VL, set, verify, advance, shift, primitive",
            )),
        }
    }

    fn extract(
        &self,
        what: &Node<'_>,
        bits: Option<Slot>,
        assembler: &mut Assembler<'_>,
    ) -> Result<(), ProgramError> {
        let layout = self.objects.scope.layout;
        let value = what.member("value")?;
        let kind = self.extracted_kind(what, &value)?;
        let variable = layout.types[kind as usize].varbit.is_some();
        let bits = match (bits, &layout.types[kind as usize].length) {
            (None, Some(length)) if variable => {
                Some(self.own_length(kind, &length.node(), assembler)?)
            }
            _ => bits,
        };
        if variable != bits.is_some() {
            return Err(value.invalid(if variable {
                "a header without a variable field; extract_VL extracts those that have one, and \
                 extract where the header type has a length_exp"
            } else {
                "a header with a variable field; extract extracts those without"
            }));
        }
        assembler.emit(match (what.type_name()?, bits) {
            ("regular", None) => Op::Extract {
                header: layout.header(&value)?,
            },
            ("regular", Some(bits)) => Op::ExtractVarbit {
                header: layout.header(&value)?,
                bits,
            },
            ("stack", None) => Op::ExtractNext {
                stack: layout.stack(&value)?,
            },
            ("stack", Some(bits)) => Op::ExtractVarbitNext {
                stack: layout.stack(&value)?,
                bits,
            },
            (_, bits) => {
                let [stack, member] = value.tuple()?;
                let (stack, member) = layout.union_stack_member(&stack, &member)?;
                match bits {
                    None => Op::ExtractUnionNext { stack, member },
                    Some(bits) => Op::ExtractVarbitUnionNext {
                        stack,
                        member,
                        bits,
                    },
                }
            }
        });
        Ok(())
    }

    /// The type of what is extracted.
    fn extracted_kind(&self, what: &Node<'_>, value: &Node<'_>) -> Result<u32, ProgramError> {
        let layout = self.objects.scope.layout;
        match what.type_name()? {
            "regular" => {
                let header = layout.header(value)?;
                if layout.headers[header as usize].metadata {
                    return Err(value.invalid("a header that is not metadata"));
                }
                Ok(layout.headers[header as usize].kind)
            }
            "stack" => Ok(layout.stacks[layout.stack(value)? as usize].kind),
            "union_stack" => {
                let [stack, member] = value.tuple()?;
                let (stack, member) = layout.union_stack_member(&stack, &member)?;
                let unions = &layout.union_stacks[stack as usize].unions;
                let Some(&first) = unions.first() else {
                    return Err(value.invalid("a stack with at least one header union"));
                };
                let header = layout.unions[first as usize].headers[member as usize];
                Ok(layout.headers[header as usize].kind)
            }
            name => Err(what.member("type")?.unsupported(
                format!("extracting into \"{name}\""),
                "regular, stack, union_stack",
            )),
        }
    }

    /// A word with the bits of a variable field, which fields before it tell (P4-14). The
    /// header is not there yet, so they are read ahead.
    fn own_length(
        &self,
        kind: u32,
        length: &Node<'_>,
        assembler: &mut Assembler<'_>,
    ) -> Result<Slot, ProgramError> {
        let scope = &self.objects.scope;
        let kind = &scope.layout.types[kind as usize];
        let before = &kind.fields[..kind.varbit.unwrap_or_default()];
        let mut locals = vec![(assembler.code.zero, 0); before.len()];
        for local in length.all_of_type("local") {
            let value = local.member("value")?;
            let position = value.integer()?;
            let known = usize::try_from(position).ok();
            let Some((position, field)) = known.and_then(|at| Some((at, before.get(at)?))) else {
                return Err(value.invalid(format!(
                    "the index of one of the {} fields before the variable field",
                    before.len()
                )));
            };
            let offset = before[..position].iter().map(|field| field.width).sum();
            let slot = self.look_ahead(offset, field.width, assembler, &value)?;
            locals[position] = (slot, field.width);
        }
        let scope = Scope {
            layout: scope.layout,
            arguments: &locals,
            registers: scope.registers,
        };
        assembler.word(&scope.data(length)?, length)
    }

    fn set(
        &self,
        to: &Node<'_>,
        from: &Node<'_>,
        assembler: &mut Assembler<'_>,
    ) -> Result<(), ProgramError> {
        let scope = &self.objects.scope;
        let target = match scope.value(to)? {
            Value::Data(data) => data,
            Value::Varbit(to) => {
                let Value::Varbit(from) = scope.value(from)? else {
                    return Err(from.invalid("a variable field"));
                };
                assembler.move_words(to, from, 2);
                return Ok(());
            }
            _ => return Err(to.invalid("a field")),
        };
        let target = assembler.target(&target, to)?;
        if from.type_name()? == "lookahead" {
            let (slot, width) = self.lookahead(&from.member("value")?, assembler)?;
            let value = super::assemble::Operand {
                slot,
                limbs: width.div_ceil(64).max(1),
                range: super::range::Range::unsigned(width),
            };
            return assembler.store(&target, value, from);
        }
        let value = scope.data(from)?;
        assembler.assign(&target, &value, from)
    }

    fn lookahead(
        &self,
        value: &Node<'_>,
        assembler: &mut Assembler<'_>,
    ) -> Result<(Slot, u32), ProgramError> {
        let [offset, width] = value.tuple()?;
        let offset = offset.count(LOOKAHEAD_BITS_MAX)? as u32;
        let width = width.count(LOOKAHEAD_BITS_MAX)? as u32;
        Ok((self.look_ahead(offset, width, assembler, value)?, width))
    }

    fn look_ahead(
        &self,
        offset: u32,
        width: u32,
        assembler: &mut Assembler<'_>,
        at: &Node<'_>,
    ) -> Result<Slot, ProgramError> {
        let to = assembler.temporary(width.div_ceil(64).max(1), at)?;
        let index = assembler.code.lookaheads.len() as u32;
        assembler.code.lookaheads.push(Lookahead { offset, width });
        assembler.emit(Op::Lookahead { to, index });
        Ok(to)
    }

    fn key_part(
        &self,
        node: &Node<'_>,
        assembler: &mut Assembler<'_>,
    ) -> Result<KeyPart, ProgramError> {
        let value = node.member("value")?;
        match node.type_name()? {
            "field" => {
                let field = self.objects.scope.layout.field(&value)?;
                if field.varbit.is_some() {
                    return Err(value
                        .unsupported("a variable field in a select key", "fields of fixed width"));
                }
                Ok(KeyPart {
                    slot: field.slot,
                    width: field.width,
                })
            }
            "lookahead" => {
                let (slot, width) = self.lookahead(&value, assembler)?;
                Ok(KeyPart { slot, width })
            }
            "stack_field" => {
                let [stack_node, field_node] = value.tuple()?;
                let layout = self.objects.scope.layout;
                let stack = layout.stack(&stack_node)?;
                let field = self.objects.scope.stack_field(stack, &field_node)?;
                let kind = &layout.types[layout.stacks[stack as usize].kind as usize];
                let width = kind.fields[field as usize].width;
                let operand =
                    assembler.data(&Data::LastField { stack, field }, Some(width), node)?;
                // A signed field comes out extended; the key compares its bits alone.
                let slot = assembler.temporary(width.div_ceil(64).max(1), node)?;
                assembler.store_words(slot, width, operand, node)?;
                Ok(KeyPart { slot, width })
            }
            "union_stack_field" => self.last_union_field(&value, assembler),
            name => Err(node.member("type")?.unsupported(
                format!("a select key of type \"{name}\""),
                "field, stack_field, union_stack_field, lookahead",
            )),
        }
    }

    /// A field of the last union of a stack, as `["stack", "member", "field"]`.
    fn last_union_field(
        &self,
        value: &Node<'_>,
        assembler: &mut Assembler<'_>,
    ) -> Result<KeyPart, ProgramError> {
        let layout = self.objects.scope.layout;
        let [stack_node, member, field_node] = value.tuple()?;
        let (stack, member) = layout.union_stack_member(&stack_node, &member)?;
        let Some(&union) = layout.union_stacks[stack as usize].unions.first() else {
            return Err(stack_node.invalid("a stack with at least one header union"));
        };
        let header = layout.unions[union as usize].headers[member as usize];
        let kind = &layout.types[layout.headers[header as usize].kind as usize];
        let name = field_node.string()?;
        let mut fields = kind.fields.iter().filter(|field| !field.varbit);
        let Some(field) = fields.find(|field| field.name == name) else {
            let names = kind.fields.iter().map(|field| field.name.as_str());
            return Err(field_node.unknown("field", name, names));
        };
        let access = assembler.code.union_fields.len() as u32;
        assembler.code.union_fields.push(UnionField {
            stack,
            member,
            offset: field.offset,
            limbs: field.limbs,
        });
        let slot = assembler.temporary(field.limbs, value)?;
        assembler.emit(Op::LoadLastUnion { to: slot, access });
        Ok(KeyPart {
            slot,
            width: field.width,
        })
    }

    fn transition(&self, node: &Node<'_>, state: &mut State) -> Result<(), ProgramError> {
        let next = self.state_named(node.optional("next_state")?)?;
        let kind = match node.optional("type")? {
            Some(kind) => kind.string()?,
            None => "hexstr",
        };
        match kind {
            "default" => state.default = next,
            "hexstr" => {
                let value = node.member("value")?;
                if value.string()? == "default" {
                    state.default = next;
                    return Ok(());
                }
                let mask = match node.optional("mask")? {
                    Some(mask) => key_words(&mask, &state.key)?,
                    None => ones_words(&state.key),
                };
                let mut value = key_words(&value, &state.key)?;
                for (value, mask) in value.iter_mut().zip(&mask) {
                    *value &= mask;
                }
                state.cases.push((Case::Value { value, mask }, next));
            }
            "parse_vset" => {
                let name_node = node.member("value")?;
                let name = name_node.string()?;
                let Some(set) = self.value_sets.iter().position(|set| set.name == name) else {
                    let names = self.value_sets.iter().map(|set| set.name.as_str());
                    return Err(name_node.unknown("parser value set", name, names));
                };
                let width: u32 = state.key.iter().map(|part| part.width).sum();
                if width != self.value_sets[set].width_bits {
                    return Err(name_node.invalid(format!("a value set of {width} bits")));
                }
                let mask = match node.optional("mask")? {
                    Some(mask) => Some(key_words(&mask, &state.key)?),
                    None => None,
                };
                let set = set as u32;
                state.cases.push((Case::Set { set, mask }, next));
            }
            name => {
                return Err(node.member("type")?.unsupported(
                    format!("a transition of type \"{name}\""),
                    "default, hexstr, parse_vset",
                ));
            }
        }
        Ok(())
    }
}

/// Words of a key value: each part is written in whole bytes, one after another.
fn key_words(node: &Node<'_>, key: &[KeyPart]) -> Result<Vec<u64>, ProgramError> {
    let bytes = node.hex_bytes()?;
    let expected: usize = key.iter().map(|part| part.width.div_ceil(8) as usize).sum();
    if bytes.len() != expected {
        return Err(node.invalid(format!("{expected} bytes, the size of the select key")));
    }
    let mut words = Vec::new();
    let mut rest = bytes.as_slice();
    for part in key {
        let (part_bytes, after) = rest.split_at(part.width.div_ceil(8) as usize);
        rest = after;
        let mut limbs = vec![0u64; part.width.div_ceil(64).max(1) as usize];
        for (position, &byte) in part_bytes.iter().rev().enumerate() {
            limbs[position / 8] |= u64::from(byte) << (position % 8 * 8);
        }
        words.extend(limbs);
    }
    Ok(words)
}

fn ones_words(key: &[KeyPart]) -> Vec<u64> {
    key.iter()
        .flat_map(|part| vec![u64::MAX; part.width.div_ceil(64).max(1) as usize])
        .collect()
}
