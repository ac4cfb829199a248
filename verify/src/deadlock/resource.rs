//! What worms hold and wait for, and its numbers as nodes of the graph.

use super::DeadlockError;
use wormcast_routing::topology::{Attachment, Topology};
use wormcast_wire::{BufferClass, HostId, PortId, SwitchId};

/// One direction of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Channel {
    /// From a host into its switch.
    Injection {
        host: HostId,
        switch: SwitchId,
        port: PortId,
    },
    /// From a switch to another.
    Link {
        from: SwitchId,
        from_port: PortId,
        to: SwitchId,
        to_port: PortId,
    },
    /// From a switch to a host.
    Ejection {
        switch: SwitchId,
        port: PortId,
        host: HostId,
    },
}

/// Something that one worm has at a time, while others wait for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Resource {
    /// One direction of a link.
    Channel(Channel),
    /// Room for whole worms in the adapter of a host that passes them on.
    Buffer {
        host: HostId,
        /// Its class (WORM §4); `None` where all worms share one pool.
        class: Option<BufferClass>,
    },
    /// The turn of one multicast worm at the root; the next one waits until the root has
    /// sent all of it (WORM §3, scheme B).
    Turn { switch: SwitchId },
}

impl From<Channel> for Resource {
    fn from(channel: Channel) -> Resource {
        Resource::Channel(channel)
    }
}

/// Numbers of the resources of a topology: links, injections, ejections, buffers of
/// class 1 (or of the pool), of class 2, turns.
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbers<'t> {
    pub(super) topology: &'t Topology,
    arcs: u32,
    hosts: u32,
}

impl<'t> Numbers<'t> {
    pub(super) fn new(topology: &'t Topology) -> Numbers<'t> {
        Numbers {
            topology,
            arcs: topology.arcs().len() as u32,
            hosts: topology.hosts().len() as u32,
        }
    }

    pub(super) fn count(&self) -> usize {
        self.turn(self.topology.switch_count() as u32) as usize
    }

    pub(super) fn injection(&self, host: u32) -> u32 {
        self.arcs + host
    }

    pub(super) fn ejection(&self, host: u32) -> u32 {
        self.arcs + self.hosts + host
    }

    pub(super) fn buffer(&self, host: u32, class: BufferClass) -> u32 {
        self.arcs + self.hosts * (1 + u32::from(class.number())) + host
    }

    pub(super) fn turn(&self, switch: u32) -> u32 {
        self.arcs + 4 * self.hosts + switch
    }

    pub(super) fn is_channel(&self, number: u32) -> bool {
        number < self.arcs + 2 * self.hosts
    }

    /// The channel out of a port, and what it leads to.
    pub(super) fn leave(
        &self,
        switch: SwitchId,
        port: PortId,
    ) -> Result<(u32, Attachment), DeadlockError> {
        let at = self.topology.switch_index(switch)?;
        match self.topology.attachment(switch, port) {
            None => Err(DeadlockError::NothingThere { switch, port }),
            Some(end @ Attachment::Host(host)) => {
                Ok((self.ejection(self.topology.host_index(host)?), end))
            }
            Some(end) => {
                let arcs = self.topology.arcs_of(at);
                let slot = arcs
                    .binary_search_by_key(&port, |arc| arc.port)
                    .expect("attached");
                Ok((self.topology.arc_first(at) + slot as u32, end))
            }
        }
    }

    /// The resource of a number; `pooled` buffers have no class.
    pub(super) fn name(&self, number: u32, pooled: bool) -> Resource {
        if let Some(arc) = self.topology.arcs().get(number as usize) {
            let back = self.topology.arcs()[arc.reverse as usize];
            return Resource::Channel(Channel::Link {
                from: self.topology.switch_id(back.to),
                from_port: arc.port,
                to: self.topology.switch_id(arc.to),
                to_port: back.port,
            });
        }
        if number >= self.turn(0) {
            let switch = self.topology.switch_id(number - self.turn(0));
            return Resource::Turn { switch };
        }
        let host = self.topology.hosts()[((number - self.arcs) % self.hosts) as usize];
        let (switch, port) = (host.switch, host.port);
        let host = host.id;
        match (number - self.arcs) / self.hosts {
            0 => Channel::Injection { host, switch, port }.into(),
            1 => Channel::Ejection { switch, port, host }.into(),
            kind => {
                let class = [BufferClass::One, BufferClass::Two][kind as usize - 2];
                let class = (!pooled).then_some(class);
                Resource::Buffer { host, class }
            }
        }
    }
}
