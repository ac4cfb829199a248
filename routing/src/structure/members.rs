//! What is asked of the members of a group.

use super::error::StructureError;
use wormcast_wire::HostId;

/// That there are members, and each once.
pub(super) fn check_members(order: &[HostId]) -> Result<(), StructureError> {
    if order.is_empty() {
        return Err(StructureError::NoMembers);
    }
    let mut sorted = order.to_vec();
    sorted.sort_unstable();
    match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(StructureError::MemberTwice { host: pair[0] }),
        None => Ok(()),
    }
}
