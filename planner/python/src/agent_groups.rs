//! Groups and their structures, as agents have to know them.

use std::sync::Arc;

use ::wormcast_planner as planner;
use ::wormcast_routing::structure::Recipe;
use pyo3::prelude::*;
use wormcast_wire::HostId;

/// A group as one agent has to know it.
#[pyclass(frozen, eq)]
#[derive(PartialEq, Eq)]
pub(crate) struct AgentGroup(pub(crate) Arc<planner::AgentGroup>);

#[pymethods]
impl AgentGroup {
    #[getter]
    fn id(&self) -> u16 {
        self.0.id.0
    }

    #[getter]
    fn name(&self) -> &str {
        &self.0.name
    }

    #[getter]
    fn members(&self) -> Vec<u16> {
        numbers(&self.0.members)
    }

    /// How its messages reach them.
    #[getter]
    fn structures(&self) -> Vec<AgentStructure> {
        let count = self.0.structures.len();
        (0..count)
            .map(|at| AgentStructure(self.0.structures.clone(), at))
            .collect()
    }
}

fn numbers(hosts: &[HostId]) -> Vec<u16> {
    hosts.iter().map(|host| host.0).collect()
}

/// A scheme with its parameters, as one agent has to know it; parameters of other schemes are 0 or empty.
#[pyclass(frozen)]
pub(crate) struct AgentStructure(Arc<[planner::AgentStructure]>, usize);

impl AgentStructure {
    fn get(&self) -> &planner::AgentStructure {
        &self.0[self.1]
    }
}

#[pymethods]
impl AgentStructure {
    /// The longest message that takes it; 0: any.
    #[getter]
    fn bytes_most(&self) -> u64 {
        match self.get().bytes_most {
            u64::MAX => 0,
            most => most,
        }
    }

    /// Where it was chosen for its time: bytes of messages, and the microseconds expected for each.
    #[getter]
    fn expected(&self) -> Vec<(u64, f64)> {
        let expected = self.get().expected.iter();
        expected.map(|&(bytes, ns)| (bytes, ns / 1000.0)).collect()
    }

    #[getter]
    fn scheme(&self) -> &'static str {
        self.get().scheme.name()
    }

    #[getter]
    fn order(&self) -> Vec<u16> {
        numbers(&self.get().order)
    }

    #[getter]
    fn k(&self) -> u32 {
        match self.get().recipe {
            Recipe::KBinomial { k } => k,
            _ => 0,
        }
    }

    #[getter]
    fn lambda_(&self) -> u32 {
        match self.get().recipe {
            Recipe::Postal { lambda } => lambda,
            _ => 0,
        }
    }

    #[getter]
    fn r(&self) -> u32 {
        match self.get().recipe {
            Recipe::MuTorus { r } => r,
            _ => 0,
        }
    }

    #[getter]
    fn rings(&self) -> Vec<usize> {
        match &self.get().recipe {
            Recipe::MdTorus { rings } => rings.clone(),
            _ => Vec::new(),
        }
    }

    #[getter]
    fn tree_edges(&self) -> Vec<(u16, u16)> {
        match &self.get().recipe {
            Recipe::Tree(tree, _) => tree.edges().map(|(a, b)| (a.0, b.0)).collect(),
            _ => Vec::new(),
        }
    }
}
