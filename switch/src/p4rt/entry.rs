//! Table entries: messages to entries of the pipeline, and back.

use std::collections::BTreeMap;

use super::bytestring;
use super::proto::p4::v1::{
    self as p4, FieldMatch, TableAction, action, field_match, table_action,
};
use super::rejection::Rejection;
use super::schema::{ActionSchema, FieldSchema, TableSchema};
use crate::pipeline::{ActionCall, Bits, EntryAction, FieldMatch as KeyMatch};
use crate::program::MatchKind;
use tonic::Code;

/// The key of an entry: one match for each field of the table, in order.
pub fn parse_key(table: &TableSchema, matches: &[FieldMatch]) -> Result<Vec<KeyMatch>, Rejection> {
    for given in matches {
        if !table.fields.iter().any(|field| field.id == given.field_id) {
            return Err(Rejection::invalid(format!(
                "table `{}` has no match field with the id {}; it has {}",
                table.name,
                given.field_id,
                list(table.fields.iter().map(|field| (field.id, &field.name)))
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
                "table `{}`: match field `{}`",
                table.name, field.name
            ))
        })
    };
    table.fields.iter().map(parse_one).collect()
}

fn parse_field(field: &FieldSchema, given: &FieldMatch) -> Result<KeyMatch, Rejection> {
    use field_match::FieldMatchType;
    let parse = |bytes: &[u8]| bytestring::parse(bytes, field.width_bits);
    let leave_out = |what: &str| {
        Err(Rejection::invalid(format!(
            "{what} matches anything; leave the field out instead"
        )))
    };
    match (field.kind, &given.field_match_type) {
        (MatchKind::Exact | MatchKind::Valid, Some(FieldMatchType::Exact(exact))) => {
            Ok(KeyMatch::Exact(parse(&exact.value)?))
        }
        (MatchKind::Optional, Some(FieldMatchType::Optional(optional))) => {
            Ok(KeyMatch::Exact(parse(&optional.value)?))
        }
        (MatchKind::Lpm, Some(FieldMatchType::Lpm(lpm))) => {
            let value = parse(&lpm.value)?;
            let prefix_len = match u32::try_from(lpm.prefix_len) {
                Ok(0) => return leave_out("a prefix of length 0"),
                Ok(length) if length <= field.width_bits => length,
                Ok(_) | Err(_) => {
                    return Err(Rejection::invalid(format!(
                        "a prefix of length {} is not possible: 1 to {}",
                        lpm.prefix_len, field.width_bits
                    )));
                }
            };
            let mask = Bits::prefix_mask(field.width_bits, prefix_len);
            if value.and(&mask) != value {
                return Err(Rejection::invalid(format!(
                    "value {value} has ones after its first {prefix_len} of {} bits",
                    field.width_bits
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
            if low == Bits::default() && high == Bits::ones(field.width_bits) {
                return leave_out("the whole range");
            }
            Ok(KeyMatch::Range { low, high })
        }
        (kind, Some(other)) => Err(Rejection::invalid(format!(
            "it is matched by {kind}, not by {}",
            match other {
                FieldMatchType::Exact(_) => "exact",
                FieldMatchType::Ternary(_) => "ternary",
                FieldMatchType::Lpm(_) => "lpm",
                FieldMatchType::Range(_) => "range",
                FieldMatchType::Optional(_) => "optional",
                FieldMatchType::Other(_) => "another kind",
            }
        ))),
        (kind, None) => Err(Rejection::invalid(format!(
            "its match is not set; it is matched by {kind}"
        ))),
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
            mask: Bits::ones(field.width_bits),
        },
        KeyMatch::Lpm { value, prefix_len } => KeyMatch::Ternary {
            value,
            mask: Bits::prefix_mask(field.width_bits, prefix_len),
        },
        KeyMatch::Any | KeyMatch::Ternary { .. } | KeyMatch::Range { .. } => of_key,
    }
}

/// The matches of a key, with what matches anything left out.
pub fn write_key(table: &TableSchema, key: &[KeyMatch]) -> Vec<FieldMatch> {
    let write_one = |(field, of_key): (&FieldSchema, &KeyMatch)| {
        let bytes = Bits::to_canonical_bytes;
        use field_match::FieldMatchType as Kind;
        let kind = match of_key {
            KeyMatch::Any => return None,
            KeyMatch::Exact(value) if field.kind == MatchKind::Optional => {
                Kind::Optional(field_match::Optional {
                    value: bytes(value),
                })
            }
            KeyMatch::Exact(value) => Kind::Exact(field_match::Exact {
                value: bytes(value),
            }),
            KeyMatch::Lpm { value, prefix_len } => Kind::Lpm(field_match::Lpm {
                value: bytes(value),
                prefix_len: i32::try_from(*prefix_len).unwrap_or(i32::MAX),
            }),
            KeyMatch::Ternary { value, .. } if field.kind == MatchKind::Optional => {
                Kind::Optional(field_match::Optional {
                    value: bytes(value),
                })
            }
            KeyMatch::Ternary { value, mask } if field.kind == MatchKind::Lpm => {
                let ones = mask.as_bytes().iter().map(|byte| byte.count_ones());
                Kind::Lpm(field_match::Lpm {
                    value: bytes(value),
                    prefix_len: i32::try_from(ones.sum::<u32>()).unwrap_or(i32::MAX),
                })
            }
            KeyMatch::Ternary { value, mask } => Kind::Ternary(field_match::Ternary {
                value: bytes(value),
                mask: bytes(mask),
            }),
            KeyMatch::Range { low, high } => Kind::Range(field_match::Range {
                low: bytes(low),
                high: bytes(high),
            }),
        };
        Some(FieldMatch {
            field_id: field.id,
            field_match_type: Some(kind),
        })
    };
    table.fields.iter().zip(key).filter_map(write_one).collect()
}

/// Whether an action is wanted for an entry or for the default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActionUse {
    /// For an entry.
    Entry,
    /// For the default.
    Default,
}

/// What an entry or the default of a table does.
pub fn parse_action(
    table: &TableSchema,
    given: &TableAction,
    wanted: ActionUse,
) -> Result<EntryAction, Rejection> {
    use table_action::Type;
    let what = format!("table `{}`", table.name);
    let by_profile = table.profile_id.is_some() && wanted == ActionUse::Entry;
    match &given.r#type {
        Some(Type::Action(action)) if !by_profile => {
            parse_call(&what, &table.actions, action, wanted).map(EntryAction::Call)
        }
        Some(Type::ActionProfileMemberId(member)) if by_profile => Ok(EntryAction::Member(*member)),
        Some(Type::ActionProfileGroupId(group)) if by_profile => Ok(EntryAction::Group(*group)),
        Some(Type::ActionProfileActionSet(_)) if by_profile => Err(Rejection::unimplemented(
            format!("{what}: sets of actions are not supported; use members and groups"),
        )),
        Some(_) if by_profile => Err(Rejection::invalid(format!(
            "{what}: its entries refer to members or groups of an action profile, not to actions"
        ))),
        Some(_) => Err(Rejection::invalid(format!(
            "{what}: it takes an action, not members or groups of an action profile"
        ))),
        None => Err(Rejection::invalid(format!(
            "{what}: the action's type is not set"
        ))),
    }
}

/// An action with its arguments, out of those that `what` has.
pub fn parse_call(
    what: &str,
    actions: &BTreeMap<u32, ActionSchema>,
    given: &p4::Action,
    wanted: ActionUse,
) -> Result<ActionCall, Rejection> {
    let Some(action) = actions.get(&given.action_id) else {
        return Err(Rejection::invalid(format!(
            "{what} has no action with the id {}; it has {}",
            given.action_id,
            list(actions.values().map(|action| (action.id, &action.name)))
        )));
    };
    let denied = |for_what: &str| {
        Err(Rejection::new(
            Code::PermissionDenied,
            format!("{what}: action `{}` is {for_what}", action.name),
        ))
    };
    match wanted {
        ActionUse::Entry if !action.for_entries => return denied("for the default action only"),
        ActionUse::Default if !action.for_default => return denied("for entries only"),
        ActionUse::Entry | ActionUse::Default => {}
    }
    let arguments = parse_arguments(action, &given.params)
        .map_err(|rejection| rejection.within(format_args!("{what}: action `{}`", action.name)))?;
    Ok(ActionCall {
        action: action.action,
        arguments,
    })
}

fn parse_arguments(action: &ActionSchema, given: &[action::Param]) -> Result<Vec<Bits>, Rejection> {
    for argument in given {
        if !action
            .parameters
            .iter()
            .any(|parameter| parameter.id == argument.param_id)
        {
            return Err(Rejection::invalid(format!(
                "it has no parameter with the id {}; it has {}",
                argument.param_id,
                list(
                    action
                        .parameters
                        .iter()
                        .map(|parameter| (parameter.id, &parameter.name))
                )
            )));
        }
    }
    let mut arguments = Vec::new();
    for parameter in &action.parameters {
        let mut of_parameter = given
            .iter()
            .filter(|argument| argument.param_id == parameter.id);
        let parsed = match (of_parameter.next(), of_parameter.next()) {
            (Some(argument), None) => bytestring::parse(&argument.value, parameter.width_bits),
            (None, _) => Err(Rejection::invalid("it is missing")),
            (Some(_), Some(_)) => Err(Rejection::invalid("it is there twice")),
        };
        arguments.push(parsed.map_err(|rejection| {
            rejection.within(format_args!("parameter `{}`", parameter.name))
        })?);
    }
    Ok(arguments)
}

/// The message for what an entry or the default does. `None` for an action that the
/// P4Info does not have.
pub fn write_action(table: &TableSchema, action: &EntryAction) -> Option<TableAction> {
    let kind = match action {
        EntryAction::Call(call) => table_action::Type::Action(write_call(&table.actions, call)?),
        EntryAction::Member(member) => table_action::Type::ActionProfileMemberId(*member),
        EntryAction::Group(group) => table_action::Type::ActionProfileGroupId(*group),
    };
    Some(TableAction { r#type: Some(kind) })
}

/// The message for an action with its arguments; `None` if it is not one of these.
pub fn write_call(actions: &BTreeMap<u32, ActionSchema>, call: &ActionCall) -> Option<p4::Action> {
    let mut all = actions.values();
    let action = all.find(|action| action.action == call.action)?;
    let params = action
        .parameters
        .iter()
        .zip(&call.arguments)
        .map(|(parameter, value)| action::Param {
            param_id: parameter.id,
            value: value.to_canonical_bytes(),
        });
    Some(p4::Action {
        action_id: action.id,
        params: params.collect(),
    })
}

/// `1 (port), 2 (pad)`, or `none`.
fn list<'a>(items: impl Iterator<Item = (u32, &'a String)>) -> String {
    let items: Vec<String> = items.map(|(id, name)| format!("{id} ({name})")).collect();
    if items.is_empty() {
        "none".to_owned()
    } else {
        items.join(", ")
    }
}
