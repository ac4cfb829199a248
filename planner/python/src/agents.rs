//! What agents have to know: plans, and what Python shows of their groups.

use std::sync::Arc;

use ::wormcast_planner as planner;
use ::wormcast_routing::structure::Recipe;
use ::wormcast_routing::topology::Link;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use wormcast_wire::GroupId;

/// A group as one agent has to know it.
#[pyclass(frozen, eq)]
#[derive(PartialEq, Eq)]
pub(crate) struct AgentGroup(Arc<planner::AgentGroup>);

#[pymethods]
impl AgentGroup {
    #[getter]
    fn id(&self) -> u16 {
        self.0.id.0
    }

    /// Scheme `table`: the number by which switches copy its messages.
    #[getter]
    fn number(&self) -> Option<u16> {
        self.0.number.map(|number| number.0)
    }

    /// Scheme `switch`: links of each of its own trees, as switch, port, switch, port.
    #[getter]
    fn trees(&self) -> Vec<Vec<(u16, u8, u16, u8)>> {
        let link = |link: &Link| {
            let (a, b) = (link.a_port.get(), link.b_port.get());
            (link.a.0, a, link.b.0, b)
        };
        let trees = self.0.trees.iter().flat_map(|trees| &trees.trees);
        trees
            .map(|links| links.iter().map(link).collect())
            .collect()
    }

    /// Bytes of its frames after the Ethernet header at most; None: what the interfaces carry.
    #[getter]
    fn mtu(&self) -> Option<u16> {
        self.0.mtu
    }

    /// Ordered group: who says in which order messages are read, and since which epoch.
    #[getter]
    fn sequencer(&self) -> Option<(u16, u64)> {
        let sequencer = self.0.sequencer;
        sequencer.map(|one| (one.host.0, one.epoch))
    }

    /// ACKs that switches gather: the epoch, and each origin with the number of its switch; None: hosts alone
    /// acknowledge.
    #[getter]
    fn gathered(&self) -> Option<(u32, Vec<(u16, u16)>)> {
        self.0.gathered.as_ref().map(|gathered| {
            let origins = gathered.origins.iter();
            let origins = origins.map(|(host, source)| (host.0, *source));
            (gathered.epoch, origins.collect())
        })
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

/// A scheme with its parameters, as one agent has to know it; parameters of other schemes are 0.
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
    fn k(&self) -> u32 {
        match self.get().recipe {
            Recipe::KBinomial { k } | Recipe::Copied { fan_in: k } => k,
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
}

/// Everything one agent has to know, without the epoch.
#[pyclass(frozen, eq)]
#[derive(PartialEq, Eq)]
pub(crate) struct AgentPlan(pub(crate) Arc<planner::AgentPlan>);

#[pymethods]
impl AgentPlan {
    #[getter]
    fn host(&self) -> u16 {
        self.0.host.0
    }

    /// Frames of a train of any kind at most; 1: there are none.
    #[getter]
    fn train_frames(&self) -> u16 {
        self.0.train_frames
    }

    /// Frames of a UNICAST train at most, no fewer than that; 1: there are none.
    #[getter]
    fn unicast_train_frames(&self) -> u16 {
        self.0.unicast_train_frames
    }

    /// Its groups by number.
    #[getter]
    fn groups(&self) -> Vec<AgentGroup> {
        self.0.groups.iter().cloned().map(AgentGroup).collect()
    }

    /// The group with this number.
    fn group(&self, id: u16) -> Option<AgentGroup> {
        self.0.group(GroupId(id)).cloned().map(AgentGroup)
    }

    /// Whether its groups are those of another plan, as that has them.
    fn has_groups_of(&self, other: &AgentPlan) -> bool {
        self.0.has_groups_of(&other.0)
    }

    /// A `ControllerMessage` of agent.proto with the whole plan.
    fn encode<'py>(&self, py: Python<'py>, epoch: u64) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.encode(epoch))
    }

    /// A `ControllerMessage` with what is other than in the plan `before`, which has the epoch `base`; None where that
    /// message cannot say it.
    fn encode_change<'py>(
        &self,
        py: Python<'py>,
        epoch: u64,
        before: &AgentPlan,
        base: u64,
    ) -> Option<Bound<'py, PyBytes>> {
        let encoded = self.0.encode_change(epoch, &before.0, base)?;
        Some(PyBytes::new(py, &encoded))
    }
}
