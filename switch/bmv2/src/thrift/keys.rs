//! Match keys, priorities and action data between Thrift and the pipeline.

use super::arguments::{bytes, field, integer};
use super::failure::{Failure, TableError};
use super::wire::{Type, Value};
use wormcast_switch_program::{ActionCall, Bits, FieldMatch};
use wormcast_switch_program::{ActionId, KeyField, MatchKind, Program, TableInfo};

/// `BmMatchParamType`.
const EXACT: i32 = 0;
const LPM: i32 = 1;
const TERNARY: i32 = 2;
const VALID: i32 = 3;
const RANGE: i32 = 4;

/// The key that a `BmMatchParams` is. As in BMv2, a value has as many bytes as its field,
/// and bits beyond the width of the field do not count; here bits past a prefix do not
/// either.
///
/// # Errors
/// `BAD_MATCH_KEY`; says which field and why.
pub fn read_key(table: &TableInfo, parameters: &[Value]) -> Result<Vec<FieldMatch>, Failure> {
    if parameters.len() != table.key.len() {
        return Err(TableError::BadMatchKey.because(format!(
            "{} fields; table {} has {}",
            parameters.len(),
            table.name,
            table.key.len()
        )));
    }
    let fields = table.key.iter().zip(parameters);
    fields
        .map(|(key, parameter)| read_field(table, key, parameter))
        .collect()
}

fn read_field(table: &TableInfo, key: &KeyField, parameter: &Value) -> Result<FieldMatch, Failure> {
    let refuse = |how: String| {
        let (field, table) = (&key.name, &table.name);
        TableError::BadMatchKey.because(format!("field {field} of table {table}: {how}"))
    };
    let kind = field(parameter, 1).map_or(0, integer);
    let expected = wire_kind(key.kind);
    if kind != i64::from(expected) {
        let expected = key.kind;
        return Err(refuse(format!(
            "a match of type {kind}; the field is {expected}"
        )));
    }
    // The structure of each type has the number of the type plus two.
    let Some(value) = field(parameter, expected as i16 + 2) else {
        return Err(refuse("no value".to_owned()));
    };
    let width = key.width_bits;
    let part = |number: i16| {
        let bytes = field(value, number).map_or(&[][..], bytes);
        if bytes.len() != width.div_ceil(8) as usize {
            let (given, wanted) = (bytes.len(), width.div_ceil(8));
            return Err(refuse(format!("{given} bytes; {width} bits take {wanted}")));
        }
        Ok(Bits::from_bytes(bytes).and(&Bits::ones(width)))
    };
    // BMv2 leaves out of an entry what the program's mask leaves out of the field.
    let compared = |value: Bits| match &key.mask {
        Some(mask) => value.and(mask),
        None => value,
    };
    Ok(match key.kind {
        MatchKind::Exact => FieldMatch::Exact(compared(part(1)?)),
        MatchKind::Valid => {
            let valid = matches!(field(value, 1), Some(Value::Bool(true)));
            FieldMatch::Exact(Bits::from_u64(u64::from(valid)))
        }
        MatchKind::Lpm => {
            let prefix = field(value, 2).map_or(0, integer);
            let prefix_len = u32::try_from(prefix).ok().filter(|prefix| *prefix <= width);
            let Some(prefix_len) = prefix_len else {
                return Err(refuse(format!("a prefix of {prefix} bits of {width}")));
            };
            let value = compared(part(1)?).and(&Bits::prefix_mask(width, prefix_len));
            match prefix_len {
                0 => FieldMatch::Any,
                _ => FieldMatch::Lpm { value, prefix_len },
            }
        }
        MatchKind::Ternary | MatchKind::Optional => {
            let mask = part(2)?;
            let value = compared(part(1)?).and(&mask);
            if mask == Bits::default() {
                FieldMatch::Any
            } else if key.kind == MatchKind::Ternary {
                FieldMatch::Ternary { value, mask }
            } else if mask == Bits::ones(width) {
                FieldMatch::Exact(value)
            } else {
                return Err(refuse("a mask with ones and zeros".to_owned()));
            }
        }
        MatchKind::Range => FieldMatch::Range {
            low: part(1)?,
            high: part(2)?,
        },
    })
}

fn wire_kind(kind: MatchKind) -> i32 {
    match kind {
        MatchKind::Exact => EXACT,
        MatchKind::Lpm => LPM,
        MatchKind::Ternary | MatchKind::Optional => TERNARY,
        MatchKind::Valid => VALID,
        MatchKind::Range => RANGE,
    }
}

/// The `BmMatchParams` of a key.
pub fn write_key(table: &TableInfo, key: &[FieldMatch]) -> Value {
    let fields = table.key.iter().zip(key);
    let fields = fields.map(|(key, matched)| write_field(key, matched));
    Value::List(Type::Struct, fields.collect())
}

fn write_field(key: &KeyField, matched: &FieldMatch) -> Value {
    let width = key.width_bits;
    let padded = |bits: &Bits| Value::Binary(bits.to_padded_bytes(width));
    let pair = |first: &Bits, second: &Bits| vec![(1, padded(first)), (2, padded(second))];
    let zero = Bits::default();
    let all = Bits::ones(width);
    let inner = match (key.kind, matched) {
        (MatchKind::Valid, matched) => {
            let valid = matches!(matched, FieldMatch::Exact(value) if *value != zero);
            vec![(1, Value::Bool(valid))]
        }
        (MatchKind::Lpm, FieldMatch::Lpm { value, prefix_len }) => {
            vec![(1, padded(value)), (2, Value::I32(*prefix_len as i32))]
        }
        (MatchKind::Lpm, _) => vec![(1, padded(&zero)), (2, Value::I32(0))],
        (_, FieldMatch::Ternary { value, mask }) => pair(value, mask),
        (_, FieldMatch::Range { low, high }) => pair(low, high),
        (MatchKind::Range, _) => pair(&zero, &all),
        (MatchKind::Ternary | MatchKind::Optional, FieldMatch::Exact(value)) => pair(value, &all),
        (MatchKind::Ternary | MatchKind::Optional, _) => pair(&zero, &zero),
        (_, FieldMatch::Exact(value)) => vec![(1, padded(value))],
        _ => vec![(1, padded(&zero))],
    };
    let kind = wire_kind(key.kind);
    Value::Struct(vec![
        (1, Value::I32(kind)),
        (kind as i16 + 2, Value::Struct(inner)),
    ])
}

/// The priority of the pipeline, where higher wins, for BMv2's, where lower wins.
///
/// # Errors
/// One below 0, or the highest there is.
pub fn read_priority(table: &TableInfo, priority: i64) -> Result<i32, Failure> {
    if !table.has_priority {
        return Ok(0);
    }
    match i32::try_from(priority) {
        Ok(priority) if (0..i32::MAX).contains(&priority) => Ok(i32::MAX - priority),
        _ => Err(TableError::Error.because(format!(
            "priority {priority} in table {}; valid: 0 to {}",
            table.name,
            i32::MAX - 1
        ))),
    }
}

/// BMv2's priority for that of the pipeline; −1 where there are none.
pub fn write_priority(table: &TableInfo, priority: i32) -> Value {
    Value::I32(if table.has_priority {
        i32::MAX - priority
    } else {
        -1
    })
}

/// The call of an action with `BmActionData`.
///
/// # Errors
/// `BAD_ACTION_DATA` for another number of arguments, or one that is too wide.
pub fn read_call(
    program: &Program,
    action: ActionId,
    data: &[Value],
) -> Result<ActionCall, Failure> {
    let info = &program.actions()[action.index()];
    if info.parameters.len() != data.len() {
        return Err(TableError::BadActionData.because(format!(
            "{} arguments; action {} has {}",
            data.len(),
            info.name,
            info.parameters.len()
        )));
    }
    let arguments: Vec<Bits> = data
        .iter()
        .map(|item| Bits::from_bytes(bytes(item)))
        .collect();
    for (parameter, argument) in info.parameters.iter().zip(&arguments) {
        if argument.width_bits() > parameter.width_bits {
            return Err(TableError::BadActionData.because(format!(
                "argument {} of action {} is {argument}; it has {} bits",
                parameter.name, info.name, parameter.width_bits
            )));
        }
    }
    Ok(ActionCall { action, arguments })
}

/// Name and `BmActionData` of a call; arguments without leading zeros, as BMv2 gives them.
pub fn write_call(program: &Program, call: &ActionCall) -> (Value, Value) {
    let name = &program.actions()[call.action.index()].name;
    let data = call.arguments.iter();
    let data = data.map(|argument| Value::Binary(argument.to_canonical_bytes()));
    (Value::text(name), Value::List(Type::Binary, data.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(kind: MatchKind, width_bits: u32) -> TableInfo {
        TableInfo {
            name: "t".to_owned(),
            key: vec![KeyField {
                name: "f".to_owned(),
                kind,
                width_bits,
                mask: None,
            }],
            actions: Vec::new(),
            size: 1,
            const_entries: false,
            const_default: false,
            has_priority: kind != MatchKind::Exact && kind != MatchKind::Lpm,
            direct_counter: None,
            direct_meter: None,
            action_profile: None,
            supports_timeout: false,
        }
    }

    fn parameter(kind: i32, inner: Vec<(i16, Value)>) -> Value {
        let inner = Value::Struct(inner);
        Value::Struct(vec![(1, Value::I32(kind)), (kind as i16 + 2, inner)])
    }

    fn binary(bytes: &[u8]) -> Value {
        Value::Binary(bytes.to_vec())
    }

    /// What is written is what is read, up to bits that do not count.
    #[test]
    fn keys_of_every_kind() {
        let lpm = |bytes: &[u8], prefix| {
            parameter(LPM, vec![(1, binary(bytes)), (2, Value::I32(prefix))])
        };
        let two = |kind, first: &[u8], second: &[u8]| {
            parameter(kind, vec![(1, binary(first)), (2, binary(second))])
        };
        let exact = |bytes: &[u8]| parameter(EXACT, vec![(1, binary(bytes))]);
        let cases = [
            (
                MatchKind::Exact,
                12,
                exact(&[0xff, 0x01]),
                exact(&[0x0f, 0x01]),
            ),
            (
                MatchKind::Lpm,
                32,
                lpm(&[10, 0, 0, 1], 12),
                lpm(&[10, 0, 0, 0], 12),
            ),
            (MatchKind::Lpm, 32, lpm(&[10, 0, 0, 1], 0), lpm(&[0; 4], 0)),
            (
                MatchKind::Ternary,
                16,
                two(TERNARY, &[0xab, 0xcd], &[0xf0, 0]),
                two(TERNARY, &[0xa0, 0], &[0xf0, 0]),
            ),
            (
                MatchKind::Optional,
                8,
                two(TERNARY, &[7], &[0xff]),
                two(TERNARY, &[7], &[0xff]),
            ),
            (
                MatchKind::Range,
                8,
                two(RANGE, &[3], &[9]),
                two(RANGE, &[3], &[9]),
            ),
            (
                MatchKind::Valid,
                1,
                parameter(VALID, vec![(1, Value::Bool(true))]),
                parameter(VALID, vec![(1, Value::Bool(true))]),
            ),
        ];
        for (kind, width_bits, given, expected) in cases {
            let table = table(kind, width_bits);
            let key = read_key(&table, &[given]).unwrap();
            let written = write_key(&table, &key);
            assert_eq!(written, Value::List(Type::Struct, vec![expected]), "{kind}");
        }
    }

    #[test]
    fn what_the_program_masks_is_no_part_of_an_entry() {
        for (kind, wire, more, expected) in [
            (
                MatchKind::Exact,
                EXACT,
                None,
                FieldMatch::Exact(Bits::from_u64(0x104)),
            ),
            (
                MatchKind::Lpm,
                LPM,
                Some((2, Value::I32(12))),
                FieldMatch::Lpm {
                    value: Bits::from_u64(0x104),
                    prefix_len: 12,
                },
            ),
            (
                MatchKind::Ternary,
                TERNARY,
                Some((2, binary(&[0x0f, 0xff]))),
                FieldMatch::Ternary {
                    value: Bits::from_u64(0x104),
                    mask: Bits::from_u64(0xfff),
                },
            ),
        ] {
            let mut table = table(kind, 12);
            table.key[0].mask = Some(Bits::from_u64(0x10f));
            let inner = std::iter::once((1, binary(&[0x0f, 0xf4])));
            let given = parameter(wire, inner.chain(more).collect());
            assert_eq!(read_key(&table, &[given]).unwrap(), [expected]);
        }
    }

    #[test]
    fn keys_that_cannot_be() {
        let why = |kind, parameters: &[Value]| match read_key(&table(kind, 16), parameters) {
            Err(Failure::Declared { code: 18, why }) => why,
            other => panic!("{other:?}"),
        };
        assert_eq!(why(MatchKind::Exact, &[]), "0 fields; table t has 1");
        let exact = parameter(EXACT, vec![(1, binary(&[1]))]);
        assert_eq!(
            why(MatchKind::Exact, std::slice::from_ref(&exact)),
            "field f of table t: 1 bytes; 16 bits take 2"
        );
        assert_eq!(
            why(MatchKind::Lpm, &[exact]),
            "field f of table t: a match of type 0; the field is lpm"
        );
        let lpm = parameter(LPM, vec![(1, binary(&[1, 2])), (2, Value::I32(17))]);
        assert_eq!(
            why(MatchKind::Lpm, &[lpm]),
            "field f of table t: a prefix of 17 bits of 16"
        );
        let bare = Value::Struct(vec![(1, Value::I32(TERNARY))]);
        assert_eq!(
            why(MatchKind::Ternary, &[bare]),
            "field f of table t: no value"
        );
    }

    #[test]
    fn priorities_are_turned_round() {
        let table = table(MatchKind::Ternary, 8);
        for priority in [0, 1, 1000, i32::MAX - 1] {
            let inner = read_priority(&table, i64::from(priority)).unwrap();
            assert!(inner > 0);
            assert_eq!(write_priority(&table, inner), Value::I32(priority));
        }
        for priority in [-1, i64::from(i32::MAX)] {
            assert!(read_priority(&table, priority).is_err());
        }
    }
}
