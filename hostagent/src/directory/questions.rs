//! What questions of the controller name.

use wormcast_wire::{GroupId, HOST_ID_MAX, HostId};

/// A host that a question names.
pub(super) fn read_host(what: &str, id: u32) -> Result<HostId, String> {
    match u16::try_from(id) {
        Ok(id) if id <= HOST_ID_MAX => Ok(HostId(id)),
        _ => Err(format!("{what} {id} is none; hosts are 0 to {HOST_ID_MAX}")),
    }
}

/// A group that a question names.
pub(super) fn read_group(group: u32) -> Result<GroupId, String> {
    let id = u16::try_from(group).map(GroupId).ok();
    let id = id.filter(|id| *id != GroupId::BROADCAST);
    id.ok_or_else(|| format!("group {group} is none; groups are 0 to 65535 without 255"))
}
