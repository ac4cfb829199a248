//! What there is to read of an interface: the leaves of openconfig-interfaces and of its
//! augmentation openconfig-p4rt that are served, and where they are in the tree.

use Class::{Applied, Config, Operational};
use Kind::{Counter, Event};

/// A container, and the list in it.
pub(crate) const TOP: &str = "interfaces";
pub(crate) const LIST: &str = "interface";
/// Key of the list.
pub(crate) const KEY: &str = "name";
/// Place of the list among the elements of a path.
pub(crate) const LIST_AT: usize = 1;

/// Modules of YANG that the leaves are from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Model {
    Interfaces,
    P4rt,
}

impl Model {
    pub(crate) const ALL: [Self; 2] = [Self::Interfaces, Self::P4rt];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Interfaces => "openconfig-interfaces",
            Self::P4rt => "openconfig-p4rt",
        }
    }

    pub(crate) fn organization(self) -> &'static str {
        match self {
            Self::Interfaces => "OpenConfig working group",
            Self::P4rt => "OpenConfig Working Group",
        }
    }

    pub(crate) fn version(self) -> &'static str {
        match self {
            Self::Interfaces => "3.5.0",
            Self::P4rt => "0.4.0",
        }
    }
}

/// A leaf of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Leaf {
    Key,
    ConfigName,
    Name,
    Ifindex,
    Id,
    AdminStatus,
    OperStatus,
    LastChange,
    Mtu,
    InOctets,
    InPkts,
    InDiscards,
    InErrors,
    OutOctets,
    OutPkts,
    OutDiscards,
    OutErrors,
}

/// Whether a leaf changes by events or counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Event,
    Counter,
}

/// Which types of Get a leaf is of (§3.3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// "config true".
    Config,
    /// State that a leaf of config has a counterpart of.
    Applied,
    /// State that comes about by itself.
    Operational,
}

/// All leaves, in the order in which they are sent: below the list, with what they are.
const LEAVES: [(Leaf, &[&str], Kind, Class); 17] = [
    (Leaf::Key, &["name"], Event, Config),
    (Leaf::ConfigName, &["config", "name"], Event, Config),
    (Leaf::Name, &["state", "name"], Event, Applied),
    (Leaf::Ifindex, &["state", "ifindex"], Event, Operational),
    (Leaf::Id, &["state", "id"], Event, Applied),
    (
        Leaf::AdminStatus,
        &["state", "admin-status"],
        Event,
        Operational,
    ),
    (
        Leaf::OperStatus,
        &["state", "oper-status"],
        Event,
        Operational,
    ),
    (
        Leaf::LastChange,
        &["state", "last-change"],
        Event,
        Operational,
    ),
    (Leaf::Mtu, &["state", "mtu"], Event, Applied),
    (
        Leaf::InOctets,
        &["state", "counters", "in-octets"],
        Counter,
        Operational,
    ),
    (
        Leaf::InPkts,
        &["state", "counters", "in-pkts"],
        Counter,
        Operational,
    ),
    (
        Leaf::InDiscards,
        &["state", "counters", "in-discards"],
        Counter,
        Operational,
    ),
    (
        Leaf::InErrors,
        &["state", "counters", "in-errors"],
        Counter,
        Operational,
    ),
    (
        Leaf::OutOctets,
        &["state", "counters", "out-octets"],
        Counter,
        Operational,
    ),
    (
        Leaf::OutPkts,
        &["state", "counters", "out-pkts"],
        Counter,
        Operational,
    ),
    (
        Leaf::OutDiscards,
        &["state", "counters", "out-discards"],
        Counter,
        Operational,
    ),
    (
        Leaf::OutErrors,
        &["state", "counters", "out-errors"],
        Counter,
        Operational,
    ),
];

impl Leaf {
    /// Elements below the list.
    pub(crate) fn below(self) -> &'static [&'static str] {
        LEAVES[self as usize].1
    }

    /// All elements of its path.
    pub(crate) fn elements(self) -> impl Iterator<Item = &'static str> {
        [TOP, LIST].into_iter().chain(self.below().iter().copied())
    }

    pub(crate) fn kind(self) -> Kind {
        LEAVES[self as usize].2
    }

    pub(crate) fn class(self) -> Class {
        LEAVES[self as usize].3
    }

    pub(crate) fn model(self) -> Model {
        match self {
            Self::Id => Model::P4rt,
            _ => Model::Interfaces,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LeafSet(u32);

impl LeafSet {
    pub(crate) fn all() -> Self {
        Self::of(|_| true)
    }

    /// Those for which something holds.
    pub(crate) fn of(holds: impl Fn(Leaf) -> bool) -> Self {
        let leaves = LEAVES.iter().map(|(leaf, ..)| *leaf);
        let bits = leaves.filter(|leaf| holds(*leaf));
        Self(bits.fold(0, |bits, leaf| bits | 1 << leaf as u32))
    }

    pub(crate) fn of_kind(kind: Kind) -> Self {
        Self::of(|leaf| leaf.kind() == kind)
    }

    pub(crate) fn has(self, leaf: Leaf) -> bool {
        self.0 & 1 << leaf as u32 != 0
    }

    pub(crate) fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    pub(crate) fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// In the order in which they are sent.
    pub(crate) fn iter(self) -> impl Iterator<Item = Leaf> {
        let leaves = LEAVES.iter().map(|(leaf, ..)| *leaf);
        leaves.filter(move |leaf| self.has(*leaf))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaves_are_where_their_numbers_say() {
        for (number, (leaf, ..)) in LEAVES.iter().enumerate() {
            assert_eq!(*leaf as usize, number);
        }
        assert_eq!(LeafSet::all().iter().count(), LEAVES.len());
        let path: Vec<_> = Leaf::OutErrors.elements().collect();
        let expected = ["interfaces", "interface", "state", "counters", "out-errors"];
        assert_eq!(path, expected);
    }

    #[test]
    fn sets_hold_what_was_put_in() {
        let counters = LeafSet::of_kind(Counter);
        let events = LeafSet::of_kind(Event);
        assert!(counters.has(Leaf::InPkts) && !counters.has(Leaf::Mtu));
        assert!(counters.and(events).is_empty());
        assert_eq!(counters.or(events), LeafSet::all());
        assert_eq!(counters.iter().count(), 8);
    }
}
