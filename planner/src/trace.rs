//! Traces: what switches write into worms that ask for it.

use wormcast_wire::SwitchId;

use crate::model::state::{TableDefault, action};

pub(crate) const TABLE_TRACE: &str = "egress.trace";

/// The number by which a switch signs its records of hops.
pub(crate) fn trace_default(switch: SwitchId) -> TableDefault {
    TableDefault {
        table: TABLE_TRACE.into(),
        action: action("egress.trace_as", &[("switch", switch.0.into())]),
    }
}
