//! Python binding of wormcast-routing.
//!
//! Files go in and out as JSON text, everything else as plain values; `wormcast.plan`
//! puts dictionaries on top. Whatever is refused raises `RoutingError`, a `ValueError`.
//! Planning releases the interpreter lock.

use std::collections::BTreeSet;
use std::fmt::Display;

use ::wormcast_routing::deadlock::{Branching, ChannelGraph};
use ::wormcast_routing::generate;
use ::wormcast_routing::group::{self, GroupRequest, Order};
use ::wormcast_routing::ids::{HOST_ID_MAX, HostId, PORT_ID_MAX, PortId, SWITCH_ID_MAX, SwitchId};
use ::wormcast_routing::routes::{Algorithm, Routes, read_routes};
use ::wormcast_routing::structure::{buffers, k_binomial};
use ::wormcast_routing::topology::{Damage, Topology};
use ::wormcast_routing::tree_route;
use ::wormcast_routing::updown::UpDown;
use pyo3::create_exception;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde_json::json;

create_exception!(
    wormcast_routing,
    RoutingError,
    PyValueError,
    "Input that is refused; the text names the value, the bound and the choices."
);

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

fn plan_routes<'t>(
    topology: &'t Topology,
    algorithm: &str,
    root: Option<i64>,
) -> Answer<Routes<'t>> {
    let algorithm: Algorithm = algorithm.parse().map_err(text)?;
    Routes::plan_along(topology, algorithm, plan_updown(topology, root)?).map_err(text)
}

/// Every kind of topology that `generate` makes, and how it is written.
#[pyfunction]
fn kinds() -> Vec<&'static str> {
    generate::KINDS.to_vec()
}

/// Names of the routing algorithms.
#[pyfunction]
fn algorithms() -> Vec<&'static str> {
    Algorithm::ALL.map(Algorithm::name).to_vec()
}

/// Names of the schemes.
#[pyfunction]
fn schemes() -> Vec<&'static str> {
    group::Scheme::NAMES.to_vec()
}

/// A topology file of this kind, as in "torus:4".
#[pyfunction]
fn generate_topology(py: Python<'_>, spec: &str) -> PyResult<String> {
    run(py, || {
        generate::from_spec(spec)
            .map(|topology| topology.to_json())
            .map_err(text)
    })
}

/// Checks a topology file and gives it back in order; a split fabric is refused unless
/// allowed.
#[pyfunction]
#[pyo3(signature = (topology, allow_split = false))]
fn check_topology(py: Python<'_>, topology: &str, allow_split: bool) -> PyResult<String> {
    run(py, || {
        let checked = match allow_split {
            true => Topology::from_json_split(topology),
            false => Topology::from_json(topology),
        };
        checked.map(|topology| topology.to_json()).map_err(text)
    })
}

/// What remains of a topology without links (switch, port), switches and hosts.
#[pyfunction]
fn damage_topology(
    py: Python<'_>,
    topology: &str,
    links: Vec<(i64, i64)>,
    switches: Vec<i64>,
    hosts: Vec<i64>,
) -> PyResult<String> {
    run(py, || {
        let link = |(switch, port)| Ok((switch_id(switch)?, port_id(port)?));
        let damage = Damage {
            links: links
                .into_iter()
                .map(link)
                .collect::<Answer<BTreeSet<_>>>()?,
            switches: switches
                .into_iter()
                .map(switch_id)
                .collect::<Answer<BTreeSet<_>>>()?,
            hosts: hosts
                .into_iter()
                .map(host_id)
                .collect::<Answer<BTreeSet<_>>>()?,
        };
        read_topology(topology)?
            .without(&damage)
            .map(|left| left.to_json())
            .map_err(text)
    })
}

/// A file of routes between all hosts.
#[pyfunction]
#[pyo3(signature = (topology, algorithm = "osud", root = None))]
fn plan_all_routes(
    py: Python<'_>,
    topology: &str,
    algorithm: &str,
    root: Option<i64>,
) -> PyResult<String> {
    run(py, || {
        let topology = read_topology(topology)?;
        Ok(plan_routes(&topology, algorithm, root)?.to_json())
    })
}

/// One route, as an entry of a file of routes.
#[pyfunction]
#[pyo3(signature = (topology, src, dst, algorithm = "osud", root = None))]
fn plan_route(
    py: Python<'_>,
    topology: &str,
    src: i64,
    dst: i64,
    algorithm: &str,
    root: Option<i64>,
) -> PyResult<String> {
    run(py, || {
        let topology = read_topology(topology)?;
        let routes = plan_routes(&topology, algorithm, root)?;
        let route = routes.route(host_id(src)?, host_id(dst)?).map_err(text)?;
        Ok(route.to_value().to_string())
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

/// A group file from a request {"scheme", "source", "members", "parameters"}.
#[pyfunction]
#[pyo3(signature = (topology, request, root = None))]
fn plan_group(
    py: Python<'_>,
    topology: &str,
    request: &str,
    root: Option<i64>,
) -> PyResult<String> {
    run(py, || {
        let topology = read_topology(topology)?;
        let request = GroupRequest::from_json(request).map_err(text)?;
        let routes = plan_routes(&topology, Algorithm::Osud.name(), root)?;
        group::plan_group(&routes, &request)
            .map(|plan| plan.to_json())
            .map_err(text)
    })
}

/// Members in an order: "id" (or "ascending"), "cco", "dimension".
#[pyfunction]
#[pyo3(signature = (topology, members, kind = "cco", root = None))]
fn order_members(
    py: Python<'_>,
    topology: &str,
    members: Vec<i64>,
    kind: &str,
    root: Option<i64>,
) -> PyResult<Vec<u16>> {
    run(py, || {
        let topology = read_topology(topology)?;
        let updown = plan_updown(&topology, root)?;
        let order = Order::from_name(kind).map_err(text)?;
        let ordered = order
            .apply(&topology, &updown, &host_ids(&members)?)
            .map_err(text)?;
        Ok(ordered.into_iter().map(|host| host.0).collect())
    })
}

/// Edges (parent, child) of the rooted tree over these members.
#[pyfunction]
#[pyo3(signature = (topology, members, fan_out = 3, root = None))]
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

/// Hosts that copies of a TREE worm reach, and copies that are lost: {"deliveries":
/// [{"host", "hops"}], "losses": [{"switch", "reason"}]}.
#[pyfunction]
fn walk_tree(py: Python<'_>, topology: &str, src: i64, route: Vec<u8>) -> PyResult<String> {
    run(py, || {
        let topology = read_topology(topology)?;
        let walk = tree_route::walk_tree(&topology, host_id(src)?, &route).map_err(text)?;
        let deliveries: Vec<_> = walk
            .deliveries
            .iter()
            .map(|copy| json!({"host": copy.host.0, "hops": copy.hops}))
            .collect();
        let losses: Vec<_> = walk
            .losses
            .iter()
            .map(|loss| json!({"switch": loss.switch.0, "reason": loss.reason.to_string()}))
            .collect();
        Ok(json!({"deliveries": deliveries, "losses": losses}).to_string())
    })
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
        let routes = plan_routes(&topology, Algorithm::Osud.name(), root)?;
        let mut structures = Vec::new();
        for request in &requests {
            let request = GroupRequest::from_json(request).map_err(text)?;
            structures.extend(group::plan_structure(&routes, &request).map_err(text)?);
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

/// Topologies, deadlock-free routes and multicast structures.
#[pymodule]
fn wormcast_routing(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("RoutingError", module.py().get_type::<RoutingError>())?;
    module.add_function(wrap_pyfunction!(kinds, module)?)?;
    module.add_function(wrap_pyfunction!(algorithms, module)?)?;
    module.add_function(wrap_pyfunction!(schemes, module)?)?;
    module.add_function(wrap_pyfunction!(generate_topology, module)?)?;
    module.add_function(wrap_pyfunction!(check_topology, module)?)?;
    module.add_function(wrap_pyfunction!(damage_topology, module)?)?;
    module.add_function(wrap_pyfunction!(plan_all_routes, module)?)?;
    module.add_function(wrap_pyfunction!(plan_route, module)?)?;
    module.add_function(wrap_pyfunction!(spanning_tree, module)?)?;
    module.add_function(wrap_pyfunction!(plan_group, module)?)?;
    module.add_function(wrap_pyfunction!(order_members, module)?)?;
    module.add_function(wrap_pyfunction!(tree_edges, module)?)?;
    module.add_function(wrap_pyfunction!(optimal_k, module)?)?;
    module.add_function(wrap_pyfunction!(encode_tree, module)?)?;
    module.add_function(wrap_pyfunction!(decode_tree, module)?)?;
    module.add_function(wrap_pyfunction!(walk_tree, module)?)?;
    module.add_function(wrap_pyfunction!(verify, module)?)?;
    module.add_function(wrap_pyfunction!(find_buffer_cycle, module)?)?;
    Ok(())
}
