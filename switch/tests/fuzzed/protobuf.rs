//! Changes of messages in the encoding of protocol buffers, whatever they mean: fields are
//! removed, doubled, moved and given other values, and all lengths stay right.
//!
//! Format: protobuf.dev/programming-guides/encoding.

use super::draws::Draws;

/// Deepest nesting that is looked into.
const DEPTH_MAX: usize = 16;

#[derive(Clone, Debug)]
enum Value {
    Varint(u64),
    Fixed64([u8; 8]),
    Fixed32([u8; 4]),
    Bytes(Vec<u8>),
    /// Bytes that can be read as a message; they may have been none.
    Message(Vec<Field>),
}

#[derive(Clone, Debug)]
struct Field {
    number: u64,
    value: Value,
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

fn split<'a>(bytes: &mut &'a [u8], count: u64) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(usize::try_from(count).ok()?)?;
    *bytes = rest;
    Some(taken)
}

fn parse(mut bytes: &[u8], depth: usize) -> Option<Vec<Field>> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes)?;
        let value = match key & 7 {
            0 => Value::Varint(varint(&mut bytes)?),
            1 => Value::Fixed64(split(&mut bytes, 8)?.try_into().ok()?),
            2 => {
                let length = varint(&mut bytes)?;
                let inner = split(&mut bytes, length)?;
                let message = (!inner.is_empty() && depth < DEPTH_MAX)
                    .then(|| parse(inner, depth + 1))
                    .flatten();
                message.map_or_else(|| Value::Bytes(inner.to_vec()), Value::Message)
            }
            5 => Value::Fixed32(split(&mut bytes, 4)?.try_into().ok()?),
            _ => return None,
        };
        let number = key >> 3;
        if number == 0 {
            return None;
        }
        fields.push(Field { number, value });
    }
    Some(fields)
}

fn put_varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn write(fields: &[Field], out: &mut Vec<u8>) {
    for field in fields {
        let key = |kind: u64, out: &mut Vec<u8>| put_varint(field.number << 3 | kind, out);
        match &field.value {
            Value::Varint(value) => {
                key(0, out);
                put_varint(*value, out);
            }
            Value::Fixed64(bytes) => {
                key(1, out);
                out.extend(bytes);
            }
            Value::Fixed32(bytes) => {
                key(5, out);
                out.extend(bytes);
            }
            Value::Bytes(bytes) => {
                key(2, out);
                put_varint(bytes.len() as u64, out);
                out.extend(bytes);
            }
            Value::Message(inner) => {
                let mut bytes = Vec::new();
                write(inner, &mut bytes);
                key(2, out);
                put_varint(bytes.len() as u64, out);
                out.extend(bytes);
            }
        }
    }
}

fn count(fields: &[Field]) -> usize {
    let inner = |field: &Field| match &field.value {
        Value::Message(inner) => 1 + count(inner),
        _ => 1,
    };
    fields.iter().map(inner).sum()
}

/// Calls `change` with the list that holds the field of a number, counted from the front,
/// and its place there.
fn with(
    fields: &mut Vec<Field>,
    number: &mut usize,
    change: &mut dyn FnMut(&mut Vec<Field>, usize),
) {
    for place in 0..fields.len() {
        if *number == 0 {
            *number = usize::MAX;
            return change(fields, place);
        }
        *number -= 1;
        if let Value::Message(inner) = &mut fields[place].value {
            with(inner, number, change);
            if *number == usize::MAX {
                return;
            }
        }
    }
}

fn change_value(value: &mut Value, draws: &mut Draws<'_>) {
    match value {
        Value::Varint(value) => {
            *value = match draws.below(8) {
                0 => value.wrapping_add(1),
                1 => value.wrapping_sub(1),
                2 => [
                    u64::MAX,
                    i64::MAX as u64,
                    i32::MAX as u64,
                    u64::from(u32::MAX),
                ][draws.below(4)],
                3 => 1 << draws.below(64),
                4 => *value ^ 1 << draws.below(32),
                5 => u64::from(draws.half()),
                _ => u64::from(draws.byte() % 16),
            }
        }
        Value::Fixed64(bytes) => bytes[draws.below(8)] = draws.byte(),
        Value::Fixed32(bytes) => bytes[draws.below(4)] = draws.byte(),
        Value::Bytes(bytes) => match draws.below(6) {
            0 => bytes.clear(),
            1 => bytes.truncate(bytes.len() / 2),
            2 => bytes.insert(0, 0),
            3 => bytes.extend([draws.byte(); 3]),
            4 => *bytes = (0..draws.below(20)).map(|_| draws.byte()).collect(),
            _ => {
                let length = bytes.len().max(1);
                if let Some(byte) = bytes.get_mut(draws.below(length.min(65_535))) {
                    *byte = draws.byte();
                }
            }
        },
        Value::Message(inner) if draws.one_in(4) => inner.clear(),
        Value::Message(inner) => {
            let mut bytes = Vec::new();
            write(inner, &mut bytes);
            *value = Value::Bytes(bytes);
            change_value(value, draws);
        }
    }
}

/// The message with one to four changes; bytes that are no message stay as they are.
pub fn mutate(bytes: &[u8], draws: &mut Draws<'_>) -> Vec<u8> {
    let Some(mut fields) = parse(bytes, 0).filter(|fields| !fields.is_empty()) else {
        return bytes.to_vec();
    };
    for _ in 0..1 + draws.below(4) {
        let all = count(&fields);
        if all == 0 {
            break;
        }
        let any = |draws: &mut Draws<'_>| usize::from(draws.half()) % all;
        let (mut chosen, mut other) = (any(draws), any(draws));
        let kind = draws.below(8);
        let mut donor = None;
        with(&mut fields, &mut other, &mut |list, place| {
            donor = Some(list[place].clone())
        });
        with(
            &mut fields,
            &mut chosen,
            &mut |list, place| match (kind, &donor) {
                (0, _) => {
                    list.remove(place);
                }
                (1, _) => list.insert(place, list[place].clone()),
                (2, _) => list.swap(place, 0),
                (3, Some(donor)) => list.insert(place, donor.clone()),
                (4, Some(donor)) => list[place].value = donor.value.clone(),
                _ => change_value(&mut list[place].value, draws),
            },
        );
    }
    let mut out = Vec::new();
    write(&fields, &mut out);
    out
}
