//! Python binding of wormcast-planner and wormcast-routing.
//!
//! Files go in and out as JSON text, everything else as plain values; `wormcast.routing`
//! puts dictionaries on top. Whatever is refused raises `RoutingError`, a `ValueError`.
//! Planning releases the interpreter lock.

mod agents;
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

use std::fmt::Display;

use ::wormcast_routing::routes::{Algorithm, Routes, Setting};
use ::wormcast_routing::topology::Topology;
use ::wormcast_routing::updown::UpDown;
use pyo3::create_exception;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use wormcast_wire::{
    ALTERNATIVES_MAX, GroupId, HOST_ID_MAX, HostId, PORT_ID_MAX, PortId, SWITCH_ID_MAX, SwitchId,
};

create_exception!(
    wormcast_planner,
    RoutingError,
    PyValueError,
    "Input that is refused; the text names the value, the bound and the choices."
);

/// The algorithm of unicast routes unless another is named: one shortest up*/down* path a pair,
/// without in-transit hosts.
const ALGORITHM_DEFAULT: &str = Algorithm::Osud.name();

type Answer<T> = Result<T, String>;

/// Runs without the interpreter lock; what is refused becomes a `RoutingError`.
fn run<T: Send>(py: Python<'_>, work: impl FnOnce() -> Answer<T> + Send) -> PyResult<T> {
    py.detach(work).map_err(RoutingError::new_err)
}

fn text(error: impl Display) -> String {
    error.to_string()
}

fn read_topology(topology: &str) -> Answer<Topology> {
    Topology::from_json_split(topology).map_err(text)
}

fn host_ids(hosts: &[i64]) -> Answer<Vec<HostId>> {
    hosts.iter().map(|&host| host_id(host)).collect()
}

fn host_id(host: i64) -> Answer<HostId> {
    bounded("host", host, 0, HOST_ID_MAX.into()).map(|host| HostId(host as u16))
}

fn switch_id(switch: i64) -> Answer<SwitchId> {
    bounded("switch", switch, 0, SWITCH_ID_MAX.into()).map(|switch| SwitchId(switch as u16))
}

fn port_id(port: i64) -> Answer<PortId> {
    let port = bounded("port", port, 0, PORT_ID_MAX.into())?;
    Ok(PortId::new(port as u8).expect("bounded"))
}

fn bounded(what: &str, value: i64, least: i64, most: i64) -> Answer<i64> {
    match (least..=most).contains(&value) {
        true => Ok(value),
        false => Err(format!("{what} {value} is outside {least} to {most}")),
    }
}

fn plan_updown(topology: &Topology, root: Option<i64>) -> Answer<UpDown> {
    UpDown::new(topology, root.map(switch_id).transpose()?).map_err(text)
}

fn setting(algorithm: &str, root: Option<i64>, balanced: bool) -> Answer<Setting> {
    let setting = Setting {
        algorithm: algorithm.parse().map_err(text)?,
        root: root.map(switch_id).transpose()?,
        balanced,
    };
    setting.check().map_err(text)?;
    Ok(setting)
}

fn plan_routes<'t>(
    topology: &'t Topology,
    algorithm: &str,
    root: Option<i64>,
    balanced: bool,
) -> Answer<Routes<'t>> {
    let setting = setting(algorithm, root, balanced)?;
    if let Some(root) = setting.root {
        topology.switch_index(root).map_err(text)?;
    }
    setting.plan(topology).map_err(text)
}

fn seed(seed: i64) -> Answer<u64> {
    bounded("seed", seed, 0, i64::MAX).map(|seed| seed as u64)
}

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
    switches::register(module)?;
    planning::register(module)
}
