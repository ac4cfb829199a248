//! Arithmetic on values of more than one word, least significant first.

use wormcast_switch_program::code::{WideKind, WideOp};

/// Scratch words for one operation; never grows after the first wide operations.
#[derive(Debug, Default)]
pub(super) struct WideScratch {
    a: Vec<u64>,
    b: Vec<u64>,
    result: Vec<u64>,
}

fn load(from: &mut Vec<u64>, words: &[u64], slot: u32, count: u32) {
    from.clear();
    from.extend_from_slice(&words[slot as usize..(slot + count) as usize]);
}

/// Runs an operation. Gives false for a division by zero, whose result is 0.
pub(super) fn run(op: &WideOp, words: &mut [u64], scratch: &mut WideScratch) -> bool {
    let limbs = op.limbs;
    let WideScratch { a, b, result } = scratch;
    result.clear();
    let mut defined = true;
    match op.kind {
        WideKind::Extend | WideKind::ExtendSigned => {
            load(result, words, op.a, op.extra);
            let negative = op.kind == WideKind::ExtendSigned && is_negative(result);
            result.resize(limbs as usize, if negative { u64::MAX } else { 0 });
        }
        WideKind::Mask => {
            load(result, words, op.a, limbs);
            clear_above(result, op.extra, 0);
        }
        WideKind::SignExtend => {
            load(result, words, op.a, limbs);
            let bit = op.extra - 1;
            let negative = result[bit as usize / 64] >> (bit % 64) & 1 == 1;
            clear_above(result, op.extra, if negative { u64::MAX } else { 0 });
        }
        WideKind::ClampUnsigned | WideKind::ClampSigned => {
            load(a, words, op.a, op.extra);
            clamp(op, a, result);
        }
        WideKind::Not => {
            load(result, words, op.a, limbs);
            result.iter_mut().for_each(|limb| *limb = !*limb);
        }
        WideKind::ShiftLeft | WideKind::ShiftRight | WideKind::ShiftRightSigned => {
            load(a, words, op.a, limbs);
            shift(op.kind, a, words[op.b as usize], result);
        }
        WideKind::Equal | WideKind::Less | WideKind::LessSigned => {
            load(a, words, op.a, limbs);
            load(b, words, op.b, limbs);
            let holds = match op.kind {
                WideKind::Equal => a == b,
                WideKind::LessSigned if is_negative(a) != is_negative(b) => is_negative(a),
                _ => less(a, b),
            };
            words[op.to as usize] = u64::from(holds);
            return true;
        }
        _ => {
            load(a, words, op.a, limbs);
            load(b, words, op.b, limbs);
            defined = combine(op.kind, a, b, result);
        }
    }
    words[op.to as usize..op.to as usize + limbs as usize]
        .copy_from_slice(&result[..limbs as usize]);
    defined
}

fn is_negative(limbs: &[u64]) -> bool {
    limbs.last().is_some_and(|limb| limb >> 63 == 1)
}

/// Sets all bits from `bit` on to those of `fill`.
fn clear_above(limbs: &mut [u64], bit: u32, fill: u64) {
    for (index, limb) in limbs.iter_mut().enumerate() {
        let first = index as u32 * 64;
        if first >= bit {
            *limb = fill;
        } else if bit - first < 64 {
            let mask = (1u64 << (bit - first)) - 1;
            *limb = *limb & mask | fill & !mask;
        }
    }
}

fn less(a: &[u64], b: &[u64]) -> bool {
    a.iter().rev().lt(b.iter().rev())
}

fn clamp(op: &WideOp, a: &[u64], result: &mut Vec<u64>) {
    let negative = op.signed && is_negative(a);
    let bits = op.bits;
    // Bits of the magnitude a value may have.
    let limit = if op.kind == WideKind::ClampSigned {
        bits - 1
    } else {
        bits
    };
    let fill = if negative { u64::MAX } else { 0 };
    let fits = a.iter().enumerate().all(|(index, &limb)| {
        let first = index as u32 * 64;
        if first >= limit {
            limb == fill
        } else if limit - first >= 64 {
            true
        } else {
            limb >> (limit - first) == fill >> (limit - first)
        }
    });
    result.extend(a.iter().take(op.limbs as usize));
    result.resize(op.limbs as usize, fill);
    if negative && op.kind == WideKind::ClampUnsigned {
        result.fill(0);
    } else if !fits {
        // The greatest value, or the least one, which is its complement.
        result.fill(u64::MAX);
        clear_above(result, limit, 0);
        if negative {
            result.iter_mut().for_each(|limb| *limb = !*limb);
        }
    }
}

fn shift(kind: WideKind, a: &[u64], amount: u64, result: &mut Vec<u64>) {
    let count = a.len();
    let fill = if kind == WideKind::ShiftRightSigned && is_negative(a) {
        u64::MAX
    } else {
        0
    };
    if amount >= count as u64 * 64 {
        result.resize(count, fill);
        return;
    }
    let words = (amount / 64) as usize;
    let bits = (amount % 64) as u32;
    let limb = |index: Option<usize>| index.and_then(|index| a.get(index)).copied();
    for index in 0..count {
        result.push(if kind == WideKind::ShiftLeft {
            let high = limb(index.checked_sub(words)).unwrap_or(0);
            let low = limb(index.checked_sub(words + 1)).unwrap_or(0);
            if bits == 0 {
                high
            } else {
                high << bits | low >> (64 - bits)
            }
        } else {
            let low = limb(Some(index + words)).unwrap_or(fill);
            let high = limb(Some(index + words + 1)).unwrap_or(fill);
            if bits == 0 {
                low
            } else {
                low >> bits | high << (64 - bits)
            }
        });
    }
}

fn combine(kind: WideKind, a: &[u64], b: &[u64], result: &mut Vec<u64>) -> bool {
    let pairs = a.iter().zip(b);
    match kind {
        WideKind::And => result.extend(pairs.map(|(a, b)| a & b)),
        WideKind::Or => result.extend(pairs.map(|(a, b)| a | b)),
        WideKind::Xor => result.extend(pairs.map(|(a, b)| a ^ b)),
        WideKind::Add => {
            let mut carry = false;
            for (a, b) in pairs {
                let (sum, first) = a.overflowing_add(*b);
                let (sum, second) = sum.overflowing_add(u64::from(carry));
                carry = first || second;
                result.push(sum);
            }
        }
        WideKind::Subtract => {
            let mut borrow = false;
            for (a, b) in pairs {
                let (difference, first) = a.overflowing_sub(*b);
                let (difference, second) = difference.overflowing_sub(u64::from(borrow));
                borrow = first || second;
                result.push(difference);
            }
        }
        WideKind::Multiply => multiply(a, b, result),
        WideKind::Divide | WideKind::Modulo => {
            if b.iter().all(|&limb| limb == 0) {
                result.resize(a.len(), 0);
                return false;
            }
            divide(a, b, kind == WideKind::Divide, result);
        }
        other => unreachable!("{other:?} is handled elsewhere"),
    }
    true
}

fn multiply(a: &[u64], b: &[u64], result: &mut Vec<u64>) {
    let count = a.len();
    result.resize(count, 0);
    for (i, &a) in a.iter().enumerate() {
        let mut carry = 0u128;
        for (j, &b) in b.iter().enumerate().take(count - i) {
            let sum = u128::from(a) * u128::from(b) + u128::from(result[i + j]) + carry;
            result[i + j] = sum as u64;
            carry = sum >> 64;
        }
    }
}

/// Long division, a bit at a time: P4 programs divide wide values next to never.
fn divide(a: &[u64], b: &[u64], quotient: bool, result: &mut Vec<u64>) {
    let count = a.len();
    let mut remainder = vec![0u64; count];
    result.resize(count, 0);
    for bit in (0..count * 64).rev() {
        let overflow = remainder[count - 1] >> 63 == 1;
        for index in (0..count).rev() {
            let low = if index == 0 {
                a[bit / 64] >> (bit % 64) & 1
            } else {
                remainder[index - 1] >> 63
            };
            remainder[index] = remainder[index] << 1 | low;
        }
        if overflow || !less(&remainder, b) {
            let mut borrow = false;
            for (limb, b) in remainder.iter_mut().zip(b) {
                let (difference, first) = limb.overflowing_sub(*b);
                let (difference, second) = difference.overflowing_sub(u64::from(borrow));
                borrow = first || second;
                *limb = difference;
            }
            result[bit / 64] |= 1 << (bit % 64);
        }
    }
    if !quotient {
        result.copy_from_slice(&remainder);
    }
}
