//! Structures over the hosts of a group.

use ::wormcast_planner::auto::plan_file;
use ::wormcast_routing::group::{self, Order, SHARED_TREES_MAX};
use ::wormcast_routing::structure::FAN_OUT_DEFAULT;
use ::wormcast_routing::structure::postal::LAMBDA_MAX;
use pyo3::prelude::*;
use wormcast_wire::{Replication, SchemeName};

use crate::arguments::{host_ids, plan_updown, read_topology, run, switch_id, text};

/// Adds these functions to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("FAN_OUT_DEFAULT", FAN_OUT_DEFAULT)?;
    module.add_function(wrap_pyfunction!(schemes, module)?)?;
    module.add("LAMBDA_MAX", LAMBDA_MAX)?;
    module.add("SHARED_TREES_MAX", SHARED_TREES_MAX)?;
    module.add_function(wrap_pyfunction!(needs_grid, module)?)?;
    module.add_function(wrap_pyfunction!(is_copied_by_switches, module)?)?;
    module.add_function(wrap_pyfunction!(plan_group, module)?)?;
    module.add_function(wrap_pyfunction!(order_members, module)?)?;
    Ok(())
}

/// Names of the schemes.
#[pyfunction]
fn schemes() -> Vec<&'static str> {
    group::Scheme::NAMES.to_vec()
}

/// Whether a scheme goes by the coordinates of a torus or mesh.
#[pyfunction]
fn needs_grid(scheme: &str) -> bool {
    group::Scheme::from_name(scheme).is_ok_and(group::Scheme::goes_by_coordinates)
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
