//! Table entries: messages to entries of the pipeline, and back.

use std::fmt;

use super::ids::list;
use super::proto::p4::v1::{FieldMatch, field_match};
use super::rejection::Rejection;
use super::schema::{FieldSchema, TableSchema};
use wormcast_switch_program::MatchKind;
use wormcast_switch_program::{Bits, FieldMatch as KeyMatch};

/// The key of an entry: one match for each field of the table, in order.
pub fn parse_key(table: &TableSchema, matches: &[FieldMatch]) -> Result<Vec<KeyMatch>, Rejection> {
    parse_matches(
        format_args!("table `{}`", table.name),
        &table.fields,
        matches,
    )
}

/// One match for each field, in order.
pub fn parse_matches(
    what: impl fmt::Display,
    fields: &[FieldSchema],
    matches: &[FieldMatch],
) -> Result<Vec<KeyMatch>, Rejection> {
    for given in matches {
        if !fields.iter().any(|field| field.id == given.field_id) {
            return Err(Rejection::invalid(format!(
                "{what} has no match field with the id {}; it has {}",
                given.field_id,
                list(fields.iter().map(|field| (field.id, &field.name)))
            )));
        }
    }
    let parse_one = |field: &FieldSchema| {
        let mut given = matches.iter().filter(|given| given.field_id == field.id);
        let parsed = match (given.next(), given.next()) {
            (Some(given), None) => {
                parse_field(field, given).map(|of_key| for_program(field, of_key))
            }
            (None, _) if matches!(field.kind, MatchKind::Exact | MatchKind::Valid) => Err(
                Rejection::invalid("it is missing; an exact match cannot be left out"),
            ),
            (None, _) => Ok(KeyMatch::Any),
            (Some(_), Some(_)) => Err(Rejection::invalid("it is there twice")),
        };
        parsed.map_err(|rejection| {
            rejection.within(format_args!(
                "{what}: match field `{}` (id {})",
                field.name, field.id
            ))
        })
    };
    fields.iter().map(parse_one).collect()
}

fn parse_field(field: &FieldSchema, given: &FieldMatch) -> Result<KeyMatch, Rejection> {
    use field_match::FieldMatchType;
    let parse = |bytes: &[u8]| field.value.parse(bytes);
    let width_bits = field.value.width_bits;
    match (field.kind, &given.field_match_type) {
        (MatchKind::Exact | MatchKind::Valid, Some(FieldMatchType::Exact(exact))) => {
            return Ok(KeyMatch::Exact(parse(&exact.value)?));
        }
        (MatchKind::Optional, Some(FieldMatchType::Optional(optional))) => {
            return Ok(KeyMatch::Exact(parse(&optional.value)?));
        }
        _ if !field.value.is_ordered() => return parse_translated(field, given),
        _ => {}
    }
    let leave_out = |what: &str| {
        Err(Rejection::invalid(format!(
            "{what} matches anything; leave the field out instead"
        )))
    };
    match (field.kind, &given.field_match_type) {
        (MatchKind::Lpm, Some(FieldMatchType::Lpm(lpm))) => {
            let value = parse(&lpm.value)?;
            let prefix_len = match u32::try_from(lpm.prefix_len) {
                Ok(0) => return leave_out("a prefix of length 0"),
                Ok(length) if length <= width_bits => length,
                Ok(_) | Err(_) => {
                    return Err(Rejection::invalid(format!(
                        "a prefix of length {} is not possible: 1 to {}",
                        lpm.prefix_len, width_bits
                    )));
                }
            };
            let mask = Bits::prefix_mask(width_bits, prefix_len);
            if value.and(&mask) != value {
                return Err(Rejection::invalid(format!(
                    "value {value} has ones after its first {prefix_len} of {} bits",
                    width_bits
                )));
            }
            Ok(KeyMatch::Lpm { value, prefix_len })
        }
        (MatchKind::Ternary, Some(FieldMatchType::Ternary(ternary))) => {
            let (value, mask) = (parse(&ternary.value)?, parse(&ternary.mask)?);
            if mask == Bits::default() {
                return leave_out("a mask of zeros");
            }
            if value.and(&mask) != value {
                return Err(Rejection::invalid(format!(
                    "value {value} has ones where its mask {mask} has zeros"
                )));
            }
            Ok(KeyMatch::Ternary { value, mask })
        }
        (MatchKind::Range, Some(FieldMatchType::Range(range))) => {
            let (low, high) = (parse(&range.low)?, parse(&range.high)?);
            // Equal lengths compare as numbers; canonical ones do so after their length.
            let order = |bits: &Bits| (bits.as_bytes().len(), bits.as_bytes().to_vec());
            if order(&low) > order(&high) {
                return Err(Rejection::invalid(format!(
                    "the low bound {low} is above the high bound {high}"
                )));
            }
            if low == Bits::default() && high == Bits::ones(width_bits) {
                return leave_out("the whole range");
            }
            Ok(KeyMatch::Range { low, high })
        }
        (kind, other) => Err(wrong_kind(kind, other.as_ref())),
    }
}

fn wrong_kind(kind: MatchKind, given: Option<&field_match::FieldMatchType>) -> Rejection {
    use field_match::FieldMatchType;
    let given = match given {
        Some(FieldMatchType::Exact(_)) => "exact",
        Some(FieldMatchType::Ternary(_)) => "ternary",
        Some(FieldMatchType::Lpm(_)) => "lpm",
        Some(FieldMatchType::Range(_)) => "range",
        Some(FieldMatchType::Optional(_)) => "optional",
        Some(FieldMatchType::Other(_)) => "another kind",
        None => {
            return Rejection::invalid(format!("its match is not set; it is matched by {kind}"));
        }
    };
    Rejection::invalid(format!("it is matched by {kind}, not by {given}"))
}

/// A match of more than one value on values that controllers know by others. Masks, prefixes and ranges of those
/// mean nothing in the data plane, so only one value or any can be matched (§"Translation
/// of Match Fields").
fn parse_translated(field: &FieldSchema, given: &FieldMatch) -> Result<KeyMatch, Rejection> {
    use field_match::FieldMatchType;
    let width_bits = field.value.width_bits;
    let parse = |bytes: &[u8]| field.value.parse(bytes);
    let Some(sdn_bits) = field.value.sdn_bits() else {
        return match (field.kind, &given.field_match_type) {
            (MatchKind::Exact | MatchKind::Optional, other) => {
                Err(wrong_kind(field.kind, other.as_ref()))
            }
            (kind, _) => Err(Rejection::invalid(format!(
                "its values are names, which cannot be matched by {kind}; leave the field out"
            ))),
        };
    };
    let only_exact = |bound: String| {
        Err(Rejection::invalid(format!(
            "its values are translated, so only one of them can be matched: {bound}"
        )))
    };
    match (field.kind, &given.field_match_type) {
        (MatchKind::Lpm, Some(FieldMatchType::Lpm(lpm))) => {
            if u32::try_from(lpm.prefix_len) != Ok(sdn_bits) {
                return only_exact(format!(
                    "a prefix of length {} is not {sdn_bits}",
                    lpm.prefix_len
                ));
            }
            Ok(KeyMatch::Lpm {
                value: parse(&lpm.value)?,
                prefix_len: width_bits,
            })
        }
        (MatchKind::Ternary, Some(FieldMatchType::Ternary(ternary))) => {
            let mask = super::bytestring::parse(&ternary.mask, sdn_bits)?;
            if mask != Bits::ones(sdn_bits) {
                return only_exact(format!("mask {mask} is not {}", Bits::ones(sdn_bits)));
            }
            Ok(KeyMatch::Ternary {
                value: parse(&ternary.value)?,
                mask: Bits::ones(width_bits),
            })
        }
        (MatchKind::Range, Some(FieldMatchType::Range(range))) => {
            let (low, high) = (parse(&range.low)?, parse(&range.high)?);
            if low != high {
                return only_exact("the low bound is not the high bound".to_owned());
            }
            Ok(KeyMatch::Range { low, high })
        }
        (kind, other) => Err(wrong_kind(kind, other.as_ref())),
    }
}

/// The match as the program compares it.
fn for_program(field: &FieldSchema, of_key: KeyMatch) -> KeyMatch {
    if !field.is_ternary_in_program {
        return of_key;
    }
    match of_key {
        KeyMatch::Exact(value) => KeyMatch::Ternary {
            value,
            mask: Bits::ones(field.value.width_bits),
        },
        KeyMatch::Lpm { value, prefix_len } => KeyMatch::Ternary {
            value,
            mask: Bits::prefix_mask(field.value.width_bits, prefix_len),
        },
        KeyMatch::Any | KeyMatch::Ternary { .. } | KeyMatch::Range { .. } => of_key,
    }
}

/// Whether a match of the program can be written in the field's kind: that of the program may
/// be wider, as p4c makes all fields ternary of a table that has one such field, and of
/// translated values one is matched or all.
pub fn can_say(field: &FieldSchema, of_program: &KeyMatch) -> bool {
    let width_bits = field.value.width_bits;
    let all = Bits::ones(width_bits);
    let one_only = field.kind == MatchKind::Optional || !field.value.is_ordered();
    match of_program {
        KeyMatch::Any | KeyMatch::Exact(_) => true,
        KeyMatch::Lpm { prefix_len, .. } => !one_only || *prefix_len == width_bits,
        KeyMatch::Ternary { mask, .. } if one_only => *mask == all,
        KeyMatch::Ternary { mask, .. } if field.kind == MatchKind::Lpm => {
            *mask == Bits::prefix_mask(width_bits, ones(mask))
        }
        KeyMatch::Ternary { .. } => true,
        KeyMatch::Range { low, high } => !one_only || low == high,
    }
}

fn ones(mask: &Bits) -> u32 {
    mask.as_bytes().iter().map(|byte| byte.count_ones()).sum()
}

/// The matches of a key, with what matches anything left out.
pub fn write_key(table: &TableSchema, key: &[KeyMatch]) -> Vec<FieldMatch> {
    write_matches(&table.fields, key)
}

/// The matches of fields, with what matches anything left out.
pub fn write_matches(fields: &[FieldSchema], key: &[KeyMatch]) -> Vec<FieldMatch> {
    let write_one = |(field, of_key): (&FieldSchema, &KeyMatch)| {
        Some(FieldMatch {
            field_id: field.id,
            field_match_type: Some(write_match(field, of_key)?),
        })
    };
    fields.iter().zip(key).filter_map(write_one).collect()
}

fn write_match(field: &FieldSchema, of_key: &KeyMatch) -> Option<field_match::FieldMatchType> {
    use field_match::FieldMatchType as Kind;
    let bytes = |value: &Bits| field.value.write(value);
    // All of a translated value is matched, in the width that controllers know.
    let translated = if field.value.is_ordered() {
        None
    } else {
        field.value.sdn_bits()
    };
    let length = |bits: u32| i32::try_from(translated.unwrap_or(bits)).unwrap_or(i32::MAX);
    Some(match of_key {
        KeyMatch::Any => return None,
        KeyMatch::Exact(value) | KeyMatch::Ternary { value, .. }
            if field.kind == MatchKind::Optional =>
        {
            Kind::Optional(field_match::Optional {
                value: bytes(value),
            })
        }
        KeyMatch::Exact(value) => Kind::Exact(field_match::Exact {
            value: bytes(value),
        }),
        KeyMatch::Lpm { value, prefix_len } => Kind::Lpm(field_match::Lpm {
            value: bytes(value),
            prefix_len: length(*prefix_len),
        }),
        KeyMatch::Ternary { value, mask } if field.kind == MatchKind::Lpm => {
            Kind::Lpm(field_match::Lpm {
                value: bytes(value),
                prefix_len: length(ones(mask)),
            })
        }
        KeyMatch::Ternary { value, mask } => Kind::Ternary(field_match::Ternary {
            value: bytes(value),
            mask: translated.map_or_else(
                || mask.to_canonical_bytes(),
                |bits| Bits::ones(bits).to_canonical_bytes(),
            ),
        }),
        KeyMatch::Range { low, high } => Kind::Range(field_match::Range {
            low: bytes(low),
            high: bytes(high),
        }),
    })
}
