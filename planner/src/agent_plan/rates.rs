//! How fast hosts may send what is their own.

use std::collections::{BTreeMap, BTreeSet};

use wormcast_wire::HostId;

/// Bytes a second by host; others have no bound.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rates {
    bytes: BTreeMap<HostId, u64>,
    /// Hosts that have another rate than in the plan before.
    changed: BTreeSet<HostId>,
}

impl Rates {
    pub(crate) fn set(&mut self, rates: &BTreeMap<HostId, u64>) {
        let hosts = self.bytes.keys().chain(rates.keys()).copied();
        let differs = |host: &HostId| self.bytes.get(host) != rates.get(host);
        self.changed.extend(hosts.filter(differs));
        self.bytes.clone_from(rates);
    }

    pub(crate) fn of(&self, host: HostId) -> Option<u64> {
        self.bytes.get(&host).copied()
    }

    /// Hosts that are to get another one.
    pub(crate) fn take_changed(&mut self) -> BTreeSet<HostId> {
        std::mem::take(&mut self.changed)
    }
}
