//! Expressions of the JSON as typed trees.
//!
//! BMv2 computes with integers of unbounded size and cuts a value only when it is
//! assigned (JSON format, "General information"). Each tree therefore knows bounds of its
//! value, so that the compiler can choose a width at which nothing is lost.

use super::error::ProgramError;
use super::json::Node;
use super::layout::{Layout, Slot};

/// Bounds of an integer: at least `-2^negative` (0 where there is none) and below
/// `2^positive`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) negative: Option<u32>,
    pub(super) positive: u32,
}

/// Bits past which a bound counts as unknown.
pub(super) const UNBOUNDED: u32 = 1 << 20;

impl Range {
    pub(super) fn unsigned(width: u32) -> Self {
        Self {
            negative: None,
            positive: width,
        }
    }

    pub(super) fn signed(width: u32) -> Self {
        let bits = width.saturating_sub(1);
        Self {
            negative: Some(bits),
            positive: bits,
        }
    }

    pub(super) fn of_field(width: u32, signed: bool) -> Self {
        if signed {
            Self::signed(width)
        } else {
            Self::unsigned(width)
        }
    }

    pub(super) fn may_be_negative(self) -> bool {
        self.negative.is_some()
    }

    /// Bits of the magnitude.
    pub(super) fn bits(self) -> u32 {
        self.positive.max(self.negative.unwrap_or(0))
    }

    /// Words that hold every value, in two's complement if one may be negative.
    pub(super) fn limbs(self) -> u32 {
        let bits = match self.negative {
            None => self.positive,
            Some(_) => self.bits() + 1,
        };
        bits.div_ceil(64).max(1)
    }

    pub(super) fn union(self, other: Range) -> Range {
        let negative = match (self.negative, other.negative) {
            (None, None) => None,
            (a, b) => Some(a.unwrap_or(0).max(b.unwrap_or(0))),
        };
        Range {
            negative,
            positive: self.positive.max(other.positive),
        }
    }
}

/// A constant: two's complement words and its bounds.
#[derive(Clone, Debug)]
pub(super) struct Constant {
    pub(super) limbs: Vec<u64>,
    pub(super) range: Range,
}

impl Constant {
    pub(super) fn unsigned(value: u64) -> Self {
        Self {
            limbs: vec![value],
            range: Range::unsigned(64 - value.leading_zeros()),
        }
    }

    fn read(node: &Node<'_>) -> Result<Self, ProgramError> {
        let (bytes, negative) = node.signed_hex()?;
        let mut limbs = vec![0u64; bytes.len().div_ceil(8) + 1];
        for (position, &byte) in bytes.iter().rev().enumerate() {
            limbs[position / 8] |= u64::from(byte) << (position % 8 * 8);
        }
        let width: u32 = limbs
            .iter()
            .enumerate()
            .rev()
            .find(|(_, limb)| **limb != 0)
            .map_or(0, |(index, limb)| index as u32 * 64 + 64 - limb.leading_zeros());
        let range = if negative && width > 0 {
            let mut carry = true;
            for limb in &mut limbs {
                let (value, overflow) = (!*limb).overflowing_add(u64::from(carry));
                *limb = value;
                carry = overflow;
            }
            Range {
                negative: Some(width),
                positive: 0,
            }
        } else {
            Range::unsigned(width)
        };
        limbs.truncate(range.limbs() as usize);
        Ok(Self { limbs, range })
    }

    /// The value if it is not negative and has at most 32 bits.
    pub(super) fn to_u32(&self) -> Option<u32> {
        if self.range.may_be_negative() || self.range.positive > 32 {
            None
        } else {
            u32::try_from(self.limbs[0]).ok()
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BinaryKind {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    And,
    Or,
    Xor,
    ShiftLeft,
    ShiftRight,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
}

/// An integer.
#[derive(Clone, Debug)]
pub(super) enum Data {
    Slot {
        slot: Slot,
        range: Range,
        /// Sign bit of a signed field, which is stored without extension.
        signed_bits: Option<u32>,
    },
    Constant(Constant),
    Binary {
        kind: BinaryKind,
        left: Box<Data>,
        right: Box<Data>,
    },
    Not(Box<Data>),
    Choose {
        condition: Box<Logic>,
        left: Box<Data>,
        right: Box<Data>,
    },
    FromLogic(Box<Logic>),
    SignedModulo {
        value: Box<Data>,
        bits: u32,
    },
    Clamp {
        value: Box<Data>,
        bits: u32,
        signed: bool,
    },
    StackField {
        stack: u32,
        index: Box<Data>,
        field: u32,
    },
    LastField {
        stack: u32,
        field: u32,
    },
    LastIndex(u32),
    Fill(u32),
    Register {
        register: u32,
        width: u32,
        index: Box<Data>,
    },
}

/// A truth value.
#[derive(Clone, Debug)]
pub(super) enum Logic {
    Constant(bool),
    Compare {
        kind: Comparison,
        left: Box<Data>,
        right: Box<Data>,
    },
    Same {
        equal: bool,
        left: Box<Logic>,
        right: Box<Logic>,
    },
    SameHeader {
        equal: bool,
        left: HeaderRef,
        right: HeaderRef,
    },
    SameVarbit {
        equal: bool,
        left: Slot,
        right: Slot,
    },
    And(Box<Logic>, Box<Logic>),
    Or(Box<Logic>, Box<Logic>),
    Not(Box<Logic>),
    NonZero(Box<Data>),
    Valid(HeaderRef),
    ValidUnion(u32),
    Choose {
        condition: Box<Logic>,
        left: Box<Logic>,
        right: Box<Logic>,
    },
}

/// A header.
#[derive(Clone, Debug)]
pub(super) enum HeaderRef {
    Fixed(u32),
    Element { stack: u32, index: Box<Data> },
}

impl HeaderRef {
    /// Index of the header's type.
    pub(super) fn kind(&self, layout: &Layout) -> u32 {
        match self {
            HeaderRef::Fixed(header) => layout.headers[*header as usize].kind,
            HeaderRef::Element { stack, .. } => layout.stacks[*stack as usize].kind,
        }
    }
}

/// The value of an expression or of a parameter of a primitive.
#[derive(Clone, Debug)]
pub(super) enum Value {
    Data(Data),
    Logic(Logic),
    Header(HeaderRef),
    Stack(u32),
    Union(u32),
    /// A variable field: its two words.
    Varbit(Slot),
}

/// What names in an expression refer to.
pub(super) struct Scope<'s> {
    pub(super) layout: &'s Layout,
    /// First word and width of each argument of the action.
    pub(super) arguments: &'s [(Slot, u32)],
    pub(super) registers: &'s [super::description::RegisterInfo],
}

impl Scope<'_> {
    /// Reads a type-value object.
    pub(super) fn value(&self, node: &Node<'_>) -> Result<Value, ProgramError> {
        let kind = node.type_name()?;
        let value = node.member("value")?;
        Ok(match kind {
            "expression" => {
                // p4c wraps expressions in expressions.
                if value.optional("op")?.is_some() {
                    self.operation(&value)?
                } else {
                    self.value(&value)?
                }
            }
            "field" => self.field(&value)?,
            "hexstr" => Value::Data(Data::Constant(Constant::read(&value)?)),
            "bool" => Value::Logic(Logic::Constant(value.boolean()?)),
            "local" | "runtime_data" => Value::Data(self.argument(&value)?),
            "header" => Value::Header(HeaderRef::Fixed(self.layout.header(&value)?)),
            "header_stack" => Value::Stack(self.layout.stack(&value)?),
            "header_union" => Value::Union(self.layout.union(&value)?),
            "stack_field" => {
                let [stack, field] = value.tuple()?;
                let stack = self.layout.stack(&stack)?;
                Value::Data(Data::LastField {
                    stack,
                    field: self.stack_field(stack, &field)?,
                })
            }
            "register" => {
                let [register, index] = value.tuple()?;
                let (register, width) = self.register(&register)?;
                Value::Data(Data::Register {
                    register,
                    width,
                    index: Box::new(self.data(&index)?),
                })
            }
            _ => {
                return Err(node.member("type")?.unsupported(
                    format!("an operand of type \"{kind}\""),
                    "expression, field, hexstr, bool, local, runtime_data, header, header_stack, \
                     header_union, stack_field, register",
                ));
            }
        })
    }

    fn field(&self, node: &Node<'_>) -> Result<Value, ProgramError> {
        let field = self.layout.field(node)?;
        if let Some(varbit) = field.varbit {
            return Ok(Value::Varbit(varbit));
        }
        Ok(Value::Data(Data::Slot {
            slot: field.slot,
            range: Range::of_field(field.width, field.signed),
            signed_bits: field.signed.then_some(field.width),
        }))
    }

    fn argument(&self, node: &Node<'_>) -> Result<Data, ProgramError> {
        let index = node.integer()?;
        let argument = usize::try_from(index)
            .ok()
            .and_then(|index| self.arguments.get(index));
        match argument {
            Some(&(slot, width)) => Ok(Data::Slot {
                slot,
                range: Range::unsigned(width),
                signed_bits: None,
            }),
            None => Err(node.invalid(format!(
                "the index of one of the {} parameters of the action",
                self.arguments.len()
            ))),
        }
    }

    pub(super) fn stack_field(&self, stack: u32, node: &Node<'_>) -> Result<u32, ProgramError> {
        let kind = &self.layout.types[self.layout.stacks[stack as usize].kind as usize];
        let name = node.string()?;
        let index = kind
            .fields
            .iter()
            .position(|field| field.name == name && !field.varbit);
        index.map(|index| index as u32).ok_or_else(|| {
            node.unknown(
                "field",
                name,
                kind.fields.iter().map(|field| field.name.as_str()),
            )
        })
    }

    fn register(&self, node: &Node<'_>) -> Result<(u32, u32), ProgramError> {
        let name = node.string()?;
        self.registers
            .iter()
            .position(|register| register.name == name)
            .map(|index| (index as u32, self.registers[index].width_bits))
            .ok_or_else(|| {
                node.unknown(
                    "register array",
                    name,
                    self.registers.iter().map(|register| register.name.as_str()),
                )
            })
    }

    /// Reads a type-value object that must be an integer. A truth value counts as 0 or 1
    /// where p4c leaves the conversion out.
    pub(super) fn data(&self, node: &Node<'_>) -> Result<Data, ProgramError> {
        match self.value(node)? {
            Value::Data(data) => Ok(data),
            Value::Logic(logic) => Ok(Data::FromLogic(Box::new(logic))),
            _ => Err(node.invalid("an operand that is an integer")),
        }
    }

    /// Reads a type-value object that must be a truth value.
    pub(super) fn logic(&self, node: &Node<'_>) -> Result<Logic, ProgramError> {
        match self.value(node)? {
            Value::Logic(logic) => Ok(logic),
            Value::Data(data) => Ok(Logic::NonZero(Box::new(data))),
            _ => Err(node.invalid("an operand that is a truth value")),
        }
    }

    pub(super) fn header(&self, node: &Node<'_>) -> Result<HeaderRef, ProgramError> {
        match self.value(node)? {
            Value::Header(header) => Ok(header),
            _ => Err(node.invalid("an operand that is a header")),
        }
    }

    pub(super) fn stack(&self, node: &Node<'_>) -> Result<u32, ProgramError> {
        match self.value(node)? {
            Value::Stack(stack) => Ok(stack),
            _ => Err(node.invalid("an operand that is a header stack")),
        }
    }

    fn width_operand(&self, node: &Node<'_>, low: u32) -> Result<u32, ProgramError> {
        match self.data(node)? {
            Data::Constant(constant) => match constant.to_u32() {
                Some(bits) if (low..=super::layout::FIELD_BITS_MAX as u32).contains(&bits) => {
                    Ok(bits)
                }
                _ => Err(node.member("value")?.invalid(format!(
                    "a width from {low} to {}",
                    super::layout::FIELD_BITS_MAX
                ))),
            },
            _ => Err(node.invalid("a width that is a constant")),
        }
    }

    fn operation(&self, node: &Node<'_>) -> Result<Value, ProgramError> {
        let name_node = node.member("op")?;
        let name = name_node.string()?;
        let left = || node.member("left");
        let right = || node.member("right");
        let binary = |kind| -> Result<Value, ProgramError> {
            Ok(Value::Data(Data::Binary {
                kind,
                left: Box::new(self.data(&left()?)?),
                right: Box::new(self.data(&right()?)?),
            }))
        };
        let compare = |kind| -> Result<Value, ProgramError> {
            Ok(Value::Logic(Logic::Compare {
                kind,
                left: Box::new(self.data(&left()?)?),
                right: Box::new(self.data(&right()?)?),
            }))
        };
        Ok(match name {
            "+" | "-" => {
                let kind = if name == "+" {
                    BinaryKind::Add
                } else {
                    BinaryKind::Subtract
                };
                // A unary sign has no left side; BMv2 takes 0.
                let left = match node.optional("left")? {
                    Some(left) => self.data(&left)?,
                    None => Data::Constant(Constant::unsigned(0)),
                };
                Value::Data(Data::Binary {
                    kind,
                    left: Box::new(left),
                    right: Box::new(self.data(&right()?)?),
                })
            }
            "*" => binary(BinaryKind::Multiply)?,
            "/" => binary(BinaryKind::Divide)?,
            "%" => binary(BinaryKind::Modulo)?,
            "&" => binary(BinaryKind::And)?,
            "|" => binary(BinaryKind::Or)?,
            "^" => binary(BinaryKind::Xor)?,
            "<<" => binary(BinaryKind::ShiftLeft)?,
            ">>" => binary(BinaryKind::ShiftRight)?,
            "~" => Value::Data(Data::Not(Box::new(self.data(&right()?)?))),
            "<" => compare(Comparison::Less)?,
            "<=" => compare(Comparison::LessEqual)?,
            ">" => compare(Comparison::Greater)?,
            ">=" => compare(Comparison::GreaterEqual)?,
            "==" => self.equality(node, true)?,
            "!=" => self.equality(node, false)?,
            "and" => Value::Logic(Logic::And(
                Box::new(self.logic(&left()?)?),
                Box::new(self.logic(&right()?)?),
            )),
            "or" => Value::Logic(Logic::Or(
                Box::new(self.logic(&left()?)?),
                Box::new(self.logic(&right()?)?),
            )),
            "not" => Value::Logic(Logic::Not(Box::new(self.logic(&right()?)?))),
            "d2b" => Value::Logic(Logic::NonZero(Box::new(self.data(&right()?)?))),
            "b2d" => Value::Data(Data::FromLogic(Box::new(self.logic(&right()?)?))),
            "valid" => Value::Logic(Logic::Valid(self.header(&right()?)?)),
            "valid_union" => match self.value(&right()?)? {
                Value::Union(union) => Value::Logic(Logic::ValidUnion(union)),
                _ => return Err(right()?.invalid("a header union")),
            },
            "?" => self.choice(node)?,
            "two_comp_mod" => Value::Data(Data::SignedModulo {
                value: Box::new(self.data(&left()?)?),
                bits: self.width_operand(&right()?, 1)?,
            }),
            "usat_cast" | "sat_cast" => Value::Data(Data::Clamp {
                value: Box::new(self.data(&left()?)?),
                bits: self.width_operand(&right()?, 1)?,
                signed: name == "sat_cast",
            }),
            "dereference_header_stack" | "dereference_stack" => {
                let stack = self.stack(&left()?)?;
                let index = self.data(&right()?)?;
                Value::Header(self.element(stack, index))
            }
            "last_stack_index" => Value::Data(Data::LastIndex(self.stack(&right()?)?)),
            "size_stack" => Value::Data(Data::Fill(self.stack(&right()?)?)),
            "access_field" => self.access_field(&left()?, &right()?)?,
            _ => {
                return Err(name_node.unsupported(
                    format!("operation \"{name}\""),
                    "+ - * / % & | ^ ~ << >> == != < <= > >= and or not ? d2b b2d valid \
                     valid_union two_comp_mod usat_cast sat_cast dereference_header_stack \
                     last_stack_index size_stack access_field",
                ));
            }
        })
    }

    /// A stack element; a constant index inside the stack names its header at once.
    fn element(&self, stack: u32, index: Data) -> HeaderRef {
        let layout = &self.layout.stacks[stack as usize];
        if let Data::Constant(constant) = &index
            && let Some(position) = constant.to_u32()
            && position < layout.size
        {
            return HeaderRef::Fixed(layout.first_header + position);
        }
        HeaderRef::Element {
            stack,
            index: Box::new(index),
        }
    }

    fn access_field(&self, left: &Node<'_>, right: &Node<'_>) -> Result<Value, ProgramError> {
        let header = self.header(left)?;
        let kind = &self.layout.types[header.kind(self.layout) as usize];
        let position = right.count(usize::MAX >> 1)?;
        // The hidden validity field follows the last one.
        let valid = position == kind.fields.len();
        if position > kind.fields.len() {
            return Err(right.invalid(format!("a field offset from 0 to {}", kind.fields.len())));
        }
        if valid {
            return Ok(Value::Data(Data::FromLogic(Box::new(Logic::Valid(header)))));
        }
        let field = &kind.fields[position];
        match header {
            HeaderRef::Fixed(header) => {
                let instance = &self.layout.headers[header as usize];
                if field.varbit {
                    return Ok(Value::Varbit(instance.varbit.unwrap_or_default()));
                }
                Ok(Value::Data(Data::Slot {
                    slot: instance.base + field.offset,
                    range: Range::of_field(field.width, field.signed),
                    signed_bits: field.signed.then_some(field.width),
                }))
            }
            HeaderRef::Element { stack, index } => {
                if field.varbit {
                    return Err(right.unsupported(
                        "a variable field of a stack element chosen at run time",
                        "fields of fixed width",
                    ));
                }
                Ok(Value::Data(Data::StackField {
                    stack,
                    index,
                    field: position as u32,
                }))
            }
        }
    }

    fn equality(&self, node: &Node<'_>, equal: bool) -> Result<Value, ProgramError> {
        let right = node.member("right")?;
        let logic = match (self.value(&node.member("left")?)?, self.value(&right)?) {
            (Value::Data(left), Value::Data(right)) => Logic::Compare {
                kind: if equal {
                    Comparison::Equal
                } else {
                    Comparison::NotEqual
                },
                left: Box::new(left),
                right: Box::new(right),
            },
            (Value::Logic(left), Value::Logic(right)) => Logic::Same {
                equal,
                left: Box::new(left),
                right: Box::new(right),
            },
            (Value::Varbit(left), Value::Varbit(right)) => Logic::SameVarbit { equal, left, right },
            (Value::Header(left), Value::Header(right)) => Logic::SameHeader { equal, left, right },
            _ => return Err(right.invalid("two integers, two truth values or two headers")),
        };
        Ok(Value::Logic(logic))
    }

    fn choice(&self, node: &Node<'_>) -> Result<Value, ProgramError> {
        let condition = Box::new(self.logic(&node.member("cond")?)?);
        let right = node.member("right")?;
        Ok(
            match (self.value(&node.member("left")?)?, self.value(&right)?) {
                (Value::Data(left), Value::Data(right)) => Value::Data(Data::Choose {
                    condition,
                    left: Box::new(left),
                    right: Box::new(right),
                }),
                (Value::Logic(left), Value::Logic(right)) => Value::Logic(Logic::Choose {
                    condition,
                    left: Box::new(left),
                    right: Box::new(right),
                }),
                _ => return Err(right.invalid("two integers or two truth values")),
            },
        )
    }
}

impl Data {
    /// Bounds of the value.
    pub(super) fn range(&self, layout: &Layout) -> Range {
        match self {
            Data::Slot { range, .. } => *range,
            Data::Constant(constant) => constant.range,
            Data::Binary { kind, left, right } => {
                binary_range(*kind, left.range(layout), right, layout)
            }
            Data::Not(value) => {
                let range = value.range(layout);
                Range {
                    negative: Some(range.positive),
                    positive: range.negative.unwrap_or(0),
                }
            }
            Data::Choose { left, right, .. } => left.range(layout).union(right.range(layout)),
            Data::FromLogic(_) => Range::unsigned(1),
            Data::SignedModulo { bits, .. } => Range::signed(*bits),
            Data::Clamp { bits, signed, .. } => Range::of_field(*bits, *signed),
            Data::StackField { stack, field, .. } | Data::LastField { stack, field } => {
                let kind = &layout.types[layout.stacks[*stack as usize].kind as usize];
                let field = &kind.fields[*field as usize];
                Range::of_field(field.width, field.signed)
            }
            Data::LastIndex(_) => Range {
                negative: Some(0),
                positive: 32,
            },
            Data::Fill(_) => Range::unsigned(32),
            Data::Register { width, .. } => Range::unsigned(*width),
        }
    }
}

fn binary_range(kind: BinaryKind, left: Range, right: &Data, layout: &Layout) -> Range {
    let right_range = right.range(layout);
    let grow = |bits: u32, by: u32| bits.saturating_add(by).min(UNBOUNDED);
    match kind {
        BinaryKind::Add => {
            let sum = left.union(right_range);
            Range {
                negative: sum.negative.map(|bits| grow(bits, 1)),
                positive: grow(sum.positive, 1),
            }
        }
        BinaryKind::Subtract => {
            let lowest = match left.negative {
                None => right_range.positive,
                Some(bits) => grow(bits.max(right_range.positive), 1),
            };
            let highest = match right_range.negative {
                None => left.positive,
                Some(bits) => grow(left.positive.max(bits), 1),
            };
            Range {
                negative: Some(lowest),
                positive: highest,
            }
        }
        BinaryKind::Multiply => {
            if !left.may_be_negative() && !right_range.may_be_negative() {
                Range::unsigned(grow(left.positive, right_range.positive))
            } else {
                let bits = grow(left.bits(), right_range.bits());
                Range {
                    negative: Some(bits),
                    positive: grow(bits, 1),
                }
            }
        }
        BinaryKind::Divide => left,
        BinaryKind::Modulo => Range::unsigned(right_range.positive.min(left.positive)),
        BinaryKind::And => match (left.may_be_negative(), right_range.may_be_negative()) {
            (false, false) => Range::unsigned(left.positive.min(right_range.positive)),
            (false, true) => Range::unsigned(left.positive),
            (true, false) => Range::unsigned(right_range.positive),
            (true, true) => left.union(right_range),
        },
        BinaryKind::Or | BinaryKind::Xor => {
            let both = left.union(right_range);
            match both.negative {
                None => both,
                Some(_) => Range {
                    negative: Some(both.bits()),
                    positive: both.bits(),
                },
            }
        }
        BinaryKind::ShiftLeft => {
            let by = match right {
                Data::Constant(constant) => constant.to_u32().unwrap_or(UNBOUNDED),
                _ if right_range.positive < 20 => (1 << right_range.positive) - 1,
                _ => UNBOUNDED,
            };
            Range {
                negative: left.negative.map(|bits| grow(bits, by)),
                positive: grow(left.positive, by),
            }
        }
        BinaryKind::ShiftRight => left,
    }
}
