//! How the switches replicate a group's messages, and what keeps them from deadlock.

use super::least::{Least, find};
use crate::structure::StructureError;
use wormcast_wire::SchemeName;

/// Where a switch learns which ports a message leaves by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SwitchMode {
    /// From the worm: TREE source routes (WORM §3, Fig. 2).
    #[default]
    Tree,
    /// From a table: GROUP worms, an entry at every switch of the group's tree.
    Table,
    /// From the spanning tree: BROADCAST worms to the root and down to every host;
    /// hosts that are no members filter.
    Broadcast,
}

impl SwitchMode {
    pub const ALL: [SwitchMode; 3] = [SwitchMode::Tree, SwitchMode::Table, SwitchMode::Broadcast];

    pub const fn scheme(self) -> SchemeName {
        match self {
            SwitchMode::Tree => SchemeName::Switch,
            SwitchMode::Table => SchemeName::Table,
            SwitchMode::Broadcast => SchemeName::Broadcast,
        }
    }
}

/// Which rule keeps multicast and unicast worms from waiting for each other for ever
/// (WORM §3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Guard {
    /// All worms, unicast too, keep to the spanning tree.
    #[default]
    A,
    /// Every multicast starts at the root; branches do not stop each other.
    B,
    /// Multicast takes legal paths; a unicast blocked by a port that is multicast-idle is
    /// flushed by a backward reset and sent again.
    C,
}

impl Guard {
    pub const NAMES: &'static [&'static str] = &["A", "B", "C"];
    /// All of them, in the order of [`Guard::NAMES`].
    pub const ALL: [Guard; 3] = [Guard::A, Guard::B, Guard::C];

    /// The guard of that name.
    ///
    /// # Errors
    /// [`StructureError::UnknownName`].
    pub fn from_name(name: &str) -> Result<Guard, StructureError> {
        find("guard", name, Guard::NAMES, &Guard::ALL)
    }

    pub const fn name(self) -> &'static str {
        Guard::NAMES[self as usize]
    }
}

/// Parameters of the schemes `switch`, `table` and `broadcast`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SwitchParameters {
    /// Where a switch learns its ports.
    pub mode: SwitchMode,
    /// What keeps worms from deadlock.
    pub guard: Guard,
    /// `table`: number of the group in the entries, not 255.
    pub group: u16,
    /// Guard C: what the group's trees have little of.
    pub least: Least,
    /// `switch` under guard C: over how many trees its messages spread in a fabric, 1 to
    /// [`super::SHARED_TREES_MAX`].
    pub trees: u32,
}

impl Default for SwitchParameters {
    fn default() -> SwitchParameters {
        SwitchParameters::new(SwitchMode::Tree, Guard::A)
    }
}

impl SwitchParameters {
    /// These, with one tree of least links, and number 0.
    pub const fn new(mode: SwitchMode, guard: Guard) -> SwitchParameters {
        SwitchParameters {
            mode,
            guard,
            group: 0,
            least: Least::Links,
            trees: 1,
        }
    }

    /// Whether a group has trees of its own, and not the spanning tree.
    pub fn has_own_trees(self) -> bool {
        self.guard == Guard::C && self.mode != SwitchMode::Broadcast
    }
}
