//! Roots and paths that lower the load of the busiest channel.

use ::wormcast_routing::routes::{Algorithm, Balance};
use ::wormcast_routing::topology::Topology;
use pyo3::prelude::*;

use crate::arguments::{ALGORITHM_DEFAULT, Answer, read_topology, run, switch_id, text};

/// Adds these functions to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(balance_report, module)?)?;
    module.add_function(wrap_pyfunction!(plan_balanced_routes, module)?)?;
    Ok(())
}

/// Loads of all channels under the plain routes and under the balanced ones.
#[pyfunction]
#[pyo3(signature = (topology, algorithm = ALGORITHM_DEFAULT, root = None))]
fn balance_report(
    py: Python<'_>,
    topology: &str,
    algorithm: &str,
    root: Option<i64>,
) -> PyResult<String> {
    run(py, || {
        let topology = read_topology(topology)?;
        Ok(find(&topology, algorithm, root)?.to_json())
    })
}

/// A file of the balanced routes between all hosts.
#[pyfunction]
#[pyo3(signature = (topology, algorithm = ALGORITHM_DEFAULT, root = None))]
fn plan_balanced_routes(
    py: Python<'_>,
    topology: &str,
    algorithm: &str,
    root: Option<i64>,
) -> PyResult<String> {
    run(py, || {
        let topology = read_topology(topology)?;
        Ok(find(&topology, algorithm, root)?.chosen.to_json())
    })
}

fn find<'t>(topology: &'t Topology, algorithm: &str, root: Option<i64>) -> Answer<Balance<'t>> {
    let algorithm: Algorithm = algorithm.parse().map_err(text)?;
    let root = root.map(switch_id).transpose()?;
    Balance::find(topology, algorithm, root).map_err(text)
}
