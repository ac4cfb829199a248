//! What agents have to know: plans, groups and their structures.

use std::sync::Arc;

use ::wormcast_planner as planner;
use ::wormcast_routing::structure::Recipe;
use ::wormcast_routing::topology::Link;
use planner::RouteTable;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};
use wormcast_wire::{GroupId, HostId};

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

    /// Scheme `table`: the number by which switches copy its messages.
    #[getter]
    fn number(&self) -> Option<u16> {
        self.0.number.map(|number| number.0)
    }

    /// Bytes of its frames after the Ethernet header at most; None: what the interfaces carry.
    #[getter]
    fn mtu(&self) -> Option<u16> {
        self.0.mtu
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

    /// Guard B: worms go up to one of these switches first.
    #[getter]
    fn roots(&self) -> Vec<u16> {
        let roots = self.0.trees.iter().flat_map(|trees| &trees.roots);
        roots.map(|root| root.0).collect()
    }

    /// Ordered group: who says in which order messages are read, and its reign.
    #[getter]
    fn sequencer(&self) -> Option<(u16, u64)> {
        let sequencer = self.0.sequencer;
        sequencer.map(|one| (one.host.0, one.reign))
    }

    /// Where its members are on these trees: host, switch, port.
    #[getter]
    fn leaves(&self) -> Vec<(u16, u16, u8)> {
        let leaves = self.0.trees.iter().flat_map(|trees| &trees.leaves);
        leaves
            .map(|leaf| (leaf.host.0, leaf.switch.0, leaf.port.get()))
            .collect()
    }

    /// Whether agents take its messages where no receiver is open, and drop them.
    #[getter]
    fn sink(&self) -> bool {
        self.0.sink
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

    /// Members of the group as configured that are not among `members`, and why.
    #[getter]
    fn left_out(&self) -> Vec<(u16, &str)> {
        let left_out = self.0.left_out.iter();
        left_out.map(|one| (one.host.0, &*one.reason)).collect()
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
    fn variant(&self) -> &'static str {
        match self.get().recipe {
            Recipe::Circuit(variant) => variant.name(),
            _ => "",
        }
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

/// Everything one agent has to know, without the epoch.
#[pyclass(frozen)]
pub(crate) struct AgentPlan {
    pub(crate) plan: Arc<planner::AgentPlan>,
    #[pyo3(get)]
    pub(crate) groups: Py<PyTuple>,
}

#[pymethods]
impl AgentPlan {
    #[getter]
    fn host(&self) -> u16 {
        self.plan.host.0
    }

    /// Whether a message takes any of the unicast routes to a host at random; else in turn.
    #[getter]
    fn at_random(&self) -> bool {
        self.plan.at_random
    }

    /// Frames of a train of any kind at most; 1: there are none.
    #[getter]
    fn train_frames(&self) -> u16 {
        self.plan.train_frames
    }

    /// Frames of a UNICAST train at most, no fewer than that; 1: there are none.
    #[getter]
    fn unicast_train_frames(&self) -> u16 {
        self.plan.unicast_train_frames
    }

    /// Bytes of a TREE route at most.
    #[getter]
    fn tree_route_max(&self) -> u8 {
        self.plan.tree_route_max
    }

    /// Bytes a second that the host may send of its own; None: any.
    #[getter]
    fn rate_bytes(&self) -> Option<u64> {
        self.plan.rate_bytes
    }

    /// All of them as fields of `Plan` in agent.proto, encoded.
    fn encode_routes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.plan.encode_routes())
    }

    /// What of the routes is other than in a plan before, as fields of `PlanChange` in agent.proto, encoded; None
    /// where that message cannot say it.
    fn encode_route_change<'py>(
        &self,
        py: Python<'py>,
        before: &AgentPlan,
    ) -> Option<Bound<'py, PyBytes>> {
        let bytes = self.plan.encode_route_change(&before.plan)?;
        Some(PyBytes::new(py, &bytes))
    }

    /// Groups that are new or other than in a plan before, and the numbers of those that are gone.
    fn groups_changed<'py>(
        &self,
        py: Python<'py>,
        before: &AgentPlan,
    ) -> PyResult<(Vec<Bound<'py, PyAny>>, Vec<u16>)> {
        let (new, old) = (&self.plan.groups, &before.plan.groups);
        let find = |groups: &[Arc<planner::AgentGroup>], id| {
            let at = groups.binary_search_by_key(&id, |group| group.id);
            at.ok().map(|at| groups[at].clone())
        };
        let is_other = |at: &usize| {
            let before = find(old, new[*at].id);
            before.is_none_or(|before| !Arc::ptr_eq(&before, &new[*at]) && before != new[*at])
        };
        let groups = self.groups.bind(py);
        let changed = (0..new.len()).filter(is_other);
        let gone = old.iter().filter(|group| find(new, group.id).is_none());
        Ok((
            changed
                .map(|at| groups.get_item(at))
                .collect::<PyResult<_>>()?,
            gone.map(|group| group.id.0).collect(),
        ))
    }

    /// Destination, share and ports of each.
    #[getter]
    fn routes<'py>(&self, py: Python<'py>) -> Vec<(u16, u32, Bound<'py, PyBytes>)> {
        route_list(py, &self.plan.routes)
    }

    #[getter]
    fn tree_routes<'py>(&self, py: Python<'py>) -> Vec<(u16, u32, Bound<'py, PyBytes>)> {
        route_list(py, &self.plan.tree_routes)
    }

    /// The group with this number.
    fn group<'py>(&self, py: Python<'py>, id: u16) -> PyResult<Option<Bound<'py, PyAny>>> {
        let found = self
            .plan
            .groups
            .binary_search_by_key(&GroupId(id), |group| group.id);
        found
            .ok()
            .map(|at| self.groups.bind(py).get_item(at))
            .transpose()
    }

    fn __eq__(&self, other: &AgentPlan) -> bool {
        self.plan == other.plan
    }
}

fn route_list<'py>(py: Python<'py>, routes: &RouteTable) -> Vec<(u16, u32, Bound<'py, PyBytes>)> {
    routes
        .0
        .iter()
        .map(|route| (route.to.0, route.share, PyBytes::new(py, &route.ports)))
        .collect()
}
