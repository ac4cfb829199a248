//! Costs of a group's messages.

use ::wormcast_planner::cost::{CostError, CostModel, Costs, Message, Timed, Traffic, fit};
use ::wormcast_planner::replay::replay;
use ::wormcast_routing::group::{self, GroupRequest};
use ::wormcast_routing::routes::{Algorithm, Routes};
use pyo3::prelude::*;

use crate::arguments::{read_topology, run, switch_id, text};

/// Adds these functions to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(cost_sets, module)?)?;
    module.add_function(wrap_pyfunction!(complete_costs, module)?)?;
    module.add_function(wrap_pyfunction!(replay_group, module)?)?;
    module.add_function(wrap_pyfunction!(fit_costs, module)?)?;
    Ok(())
}

/// Names of the sets of costs.
#[pyfunction]
fn cost_sets() -> Vec<&'static str> {
    Costs::NAMES.to_vec()
}

/// A file of costs with every field, from the name of a set or what differs from one.
#[pyfunction]
fn complete_costs(py: Python<'_>, costs: &str) -> PyResult<String> {
    run(py, || {
        Costs::from_json(costs)
            .map(|costs| costs.to_json())
            .map_err(text)
    })
}

/// Replays the message of a planned request link by link.
#[pyfunction]
#[pyo3(signature = (topology, request, costs, root = None))]
fn replay_group(
    py: Python<'_>,
    topology: &str,
    request: &str,
    costs: &str,
    root: Option<i64>,
) -> PyResult<String> {
    run(py, || {
        let topology = read_topology(topology)?;
        let request = GroupRequest::from_json(request).map_err(text)?;
        let costs = Costs::from_json(costs).map_err(text)?;
        let root = root.map(switch_id).transpose()?;
        let full = u64::from(request.packets) * u64::from(request.payload_bytes);
        let message = Message {
            bytes: request.bytes.unwrap_or(full),
            packets: request.packets.into(),
        };
        group::with_paths(
            &topology,
            root,
            request.routing,
            |paths| -> Result<_, CostError> {
                let model = CostModel::new(paths, costs)?;
                let plan = group::plan_group(paths, &request)?;
                let traffic = Traffic::new(&model, &plan)?;
                Ok(replay(&model, &traffic, message).to_json())
            },
        )
        .map_err(text)
    })
}

/// Costs by which messages take the times that were measured, as a file.
#[pyfunction]
#[pyo3(signature = (topology, costs, timed, root = None))]
fn fit_costs(
    py: Python<'_>,
    topology: &str,
    costs: &str,
    timed: &str,
    root: Option<i64>,
) -> PyResult<String> {
    run(py, || {
        let topology = read_topology(topology)?;
        let before = Costs::from_json(costs).map_err(text)?;
        let timed = Timed::list_from_json(timed).map_err(text)?;
        let root = root.map(switch_id).transpose()?;
        let routes = Routes::plan(&topology, Algorithm::Osud, root).map_err(text)?;
        Ok(fit(&routes, &before, &timed).map_err(text)?.to_json())
    })
}
