//! Primitives of P4-14 that compute: what p4c writes as an assignment.

use super::assemble::Assembler;
use super::error::ProgramError;
use super::expression::{BinaryKind, Data};
use super::json::Node;
use super::named::Objects;

/// What is computed of what, and where it goes.
pub(super) struct Operation<'p, 'a> {
    kind: BinaryKind,
    to: &'p Node<'a>,
    left: &'p Node<'a>,
    right: &'p Node<'a>,
}

/// The operation that a primitive with these parameters stands for, if it is one.
pub(super) fn operation<'p, 'a>(
    name: &str,
    parameters: &'p [Node<'a>],
) -> Option<Operation<'p, 'a>> {
    let (kind, to, left, right) = match (name, parameters) {
        ("add_to_field", [to, right]) => (BinaryKind::Add, to, to, right),
        ("subtract_from_field", [to, right]) => (BinaryKind::Subtract, to, to, right),
        ("add", [to, left, right]) => (BinaryKind::Add, to, left, right),
        ("subtract", [to, left, right]) => (BinaryKind::Subtract, to, left, right),
        ("bit_and", [to, left, right]) => (BinaryKind::And, to, left, right),
        ("bit_or", [to, left, right]) => (BinaryKind::Or, to, left, right),
        ("bit_xor", [to, left, right]) => (BinaryKind::Xor, to, left, right),
        ("shift_left", [to, left, right]) => (BinaryKind::ShiftLeft, to, left, right),
        ("shift_right", [to, left, right]) => (BinaryKind::ShiftRight, to, left, right),
        _ => return None,
    };
    Some(Operation {
        kind,
        to,
        left,
        right,
    })
}

impl Objects<'_> {
    pub(super) fn compute(
        &self,
        assembler: &mut Assembler<'_>,
        operation: Operation<'_, '_>,
    ) -> Result<(), ProgramError> {
        let target = self.scope.data(operation.to)?;
        let target = assembler.target(&target, operation.to)?;
        let value = Data::Binary {
            kind: operation.kind,
            left: Box::new(self.scope.data(operation.left)?),
            right: Box::new(self.scope.data(operation.right)?),
        };
        assembler.assign(&target, &value, operation.right)
    }
}
