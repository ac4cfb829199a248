//! Which instructions are left to the interpreter.

use wormcast_switch_program::Program;
use wormcast_switch_program::code::{Op, WideKind, WideOp};

/// Whether an instruction is left to the interpreter: rare or long ones.
pub(super) fn is_interpreted(program: &Program, op: Op) -> bool {
    match op {
        Op::Wide { index } => !is_short(&program.code.wide[index as usize]),
        Op::ExtractNext { stack } | Op::ExtractVarbitNext { stack, .. } => {
            let stack = &program.layout.stacks[stack as usize];
            let mut elements = stack.first_header..stack.first_header + stack.size;
            elements.any(|header| program.layout.headers[header as usize].union.is_some())
        }
        Op::FindHeader { .. }
        | Op::MakeValidAt { .. }
        | Op::MakeInvalidAt { .. }
        | Op::CopyHeaderAt { .. }
        | Op::ValidAt { .. }
        | Op::EqualHeaders { .. }
        | Op::EqualVarbits { .. }
        | Op::CopyStack { .. }
        | Op::Push { .. }
        | Op::Pop { .. }
        | Op::LoadLastUnion { .. }
        | Op::CopyUnions { .. }
        | Op::PushUnions { .. }
        | Op::PopUnions { .. }
        | Op::ReadRegister { .. }
        | Op::WriteRegister { .. }
        | Op::ExecuteMeter { .. }
        | Op::Hash { .. }
        | Op::Random { .. }
        | Op::Clone { .. }
        | Op::Resubmit { .. }
        | Op::Recirculate { .. }
        | Op::Digest { .. }
        | Op::Truncate { .. }
        | Op::ExtractUnionNext { .. }
        | Op::ExtractVarbitUnionNext { .. } => true,
        _ => false,
    }
}

/// Most words of an operand; longer ones are left to the interpreter.
const LIMBS_MAX: u32 = 4;

/// Whether an operation becomes machine code.
fn is_short(wide: &WideOp) -> bool {
    match wide.kind {
        WideKind::Extend | WideKind::ExtendSigned => wide.limbs.max(wide.extra) <= LIMBS_MAX,
        WideKind::ShiftLeft | WideKind::ShiftRight => wide.limbs == 2,
        WideKind::And
        | WideKind::Or
        | WideKind::Xor
        | WideKind::Not
        | WideKind::Add
        | WideKind::Subtract
        | WideKind::Equal
        | WideKind::Less
        | WideKind::LessSigned
        | WideKind::SignExtend
        | WideKind::Mask => wide.limbs <= LIMBS_MAX,
        WideKind::ShiftRightSigned
        | WideKind::Multiply
        | WideKind::Divide
        | WideKind::Modulo
        | WideKind::ClampUnsigned
        | WideKind::ClampSigned => false,
    }
}
