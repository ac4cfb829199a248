//! The channels of a topology and how fast they are.

use super::{Channel, CostError, Costs};
use wormcast_routing::group::Unicast;
use wormcast_routing::routes::Route;
use wormcast_routing::topology::Topology;
use wormcast_wire::PortId;

/// Unicast paths with the costs of what they lead over. Channels are numbered: links from switch
/// to switch, then from each host into its switch, then from each switch to its hosts.
#[derive(Clone, Debug)]
pub struct CostModel<'r, 't> {
    paths: Unicast<'r, 't>,
    costs: Costs,
    /// Picoseconds that a byte takes on each channel.
    ps_per_byte: Vec<f64>,
}

impl<'r, 't> CostModel<'r, 't> {
    /// Lays the costs on the topology of these paths.
    ///
    /// # Errors
    /// A channel with a load of its own that is not there.
    pub fn new(
        paths: impl Into<Unicast<'r, 't>>,
        costs: Costs,
    ) -> Result<CostModel<'r, 't>, CostError> {
        let paths = paths.into();
        let topology = paths.topology();
        let (links, hosts) = (topology.arcs().len(), topology.hosts().len());
        let free = 1.0 - costs.utilisation;
        let mut ps_per_byte = vec![8e12 / costs.link_bits_per_s as f64 / free; links];
        ps_per_byte.resize(
            links + 2 * hosts,
            8e12 / costs.host_link_bits_per_s as f64 / free,
        );
        let mut model = CostModel {
            paths,
            costs,
            ps_per_byte,
        };
        for load in model.costs.channels.clone() {
            let at = match load.channel {
                Channel::Host(host) => model.injection(topology.host_index(host)?),
                Channel::Port(switch, port) => {
                    model.leaving(topology.switch_index(switch)?, port)?
                }
            };
            model.ps_per_byte[at as usize] *= free / (1.0 - load.utilisation);
        }
        Ok(model)
    }

    pub fn paths(&self) -> Unicast<'r, 't> {
        self.paths
    }

    /// What hosts, links and switches take.
    pub fn costs(&self) -> &Costs {
        &self.costs
    }

    pub(crate) fn ps_per_byte(&self, channel: u32) -> f64 {
        self.ps_per_byte[channel as usize]
    }

    pub(crate) fn channel_count(&self) -> usize {
        self.ps_per_byte.len()
    }

    pub(crate) fn topology(&self) -> &'t Topology {
        self.paths.topology()
    }

    /// The channel from a host into its switch.
    pub(crate) fn injection(&self, host: u32) -> u32 {
        self.topology().arcs().len() as u32 + host
    }

    /// The channel from a switch to a host on it.
    pub(crate) fn ejection(&self, host: u32) -> u32 {
        (self.topology().arcs().len() + self.topology().hosts().len()) as u32 + host
    }

    /// The channel out of a switch by a port.
    pub(crate) fn leaving(&self, switch: u32, port: PortId) -> Result<u32, CostError> {
        let topology = self.topology();
        let arcs = topology.arcs_of(switch);
        if let Ok(slot) = arcs.binary_search_by_key(&port, |arc| arc.port) {
            return Ok(topology.arc_first(switch) + slot as u32);
        }
        match topology
            .hosts_at(switch)
            .find(|&host| topology.hosts()[host as usize].port == port)
        {
            Some(host) => Ok(self.ejection(host)),
            None => Err(CostError::Value {
                at: "channel".into(),
                reason: format!(
                    "nothing hangs on port {port} of switch {}",
                    topology.switch_id(switch)
                ),
            }),
        }
    }

    /// Where a channel leads to: the index of a switch, or of a host.
    pub(crate) fn end_of(&self, channel: u32) -> End {
        let topology = self.topology();
        let (links, hosts) = (topology.arcs().len() as u32, topology.hosts().len() as u32);
        if channel < links {
            End::Switch(topology.arcs()[channel as usize].to)
        } else if channel < links + hosts {
            End::Switch(topology.switch_of(channel - links))
        } else {
            End::Host(channel - links - hosts)
        }
    }

    pub(crate) fn name(&self, channel: u32) -> Channel {
        let topology = self.topology();
        let (links, hosts) = (topology.arcs().len() as u32, topology.hosts().len() as u32);
        if channel < links {
            let arc = topology.arcs()[channel as usize];
            let from = topology.arcs()[arc.reverse as usize].to;
            Channel::Port(topology.switch_id(from), arc.port)
        } else if channel < links + hosts {
            Channel::Host(topology.hosts()[(channel - links) as usize].id)
        } else {
            let host = topology.hosts()[(channel - links - hosts) as usize];
            Channel::Port(host.switch, host.port)
        }
    }

    /// Calls `visit` with every channel of a route, and with whether an in-transit host
    /// comes before it.
    pub(crate) fn walk(
        &self,
        route: &Route,
        mut visit: impl FnMut(u32, bool),
    ) -> Result<(), CostError> {
        let topology = self.topology();
        visit(self.injection(topology.host_index(route.src)?), false);
        let last = route.ports.len().saturating_sub(1);
        for (place, (&switch, &port)) in route.switches.iter().zip(&route.ports).enumerate() {
            let port = PortId::new(port).expect("routes have ports only");
            let channel = self.leaving(topology.switch_index(switch)?, port)?;
            visit(channel, false);
            if let (End::Host(host), true) = (self.end_of(channel), place < last) {
                visit(self.injection(host), true);
            }
        }
        Ok(())
    }
}

/// Where a channel leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Switch(u32),
    Host(u32),
}
