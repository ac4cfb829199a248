//! Topologies: made, checked, damaged.

use std::collections::BTreeSet;

use ::wormcast_routing::generate;
use ::wormcast_routing::topology::{Damage, Topology};
use pyo3::prelude::*;

use crate::{Answer, host_id, port_id, read_topology, run, switch_id, text};

/// Adds these functions to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(kinds, module)?)?;
    module.add_function(wrap_pyfunction!(generate_topology, module)?)?;
    module.add_function(wrap_pyfunction!(check_topology, module)?)?;
    module.add_function(wrap_pyfunction!(damage_topology, module)?)?;
    Ok(())
}

/// Every kind of topology that `generate` makes, and how it is written.
#[pyfunction]
fn kinds() -> Vec<&'static str> {
    generate::KINDS.to_vec()
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
