//! The planner, and what it plans for agents.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ::wormcast_planner as planner;
use planner::cost::Costs;
use planner::{Capacity, Group, Hosts, Shortfall};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFrozenSet};
use wormcast_wire::{GroupId, HostId, SwitchId};

use crate::agents::{AgentGroup, AgentPlan, AgentStructure};
use crate::arguments::{
    RoutingError, host_id, port_id, read_topology, run, setting, switch_id, text,
};
use crate::class_d::ClassDNumbers;
use crate::given_group::read_group;
use crate::given_topology::GivenTopology;
use crate::switches::{Place, SwitchState};

/// Adds these classes to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("NOT_LIVE", planner::NOT_LIVE)?;
    module.add("NOT_PLANNED", planner::NOT_PLANNED)?;
    module.add("PLAIN", planner::PLAIN)?;
    module.add_class::<AgentGroup>()?;
    module.add_class::<AgentStructure>()?;
    module.add_class::<AgentPlan>()?;
    module.add_class::<FabricState>()?;
    module.add_class::<Planner>()
}

/// What an agent takes, as the controller has it.
#[derive(FromPyObject)]
struct GivenCapacity {
    groups: u64,
    members: u64,
    refused: BTreeMap<u16, String>,
}

impl GivenCapacity {
    fn read(self) -> Capacity {
        let refused = self
            .refused
            .into_iter()
            .map(|(group, reason)| (GroupId(group), reason));
        Capacity {
            groups: self.groups,
            members: self.members,
            refused: refused.collect(),
        }
    }
}

/// What every switch and every agent must have.
#[pyclass(frozen)]
pub(crate) struct FabricState {
    #[pyo3(get)]
    switches: Py<PyDict>,
    #[pyo3(get)]
    agents: Py<PyDict>,
    #[pyo3(get)]
    parts: Vec<Py<PyFrozenSet>>,
    #[pyo3(get)]
    failures: Vec<String>,
    #[pyo3(get)]
    touched: Option<Py<PyDict>>,
    #[pyo3(get)]
    digest: String,
    /// The root of each part.
    #[pyo3(get)]
    roots: Vec<u16>,
    /// Pairs of hosts with longer routes because some hosts do not re-inject.
    #[pyo3(get)]
    lengthened: u64,
    shortfalls: Vec<Shortfall>,
    by_hosts: Vec<Shortfall>,
    /// Plans that agents must have first, while the order of switches changes; else None.
    #[pyo3(get)]
    bridge: Option<Py<PyDict>>,
    /// Of these plans.
    #[pyo3(get)]
    bridge_digest: String,
    /// How the order was found: kept-order, repaired-order, new-order.
    #[pyo3(get)]
    method: &'static str,
    /// Pairs of hosts without a route on the bridge that have one in the end.
    #[pyo3(get)]
    stopped: u64,
    /// Pairs of hosts whose routes are other in the end than before.
    #[pyo3(get)]
    routes_changed: u64,
    /// Pairs of hosts whose routes are other on the bridge than before.
    #[pyo3(get)]
    routes_bridged: u64,
    /// Switches that a worm crosses at most.
    #[pyo3(get)]
    crossed_max: u32,
    /// Whether to say when older worms have left.
    #[pyo3(get)]
    drains: bool,
    /// The order of switches in force, to be stored.
    #[pyo3(get)]
    order: String,
    /// The order after the bridge; None if it does not change.
    #[pyo3(get)]
    next_order: Option<String>,
    switching: planner::Switching,
}

#[pymethods]
impl FabricState {
    /// That of nothing.
    #[new]
    fn new(py: Python<'_>) -> FabricState {
        FabricState {
            switches: PyDict::new(py).unbind(),
            agents: PyDict::new(py).unbind(),
            parts: Vec::new(),
            failures: Vec::new(),
            touched: None,
            digest: String::new(),
            roots: Vec::new(),
            lengthened: 0,
            shortfalls: Vec::new(),
            by_hosts: Vec::new(),
            bridge: None,
            bridge_digest: String::new(),
            method: planner::Method::KeptOrder.name(),
            stopped: 0,
            routes_changed: 0,
            routes_bridged: 0,
            crossed_max: 0,
            drains: false,
            order: String::new(),
            next_order: None,
            switching: planner::Switching::Packet,
        }
    }

    /// Group, host and reason of members that are not served, `most` of them.
    #[pyo3(signature = (most = usize::MAX))]
    fn shortfalls(&self, most: usize) -> Vec<(u16, u16, &str)> {
        let shown = self.shortfalls.iter().take(most);
        shown
            .map(|short| (short.group.0, short.host.0, &*short.reason))
            .collect()
    }

    /// The routes file of the plans, or of those of the bridge; None if it would be too large.
    #[pyo3(signature = (topology, algorithm, root, src = None, dst = None))]
    fn routes_file(
        &self,
        py: Python<'_>,
        topology: &str,
        algorithm: &str,
        root: Option<i64>,
        src: Option<i64>,
        dst: Option<i64>,
    ) -> PyResult<Option<String>> {
        let plans = plans_of(py, &self.agents)?;
        run(py, || {
            let topology = read_topology(topology)?;
            let algorithm = algorithm.parse().map_err(text)?;
            let root = root.map(switch_id).transpose()?;
            let ends = (src.map(host_id).transpose()?, dst.map(host_id).transpose()?);
            Ok(planner::routes_file(
                &topology, &plans, algorithm, root, ends,
            ))
        })
    }

    /// The verify file of all that agents may send by the plans in force and in the steps given:
    /// other states of the fabric, and for each whether its bridge is meant. Switches pass worms on as in this plan.
    #[pyo3(signature = (topology, others = Vec::new()))]
    fn verify(
        &self,
        py: Python<'_>,
        topology: &str,
        others: Vec<(PyRef<'_, FabricState>, bool)>,
    ) -> PyResult<String> {
        let mut all = vec![plans_of(py, &self.agents)?];
        for (other, bridge) in &others {
            match (bridge, &other.bridge) {
                (true, Some(bridge)) => all.push(plans_of(py, bridge)?),
                (true, None) => {}
                (false, _) => all.push(plans_of(py, &other.agents)?),
            }
        }
        let state = |(switch, state): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
            let state = state.cast::<SwitchState>()?.borrow().0.clone();
            Ok((SwitchId(switch.extract()?), state))
        };
        let switches = self.switches.bind(py).iter().map(state);
        let switches = switches.collect::<PyResult<BTreeMap<_, _>>>()?;
        run(py, || {
            let topology = read_topology(topology)?;
            let all: Vec<_> = all.iter().collect();
            let roots: Vec<SwitchId> = self.roots.iter().copied().map(SwitchId).collect();
            let way = (self.switching, &*roots);
            let graph = planner::dependencies(&topology, &switches, &all, way).map_err(text)?;
            Ok(graph.to_json())
        })
    }

    /// How many members are not served.
    #[getter]
    fn shortfall_count(&self) -> usize {
        self.shortfalls.len()
    }

    /// Why members of a group do not take part, by host.
    fn shortfalls_of(&self, group: u16) -> BTreeMap<u16, &str> {
        of_group(&self.shortfalls, group)
    }

    /// Why ACKs for origins of a group that gathers come by hosts alone, by host.
    fn by_hosts_of(&self, group: u16) -> BTreeMap<u16, &str> {
        of_group(&self.by_hosts, group)
    }

    /// How many such origins there are in all groups.
    #[getter]
    fn by_hosts_count(&self) -> usize {
        self.by_hosts.len()
    }
}

/// Reasons by host.
fn of_group(all: &[Shortfall], group: u16) -> BTreeMap<u16, &str> {
    let first = all.partition_point(|short| short.group.0 < group);
    let own = all[first..].iter();
    let own = own.take_while(|short| short.group.0 == group);
    own.map(|short| (short.host.0, &*short.reason)).collect()
}

fn plans_of(
    py: Python<'_>,
    plans: &Py<PyDict>,
) -> PyResult<BTreeMap<HostId, Arc<planner::AgentPlan>>> {
    let plan = |(host, plan): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
        let plan = plan.cast::<AgentPlan>()?.get().0.clone();
        Ok((HostId(host.extract()?), plan))
    };
    plans.bind(py).iter().map(plan).collect()
}

/// Plans one network again and again. What comes out the same is the same object.
#[pyclass]
pub(crate) struct Planner {
    planner: planner::Planner,
    /// Groups as they were given, by identity; they are kept, so it is not used again.
    given: BTreeMap<usize, (Py<PyAny>, Arc<Group>)>,
    plans: Wrapped,
    bridge_plans: Wrapped,
}

/// Plans of agents as Python has them.
type Wrapped = BTreeMap<HostId, Py<AgentPlan>>;

#[pymethods]
impl Planner {
    /// A planner with these unicast routes.
    #[new]
    #[pyo3(signature = (algorithm, root = None, balanced = false))]
    fn new(algorithm: &str, root: Option<i64>, balanced: bool) -> PyResult<Planner> {
        let setting = setting(algorithm, root, balanced).map_err(RoutingError::new_err)?;
        Ok(Planner {
            planner: planner::Planner::new(setting),
            given: BTreeMap::new(),
            plans: BTreeMap::new(),
            bridge_plans: BTreeMap::new(),
        })
    }

    /// Plans with these unicast routes from now on.
    fn set_routing(&mut self, algorithm: &str, root: Option<i64>, balanced: bool) -> PyResult<()> {
        let setting = setting(algorithm, root, balanced).map_err(RoutingError::new_err)?;
        self.planner.set_routing(setting);
        Ok(())
    }

    /// Goes on from the order of switches that was in force in an earlier life.
    fn restore_order(&mut self, order: &str) -> PyResult<()> {
        let order = planner::RouteOrder::from_json(order);
        let order = order.map_err(|error| RoutingError::new_err(error.to_string()))?;
        self.planner.restore_order(order);
        Ok(())
    }

    /// All agents follow the last plan and older worms have left; whether a new plan has to be made.
    fn drained(&mut self) -> bool {
        self.planner.drained()
    }

    /// All agents follow the bridge and older worms have left: the next order is in force.
    fn settle(&mut self) {
        self.planner.settle();
    }

    /// Sequencers that are chosen from now on have epochs of this number or more.
    fn set_sequencer_epoch(&mut self, epoch: u64) {
        self.planner.set_sequencer_epoch(epoch);
    }

    /// Epochs of gathered ACKs that may be taken from now on: those before the first may be of an earlier life.
    fn set_gather_epochs(&mut self, first: u32, end: u32) {
        self.planner.set_gather_epochs(first, end);
    }

    /// The epoch of gathered ACKs that the next plan takes, if it takes one.
    #[getter]
    fn next_gather_epoch(&self) -> u32 {
        self.planner.next_gather_epoch()
    }

    /// Groups of scheme auto go by these costs from now on: a file of them, as text.
    fn set_costs(&mut self, costs: &str) -> PyResult<()> {
        let costs = Costs::from_json(costs).map_err(|error| RoutingError::new_err(text(error)))?;
        self.planner.set_costs(costs);
        Ok(())
    }

    /// The links at these ports, by switch and port, carry less than the longest frames that hosts send: so
    /// many bytes after the Ethernet header. Both ends of a link are named.
    fn set_mtu_limits(&mut self, links: BTreeMap<(i64, i64), u16>) -> PyResult<()> {
        let read = |((switch, port), bytes): ((i64, i64), u16)| {
            Ok(((switch_id(switch)?, port_id(port)?), bytes))
        };
        let links: Result<_, String> = links.into_iter().map(read).collect();
        self.planner
            .set_mtu_limits(links.map_err(RoutingError::new_err)?);
        Ok(())
    }

    /// Switches admit what this asks for: whether the guard is on, groups that are closed though they have an
    /// address, and bytes a second of hosts.
    fn set_guard(&mut self, on: bool, closed: BTreeSet<u16>, rates: BTreeMap<u16, u64>) {
        self.planner.set_guard(planner::Guard {
            on,
            closed: closed.into_iter().map(GroupId).collect(),
            rates: (rates.into_iter())
                .map(|(host, bytes)| (HostId(host), bytes))
                .collect(),
        });
    }

    /// Switches pass worms on in this way, from now on, and agents send trains or do not; see the crate's
    /// `Switching::named` and `set_switching`.
    fn set_switching(&mut self, mode: &str, scheme: Option<&str>, trains: bool) -> PyResult<()> {
        let named = planner::Switching::named(mode, scheme);
        let unknown = || RoutingError::new_err(format!("no switching {mode} {scheme:?}"));
        self.planner
            .set_switching(named.ok_or_else(unknown)?, trains);
        Ok(())
    }

    /// Switches take TREE routes of so many bytes at most from now on, 3 to 255; agents split what needs more.
    fn set_tree_route_max(&mut self, bytes: u8) -> PyResult<()> {
        if bytes < 3 {
            let reason = format!("TREE routes of {bytes} bytes; it must be 3 to 255");
            return Err(RoutingError::new_err(reason));
        }
        self.planner
            .set_tree_route_max((bytes < u8::MAX).then_some(bytes));
        Ok(())
    }

    /// The known links at these ports, by switch and port, carry nothing, because a port of theirs is down. Both
    /// ends of a link are named.
    fn set_down(&mut self, ends: BTreeSet<(i64, i64)>) -> PyResult<()> {
        let read = |(switch, port): (i64, i64)| Ok((switch_id(switch)?, port_id(port)?));
        let ends: Result<_, String> = ends.into_iter().map(read).collect();
        self.planner.set_down(ends.map_err(RoutingError::new_err)?);
        Ok(())
    }

    /// What every switch and every agent must have; see the crate's `Planner::plan`.
    #[allow(clippy::too_many_arguments)] // what a plan is made from
    #[pyo3(signature = (topology, known, groups, agents, live, capacities, class_d, away = BTreeMap::new()))]
    fn plan(
        &mut self,
        py: Python<'_>,
        topology: GivenTopology,
        known: GivenTopology,
        groups: Vec<Bound<'_, PyAny>>,
        agents: BTreeSet<u16>,
        live: BTreeSet<u16>,
        capacities: BTreeMap<u16, GivenCapacity>,
        class_d: &ClassDNumbers,
        away: BTreeMap<u16, String>,
    ) -> PyResult<FabricState> {
        let groups = self.read_groups(groups)?;
        let capacities = capacities
            .into_iter()
            .map(|(host, given)| (HostId(host), given.read()));
        let hosts = Hosts {
            agents: agents.into_iter().map(HostId).collect(),
            live: live.into_iter().map(HostId).collect(),
            capacities: capacities.collect(),
            away: (away.into_iter())
                .map(|(host, since)| (HostId(host), since))
                .collect(),
        };
        let planner = &mut self.planner;
        let planned = py.detach(|| {
            let (up, known) = (topology.read()?, known.read()?);
            let state = planner.plan(&up, &known, &groups, &hosts, &class_d.0);
            let digest = planner::digest_agents(&state.agents);
            let bridge = state.routes.bridge.as_ref();
            let bridge_digest = bridge.map(planner::digest_agents).unwrap_or_default();
            Ok((state, digest, bridge_digest))
        });
        let (state, digest, bridge_digest) = planned.map_err(RoutingError::new_err::<String>)?;
        self.wrap(py, state, digest, bridge_digest)
    }
}

impl Planner {
    fn read_groups(&mut self, groups: Vec<Bound<'_, PyAny>>) -> PyResult<Vec<Arc<Group>>> {
        let mut before = std::mem::take(&mut self.given);
        let mut read = Vec::with_capacity(groups.len());
        for group in groups {
            let identity = group.as_ptr() as usize;
            let kept = match before.remove(&identity) {
                Some(kept) => kept,
                None => {
                    let known = read_group(&group)?;
                    (group.unbind(), known)
                }
            };
            read.push(kept.1.clone());
            self.given.insert(identity, kept);
        }
        Ok(read)
    }

    fn wrap(
        &mut self,
        py: Python<'_>,
        state: planner::FabricState,
        digest: String,
        bridge_digest: String,
    ) -> PyResult<FabricState> {
        let switches = PyDict::new(py);
        for (switch, state) in state.switches {
            switches.set_item(switch.0, Bound::new(py, SwitchState(state))?)?;
        }
        let before = [&mut self.plans, &mut self.bridge_plans].map(std::mem::take);
        let (agents, plans) = Self::wrap_plans(py, state.agents, &before)?;
        self.plans = plans;
        let bridge = match state.routes.bridge {
            None => None,
            Some(bridge) => {
                let [plans, bridge_plans] = before;
                let known = [
                    bridge_plans,
                    self.plans
                        .iter()
                        .map(|(h, p)| (*h, p.clone_ref(py)))
                        .collect(),
                    plans,
                ];
                let (bridge, plans) = Self::wrap_plans(py, bridge, &known)?;
                self.bridge_plans = plans;
                Some(bridge)
            }
        };
        let set = |part: BTreeSet<SwitchId>| {
            PyFrozenSet::new(py, part.iter().map(|switch| switch.0)).map(Bound::unbind)
        };
        let touched = state.touched.map(|touched| {
            let places = PyDict::new(py);
            for (switch, found) in touched {
                let found: Vec<Place> = found.into_iter().map(Place).collect();
                places.set_item(switch.0, found)?;
            }
            PyResult::Ok(places.unbind())
        });
        Ok(FabricState {
            switches: switches.unbind(),
            agents,
            parts: state.parts.into_iter().map(set).collect::<PyResult<_>>()?,
            failures: state.failures.iter().map(ToString::to_string).collect(),
            touched: touched.transpose()?,
            digest,
            roots: state.roots.iter().map(|root| root.0).collect(),
            lengthened: state.lengthened,
            shortfalls: state.shortfalls,
            by_hosts: state.by_hosts,
            bridge,
            bridge_digest,
            method: state.routes.method.name(),
            stopped: state.routes.stopped,
            routes_changed: state.routes.changed,
            routes_bridged: state.routes.bridged,
            crossed_max: state.routes.crossed_max,
            drains: state.routes.drains,
            order: state.routes.in_force.to_json(),
            next_order: state.routes.next.map(|next| next.to_json()),
            switching: state.switching,
        })
    }

    /// Plans by host; those that are among the known are the same objects.
    fn wrap_plans(
        py: Python<'_>,
        plans: BTreeMap<HostId, Arc<planner::AgentPlan>>,
        known: &[Wrapped],
    ) -> PyResult<(Py<PyDict>, Wrapped)> {
        let (dict, mut wrapped) = (PyDict::new(py), Wrapped::new());
        for (host, plan) in plans {
            let same = |old: &&Py<AgentPlan>| Arc::ptr_eq(&old.get().0, &plan);
            let found = known.iter().filter_map(|known| known.get(&host)).find(same);
            let object = match found {
                Some(found) => found.clone_ref(py),
                None => Py::new(py, AgentPlan(plan))?,
            };
            dict.set_item(host.0, &object)?;
            wrapped.insert(host, object);
        }
        Ok((dict.unbind(), wrapped))
    }
}
