//! The deadlock check.

use std::collections::BTreeMap;

use ::wormcast_routing::routes::{Route, read_routes};
use ::wormcast_verify::deadlock::{ChannelGraph, Model, read_groups};
use pyo3::prelude::*;
use wormcast_wire::HostId;

use crate::arguments::{host_id, plan_routes, read_topology, run, switch_id, text};

/// Adds these functions to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(verify, module)?)?;
    Ok(())
}

/// Deadlock check of a file of routes, or of all routes of an algorithm, together with
/// TREE routes (src, route) and files of group plans, under a model of switches and hosts.
#[pyfunction]
#[pyo3(signature = (topology, routes = None, algorithm = None, trees = Vec::new(),
                    branching = "independent", root = None, groups = Vec::new(),
                    buffers = "spill", forwarding = "store", balanced = false))]
#[allow(clippy::too_many_arguments)] // keywords of one Python function
fn verify(
    py: Python<'_>,
    topology: &str,
    routes: Option<&str>,
    algorithm: Option<&str>,
    trees: Vec<(i64, Vec<u8>)>,
    branching: &str,
    root: Option<i64>,
    groups: Vec<String>,
    buffers: &str,
    forwarding: &str,
    balanced: bool,
) -> PyResult<String> {
    run(py, || {
        let topology = read_topology(topology)?;
        let model = Model {
            branching: branching.parse().map_err(text)?,
            buffers: buffers.parse().map_err(text)?,
            forwarding: forwarding.parse().map_err(text)?,
            root: root.map(switch_id).transpose()?,
        };
        let mut graph = ChannelGraph::new(&topology, model);
        let mut by_pair: BTreeMap<(HostId, HostId), Vec<Route>> = BTreeMap::new();
        if let Some(routes) = routes {
            for route in read_routes(routes).map_err(text)? {
                graph.add_route(&route).map_err(text)?;
                let pair = (route.src, route.dst);
                by_pair.entry(pair).or_default().push(route);
            }
        }
        let planned = algorithm
            .map(|algorithm| plan_routes(&topology, algorithm, root, balanced))
            .transpose()?;
        if let Some(planned) = &planned {
            graph.add_routes(planned);
        }
        for (src, route) in trees {
            graph.add_tree(host_id(src)?, &route).map_err(text)?;
        }
        let between = |from, to| {
            let mut found = by_pair.get(&(from, to)).cloned().unwrap_or_default();
            let planned = planned.as_ref();
            found.extend(planned.and_then(|planned| planned.route(from, to).ok()));
            found
        };
        for file in &groups {
            for group in read_groups(file).map_err(text)? {
                graph.add_group(&group, &between).map_err(text)?;
            }
        }
        Ok(graph.to_json())
    })
}
