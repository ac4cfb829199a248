//! What Python hands over, read; and what becomes of errors.

use std::fmt::Display;
use std::net::{IpAddr, Ipv4Addr};

use ::wormcast_routing::routes::{Algorithm, Routes, Setting};
use ::wormcast_routing::topology::Topology;
use ::wormcast_routing::updown::UpDown;
use pyo3::create_exception;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use wormcast_wire::{HOST_ID_MAX, HostId, PORT_ID_MAX, PortId, SWITCH_ID_MAX, SwitchId};

create_exception!(
    wormcast_planner,
    RoutingError,
    PyValueError,
    "Input that is refused; the text names the value, the bound and the choices."
);

/// The algorithm of unicast routes unless another is named: one shortest up*/down* path a pair,
/// without in-transit hosts.
pub(crate) const ALGORITHM_DEFAULT: &str = Algorithm::Osud.name();

pub(crate) type Answer<T> = Result<T, String>;

/// Runs without the interpreter lock; what is refused becomes a `RoutingError`.
pub(crate) fn run<T: Send>(py: Python<'_>, work: impl FnOnce() -> Answer<T> + Send) -> PyResult<T> {
    py.detach(work).map_err(RoutingError::new_err)
}

pub(crate) fn text(error: impl Display) -> String {
    error.to_string()
}

pub(crate) fn read_topology(topology: &str) -> Answer<Topology> {
    Topology::from_json_split(topology).map_err(text)
}

pub(crate) fn host_ids(hosts: &[i64]) -> Answer<Vec<HostId>> {
    hosts.iter().map(|&host| host_id(host)).collect()
}

pub(crate) fn host_id(host: i64) -> Answer<HostId> {
    bounded("host", host, 0, HOST_ID_MAX.into()).map(|host| HostId(host as u16))
}

pub(crate) fn switch_id(switch: i64) -> Answer<SwitchId> {
    bounded("switch", switch, 0, SWITCH_ID_MAX.into()).map(|switch| SwitchId(switch as u16))
}

pub(crate) fn port_id(port: i64) -> Answer<PortId> {
    let port = bounded("port", port, 0, PORT_ID_MAX.into())?;
    Ok(PortId::new(port as u8).expect("bounded"))
}

pub(crate) fn bounded(what: &str, value: i64, least: i64, most: i64) -> Answer<i64> {
    if (least..=most).contains(&value) {
        Ok(value)
    } else {
        Err(format!("{what} {value} is outside {least} to {most}"))
    }
}

pub(crate) fn plan_updown(topology: &Topology, root: Option<i64>) -> Answer<UpDown> {
    UpDown::new(topology, root.map(switch_id).transpose()?).map_err(text)
}

pub(crate) fn setting(algorithm: &str, root: Option<i64>, balanced: bool) -> Answer<Setting> {
    let setting = Setting {
        algorithm: algorithm.parse().map_err(text)?,
        root: root.map(switch_id).transpose()?,
        balanced,
    };
    setting.check().map_err(text)?;
    Ok(setting)
}

pub(crate) fn plan_routes<'t>(
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

pub(crate) fn seed(seed: i64) -> Answer<u64> {
    bounded("seed", seed, 0, i64::MAX).map(|seed| seed as u64)
}

/// An address; only IPv4 has class D.
pub(crate) fn ipv4(address: IpAddr) -> PyResult<Ipv4Addr> {
    match address {
        IpAddr::V4(address) => Ok(address),
        IpAddr::V6(_) => Err(RoutingError::new_err(format!("{address} is not IPv4"))),
    }
}
