//! What a switch holds.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use wormcast_wire::PortId;

use crate::model::copies::Copies;
use crate::model::ids::Mgid;

/// A name of the P4Info.
pub type Name = Cow<'static, str>;

/// What a field of an entry matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MatchValue {
    Exact(u128),
    /// All that equals the value where the mask has ones.
    Ternary(u128, u128),
}

/// What P4Runtime identifies a table entry by within a switch.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyFields {
    pub table: Name,
    pub matches: Vec<(Name, MatchValue)>,
    /// Ternary tables only, the greater wins; 0 elsewhere.
    pub priority: i32,
}

/// The same, cheap to copy.
pub type EntryKey = Arc<KeyFields>;

/// An action with its parameters.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Action {
    pub name: Name,
    pub parameters: Vec<(Name, u128)>,
}

/// One entry of a match-action table, named as in the P4Info.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TableEntry {
    /// What it is identified by.
    pub key: EntryKey,
    pub action: Arc<Action>,
}

/// What a table does on a miss.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TableDefault {
    pub table: Name,
    pub action: Arc<Action>,
}

/// Where a switch holds something.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    Group(Mgid),
    Entry(EntryKey),
    /// The default action of a table.
    Default(Name),
    /// How fast worms may come by a port.
    Rate(PortId),
}

/// Tables and replication groups of one switch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SwitchState {
    pub entries: BTreeMap<EntryKey, Arc<Action>>,
    /// Replication groups and the copies they make.
    pub multicast: BTreeMap<Mgid, Copies>,
    /// Default actions that are not the P4 program's own, by table.
    pub defaults: BTreeMap<Name, Arc<Action>>,
    /// Bytes a second that worms may have by a port; any by others.
    pub rates: BTreeMap<PortId, u64>,
}

impl SwitchState {
    /// Adds an entry; two entries with one key are a bug of the planner.
    pub(crate) fn add(&mut self, entry: TableEntry) {
        let before = self.entries.insert(entry.key, entry.action);
        assert!(before.is_none(), "an entry is planned twice");
    }
}

/// An entry that matches one value of one field.
pub(crate) fn exact(
    table: &'static str,
    field: &'static str,
    value: u16,
    name: &'static str,
    parameters: &[(&'static str, u128)],
) -> TableEntry {
    let matches = vec![(field.into(), MatchValue::Exact(value.into()))];
    TableEntry {
        key: Arc::new(KeyFields {
            table: table.into(),
            matches,
            priority: 0,
        }),
        action: action(name, parameters),
    }
}

/// An action of the planner's own.
pub(crate) fn action(name: &'static str, parameters: &[(&'static str, u128)]) -> Arc<Action> {
    let parameters = parameters
        .iter()
        .map(|&(name, value)| (Name::from(name), value))
        .collect();
    Arc::new(Action {
        name: name.into(),
        parameters,
    })
}
