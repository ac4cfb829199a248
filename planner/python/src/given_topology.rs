//! A topology as the controller gives it.

use ::wormcast_routing::topology::{Grid, Host, Link, Parts, Switch, Topology};
use pyo3::prelude::*;
use wormcast_wire::{HostId, SwitchId};

use crate::arguments::{port_id, text};

/// A topology as the controller has it.
#[derive(FromPyObject)]
pub(crate) struct GivenTopology {
    switches: Vec<GivenSwitch>,
    hosts: Vec<GivenHost>,
    links: Vec<GivenLink>,
    grid: Option<GivenGrid>,
}

#[derive(FromPyObject)]
struct GivenGrid {
    radix: Vec<u16>,
    wraps: bool,
}

#[derive(FromPyObject)]
struct GivenSwitch {
    id: u16,
    ports: u16,
}

#[derive(FromPyObject)]
struct GivenHost {
    id: u16,
    switch: u16,
    port: i64,
    transit: bool,
}

#[derive(FromPyObject)]
struct GivenLink {
    a: u16,
    a_port: i64,
    b: u16,
    b_port: i64,
}

impl GivenTopology {
    pub(crate) fn read(self) -> Result<Topology, String> {
        let mut parts = Parts::default();
        for GivenSwitch { id, ports } in self.switches {
            parts.switches.push(Switch {
                id: SwitchId(id),
                ports,
            });
        }
        for GivenHost {
            id,
            switch,
            port,
            transit,
        } in self.hosts
        {
            let (id, switch) = (HostId(id), SwitchId(switch));
            parts.hosts.push(Host {
                id,
                switch,
                port: port_id(port)?,
                transit,
            });
        }
        for GivenLink {
            a,
            a_port,
            b,
            b_port,
        } in self.links
        {
            let (a_port, b_port) = (port_id(a_port)?, port_id(b_port)?);
            parts.links.push(Link {
                a: SwitchId(a),
                a_port,
                b: SwitchId(b),
                b_port,
            });
        }
        if parts == Parts::default() {
            return Ok(Topology::empty());
        }
        parts.grid = self.grid.map(|GivenGrid { radix, wraps }| Grid {
            radix,
            wraps,
            unidirectional: false,
        });
        Topology::new_split(parts).map_err(text)
    }
}
