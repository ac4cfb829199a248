//! Reads the type-value objects of the JSON as typed expressions.

use super::description::RegisterInfo;
use super::error::ProgramError;
use super::expression::{BinaryKind, Comparison, Data, HeaderRef, Logic, Value};
use super::json::Node;
use super::layout::{Layout, Slot};
use super::range::{Constant, Range};
use super::width::FIELD_BITS_MAX;

/// What names in an expression refer to.
pub(super) struct Scope<'s> {
    pub(super) layout: &'s Layout,
    /// First word and width of each argument of the action.
    pub(super) arguments: &'s [(Slot, u32)],
    pub(super) registers: &'s [RegisterInfo],
}

impl Scope<'_> {
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
            "header_union_stack" => Value::UnionStack(self.layout.union_stack(&value)?),
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
                     header_union, header_union_stack, stack_field, register",
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

    /// The word that holds `nextIndex` of a stack of headers or of unions.
    fn fill(&self, node: &Node<'_>) -> Result<Slot, ProgramError> {
        match self.value(node)? {
            Value::Stack(stack) => Ok(self.layout.stacks[stack as usize].fill),
            Value::UnionStack(stack) => Ok(self.layout.union_stacks[stack as usize].fill),
            _ => Err(node.invalid("an operand that is a stack")),
        }
    }

    /// A union of a stack, which a constant names.
    fn union_element(&self, stack: &Node<'_>, index: &Node<'_>) -> Result<Value, ProgramError> {
        let Value::UnionStack(number) = self.value(stack)? else {
            return Err(stack.invalid("an operand that is a stack of header unions"));
        };
        let unions = &self.layout.union_stacks[number as usize].unions;
        let position = match self.data(index)? {
            Data::Constant(constant) => constant.to_u32().map(|position| position as usize),
            _ => {
                return Err(index.unsupported(
                    "a header union of a stack that is chosen at run time",
                    "constant indices",
                ));
            }
        };
        let union = position.and_then(|position| unions.get(position).copied());
        let most = unions.len().saturating_sub(1);
        union
            .map(Value::Union)
            .ok_or_else(|| index.invalid(format!("an index from 0 to {most}")))
    }

    fn width_operand(&self, node: &Node<'_>, low: u32) -> Result<u32, ProgramError> {
        match self.data(node)? {
            Data::Constant(constant) => match constant.to_u32() {
                Some(bits) if (low..=FIELD_BITS_MAX as u32).contains(&bits) => Ok(bits),
                _ => Err(node
                    .member("value")?
                    .invalid(format!("a width from {low} to {}", FIELD_BITS_MAX))),
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
            "dereference_union_stack" => self.union_element(&left()?, &right()?)?,
            "last_stack_index" => Value::Data(Data::LastIndex(self.fill(&right()?)?)),
            "size_stack" => Value::Data(Data::Fill(self.fill(&right()?)?)),
            "access_field" => self.access_field(&left()?, &right()?)?,
            _ => {
                return Err(name_node.unsupported(
                    format!("operation \"{name}\""),
                    "+ - * / % & | ^ ~ << >> == != < <= > >= and or not ? d2b b2d valid \
                     valid_union two_comp_mod usat_cast sat_cast dereference_header_stack \
                     dereference_union_stack last_stack_index size_stack access_field",
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
            (Value::Union(left), Value::Union(one)) => {
                let same = self.same_union(left, one);
                let same = same.ok_or_else(|| right.invalid("a header union of the same type"))?;
                if equal {
                    same
                } else {
                    Logic::Not(Box::new(same))
                }
            }
            _ => {
                return Err(right.invalid("two integers, truth values, headers or header unions"));
            }
        };
        Ok(Value::Logic(logic))
    }

    /// Whether the same header of two unions is valid, with the same fields; none for unions
    /// of two types.
    fn same_union(&self, left: u32, right: u32) -> Option<Logic> {
        let layout = self.layout;
        if layout.union_kinds(left) != layout.union_kinds(right) {
            return None;
        }
        let headers = |union: u32| layout.unions[union as usize].headers.iter().copied();
        let same = headers(left)
            .zip(headers(right))
            .map(|(left, right)| Logic::SameHeader {
                equal: true,
                left: HeaderRef::Fixed(left),
                right: HeaderRef::Fixed(right),
            });
        let any = same.reduce(|one, other| Logic::Or(Box::new(one), Box::new(other)));
        Some(any.unwrap_or(Logic::Constant(false)))
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
