//! The deadlock check.

use ::wormcast_routing::deadlock::{Branching, ChannelGraph};
use ::wormcast_routing::routes::read_routes;
use pyo3::prelude::*;

use crate::{host_id, plan_routes, read_topology, run, text};

/// Adds these functions to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(verify, module)?)?;
    Ok(())
}

/// Deadlock check of a file of routes, or of all routes of an algorithm, together with
/// TREE routes (src, route).
#[pyfunction]
#[pyo3(signature = (topology, routes = None, algorithm = None, trees = Vec::new(),
                    branching = "independent", root = None))]
fn verify(
    py: Python<'_>,
    topology: &str,
    routes: Option<&str>,
    algorithm: Option<&str>,
    trees: Vec<(i64, Vec<u8>)>,
    branching: &str,
    root: Option<i64>,
) -> PyResult<String> {
    run(py, || {
        let topology = read_topology(topology)?;
        let branching: Branching = branching.parse().map_err(text)?;
        let mut graph = ChannelGraph::new(&topology, branching);
        if let Some(routes) = routes {
            for route in read_routes(routes).map_err(text)? {
                graph.add_route(&route).map_err(text)?;
            }
        }
        if let Some(algorithm) = algorithm {
            graph.add_routes(&plan_routes(&topology, algorithm, root)?);
        }
        for (src, route) in trees {
            graph.add_tree(host_id(src)?, &route).map_err(text)?;
        }
        Ok(graph.check().to_json())
    })
}
