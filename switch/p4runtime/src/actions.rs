//! What entries do: call an action, or refer to members, groups and sets of an action profile.

use super::calls::{ActionUse, parse_call, write_call};
use super::profiles::{parse_set, write_set};
use super::proto::p4::v1::{TableAction, table_action};
use super::rejection::Rejection;
use super::schema::{Schema, TableSchema};
use wormcast_switch_pipeline::EntryAction;

/// What an entry or the default of a table does.
pub fn parse_action(
    schema: &Schema,
    table: &TableSchema,
    given: &TableAction,
    wanted: ActionUse,
) -> Result<EntryAction, Rejection> {
    use table_action::Type;
    let what = format_args!("table `{}`", table.name);
    let by_profile = table.profile_id.is_some() && wanted == ActionUse::Entry;
    match &given.r#type {
        Some(Type::Action(action)) if !by_profile => {
            parse_call(what, &table.actions, action, wanted).map(EntryAction::Call)
        }
        Some(Type::ActionProfileMemberId(member)) if by_profile => Ok(EntryAction::Member(*member)),
        Some(Type::ActionProfileGroupId(group)) if by_profile => Ok(EntryAction::Group(*group)),
        Some(Type::ActionProfileActionSet(set)) if by_profile => {
            let profile = table.profile_id.and_then(|id| schema.profile(id));
            let Some(profile) = profile.filter(|profile| profile.has_selector) else {
                return Err(Rejection::invalid(format!(
                    "{what}: its action profile has no selector, so it takes members, not sets \
                     of actions"
                )));
            };
            parse_set(schema, profile, set)
                .map(EntryAction::Set)
                .map_err(|rejection| rejection.within(what))
        }
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

/// The message for what an entry or the default does; `by_number`: ports to watch go into
/// the deprecated fields. `None` for an action that the P4Info does not have.
pub fn write_action(
    schema: &Schema,
    table: &TableSchema,
    action: &EntryAction,
    by_number: bool,
) -> Option<TableAction> {
    let kind = match action {
        EntryAction::Call(call) => table_action::Type::Action(write_call(&table.actions, call)?),
        EntryAction::Member(member) => table_action::Type::ActionProfileMemberId(*member),
        EntryAction::Group(group) => table_action::Type::ActionProfileGroupId(*group),
        EntryAction::Set(set) => {
            let profile = table.profile_id.and_then(|id| schema.profile(id))?;
            table_action::Type::ActionProfileActionSet(write_set(schema, profile, set, by_number)?)
        }
    };
    Some(TableAction { r#type: Some(kind) })
}
