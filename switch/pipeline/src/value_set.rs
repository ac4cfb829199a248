//! The control path: parser value sets.

use super::Pipeline;
use super::codec::load_bits;
use super::error::ControlError;
use wormcast_switch_program::Bits;
use wormcast_switch_program::FieldMatch;
use wormcast_switch_program::ValueSetId;

/// Most values with masks that the members of a parser value set are made into.
const MASKED_VALUES_MAX: usize = 1 << 16;

/// Widest field of a parser value set that can be matched by a range, bits.
const RANGE_BITS_MAX: u32 = 128;

/// A value and a mask.
type Masked = (Bits, Bits);

impl Pipeline {
    /// The members of a parser value set as they were written: a match for each field of
    /// the select key. None for an unknown set.
    pub fn value_set(&self, set: ValueSetId) -> &[Vec<FieldMatch>] {
        let sets = self.value_sets.get(set.index());
        sets.map_or(&[], Vec::as_slice)
    }

    /// Replaces the members of a parser value set. A packet's select key is in the set if
    /// it is matched by all fields of one member.
    ///
    /// # Errors
    /// `NotFound`, `InvalidArgument` for a member with another number of fields or a value
    /// that is too wide, `AlreadyExists` for a member twice, `ResourceExhausted` when the
    /// ranges of the members cannot be made into masks.
    pub fn set_value_set(
        &mut self,
        set: ValueSetId,
        members: &[Vec<FieldMatch>],
    ) -> Result<(), ControlError> {
        let sets = self.program.value_sets();
        let Some(info) = sets.get(set.index()) else {
            return Err(ControlError::NotFound {
                what: format!("parser value set {}", set.index()),
            });
        };
        let mut sorted: Vec<_> = members.iter().collect();
        sorted.sort_unstable();
        if sorted.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(ControlError::AlreadyExists {
                what: format!("a member of parser value set {}", info.name),
            });
        }
        let mut compiled = Vec::new();
        for member in members {
            if member.len() != info.fields_bits.len() {
                return Err(ControlError::InvalidArgument {
                    what: format!("number of fields of parser value set {}", info.name),
                    value: member.len().to_string(),
                    bound: info.fields_bits.len().to_string(),
                });
            }
            let mut masked: Vec<(Vec<u64>, Vec<u64>)> = vec![(Vec::new(), Vec::new())];
            for (field, &width) in member.iter().zip(&info.fields_bits) {
                let choices = masks_of(&info.name, field, width)?;
                if compiled.len() + masked.len() * choices.len() > MASKED_VALUES_MAX {
                    return Err(ControlError::ResourceExhausted {
                        what: format!("parser value set {}, ranges as masks,", info.name),
                        limit: MASKED_VALUES_MAX,
                    });
                }
                let before = std::mem::take(&mut masked);
                for (values, masks) in &before {
                    for (value, mask) in &choices {
                        let mut one = (values.clone(), masks.clone());
                        append(&mut one.0, value, width);
                        append(&mut one.1, mask, width);
                        masked.push(one);
                    }
                }
            }
            compiled.extend(masked);
        }
        let place = set.index();
        let compiled = std::mem::replace(&mut self.machine.value_sets[place], compiled);
        let members = std::mem::replace(&mut self.value_sets[place], members.to_vec());
        self.undo(move |pipeline| {
            pipeline.machine.value_sets[place] = compiled;
            pipeline.value_sets[place] = members;
        });
        Ok(())
    }
}

/// Adds a field in words of its own, as the parser keeps its select key.
fn append(words: &mut Vec<u64>, value: &Bits, width: u32) {
    let at = words.len();
    words.resize(at + width.div_ceil(64).max(1) as usize, 0);
    let bytes = value.to_padded_bytes(width);
    let bit = bytes.len() * 8 - width as usize;
    load_bits(&bytes, bit, width, &mut words[at..]);
}

/// Values and masks that together match what a field does.
fn masks_of(set: &str, field: &FieldMatch, width: u32) -> Result<Vec<Masked>, ControlError> {
    let refuse = |value: String, bound: String| ControlError::InvalidArgument {
        what: format!("field of a member of parser value set {set}"),
        value,
        bound,
    };
    let check = |bits: &Bits| {
        if bits.width_bits() <= width {
            return Ok(());
        }
        Err(refuse(
            bits.to_string(),
            format!("values of at most {width} bits"),
        ))
    };
    match field {
        FieldMatch::Any => Ok(vec![(Bits::default(), Bits::default())]),
        FieldMatch::Exact(value) => {
            check(value)?;
            Ok(vec![(value.clone(), Bits::ones(width))])
        }
        FieldMatch::Lpm { value, prefix_len } => {
            check(value)?;
            Ok(vec![(value.clone(), Bits::prefix_mask(width, *prefix_len))])
        }
        FieldMatch::Ternary { value, mask } => {
            check(value)?;
            check(mask)?;
            Ok(vec![(value.clone(), mask.clone())])
        }
        FieldMatch::Range { low, high } => {
            check(low)?;
            check(high)?;
            match (to_u128(low), to_u128(high)) {
                (Some(low), Some(high)) if width <= RANGE_BITS_MAX && low <= high => {
                    Ok(prefixes(low, high, width))
                }
                _ => Err(refuse(
                    format!("{low}..{high}"),
                    format!("ascending ranges of fields of at most {RANGE_BITS_MAX} bits"),
                )),
            }
        }
    }
}

fn to_u128(bits: &Bits) -> Option<u128> {
    let bytes = bits.as_bytes();
    if bytes.len() > 16 {
        return None;
    }
    Some(
        bytes
            .iter()
            .fold(0, |sum, &byte| sum << 8 | u128::from(byte)),
    )
}

/// The fewest prefixes that together are a range.
fn prefixes(mut low: u128, high: u128, width: u32) -> Vec<Masked> {
    let bits = |value: u128| Bits::from_bytes(&value.to_be_bytes());
    let mut found = Vec::new();
    loop {
        // The largest block that starts at `low`, ends by `high` and is a prefix.
        let mut free = low.trailing_zeros().min(width);
        while free > 0 && low | block(free) > high {
            free -= 1;
        }
        found.push((bits(low), Bits::prefix_mask(width, width - free)));
        match (low | block(free)).checked_add(1) {
            Some(next) if next <= high => low = next,
            _ => return found,
        }
    }
}

/// The low `free` bits.
fn block(free: u32) -> u128 {
    if free >= 128 {
        u128::MAX
    } else {
        (1 << free) - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(masked: &[Masked], value: u128) -> bool {
        masked.iter().any(|(of, mask)| {
            let value = Bits::from_bytes(&value.to_be_bytes());
            value.and(mask) == *of
        })
    }

    #[test]
    fn prefixes_are_the_range() {
        for low in 0..32u128 {
            for high in low..32 {
                let found = prefixes(low, high, 5);
                for value in 0..32 {
                    let expected = (low..=high).contains(&value);
                    assert_eq!(holds(&found, value), expected, "{value} in {low}..{high}");
                }
                assert!(found.len() <= 8, "{low}..{high}: {}", found.len());
            }
        }
        assert_eq!(prefixes(0, u128::MAX, 128).len(), 1);
        assert_eq!(prefixes(1, u128::MAX, 128).len(), 128);
    }
}
