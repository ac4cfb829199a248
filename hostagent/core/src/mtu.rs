//! The MTU by path: how long frames of a group may be, as a plan says.

use crate::plan::fields::{PlanRejected, rejected};
use wormcast_wire::{GroupId, MTU_MAX, MTU_MIN};

pub(crate) fn parse_mtu(id: GroupId, value: Option<u32>) -> Result<Option<u16>, PlanRejected> {
    match value {
        None | Some(0) => Ok(None),
        Some(mtu) if (MTU_MIN..=MTU_MAX).contains(&(mtu as usize)) => Ok(Some(mtu as u16)),
        Some(mtu) => rejected(format!(
            "the MTU of group {id} is {mtu}; it must be {MTU_MIN} to {MTU_MAX}, or 0 for that of the interface"
        )),
    }
}
