//! Actions with their arguments, between messages and the program.

use std::collections::BTreeMap;
use std::fmt;

use super::absent::left_out;
use super::ids::list;
use super::proto::p4::v1::{self as p4, action};
use super::rejection::Rejection;
use super::schema::ActionSchema;
use tonic::Code;
use wormcast_switch_program::{ActionCall, Bits};

/// Whether an action is wanted for an entry or for the default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActionUse {
    Entry,
    Default,
}

/// An action with its arguments, out of those that `what` has.
pub fn parse_call(
    what: impl fmt::Display,
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
    let Some(of_program) = action.action else {
        let which = match action.lacks.as_slice() {
            [] => String::new(),
            lacks => format!("parameter `{}` of ", lacks.join("`, `")),
        };
        let what = format!("{what}: {which}action `{}` (id {})", action.name, action.id);
        return Err(Rejection::not_found(left_out(what)));
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
        action: of_program,
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
            (Some(argument), None) => parameter.value.parse(&argument.value),
            (None, _) => Err(Rejection::invalid("it is missing")),
            (Some(_), Some(_)) => Err(Rejection::invalid("it is there twice")),
        };
        arguments.push(parsed.map_err(|rejection| {
            rejection.within(format_args!(
                "parameter `{}` (id {})",
                parameter.name, parameter.id
            ))
        })?);
    }
    Ok(arguments)
}

/// The message for an action with its arguments; `None` if it is not one of these.
pub fn write_call(actions: &BTreeMap<u32, ActionSchema>, call: &ActionCall) -> Option<p4::Action> {
    let mut all = actions.values();
    let action = all.find(|action| action.action == Some(call.action))?;
    let params = action
        .parameters
        .iter()
        .zip(&call.arguments)
        .map(|(parameter, value)| action::Param {
            param_id: parameter.id,
            value: parameter.value.write(value),
        });
    Some(p4::Action {
        action_id: action.id,
        params: params.collect(),
    })
}
