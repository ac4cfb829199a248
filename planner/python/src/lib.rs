//! Python binding of wormcast-planner and wormcast-routing.
//!
//! Files go in and out as JSON text, everything else as plain values; `wormcast.routing`
//! puts dictionaries on top. Whatever is refused raises `RoutingError`, a `ValueError`.
//! Planning releases the interpreter lock.

mod agent_messages;
mod agents;
mod arguments;
mod balance;
mod change;
mod class_d;
mod cost;
mod foreign;
mod forwarding;
mod given_group;
mod given_topology;
mod groups;
mod planning;
mod routes;
mod switches;
mod topologies;
mod verdicts;

use pyo3::prelude::*;
use wormcast_wire::{
    ALTERNATIVES_MAX, GroupId, HOST_ID_MAX, MTU_MAX, MTU_MIN, PORT_ID_MAX, SWITCH_ID_MAX,
};

use arguments::{ALGORITHM_DEFAULT, RoutingError};

/// Topologies, deadlock-free routes and multicast structures.
#[pymodule]
fn wormcast_planner(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("RoutingError", module.py().get_type::<RoutingError>())?;
    module.add("ALGORITHM_DEFAULT", ALGORITHM_DEFAULT)?;
    module.add("ALTERNATIVES_MAX", ALTERNATIVES_MAX)?;
    module.add("SWITCH_ID_MAX", SWITCH_ID_MAX)?;
    module.add("HOST_ID_MAX", HOST_ID_MAX)?;
    module.add("PORT_ID_MAX", PORT_ID_MAX)?;
    module.add("GROUP_ID_MAX", u16::MAX)?;
    module.add("MTU_MIN", MTU_MIN)?;
    module.add("MTU_MAX", MTU_MAX)?;
    module.add("GROUP_BROADCAST", GroupId::BROADCAST.0)?;
    topologies::register(module)?;
    routes::register(module)?;
    forwarding::register(module)?;
    balance::register(module)?;
    groups::register(module)?;
    cost::register(module)?;
    verdicts::register(module)?;
    foreign::register(module)?;
    change::register(module)?;
    class_d::register(module)?;
    agent_messages::register(module)?;
    switches::register(module)?;
    planning::register(module)
}
