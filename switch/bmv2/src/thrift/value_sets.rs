//! Methods for parser value sets. A value of BMv2 is the whole select key, its fields one
//! after another without padding.

use super::arguments::Arguments;
use super::context::Context;
use super::failure::{Failure, Outcome, ValueSetError};
use super::wire::{Type, Value};
use wormcast_switch_pipeline::Pipeline;
use wormcast_switch_program::ValueSetId;
use wormcast_switch_program::{Bits, FieldMatch};

/// A value set that a call is about.
struct Target<'a> {
    pipeline: &'a mut Pipeline,
    id: ValueSetId,
    /// Widths of the fields of the select key.
    fields_bits: Vec<u32>,
}

fn target<'a>(context: &'a mut Context<'_>, call: &Arguments) -> Result<Target<'a>, Failure> {
    let pipeline = context.pipeline()?;
    let name = call.text(1);
    let id = pipeline.program().value_set(name);
    let id = id.ok_or_else(|| {
        ValueSetError::InvalidName.because(format!("no parser value set {name:?}"))
    })?;
    let fields_bits = pipeline.program().value_sets()[id.index()]
        .fields_bits
        .clone();
    Ok(Target {
        pipeline,
        id,
        fields_bits,
    })
}

/// Bits of a string of bytes, the first one highest: those from `first` on.
fn cut(bytes: &[u8], first: usize, width: u32) -> Bits {
    let count = width.div_ceil(8) as usize;
    let mut cut = vec![0; count];
    for bit in 0..width as usize {
        let from = first + bit;
        let to = count * 8 - width as usize + bit;
        let is_set = bytes[from / 8] >> (7 - from % 8) & 1;
        cut[to / 8] |= is_set << (7 - to % 8);
    }
    Bits::from_bytes(&cut)
}

fn split(value: &Bits, fields_bits: &[u32]) -> Vec<FieldMatch> {
    let total: u32 = fields_bits.iter().sum();
    let bytes = value.to_padded_bytes(total);
    let mut next = bytes.len() * 8 - total as usize;
    let fields = fields_bits.iter().map(|width| {
        let first = next;
        next += *width as usize;
        FieldMatch::Exact(cut(&bytes, first, *width))
    });
    fields.collect()
}

/// The value of fields; `None` unless each is one value.
fn join(fields: &[FieldMatch], fields_bits: &[u32]) -> Option<Vec<u8>> {
    let total: u32 = fields_bits.iter().sum();
    let mut joined = vec![0; total.div_ceil(8) as usize];
    let mut next = joined.len() * 8 - total as usize;
    for (field, width) in fields.iter().zip(fields_bits) {
        let FieldMatch::Exact(value) = field else {
            return None;
        };
        let bytes = value.to_padded_bytes(*width);
        let first = bytes.len() * 8 - *width as usize;
        for bit in first..bytes.len() * 8 {
            joined[next / 8] |= (bytes[bit / 8] >> (7 - bit % 8) & 1) << (7 - next % 8);
            next += 1;
        }
    }
    Some(joined)
}

impl Target<'_> {
    fn member(&self, call: &Arguments) -> Result<Vec<FieldMatch>, Failure> {
        let value = Bits::from_bytes(call.bytes(2));
        let total: u32 = self.fields_bits.iter().sum();
        if value.width_bits() > total {
            let why = format!("{value} has more than {total} bits");
            return Err(ValueSetError::Error.because(why));
        }
        Ok(split(&value, &self.fields_bits))
    }

    fn put(&mut self, members: &[Vec<FieldMatch>]) -> Result<(), Failure> {
        let put = self.pipeline.set_value_set(self.id, members);
        put.map_err(|error| ValueSetError::Error.because(error.to_string()))
    }
}

/// `bm_parse_vset_add`; a value that is there stays.
pub fn add(context: &mut Context<'_>, call: &Arguments) -> Outcome {
    let mut set = target(context, call)?;
    let member = set.member(call)?;
    let mut members = set.pipeline.value_set(set.id).to_vec();
    if !members.contains(&member) {
        members.push(member);
        set.put(&members)?;
    }
    Ok(None)
}

/// `bm_parse_vset_remove`; a value that is not there is gone.
pub fn remove(context: &mut Context<'_>, call: &Arguments) -> Outcome {
    let mut set = target(context, call)?;
    let member = set.member(call)?;
    let mut members = set.pipeline.value_set(set.id).to_vec();
    members.retain(|candidate| *candidate != member);
    set.put(&members)?;
    Ok(None)
}

/// `bm_parse_vset_get`. Members of P4Runtime that are not one value are left out.
pub fn members(context: &mut Context<'_>, call: &Arguments) -> Outcome {
    let set = target(context, call)?;
    let members = set.pipeline.value_set(set.id).iter();
    let members = members.filter_map(|fields| join(fields, &set.fields_bits));
    let members = members.map(Value::Binary).collect();
    Ok(Some(Value::List(Type::Binary, members)))
}

/// `bm_parse_vset_clear`.
pub fn clear(context: &mut Context<'_>, call: &Arguments) -> Outcome {
    target(context, call)?.put(&[])?;
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_split_into_fields_and_joined() {
        let value = Bits::from_bytes(&[0x1a, 0xbc, 0xde]);
        let fields = split(&value, &[5, 12, 4]);
        let expected = [0x1a, 0xbcd, 0xe].map(|value| FieldMatch::Exact(Bits::from_u64(value)));
        assert_eq!(fields, expected);
        assert_eq!(join(&fields, &[5, 12, 4]), Some(vec![0x1a, 0xbc, 0xde]));
        assert_eq!(join(&[FieldMatch::Any], &[5]), None);
    }
}
