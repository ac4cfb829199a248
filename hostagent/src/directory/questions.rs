//! What questions and answers of the controller name.

use super::rpc;
use wormcast_agent_core::applications::answers::Answer;
use wormcast_agent_core::clients::limits::ANSWER_BYTES_MAX;
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

/// What another host says of a message of this one.
pub(super) fn read_answer(answer: rpc::Answer) -> Result<Answer, String> {
    let bytes = answer.text.len();
    if bytes > ANSWER_BYTES_MAX {
        return Err(format!(
            "an answer of {bytes} bytes; at most {ANSWER_BYTES_MAX}"
        ));
    }
    Ok(Answer {
        group: read_group(answer.group)?,
        host: read_host("host", answer.host)?,
        text: answer.text,
    })
}
