//! Source routes and the spanning tree.

use ::wormcast_routing::routes::Algorithm;
use pyo3::prelude::*;
use serde_json::json;

use crate::arguments::{
    ALGORITHM_DEFAULT, Answer, RoutingError, host_id, plan_routes, plan_updown, read_topology, run,
    text,
};

/// Adds these functions to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(algorithms, module)?)?;
    module.add_function(wrap_pyfunction!(plan_all_routes, module)?)?;
    module.add_function(wrap_pyfunction!(plan_route, module)?)?;
    module.add_function(wrap_pyfunction!(summarize_routes, module)?)?;
    module.add_function(wrap_pyfunction!(spanning_tree, module)?)?;
    module.add_function(wrap_pyfunction!(check_routing, module)?)?;
    Ok(())
}

/// Names of the routing algorithms.
#[pyfunction]
fn algorithms() -> Vec<&'static str> {
    Algorithm::ALL.map(Algorithm::name).to_vec()
}

/// Refuses what no network can have: an unknown algorithm, a switch that cannot be, a balance that
/// there is not.
#[pyfunction]
#[pyo3(signature = (algorithm, root = None, balanced = false))]
fn check_routing(algorithm: &str, root: Option<i64>, balanced: bool) -> PyResult<()> {
    crate::arguments::setting(algorithm, root, balanced)
        .map(drop)
        .map_err(RoutingError::new_err)
}

/// A file of routes: between all hosts, or from one, or to one, or both.
#[pyfunction]
#[pyo3(signature = (topology, algorithm = ALGORITHM_DEFAULT, root = None, seed = 1, src = None, dst = None, balanced = false))]
#[allow(clippy::too_many_arguments)] // the keywords of one Python function
fn plan_all_routes(
    py: Python<'_>,
    topology: &str,
    algorithm: &str,
    root: Option<i64>,
    seed: i64,
    src: Option<i64>,
    dst: Option<i64>,
    balanced: bool,
) -> PyResult<String> {
    run(py, || {
        let topology = read_topology(topology)?;
        let routes = plan_routes(&topology, algorithm, root, balanced)?
            .with_seed(crate::arguments::seed(seed)?);
        let [src, dst] = [src, dst].map(|host| host.map(host_id).transpose());
        routes.to_json_between(src?, dst?).map_err(text)
    })
}

/// One route, as an entry of a file of routes; of several, the first.
#[pyfunction]
#[pyo3(signature = (topology, src, dst, algorithm = ALGORITHM_DEFAULT, root = None, seed = 1))]
fn plan_route(
    py: Python<'_>,
    topology: &str,
    src: i64,
    dst: i64,
    algorithm: &str,
    root: Option<i64>,
    seed: i64,
) -> PyResult<String> {
    run(py, || {
        let topology = read_topology(topology)?;
        let routes = plan_routes(&topology, algorithm, root, false)?
            .with_seed(crate::arguments::seed(seed)?);
        let all = routes.alternatives(host_id(src)?, host_id(dst)?);
        let all = all.map_err(text)?;
        Ok(routes.row(&all[0]).to_string())
    })
}

/// Figures over all routes: how long, how many in-transit hosts, which load; "root" is that
/// of the spanning tree, "lengthened_pairs" are those with longer routes because some hosts do
/// not re-inject.
#[pyfunction]
#[pyo3(signature = (topology, algorithm = ALGORITHM_DEFAULT, root = None, seed = 1, balanced = false))]
fn summarize_routes(
    py: Python<'_>,
    topology: &str,
    algorithm: &str,
    root: Option<i64>,
    seed: i64,
    balanced: bool,
) -> PyResult<String> {
    run(py, || {
        let topology = read_topology(topology)?;
        let routes = plan_routes(&topology, algorithm, root, balanced)?
            .with_seed(crate::arguments::seed(seed)?);
        let mut figures = routes.summary().to_value();
        figures["root"] = json!(routes.updown().root(&topology).0);
        figures["lengthened_pairs"] = json!(routes.lengthened().map_err(text)?);
        Ok(figures.to_string())
    })
}

/// The up*/down* spanning tree: {"root", "roots", "links": [[a, a_port, b, b_port]],
/// "levels": [{"switch", "level"}]}; `a` is the parent's side.
#[pyfunction]
#[pyo3(signature = (topology, root = None))]
fn spanning_tree(py: Python<'_>, topology: &str, root: Option<i64>) -> PyResult<String> {
    run(py, || {
        let topology = read_topology(topology)?;
        let updown = plan_updown(&topology, root)?;
        let links: Vec<_> = updown
            .tree_links(&topology)
            .iter()
            .map(|link| json!([link.a.0, link.a_port.get(), link.b.0, link.b_port.get()]))
            .collect();
        let levels = topology
            .switches()
            .iter()
            .map(|switch| {
                let level = updown.level(&topology, switch.id).map_err(text)?;
                Ok(json!({"switch": switch.id.0, "level": level}))
            })
            .collect::<Answer<Vec<_>>>()?;
        let roots: Vec<u16> = updown.roots(&topology).iter().map(|root| root.0).collect();
        let root = updown.root(&topology).0;
        Ok(json!({"root": root, "roots": roots, "links": links, "levels": levels}).to_string())
    })
}
