//! Groups as applications name them, and as they are described to applications.

use crate::api::{ApiError, ErrorCode, GroupSelector};
use crate::clients::Serving;
use crate::clients::limits::CHOICES_MAX;
use crate::plan::PlannedGroup;
use serde_json::{Value, json};
use wormcast_wire::{GroupId, HostId};

pub(super) fn no_plan() -> ApiError {
    let text = "no plan from the controller yet; `wormcast status` shows whether it is connected";
    ApiError::new(ErrorCode::NoPlan, text)
}

pub(super) fn find_group<'a>(
    serving: &Serving<'a>,
    selector: &GroupSelector,
) -> Result<&'a PlannedGroup, ApiError> {
    let groups = serving.groups.ok_or_else(no_plan)?;
    let found = match selector {
        GroupSelector::Number(255) => {
            let text = "group 255 is broadcast and takes no senders or receivers; groups are 0 to 65535 without 255";
            return Err(ApiError::new(ErrorCode::OutOfRange, text));
        }
        GroupSelector::Number(number) => {
            let Ok(id) = u16::try_from(*number) else {
                let text = format!("group {number}; groups are 0 to 65535 without 255");
                return Err(ApiError::new(ErrorCode::OutOfRange, text));
            };
            groups.get(&GroupId(id))
        }
        GroupSelector::Name(name) => groups.values().find(|group| group.name == *name),
    };
    found.map(AsRef::as_ref).ok_or_else(|| {
        let host = serving
            .host
            .map_or_else(|| "this host".to_owned(), |host| format!("host {host}"));
        let shown = || groups.values().take(CHOICES_MAX);
        let mut names: Vec<String> = shown().map(|group| label(group)).collect();
        if groups.len() > CHOICES_MAX {
            names.push(format!("{} more", groups.len() - CHOICES_MAX));
        }
        ApiError {
            code: ErrorCode::UnknownGroup,
            message: format!(
                "{host} is not a member of {selector}; it is a member of: {}",
                if names.is_empty() {
                    "none".to_owned()
                } else {
                    names.join(", ")
                }
            ),
            choices: shown().map(|group| Value::from(group.id.0)).collect(),
        }
    })
}

pub(super) fn find_origin(
    group: &PlannedGroup,
    origin: u32,
    own: Option<HostId>,
) -> Result<HostId, ApiError> {
    let known = group
        .members
        .iter()
        .copied()
        .find(|member| u32::from(member.0) == origin);
    let others: Vec<u16> = group
        .members
        .iter()
        .filter(|&&member| Some(member) != own)
        .map(|member| member.0)
        .collect();
    known.filter(|&member| Some(member) != own).ok_or_else(|| {
        let names: Vec<String> = others.iter().map(ToString::to_string).collect();
        ApiError {
            code: ErrorCode::OutOfRange,
            message: format!(
                "host {origin} is not another member of group {}; those are: {}",
                group.id,
                names.join(", ")
            ),
            choices: others.iter().map(|&host| host.into()).collect(),
        }
    })
}

fn label(group: &PlannedGroup) -> String {
    if group.name.is_empty() {
        group.id.0.to_string()
    } else {
        format!("{} ({})", group.id.0, group.name)
    }
}

/// Bytes that a group takes in an answer, roughly.
pub(super) fn group_bytes(group: &PlannedGroup) -> usize {
    const WITHOUT_LISTS: usize = 140;
    const MEMBER: usize = 6;
    const STRUCTURE: usize = 50;
    const EXPECTED: usize = 60;
    const LEFT_OUT: usize = 30;
    let left_out = group.left_out.iter();
    let left_out = left_out.map(|one| LEFT_OUT + one.reason.len());
    let structures = group.structures.iter();
    let structures = structures.map(|one| STRUCTURE + EXPECTED * one.expected.len());
    WITHOUT_LISTS
        + group.name.len()
        + MEMBER * group.members.len()
        + structures.sum::<usize>()
        + left_out.sum::<usize>()
}

pub(super) fn describe_group(group: &PlannedGroup) -> Value {
    let members: Vec<u16> = group.members.iter().map(|member| member.0).collect();
    json!({
        "group": group.id.0,
        "name": group.name,
        "scheme": group.scheme_name(),
        "members": members,
        "left_out": group.left_out.iter().map(|one| json!({
            "host": one.host.0, "reason": one.reason,
        })).collect::<Vec<Value>>(),
        "ordered": group.sequencer.is_some(),
        "sink": group.sink,
        "rate_bits": group.rate_bits,
        "structures": group.structures.iter().map(|one| json!({
            "scheme": one.scheme.name(),
            "bytes_most": (one.bytes_most < u64::MAX).then_some(one.bytes_most),
            "expected": one.expected.iter().map(|&(bytes, microseconds)| json!({
                "bytes": bytes, "microseconds": microseconds,
            })).collect::<Vec<Value>>(),
        })).collect::<Vec<Value>>(),
        "mtu_bytes": group.mtu,
    })
}
