//! The leaves that several paths select together, each once.

use std::collections::BTreeMap;

use crate::path::Selection;
use crate::reading::{Interface, Reading};
use crate::schema::LeafSet;

/// Leaves of all interfaces, and further ones of some.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wanted {
    of_all: LeafSet,
    of_one: BTreeMap<String, LeafSet>,
}

impl Wanted {
    /// Adds those leaves of a selection that are in `among` too.
    pub(crate) fn add(&mut self, selection: &Selection, among: LeafSet) {
        let leaves = selection.leaves.and(among);
        match &selection.interface {
            None => self.of_all = self.of_all.or(leaves),
            Some(name) => {
                let known = self.of_one.entry(name.clone()).or_default();
                *known = known.or(leaves);
            }
        }
    }

    pub(crate) fn of(&self, name: &str) -> LeafSet {
        let of_one = self.of_one.get(name).copied();
        self.of_all.or(of_one.unwrap_or_default())
    }

    /// Interfaces of which there are some, with these leaves.
    pub(crate) fn among<'r>(
        &self,
        reading: &'r Reading,
    ) -> impl Iterator<Item = (&'r String, &'r Interface, LeafSet)> {
        let all = reading.interfaces.iter();
        let all = all.map(|(name, interface)| (name, interface, self.of(name)));
        all.filter(|(_, _, leaves)| !leaves.is_empty())
    }
}
