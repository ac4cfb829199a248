//! What remains of a topology when links, switches and hosts have failed.

use std::collections::BTreeSet;

use super::{Link, Parts, Topology, TopologyError};
use wormcast_wire::{HostId, PortId, SwitchId};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Damage {
    /// Links, each named by either of its ends.
    pub links: BTreeSet<(SwitchId, PortId)>,
    /// Switches; their links and hosts go with them.
    pub switches: BTreeSet<SwitchId>,
    pub hosts: BTreeSet<HostId>,
}

impl Topology {
    /// The topology without what has failed. It may fall apart, and may have no hosts.
    ///
    /// # Errors
    /// [`TopologyError::UnknownLink`], [`TopologyError::UnknownSwitch`] or
    /// [`TopologyError::UnknownHost`] if something that failed was never there, and
    /// [`TopologyError::NoSwitches`] if nothing is left.
    pub fn without(&self, damage: &Damage) -> Result<Topology, TopologyError> {
        for &switch in &damage.switches {
            self.switch_index(switch)?;
        }
        for &host in &damage.hosts {
            self.host_index(host)?;
        }
        let fails = |link: &Link| {
            damage.links.contains(&(link.a, link.a_port))
                || damage.links.contains(&(link.b, link.b_port))
        };
        for &(switch, port) in &damage.links {
            let is_end = |link: &Link| {
                (link.a, link.a_port) == (switch, port) || (link.b, link.b_port) == (switch, port)
            };
            if !self.links().iter().any(is_end) {
                return Err(self.no_link_at(switch, port)?);
            }
        }
        let gone = |switch: SwitchId| damage.switches.contains(&switch);
        let parts = self.parts();
        Topology::new_split(Parts {
            switches: parts
                .switches
                .iter()
                .filter(|switch| !gone(switch.id))
                .copied()
                .collect(),
            hosts: parts
                .hosts
                .iter()
                .filter(|host| !gone(host.switch) && !damage.hosts.contains(&host.id))
                .copied()
                .collect(),
            links: parts
                .links
                .iter()
                .filter(|link| !fails(link) && !gone(link.a) && !gone(link.b))
                .copied()
                .collect(),
            grid: parts.grid.clone(),
        })
    }

    fn no_link_at(&self, switch: SwitchId, port: PortId) -> Result<TopologyError, TopologyError> {
        self.switch_index(switch)?;
        let ends = self.links().iter();
        let ends = ends.flat_map(|link| [(link.a, link.a_port), (link.b, link.b_port)]);
        let mut ports: Vec<PortId> = ends
            .filter(|(at, _)| *at == switch)
            .map(|(_, port)| port)
            .collect();
        ports.sort_unstable();
        Ok(TopologyError::UnknownLink {
            link: format!("{switch}:{port}"),
            among: format!("ports of switch {switch} with links to switches are"),
            choices: ports.iter().map(ToString::to_string).collect(),
        })
    }
}
