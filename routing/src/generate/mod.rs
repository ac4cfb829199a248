//! Topologies to measure on. The same parameters give the same topology.
//!
//! Hosts hang on the lowest ports of a switch, links on those that follow. Host ids
//! ascend with the ids of their switches.

mod clos;
mod dragonfly;
mod irregular;
mod regular;
mod spec;

pub use clos::{Clos3, clos2, clos3, fat_tree};
pub use dragonfly::{Arrangement, Dragonfly, dragonfly};
pub use irregular::{Irregular, irregular};
pub use regular::{Torus, full_mesh, line, mesh, ring, shufflenet, star, testbed, torus};
pub use spec::{KINDS, from_spec};

use crate::topology::{Grid, Host, Link, Parts, SWITCHES_MAX, Switch, Topology, TopologyError};
use wormcast_wire::{HOST_ID_MAX, HostId, PORT_ID_MAX, PortId, SwitchId};

/// Hands out ports in ascending order, hosts first.
struct Wiring {
    kind: String,
    parts: Parts,
    next_port: Vec<usize>,
}

impl Wiring {
    fn new(kind: &str, switches: usize, hosts_per_switch: usize) -> Result<Wiring, TopologyError> {
        let mut wiring = Wiring {
            kind: kind.to_owned(),
            parts: Parts::default(),
            next_port: Vec::new(),
        };
        if switches == 0 || switches > SWITCHES_MAX {
            return wiring.refuse(format!(
                "{switches} switches are outside 1 to {SWITCHES_MAX}"
            ));
        }
        wiring.check_hosts(switches, hosts_per_switch, "switches")?;
        wiring.next_port = vec![0; switches];
        for switch in 0..switches {
            wiring.add_hosts(switch, hosts_per_switch)?;
        }
        Ok(wiring)
    }

    /// Whether so many hosts on each of so many switches have ids and ports.
    fn check_hosts(&self, switches: usize, hosts: usize, of: &str) -> Result<(), TopologyError> {
        let hosts_most = usize::from(HOST_ID_MAX) + 1;
        if hosts > usize::from(PORT_ID_MAX) + 1 || switches * hosts > hosts_most {
            return self.refuse(format!(
                "{hosts} hosts on each of {switches} {of} are more than {hosts_most}"
            ));
        }
        Ok(())
    }

    fn refuse<T>(&self, reason: String) -> Result<T, TopologyError> {
        Err(TopologyError::Parameter {
            kind: self.kind.clone(),
            reason,
        })
    }

    fn add_hosts(&mut self, switch: usize, hosts: usize) -> Result<(), TopologyError> {
        for _ in 0..hosts {
            let port = self.take_port(switch)?;
            let id = HostId(self.parts.hosts.len() as u16);
            self.parts.hosts.push(Host {
                id,
                switch: SwitchId(switch as u16),
                port,
                transit: true,
            });
        }
        Ok(())
    }

    fn link(&mut self, a: usize, b: usize) -> Result<(), TopologyError> {
        let (a_port, b_port) = (self.take_port(a)?, self.take_port(b)?);
        self.link_ports(a, a_port, b, b_port);
        Ok(())
    }

    fn link_ports(&mut self, a: usize, a_port: PortId, b: usize, b_port: PortId) {
        let (a, b) = (SwitchId(a as u16), SwitchId(b as u16));
        self.parts.links.push(Link {
            a,
            a_port,
            b,
            b_port,
        });
    }

    fn take_port(&mut self, switch: usize) -> Result<PortId, TopologyError> {
        let port = self.next_port[switch];
        self.next_port[switch] += 1;
        self.port(switch, port)
    }

    fn port(&self, switch: usize, port: usize) -> Result<PortId, TopologyError> {
        match u8::try_from(port).ok().and_then(PortId::new) {
            Some(port) => Ok(port),
            None => self.refuse(format!(
                "switch {switch} would need port {port}; ports are 0 to {PORT_ID_MAX}"
            )),
        }
    }

    /// The topology; its switches have `ports` ports, or as many as they use if that is
    /// more.
    fn finish(mut self, ports: usize, grid: Option<Grid>) -> Result<Topology, TopologyError> {
        for (switch, &used) in self.next_port.iter().enumerate() {
            let ports = ports.max(used).max(1) as u16;
            self.parts.switches.push(Switch {
                id: SwitchId(switch as u16),
                ports,
            });
        }
        self.parts.grid = grid;
        Topology::new(self.parts)
    }
}
