//! TREE routes: bytes from port paths, and back; the root for multicast.

use ::wormcast_routing::group;
use ::wormcast_routing::updown::UpDown;
use pyo3::prelude::*;
use wormcast_wire::{HOST_ID_MAX, tree_route};

use crate::{Answer, bounded, host_id, read_topology, run, text};

/// Adds these functions to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(encode_tree, module)?)?;
    module.add_function(wrap_pyfunction!(decode_tree, module)?)?;
    module.add_function(wrap_pyfunction!(multicast_root, module)?)?;
    Ok(())
}

/// The root from which multicast under guard B to so many random members crosses the
/// fewest links on average: (switch, links).
#[pyfunction]
#[pyo3(signature = (topology, members = 8))]
fn multicast_root(py: Python<'_>, topology: &str, members: i64) -> PyResult<(u16, f64)> {
    run(py, || {
        let topology = read_topology(topology)?;
        let members = bounded("members", members, 1, HOST_ID_MAX.into())? as u32;
        let root = group::multicast_root(&topology, members);
        let updown = UpDown::new(&topology, Some(root)).map_err(text)?;
        Ok((
            root.0,
            group::mean_links_by_root(&topology, &updown, members),
        ))
    })
}

/// TREE routes that reach each host by its path: [(route, hosts reached)].
#[pyfunction]
fn encode_tree(py: Python<'_>, paths: Vec<(i64, Vec<u8>)>) -> PyResult<Vec<(Vec<u8>, Vec<u16>)>> {
    run(py, || {
        let paths = paths
            .into_iter()
            .map(|(host, path)| Ok((host_id(host)?, path)))
            .collect::<Answer<Vec<_>>>()?;
        let routes = tree_route::encode_tree(&paths).map_err(text)?;
        let named = |route: tree_route::TreeRoute| {
            (route.bytes, route.hosts.iter().map(|host| host.0).collect())
        };
        Ok(routes.into_iter().map(named).collect())
    })
}

/// Port paths that a TREE route leads along, ascending.
#[pyfunction]
fn decode_tree(py: Python<'_>, route: Vec<u8>) -> PyResult<Vec<Vec<u8>>> {
    run(py, || tree_route::decode_tree(&route).map_err(text))
}
