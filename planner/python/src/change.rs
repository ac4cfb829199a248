//! Safe changes of routes.

use ::wormcast_planner::change::{Change, plan};
use ::wormcast_routing::routes::{Algorithm, read_routes};
use pyo3::prelude::*;

use crate::arguments::{ALGORITHM_DEFAULT, read_topology, run, switch_id, text};

/// Adds this function to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(plan_change, module)?)
}

/// A change file: the steps from the routes in force to those of the new topology.
#[pyfunction]
#[pyo3(signature = (topology, new, algorithm = ALGORITHM_DEFAULT, root = None, routes = None,
                    new_root = None, planned = false))]
#[allow(clippy::too_many_arguments)] // the keywords of one Python function
fn plan_change(
    py: Python<'_>,
    topology: &str,
    new: &str,
    algorithm: &str,
    root: Option<i64>,
    routes: Option<&str>,
    new_root: Option<i64>,
    planned: bool,
) -> PyResult<String> {
    run(py, || {
        let (old, new) = (read_topology(topology)?, read_topology(new)?);
        let algorithm: Algorithm = algorithm.parse().map_err(text)?;
        let routes = routes.map(read_routes).transpose().map_err(text)?;
        let change = Change {
            old: &old,
            new: &new,
            algorithm,
            root: root.map(switch_id).transpose()?,
            routes: routes.as_deref(),
            new_root: new_root.map(switch_id).transpose()?,
            planned,
        };
        plan(&change).map(|plan| plan.to_json()).map_err(text)
    })
}
