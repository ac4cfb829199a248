//! Operations on values of a few words, least significant first, to machine code.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value};

use super::lower::Lower;
use wormcast_switch_program::Slot;
use wormcast_switch_program::code::{WideKind, WideOp};

impl Lower<'_, '_> {
    /// An operation that [`super::interpreted::is_interpreted`] does not hold of.
    pub(super) fn lower_wide(&mut self, wide: &WideOp) {
        let limbs = wide.limbs;
        let result = match wide.kind {
            WideKind::Extend | WideKind::ExtendSigned => {
                let mut result = self.read_limbs(wide.a, wide.extra.min(limbs));
                let fill = match (wide.kind, result.last()) {
                    (WideKind::ExtendSigned, Some(_)) if wide.extra <= limbs => {
                        let last = result[result.len() - 1];
                        self.builder.ins().sshr_imm(last, 63)
                    }
                    _ => self.constant(0),
                };
                result.resize(limbs as usize, fill);
                result
            }
            WideKind::Mask => {
                let values = self.read_limbs(wide.a, limbs);
                let fill = self.constant(0);
                self.clear_above(values, wide.extra, fill)
            }
            WideKind::SignExtend => {
                let values = self.read_limbs(wide.a, limbs);
                let bit = wide.extra - 1;
                let shift = i64::from(63 - bit % 64);
                let top = self
                    .builder
                    .ins()
                    .ishl_imm(values[bit as usize / 64], shift);
                let fill = self.builder.ins().sshr_imm(top, 63);
                self.clear_above(values, wide.extra, fill)
            }
            WideKind::Not => {
                let values = self.read_limbs(wide.a, limbs).into_iter();
                values.map(|value| self.builder.ins().bnot(value)).collect()
            }
            WideKind::ShiftLeft | WideKind::ShiftRight => self.shift_pair(wide),
            WideKind::Equal | WideKind::Less | WideKind::LessSigned => {
                let holds = self.compare_wide(wide);
                return self.write(wide.to, holds);
            }
            WideKind::Add | WideKind::Subtract => self.add_wide(wide),
            _ => {
                let a = self.read_limbs(wide.a, limbs);
                let b = self.read_limbs(wide.b, limbs);
                let pairs = a.into_iter().zip(b);
                pairs
                    .map(|(a, b)| match wide.kind {
                        WideKind::And => self.builder.ins().band(a, b),
                        WideKind::Or => self.builder.ins().bor(a, b),
                        _ => self.builder.ins().bxor(a, b),
                    })
                    .collect()
            }
        };
        for (limb, value) in result.into_iter().enumerate() {
            self.write(wide.to + limb as u32, value);
        }
    }

    fn read_limbs(&mut self, slot: Slot, limbs: u32) -> Vec<Value> {
        (0..limbs).map(|limb| self.read(slot + limb)).collect()
    }

    /// Sets all bits from `bit` on to those of `fill`, which are all the same.
    fn clear_above(&mut self, values: Vec<Value>, bit: u32, fill: Value) -> Vec<Value> {
        let values = values.into_iter().enumerate();
        values
            .map(|(limb, value)| {
                let first = limb as u32 * 64;
                if first >= bit {
                    return fill;
                }
                if bit - first >= 64 {
                    return value;
                }
                let mask = (1u64 << (bit - first)) - 1;
                let low = self.mask(value, mask);
                let high = self.mask(fill, !mask);
                self.builder.ins().bor(low, high)
            })
            .collect()
    }

    /// Two words by an amount; one of 128 and more shifts everything out.
    fn shift_pair(&mut self, wide: &WideOp) -> Vec<Value> {
        let (low, high) = (self.read(wide.a), self.read(wide.a + 1));
        let amount = self.read(wide.b);
        let pair = self.builder.ins().iconcat(low, high);
        let shifted = if wide.kind == WideKind::ShiftLeft {
            self.builder.ins().ishl(pair, amount)
        } else {
            self.builder.ins().ushr(pair, amount)
        };
        let (low, high) = self.builder.ins().isplit(shifted);
        let below = IntCC::UnsignedLessThan;
        let within = self.builder.ins().icmp_imm(below, amount, 128);
        let zero = self.constant(0);
        [low, high]
            .map(|value| self.builder.ins().select(within, value, zero))
            .to_vec()
    }

    fn compare_wide(&mut self, wide: &WideOp) -> Value {
        let a = self.read_limbs(wide.a, wide.limbs);
        let b = self.read_limbs(wide.b, wide.limbs);
        if wide.kind == WideKind::Equal {
            let mut differences = self.constant(0);
            for (a, b) in a.into_iter().zip(b) {
                let difference = self.builder.ins().bxor(a, b);
                differences = self.builder.ins().bor(differences, difference);
            }
            let equal = self.is_zero(differences);
            return self.truth(equal);
        }
        // From the least significant word up: a higher one that differs decides.
        let last = a.len() - 1;
        let mut less = self.constant(0);
        for (limb, (a, b)) in a.into_iter().zip(b).enumerate() {
            let order = if limb == last && wide.kind == WideKind::LessSigned {
                IntCC::SignedLessThan
            } else {
                IntCC::UnsignedLessThan
            };
            let here = self.builder.ins().icmp(order, a, b);
            let here = self.truth(here);
            let same = self.builder.ins().icmp(IntCC::Equal, a, b);
            less = self.builder.ins().select(same, less, here);
        }
        less
    }

    fn add_wide(&mut self, wide: &WideOp) -> Vec<Value> {
        let a = self.read_limbs(wide.a, wide.limbs);
        let b = self.read_limbs(wide.b, wide.limbs);
        let below = IntCC::UnsignedLessThan;
        let mut carry = self.constant(0);
        let mut result = Vec::new();
        for (a, b) in a.into_iter().zip(b) {
            let (value, first, second);
            if wide.kind == WideKind::Add {
                let sum = self.builder.ins().iadd(a, b);
                first = self.builder.ins().icmp(below, sum, a);
                value = self.builder.ins().iadd(sum, carry);
                second = self.builder.ins().icmp(below, value, sum);
            } else {
                let difference = self.builder.ins().isub(a, b);
                first = self.builder.ins().icmp(below, a, b);
                second = self.builder.ins().icmp(below, difference, carry);
                value = self.builder.ins().isub(difference, carry);
            }
            let either = self.builder.ins().bor(first, second);
            carry = self.truth(either);
            result.push(value);
        }
        result
    }
}
