//! The deadlock check of tables and paths that others made.

use ::wormcast_verify::foreign::{self, Ends, ForeignError, Network};
use ::wormcast_verify::formats::FormatError;
use pyo3::prelude::*;

use crate::topologies::placed;

/// Adds these functions to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(verify_tables, module)?)?;
    module.add_function(wrap_pyfunction!(verify_paths, module)?)?;
    Ok(())
}

/// An error as of `topologies::placed`, with `text`: the number of the text it is in, or
/// None for the topology.
fn raise(py: Python<'_>, error: ForeignError) -> PyErr {
    let raised = placed(py, error.error);
    let _ = raised.value(py).setattr("text", error.text);
    raised
}

fn network(topology: &str) -> Result<Network, ForeignError> {
    Network::read(topology).map_err(in_topology)
}

fn in_topology(error: FormatError) -> ForeignError {
    ForeignError { text: None, error }
}

/// Deadlock check of forwarding tables: texts of dump_lfts, ibroute or OpenSM, or tables
/// files, on a topology file of any format; with path records of `saquery PR` on the virtual
/// lanes of their service levels. `ends`: "hosts" or "all".
#[pyfunction]
#[pyo3(signature = (topology, tables, ends = "hosts", records = None))]
fn verify_tables(
    py: Python<'_>,
    topology: &str,
    tables: Vec<String>,
    ends: &str,
    records: Option<&str>,
) -> PyResult<String> {
    let work = || {
        let ends: Ends = ends.parse().map_err(in_topology)?;
        let texts: Vec<&str> = tables.iter().map(String::as_str).collect();
        let verdict = foreign::verify_tables(&network(topology)?, &texts, records, ends)?;
        Ok(verdict.to_json())
    };
    py.detach(work).map_err(|error| raise(py, error))
}

/// Deadlock check of the paths of a CSV file, on a topology file of any format if there is
/// one.
#[pyfunction]
#[pyo3(signature = (paths, topology = None))]
fn verify_paths(py: Python<'_>, paths: &str, topology: Option<&str>) -> PyResult<String> {
    let work = || {
        let network = topology.map(network).transpose()?;
        Ok(foreign::verify_paths(paths, network.as_ref())?.to_json())
    };
    py.detach(work).map_err(|error| raise(py, error))
}
