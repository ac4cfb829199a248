//! The tree of switches that a group's TREE routes go along.

use crate::topology::{Attachment, Topology, TopologyError};
use wormcast_wire::{HostId, PortId, SwitchId};

/// Port path to each of some hosts.
pub(super) type Paths = Vec<(HostId, Vec<u8>)>;

/// A switch and where it replicates to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SwitchTree {
    pub switch: SwitchId,
    /// Port and what a copy reaches by it, in ascending order of port.
    pub branches: Vec<(PortId, TreeEnd)>,
}

/// What a copy reaches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TreeEnd {
    Host(HostId),
    Switch(SwitchTree),
}

impl SwitchTree {
    /// The tree that these paths from one source make. Paths must be routes of the
    /// topology, each to a host.
    pub(super) fn new(
        topology: &Topology,
        source: HostId,
        paths: &[(HostId, Vec<u8>)],
    ) -> Result<SwitchTree, TopologyError> {
        let mut tree = SwitchTree {
            switch: topology.host(source)?.switch,
            branches: Vec::new(),
        };
        for (host, path) in paths {
            let mut at = &mut tree;
            for &byte in path {
                let port = PortId::new(byte).expect("routes have ports only");
                let place = match at.branches.binary_search_by_key(&port, |branch| branch.0) {
                    Ok(place) => place,
                    Err(place) => {
                        let end = match topology.attachment(at.switch, port) {
                            Some(Attachment::Switch(switch, _)) => TreeEnd::Switch(SwitchTree {
                                switch,
                                branches: Vec::new(),
                            }),
                            _ => TreeEnd::Host(*host),
                        };
                        at.branches.insert(place, (port, end));
                        place
                    }
                };
                match &mut at.branches[place].1 {
                    TreeEnd::Switch(next) => at = next,
                    TreeEnd::Host(_) => break,
                }
            }
        }
        Ok(tree)
    }

    /// Links below the switch, those to hosts among them.
    pub fn links(&self) -> u64 {
        let mut links = 0;
        let mut open = vec![self];
        while let Some(tree) = open.pop() {
            links += tree.branches.len() as u64;
            open.extend(tree.branches.iter().filter_map(|(_, end)| match end {
                TreeEnd::Switch(next) => Some(next),
                TreeEnd::Host(_) => None,
            }));
        }
        links
    }
}
