//! Deadlocks among the switches of this process: looked for while they run.

use std::collections::{BTreeMap, BTreeSet};

use super::control::DataplaneHandle;
use wormcast_switch_flow::cycle::{FabricPort, FabricQueue, Waits, find_rings};

/// Looks for rings of switches that wait for one another.
///
/// Each switch is asked at a time of its own, while frames move; so a ring counts only if it
/// is found twice in a row with every queue paused since the same time.
pub struct DeadlockWatch {
    switches: Vec<(u64, DataplaneHandle)>,
    links: Vec<(FabricPort, FabricPort)>,
    last: BTreeSet<(Vec<FabricQueue>, Vec<u64>)>,
    reported: BTreeSet<Vec<FabricQueue>>,
}

impl DeadlockWatch {
    /// `links`: the cables between these switches.
    pub(super) fn new(
        switches: Vec<(u64, DataplaneHandle)>,
        links: Vec<(FabricPort, FabricPort)>,
    ) -> Self {
        Self {
            switches,
            links,
            last: BTreeSet::new(),
            reported: BTreeSet::new(),
        }
    }

    /// Without links between switches there is nothing to find.
    pub fn is_needed(&self) -> bool {
        !self.links.is_empty()
    }

    /// Rings that have come about; each is given once, and again if it comes again.
    pub async fn look(&mut self) -> Vec<Vec<FabricQueue>> {
        let handles = self.switches.iter().map(|(_, handle)| handle);
        let answers = DataplaneHandle::run_on_all(handles, |switch| switch.waits()).await;
        // A switch that has stopped waits for nothing.
        let switches = self.switches.iter().map(|(switch, _)| *switch);
        let waits = switches.zip(answers);
        let waits = waits.filter_map(|(switch, waits)| Some((switch, waits.ok()?)));
        let waits: BTreeMap<u64, Waits> = waits.collect();
        let since = |queue: &FabricQueue| paused_since(&waits, queue);
        let found: BTreeSet<_> = find_rings(&waits, &self.links)
            .into_iter()
            .map(|ring| {
                let times = ring.iter().map(since).collect();
                (ring, times)
            })
            .collect();
        let confirmed: BTreeSet<Vec<FabricQueue>> = found
            .intersection(&self.last)
            .map(|(ring, _)| ring.clone())
            .collect();
        let new = confirmed.difference(&self.reported).cloned().collect();
        self.reported = confirmed;
        self.last = found;
        new
    }
}

fn paused_since(waits: &BTreeMap<u64, Waits>, queue: &FabricQueue) -> u64 {
    let paused = waits.get(&queue.at.switch).map(|waits| waits.paused.iter());
    let found = paused
        .into_iter()
        .flatten()
        .find(|paused| paused.port == queue.at.port && paused.priority == queue.priority);
    found.map_or(0, |paused| paused.since_us)
}
