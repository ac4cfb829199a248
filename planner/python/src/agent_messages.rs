//! What the controller says to agents besides plans, as `ControllerMessage` of agent.proto, encoded.

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use wormcast_agent_proto::controller_message::Body;
use wormcast_agent_proto::{
    AskLag, AskedBranch, ControllerMessage, Message, Refused, Registered, Trace,
};

/// Adds these functions to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(encode_registered, module)?)?;
    module.add_function(wrap_pyfunction!(encode_refused, module)?)?;
    module.add_function(wrap_pyfunction!(encode_trace, module)?)?;
    module.add_function(wrap_pyfunction!(encode_ask_lag, module)?)
}

fn encode(py: Python<'_>, body: Body) -> Bound<'_, PyBytes> {
    let message = ControllerMessage { body: Some(body) };
    PyBytes::new(py, &message.encode_to_vec())
}

#[pyfunction]
fn encode_registered(py: Python<'_>, host_id: u32, challenge: Vec<u8>) -> Bound<'_, PyBytes> {
    let body = Body::Registered(Registered { host_id, challenge });
    encode(py, body)
}

#[pyfunction]
fn encode_refused(py: Python<'_>, reason: String) -> Bound<'_, PyBytes> {
    encode(py, Body::Refused(Refused { reason }))
}

/// Asks for probes.
#[pyfunction]
#[pyo3(signature = (*, number, attempt, origin = 0, host = None, group = None, bytes = None, route = None))]
#[expect(
    clippy::too_many_arguments,
    reason = "the fields of the message, by name"
)]
fn encode_trace(
    py: Python<'_>,
    number: u32,
    attempt: u32,
    origin: u32,
    host: Option<u32>,
    group: Option<u32>,
    bytes: Option<u64>,
    route: Option<u32>,
) -> Bound<'_, PyBytes> {
    let trace = Trace {
        number,
        attempt,
        host,
        group,
        origin,
        bytes,
        route,
    };
    encode(py, Body::Trace(trace))
}

/// Asks who lags; the number of each branch, the route to its switch and its port there.
#[pyfunction]
#[pyo3(signature = (*, number, group, origin, epoch = 0, branches = Vec::new()))]
fn encode_ask_lag(
    py: Python<'_>,
    number: u32,
    group: u32,
    origin: u32,
    epoch: u32,
    branches: Vec<(u32, Vec<u8>, u32)>,
) -> Bound<'_, PyBytes> {
    let branch = |(number, route, port)| AskedBranch {
        number,
        route,
        port,
    };
    let asked = AskLag {
        number,
        group,
        origin,
        epoch,
        branches: branches.into_iter().map(branch).collect(),
    };
    encode(py, Body::AskLag(asked))
}
