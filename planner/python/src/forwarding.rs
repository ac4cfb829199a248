//! Forwarding tables, as bytes.

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::arguments::{ALGORITHM_DEFAULT, plan_routes, read_topology, run};

/// Adds these functions to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(forwarding, module)?)?;
    Ok(())
}

/// First ports from every switch to every host, a byte each, row by row: switches and
/// hosts ascending by id, 255 where there is no way.
#[pyfunction]
#[pyo3(signature = (topology, algorithm = ALGORITHM_DEFAULT, root = None))]
fn forwarding<'py>(
    py: Python<'py>,
    topology: &str,
    algorithm: &str,
    root: Option<i64>,
) -> PyResult<Bound<'py, PyBytes>> {
    let tables = run(py, || {
        let topology = read_topology(topology)?;
        Ok(plan_routes(&topology, algorithm, root, false)?.forwarding_tables())
    })?;
    Ok(PyBytes::new(py, tables.as_bytes()))
}
