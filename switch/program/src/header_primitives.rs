//! Primitives of actions that are about whole headers, or drop the packet.

use crate::assemble::{Assembler, Operand};
use crate::code::Op;
use crate::error::ProgramError;
use crate::expression::{Data, HeaderRef, Value};
use crate::json::Node;
use crate::primitive::Objects;
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
        let to = &layout.unions[to as usize].headers;
        let from = &layout.unions[from as usize].headers;
        let kinds = |headers: &[u32]| -> Vec<u32> {
            headers
                .iter()
                .map(|&header| layout.headers[header as usize].kind)
                .collect()
        };
        if kinds(to) != kinds(from) {
            return Err(from_node.invalid("a header union of the same type"));
        }
        for (&to, &from) in to.iter().zip(from) {
            assembler.emit(Op::CopyHeader { to, from });
        }
        Ok(())
    }
}
