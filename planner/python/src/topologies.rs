//! Topologies: made, read, written, checked, damaged.

use std::collections::BTreeSet;

use ::wormcast_routing::generate;
use ::wormcast_routing::topology::Damage;
use ::wormcast_verify::formats::{self, Document, Format, FormatError, Reading};
use pyo3::prelude::*;

use crate::arguments::{Answer, RoutingError, host_id, port_id, run, switch_id, text};

/// Adds these functions to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(kinds, module)?)?;
    module.add_function(wrap_pyfunction!(topology_formats, module)?)?;
    module.add_function(wrap_pyfunction!(generate_topology, module)?)?;
    module.add_function(wrap_pyfunction!(read_topology_file, module)?)?;
    module.add_function(wrap_pyfunction!(write_topology_file, module)?)?;
    module.add_function(wrap_pyfunction!(check_topology, module)?)?;
    module.add_function(wrap_pyfunction!(damage_topology, module)?)?;
    Ok(())
}

/// As `run`, but the error says in `code`, `line` and `column` what it is and where.
fn run_placed<T: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<T, FormatError> + Send,
) -> PyResult<T> {
    py.detach(work).map_err(|error| placed(py, error))
}

/// The exception of an error of a file.
pub(crate) fn placed(py: Python<'_>, error: FormatError) -> PyErr {
    let raised = RoutingError::new_err(error.to_string());
    let value = raised.value(py);
    let place = error.place.map(|place| (place.line, place.column));
    let _ = value.setattr("code", error.code);
    let _ = value.setattr("line", place.map(|(line, _)| line));
    let _ = value.setattr("column", place.map(|(_, column)| column));
    raised
}

fn read_json(topology: &str, allow_split: bool) -> Result<Document, FormatError> {
    let reading = Reading {
        format: Some(Format::Json),
        allow_split,
        ..Reading::default()
    };
    formats::read(topology, &reading)
}

/// Every kind of topology that `generate` makes, and how it is written.
#[pyfunction]
fn kinds() -> Vec<&'static str> {
    generate::KINDS.to_vec()
}

/// Names of the file formats.
#[pyfunction]
fn topology_formats() -> Vec<&'static str> {
    Format::ALL.map(Format::name).to_vec()
}

/// A topology file of this kind, as in "torus:4".
#[pyfunction]
fn generate_topology(py: Python<'_>, spec: &str) -> PyResult<String> {
    run_placed(py, || {
        let document = Document {
            kind: Some(spec.to_owned()),
            ..Document::new(generate::from_spec(spec)?)
        };
        formats::write(&document, Format::Json)
    })
}

/// A topology file in any format, as JSON, and warnings: what was left out or added. The format is found out if it is
/// not given. `give_hosts`: every switch gets a host where a file of other tools has none.
#[pyfunction]
#[pyo3(signature = (content, format = None, allow_split = false, hosts_per_switch = 0, give_hosts = false))]
fn read_topology_file(
    py: Python<'_>,
    content: &str,
    format: Option<&str>,
    allow_split: bool,
    hosts_per_switch: usize,
    give_hosts: bool,
) -> PyResult<(String, Vec<String>)> {
    run_placed(py, || {
        let reading = Reading {
            format: format.map(str::parse).transpose()?,
            allow_split,
            hosts_per_switch,
            give_hosts,
        };
        let document = formats::read(content, &reading)?;
        let text = formats::write(&document, Format::Json)?;
        Ok((text, document.warnings))
    })
}

/// A topology file in another format.
#[pyfunction]
fn write_topology_file(py: Python<'_>, topology: &str, format: &str) -> PyResult<String> {
    run_placed(py, || {
        formats::write(&read_json(topology, true)?, format.parse()?)
    })
}

/// Checks a topology file and gives it back in order; a split fabric is refused unless
/// allowed.
#[pyfunction]
#[pyo3(signature = (topology, allow_split = false))]
fn check_topology(py: Python<'_>, topology: &str, allow_split: bool) -> PyResult<String> {
    run_placed(py, || {
        formats::write(&read_json(topology, allow_split)?, Format::Json)
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
        let whole = read_json(topology, true).map_err(text)?;
        let left = Document {
            topology: whole.topology.without(&damage).map_err(text)?,
            ..whole
        };
        formats::write(&left, Format::Json).map_err(text)
    })
}
