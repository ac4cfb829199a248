//! Fields of a plan that are hosts, and what is said where one is wrong.

use wormcast_wire::ack::SET_BYTES_MAX;
use wormcast_wire::{HOST_ID_MAX, HostId};

/// Members of one group at most. An ACK has a bit for each that lacks messages: one without would seem to have them.
pub const MEMBERS_MAX: usize = 1024;
const _: () = assert!(MEMBERS_MAX <= 8 * SET_BYTES_MAX);
/// Characters of the reason for which a group is refused at most; the rest is cut off.
pub(super) const REASON_CHARS_MAX: usize = 500;

/// Why a plan is refused; the text goes back to the controller.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct PlanRejected(pub(super) String);

pub(crate) fn rejected<T>(text: String) -> Result<T, PlanRejected> {
    Err(PlanRejected(text))
}

pub(crate) fn parse_host(what: &str, value: u32) -> Result<HostId, PlanRejected> {
    match u16::try_from(value) {
        Ok(id) if id <= HOST_ID_MAX => Ok(HostId(id)),
        _ => rejected(format!("{what} is {value}; it must be 0 to {HOST_ID_MAX}")),
    }
}

pub(crate) fn parse_hosts(what: &str, values: &[u32]) -> Result<Vec<HostId>, PlanRejected> {
    if values.len() > MEMBERS_MAX {
        return rejected(format!(
            "{what} has {} hosts; at most {MEMBERS_MAX}",
            values.len()
        ));
    }
    values
        .iter()
        .map(|&value| parse_host(&format!("a host in {what}"), value))
        .collect()
}

pub(crate) fn list(hosts: &[HostId]) -> String {
    let names: Vec<String> = hosts.iter().map(|host| host.0.to_string()).collect();
    if names.is_empty() {
        "none".to_owned()
    } else {
        names.join(", ")
    }
}
