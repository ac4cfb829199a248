//! Structures over the hosts of a group.

use ::wormcast_planner::auto::plan_file;
use ::wormcast_routing::group::{self, GroupRequest, Order};
use ::wormcast_routing::routes::Algorithm;
use ::wormcast_routing::structure::{FAN_OUT_DEFAULT, buffers, k_binomial};
use pyo3::prelude::*;
use wormcast_wire::{HOST_ID_MAX, Replication, Scheme, SchemeName};

use crate::{bounded, host_ids, plan_routes, plan_updown, read_topology, run, switch_id, text};

/// Adds these functions to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("FAN_OUT_DEFAULT", FAN_OUT_DEFAULT)?;
    module.add_function(wrap_pyfunction!(schemes, module)?)?;
    module.add_function(wrap_pyfunction!(carried_schemes, module)?)?;
    module.add_function(wrap_pyfunction!(is_copied_by_switches, module)?)?;
    module.add_function(wrap_pyfunction!(plan_group, module)?)?;
    module.add_function(wrap_pyfunction!(order_members, module)?)?;
    module.add_function(wrap_pyfunction!(tree_edges, module)?)?;
    module.add_function(wrap_pyfunction!(optimal_k, module)?)?;
    module.add_function(wrap_pyfunction!(find_buffer_cycle, module)?)?;
    Ok(())
}

/// Names of the schemes.
#[pyfunction]
fn schemes() -> Vec<&'static str> {
    group::Scheme::NAMES.to_vec()
}

/// Names of those by which agents carry groups.
#[pyfunction]
fn carried_schemes() -> Vec<&'static str> {
    Scheme::ALL.map(Scheme::name).to_vec()
}

/// Whether switches copy the messages of a scheme; false of names that are no scheme.
#[pyfunction]
fn is_copied_by_switches(scheme: &str) -> bool {
    SchemeName::from_name(scheme).map(SchemeName::replication) == Some(Replication::Switches)
}

/// A group file from a request {"scheme", "source", "members", "parameters"}, the scheme
/// `auto` among them; with `metrics`, what its sends cost the network too.
#[pyfunction]
#[pyo3(signature = (topology, request, root = None, metrics = false))]
fn plan_group(
    py: Python<'_>,
    topology: &str,
    request: &str,
    root: Option<i64>,
    metrics: bool,
) -> PyResult<String> {
    run(py, || {
        let topology = read_topology(topology)?;
        let root = root.map(switch_id).transpose()?;
        plan_file(&topology, root, request, metrics).map_err(text)
    })
}

/// Members in an order: "id" (or "ascending"), "cco", "dimension", "hamiltonian",
/// "random" from a seed.
#[pyfunction]
#[pyo3(signature = (topology, members, kind = "cco", root = None, seed = 0))]
fn order_members(
    py: Python<'_>,
    topology: &str,
    members: Vec<i64>,
    kind: &str,
    root: Option<i64>,
    seed: u64,
) -> PyResult<Vec<u16>> {
    run(py, || {
        let topology = read_topology(topology)?;
        let updown = plan_updown(&topology, root)?;
        let order = match Order::from_name(kind).map_err(text)? {
            Order::Random { .. } => Order::Random { seed },
            order => order,
        };
        let ordered = order
            .apply(&topology, &updown, &host_ids(&members)?)
            .map_err(text)?;
        Ok(ordered.into_iter().map(|host| host.0).collect())
    })
}

/// Edges (parent, child) of the rooted tree over these members.
#[pyfunction]
#[pyo3(signature = (topology, members, fan_out = FAN_OUT_DEFAULT.into(), root = None))]
fn tree_edges(
    py: Python<'_>,
    topology: &str,
    members: Vec<i64>,
    fan_out: i64,
    root: Option<i64>,
) -> PyResult<Vec<(u16, u16)>> {
    run(py, || {
        let topology = read_topology(topology)?;
        let routes = plan_routes(&topology, Algorithm::Osud.name(), root)?;
        let fan_out = bounded("fan_out", fan_out, 1, HOST_ID_MAX.into())? as u32;
        let tree = group::plan_tree(&routes, &host_ids(&members)?, fan_out).map_err(text)?;
        Ok(tree
            .edges()
            .map(|(parent, child)| (parent.0, child.0))
            .collect())
    })
}

/// (k, steps) of the k-binomial tree that is best for so many hosts, source included,
/// and packets.
#[pyfunction]
fn optimal_k(py: Python<'_>, hosts: i64, packets: i64) -> PyResult<(u32, u64)> {
    run(py, || {
        let hosts = bounded("hosts", hosts, 1, 65_535)? as usize;
        let packets = bounded("packets", packets, 1, u32::MAX.into())? as u32;
        let k = k_binomial::optimal_k(hosts, packets);
        Ok((k, k_binomial::steps(hosts, packets, k)))
    })
}

/// A shortest cycle of (host, class) buffers that groups with these plans can make if
/// they share buffers, or None.
#[pyfunction]
#[pyo3(signature = (topology, requests, root = None))]
fn find_buffer_cycle(
    py: Python<'_>,
    topology: &str,
    requests: Vec<String>,
    root: Option<i64>,
) -> PyResult<Option<Vec<(u16, u8)>>> {
    run(py, || {
        let topology = read_topology(topology)?;
        let root = root.map(switch_id).transpose()?;
        let mut structures = Vec::new();
        for request in &requests {
            let request = GroupRequest::from_json(request).map_err(text)?;
            let structure = group::plan_structure_on(&topology, root, &request);
            structures.extend(structure.map_err(text)?);
        }
        let cycle = buffers::find_cycle(&structures);
        Ok(cycle.map(|cycle| {
            cycle
                .iter()
                .map(|(host, class)| (host.0, class.number()))
                .collect()
        }))
    })
}
