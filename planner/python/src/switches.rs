//! What a switch holds, and the updates that lead to what it must hold.

use std::collections::BTreeMap;
use std::sync::Arc;

use ::wormcast_planner as planner;
use planner::{
    Action, Copies, Entity, KeyFields, MatchValue, Mgid, Name, Operation, Replica, Stage,
};
use pyo3::prelude::*;
use pyo3::types::{PyFrozenSet, PyTuple};
use wormcast_wire::PortId;

/// Adds these classes and functions to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("TABLES_WITH_DEFAULT", planner::TABLES_WITH_DEFAULT)?;
    module.add("GROUP_NUMBERS_MAX", planner::GROUP_NUMBERS_MAX)?;
    module.add_class::<Place>()?;
    module.add_class::<TableEntry>()?;
    module.add_class::<TableDefault>()?;
    module.add_class::<MulticastGroup>()?;
    module.add_class::<PortRate>()?;
    module.add_class::<Update>()?;
    module.add_class::<SwitchState>()?;
    module.add_function(wrap_pyfunction!(difference, module)?)
}

/// Where a switch holds something.
#[pyclass(frozen, eq, hash, from_py_object)]
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Place(pub(crate) planner::Place);

#[pymethods]
impl Place {
    /// The place of a replication group.
    #[staticmethod]
    fn group(mgid: u16) -> Place {
        Place(planner::Place::Group(Mgid(mgid)))
    }

    fn __repr__(&self) -> String {
        format!("{:?}", self.0)
    }
}

/// A value, or value and mask.
#[derive(FromPyObject, IntoPyObject)]
enum Matched {
    Exact(u128),
    Ternary((u128, u128)),
}

type Parameters = Vec<(String, u128)>;

fn action(name: String, parameters: Parameters) -> Arc<Action> {
    let parameters = parameters
        .into_iter()
        .map(|(name, value)| (Name::from(name), value));
    Arc::new(Action {
        name: name.into(),
        parameters: parameters.collect(),
    })
}

/// Parameters by name.
fn parameters(action: &Action) -> Vec<(&str, u128)> {
    action
        .parameters
        .iter()
        .map(|(name, value)| (&**name, *value))
        .collect()
}

/// One entry of a match-action table, named as in the P4Info.
#[pyclass(frozen, eq, hash, from_py_object)]
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct TableEntry(planner::TableEntry);

#[pymethods]
impl TableEntry {
    #[new]
    #[pyo3(signature = (table, r#match, action, parameters = Vec::new(), priority = 0))]
    fn new(
        table: String,
        r#match: Vec<(String, Matched)>,
        action: String,
        parameters: Parameters,
        priority: i32,
    ) -> TableEntry {
        let value = |value| match value {
            Matched::Exact(value) => MatchValue::Exact(value),
            Matched::Ternary((value, mask)) => MatchValue::Ternary(value, mask),
        };
        let matches = r#match
            .into_iter()
            .map(|(field, found)| (field.into(), value(found)));
        let key = KeyFields {
            table: table.into(),
            matches: matches.collect(),
            priority,
        };
        let action = self::action(action, parameters);
        TableEntry(planner::TableEntry {
            key: Arc::new(key),
            action,
        })
    }

    #[getter]
    fn table(&self) -> &str {
        &self.0.key.table
    }

    #[getter]
    fn r#match(&self) -> Vec<(&str, Matched)> {
        let value = |value| match value {
            MatchValue::Exact(value) => Matched::Exact(value),
            MatchValue::Ternary(value, mask) => Matched::Ternary((value, mask)),
        };
        self.0
            .key
            .matches
            .iter()
            .map(|(field, found)| (&**field, value(*found)))
            .collect()
    }

    #[getter]
    fn action(&self) -> &str {
        &self.0.action.name
    }

    #[getter]
    fn parameters(&self) -> Vec<(&str, u128)> {
        parameters(&self.0.action)
    }

    #[getter]
    fn priority(&self) -> i32 {
        self.0.key.priority
    }

    /// The replication group it leads to.
    #[getter]
    fn mgid(&self) -> Option<u16> {
        planner::mgid_of(&self.0.action).map(|mgid| mgid.0)
    }

    /// The group number it is about.
    #[getter]
    fn group(&self) -> Option<u16> {
        let KeyFields { table, matches, .. } = &*self.0.key;
        let number = match matches[..] {
            [(_, MatchValue::Exact(number))] if table == planner::TABLE_GROUPS => Some(number),
            _ => {
                let mut parameters = self.0.action.parameters.iter();
                parameters
                    .find(|(name, _)| name == "group")
                    .map(|(_, number)| *number)
            }
        };
        number.and_then(|number| number.try_into().ok())
    }

    fn __repr__(&self) -> String {
        format!("{:?}", self.0)
    }
}

/// What a table does on a miss.
#[pyclass(frozen, eq, hash, from_py_object)]
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct TableDefault(planner::TableDefault);

#[pymethods]
impl TableDefault {
    #[new]
    #[pyo3(signature = (table, action, parameters = Vec::new()))]
    fn new(table: String, action: String, parameters: Parameters) -> TableDefault {
        let action = self::action(action, parameters);
        TableDefault(planner::TableDefault {
            table: table.into(),
            action,
        })
    }

    #[getter]
    fn table(&self) -> &str {
        &self.0.table
    }

    #[getter]
    fn action(&self) -> &str {
        &self.0.action.name
    }

    #[getter]
    fn parameters(&self) -> Vec<(&str, u128)> {
        parameters(&self.0.action)
    }
}

/// A replication group and the copies it makes.
#[pyclass(frozen, eq, hash, from_py_object)]
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct MulticastGroup(planner::MulticastGroup);

#[pymethods]
impl MulticastGroup {
    #[new]
    fn new(mgid: u16, replicas: Replicas) -> PyResult<MulticastGroup> {
        let mgid = Mgid(mgid);
        Ok(MulticastGroup(planner::MulticastGroup {
            mgid,
            copies: copies(replicas)?,
        }))
    }

    #[getter]
    fn mgid(&self) -> u16 {
        self.0.mgid.0
    }

    #[getter]
    fn ports<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyFrozenSet>> {
        PyFrozenSet::new(py, self.0.copies.ports().iter().map(PortId::get))
    }

    /// Each copy: its port, its instance, and the ports that stand in for its port.
    #[getter]
    fn replicas<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let replica = |replica: &Replica| {
            let backups: Vec<u8> = replica.backups.iter().map(PortId::get).collect();
            let backups = PyTuple::new(py, backups)?;
            (replica.port.get(), replica.instance, backups).into_pyobject(py)
        };
        let all: PyResult<Vec<_>> = self.0.copies.iter().map(replica).collect();
        PyTuple::new(py, all?)
    }

    fn __repr__(&self) -> String {
        format!("{:?}", self.0)
    }
}

/// Port, instance and backups of each copy.
type Replicas = Vec<(u16, u16, Vec<u16>)>;

fn read_port(port: u16) -> PyResult<PortId> {
    let known = u8::try_from(port).ok().and_then(PortId::new);
    known.ok_or_else(|| {
        crate::arguments::RoutingError::new_err(format!("port {port} is outside 0 to 253"))
    })
}

fn copies(replicas: Replicas) -> PyResult<Copies> {
    let replica = |(at, instance, backups): (u16, u16, Vec<u16>)| {
        let port = if at == u16::from(PortId::RECIRCULATE.get()) {
            PortId::RECIRCULATE
        } else {
            read_port(at)?
        };
        Ok(Replica {
            port,
            instance,
            backups: backups
                .into_iter()
                .map(read_port)
                .collect::<PyResult<_>>()?,
        })
    };
    let all: PyResult<Vec<Replica>> = replicas.into_iter().map(replica).collect();
    all.map(Copies::new)
}

/// How fast worms may come by a port.
#[pyclass(frozen, eq, hash, from_py_object)]
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PortRate(planner::PortRate);

#[pymethods]
impl PortRate {
    #[new]
    #[pyo3(signature = (port, bytes = None))]
    fn new(port: u16, bytes: Option<u64>) -> PyResult<PortRate> {
        let port = read_port(port)?;
        Ok(PortRate(planner::PortRate { port, bytes }))
    }

    #[getter]
    fn port(&self) -> u8 {
        self.0.port.get()
    }

    /// Bytes a second; None: any.
    #[getter]
    fn bytes(&self) -> Option<u64> {
        self.0.bytes
    }

    fn __repr__(&self) -> String {
        format!("{:?}", self.0)
    }
}

/// One write to one switch.
#[pyclass(frozen, eq, hash, from_py_object)]
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Update(planner::Update);

#[pymethods]
impl Update {
    #[getter]
    fn stage(&self) -> u8 {
        match self.0.stage {
            Stage::Permit => 0,
            Stage::Shrink => 1,
            Stage::Grow => 2,
            Stage::Retire => 3,
            Stage::Revoke => 4,
        }
    }

    #[getter]
    fn operation(&self) -> &'static str {
        match self.0.operation {
            Operation::Insert => "insert",
            Operation::Modify => "modify",
            Operation::Delete => "delete",
        }
    }

    #[getter]
    fn entity<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(match &self.0.entity {
            Entity::Group(group) => Bound::new(py, MulticastGroup(group.clone()))?.into_any(),
            Entity::Entry(entry) => Bound::new(py, TableEntry(entry.clone()))?.into_any(),
            Entity::Default(default) => Bound::new(py, TableDefault(default.clone()))?.into_any(),
            Entity::Rate(rate) => Bound::new(py, PortRate(*rate))?.into_any(),
        })
    }

    #[getter]
    fn place(&self) -> Place {
        Place(self.0.place())
    }

    /// Whether it writes a default action.
    #[getter]
    fn is_default(&self) -> bool {
        matches!(self.0.entity, Entity::Default(_))
    }

    fn __repr__(&self) -> String {
        format!("{:?}", self.0)
    }
}

/// Tables and replication groups of one switch.
#[pyclass(eq)]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SwitchState(pub(crate) Arc<planner::SwitchState>);

#[pymethods]
impl SwitchState {
    #[new]
    fn new() -> SwitchState {
        SwitchState::default()
    }

    /// A copy that can change on its own.
    fn copy(&self) -> SwitchState {
        self.clone()
    }

    /// Puts an entry in the place of its key.
    fn put_entry(&mut self, entry: TableEntry) {
        let planner::TableEntry { key, action } = entry.0;
        Arc::make_mut(&mut self.0).entries.insert(key, action);
    }

    /// Puts a default action in the place of its table.
    fn put_default(&mut self, default: TableDefault) {
        planner::set_default(Arc::make_mut(&mut self.0), default.0);
    }

    /// Puts the rate of a port in the place of the one before.
    fn put_rate(&mut self, rate: &PortRate) {
        let planner::PortRate { port, bytes } = rate.0;
        let rates = &mut Arc::make_mut(&mut self.0).rates;
        match bytes {
            Some(bytes) => _ = rates.insert(port, bytes),
            None => _ = rates.remove(&port),
        }
    }

    /// Ports that worms may come by only so fast: bytes a second of each.
    fn rates(&self) -> BTreeMap<u8, u64> {
        let rates = self.0.rates.iter();
        rates.map(|(port, bytes)| (port.get(), *bytes)).collect()
    }

    /// Puts a replication group in the place of its number.
    fn put_group(&mut self, group: MulticastGroup) {
        let planner::MulticastGroup { mgid, copies } = group.0;
        Arc::make_mut(&mut self.0).multicast.insert(mgid, copies);
    }

    /// What a switch does with an update it accepted.
    fn execute(&mut self, update: &Update) {
        planner::execute(&update.0, Arc::make_mut(&mut self.0));
    }

    /// Puts a part as it was found in the place of what was taken to be there: `groups`, `defaults`, `rates`, or the
    /// entries of the table of that name. How much is missing, changed and extra.
    fn read_back(&mut self, part: &str, found: &SwitchState) -> (usize, usize, usize) {
        let part = match part {
            "groups" => planner::Part::Groups,
            "defaults" => planner::Part::Defaults,
            "rates" => planner::Part::Rates,
            table => planner::Part::Entries(table.to_owned().into()),
        };
        let held = Arc::make_mut(&mut self.0);
        let strayed = planner::read_back(held, &part, (*found.0).clone());
        (strayed.missing, strayed.changed, strayed.extra)
    }

    fn entries(&self) -> Vec<TableEntry> {
        let entry = |(key, action): (&Arc<KeyFields>, &Arc<Action>)| planner::TableEntry {
            key: key.clone(),
            action: action.clone(),
        };
        self.0
            .entries
            .iter()
            .map(|found| TableEntry(entry(found)))
            .collect()
    }

    /// All replication groups.
    fn multicast(&self) -> Vec<MulticastGroup> {
        let group = |(&mgid, copies): (&Mgid, &Copies)| {
            let copies = copies.clone();
            MulticastGroup(planner::MulticastGroup { mgid, copies })
        };
        self.0.multicast.iter().map(group).collect()
    }

    /// Whether there is such a replication group.
    fn has_group(&self, mgid: u16) -> bool {
        self.0.multicast.contains_key(&Mgid(mgid))
    }

    /// How many entries and replication groups there are.
    fn counts(&self) -> (usize, usize) {
        (self.0.entries.len(), self.0.multicast.len())
    }

    /// The group number that leads to a replication group.
    fn number_of(&self, mgid: u16) -> Option<u16> {
        let leads_there = |(key, action): &(&Arc<KeyFields>, &Arc<Action>)| {
            key.table == planner::TABLE_GROUPS && planner::mgid_of(action) == Some(Mgid(mgid))
        };
        let (key, _) = self.0.entries.iter().find(leads_there)?;
        match key.matches[..] {
            [(_, MatchValue::Exact(number))] => number.try_into().ok(),
            _ => None,
        }
    }
}

/// Updates that turn `actual` into `desired`, by stage; `within` is where the two may differ,
/// None: anywhere.
#[pyfunction]
#[pyo3(signature = (desired, actual, within = None))]
fn difference(
    py: Python<'_>,
    desired: &SwitchState,
    actual: &SwitchState,
    within: Option<Vec<Place>>,
) -> Vec<Update> {
    let (desired, actual) = (desired.0.clone(), actual.0.clone());
    let updates = py.detach(move || {
        let within: Option<Vec<_>> =
            within.map(|places| places.into_iter().map(|place| place.0).collect());
        planner::difference(&desired, &actual, within.as_deref())
    });
    updates.into_iter().map(Update).collect()
}
