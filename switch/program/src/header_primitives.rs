//! Primitives of actions that are about whole headers, or drop the packet.

use crate::assemble::{Assembler, Operand};
use crate::code::Op;
use crate::error::ProgramError;
use crate::expression::{Data, HeaderRef, Value};
use crate::json::Node;
use crate::named::Objects;
use crate::range::{Constant, Range};

impl Objects<'_> {
    /// Of the header that it is given: an action with a parameter of type standard_metadata_t
    /// works on a copy.
    pub(super) fn mark_to_drop(
        &self,
        assembler: &mut Assembler<'_>,
        node: &Node<'_>,
        header: &str,
    ) -> Result<(), ProgramError> {
        let layout = self.scope.layout;
        let Some(field) = layout.intrinsic(header, "egress_spec") else {
            return Err(node.invalid("standard metadata, with a field egress_spec"));
        };
        let value = Operand {
            slot: assembler.code.drop_port,
            limbs: 1,
            range: Range::unsigned(64),
        };
        assembler.store(&Assembler::field_target(field), value, node)?;
        let group = match header {
            "standard_metadata" => layout.intrinsic("intrinsic_metadata", "mcast_grp"),
            _ => layout.intrinsic(header, "mcast_grp"),
        };
        if let Some(field) = group {
            let zero = Data::Constant(Constant::unsigned(0));
            assembler.assign(&Assembler::field_target(field), &zero, node)?;
        }
        Ok(())
    }

    pub(super) fn set_validity(
        &self,
        assembler: &mut Assembler<'_>,
        node: &Node<'_>,
        valid: bool,
    ) -> Result<(), ProgramError> {
        match self.scope.header(node)? {
            HeaderRef::Fixed(header) if valid => assembler.emit(Op::MakeValid { header }),
            HeaderRef::Fixed(header) => assembler.emit(Op::MakeInvalid { header }),
            header => {
                let header = assembler.header_number(&header, node)?;
                assembler.emit(if valid {
                    Op::MakeValidAt { header }
                } else {
                    Op::MakeInvalidAt { header }
                });
            }
        }
        Ok(())
    }

    /// Makes a header valid and leaves its fields and the length of the packet as they are.
    pub(super) fn set_valid_alone(
        &self,
        assembler: &mut Assembler<'_>,
        node: &Node<'_>,
    ) -> Result<(), ProgramError> {
        let HeaderRef::Fixed(header) = self.scope.header(node)? else {
            return Err(node.unsupported(
                "add_header_fast of a header that is chosen at run time",
                "constant indices",
            ));
        };
        let headers = &self.scope.layout.headers;
        let header = &headers[header as usize];
        if let Some(union) = header.union {
            let from = assembler.code.zero;
            for &other in &self.scope.layout.unions[union as usize].headers {
                let to = headers[other as usize].base;
                assembler.emit(Op::Move { to, from });
            }
        }
        let from = assembler.constant(&[1]);
        assembler.emit(Op::Move {
            to: header.base,
            from,
        });
        Ok(())
    }

    /// `push` and `pop`.
    pub(super) fn shift(
        &self,
        assembler: &mut Assembler<'_>,
        is_push: bool,
        stack: &Node<'_>,
        count: &Node<'_>,
    ) -> Result<(), ProgramError> {
        let shifted = self.scope.value(stack)?;
        let count = assembler.word(&self.scope.data(count)?, count)?;
        assembler.emit(match (shifted, is_push) {
            (Value::Stack(stack), true) => Op::Push { stack, count },
            (Value::Stack(stack), false) => Op::Pop { stack, count },
            (Value::UnionStack(stack), true) => Op::PushUnions { stack, count },
            (Value::UnionStack(stack), false) => Op::PopUnions { stack, count },
            _ => return Err(stack.invalid("a stack of headers or header unions")),
        });
        Ok(())
    }

    /// `assign_header_stack` and `assign_union_stack`.
    pub(super) fn assign_stack(
        &self,
        assembler: &mut Assembler<'_>,
        to_node: &Node<'_>,
        from_node: &Node<'_>,
    ) -> Result<(), ProgramError> {
        let layout = self.scope.layout;
        let (to, from) = (self.scope.value(to_node)?, self.scope.value(from_node)?);
        let (same, op) = match (to, from) {
            (Value::Stack(to), Value::Stack(from)) => {
                let shape = |stack: u32| {
                    let stack = &layout.stacks[stack as usize];
                    (stack.kind, stack.size)
                };
                (shape(to) == shape(from), Op::CopyStack { to, from })
            }
            (Value::UnionStack(to), Value::UnionStack(from)) => {
                let shape = |stack: u32| {
                    let unions = layout.union_stacks[stack as usize].unions.iter();
                    unions
                        .map(|&union| layout.union_kinds(union))
                        .collect::<Vec<_>>()
                };
                (shape(to) == shape(from), Op::CopyUnions { to, from })
            }
            _ => return Err(from_node.invalid("two stacks of headers, or of header unions")),
        };
        if !same {
            return Err(from_node.invalid("a stack of the same type and size"));
        }
        assembler.emit(op);
        Ok(())
    }

    pub(super) fn assign_header(
        &self,
        assembler: &mut Assembler<'_>,
        to_node: &Node<'_>,
        from_node: &Node<'_>,
    ) -> Result<(), ProgramError> {
        let to = self.scope.header(to_node)?;
        let from = self.scope.header(from_node)?;
        if to.kind(self.scope.layout) != from.kind(self.scope.layout) {
            return Err(from_node.invalid("a header of the same type"));
        }
        if let (HeaderRef::Fixed(to), HeaderRef::Fixed(from)) = (&to, &from) {
            assembler.emit(Op::CopyHeader {
                to: *to,
                from: *from,
            });
            return Ok(());
        }
        let from = assembler.header_number(&from, from_node)?;
        let to = assembler.header_number(&to, to_node)?;
        assembler.emit(Op::CopyHeaderAt { to, from });
        Ok(())
    }

    pub(super) fn assign_union(
        &self,
        assembler: &mut Assembler<'_>,
        to_node: &Node<'_>,
        from_node: &Node<'_>,
    ) -> Result<(), ProgramError> {
        let (Value::Union(to), Value::Union(from)) =
            (self.scope.value(to_node)?, self.scope.value(from_node)?)
        else {
            return Err(from_node.invalid("two header unions"));
        };
        let layout = self.scope.layout;
        if layout.union_kinds(to) != layout.union_kinds(from) {
            return Err(from_node.invalid("a header union of the same type"));
        }
        let to = &layout.unions[to as usize].headers;
        let from = &layout.unions[from as usize].headers;
        for (&to, &from) in to.iter().zip(from) {
            assembler.emit(Op::CopyHeader { to, from });
        }
        Ok(())
    }
}
