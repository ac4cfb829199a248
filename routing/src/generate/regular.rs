//! Topologies without chance.

use std::collections::BTreeSet;

use super::Wiring;
use crate::topology::{Grid, SWITCHES_MAX, Topology, TopologyError};
use wormcast_wire::SWITCH_ID_MAX;

/// Ports of a switch where nothing says otherwise: those of the papers' switches.
const PORTS_DEFAULT: usize = 8;

/// The testbed of WORM §8: four switches of eight ports, eight hosts. The paper does not
/// say how it was wired; **choice**: a ring of switches, so that it survives the loss of
/// any link. Switch s has hosts 2s and 2s+1 on ports 0 and 1; its port 4 leads to port 5
/// of switch s+1.
pub fn testbed() -> Topology {
    let mut wiring = Wiring::new("testbed", 4, 2).expect("within bounds");
    for switch in 0..4 {
        let port = |number| wiring.port(switch, number).expect("within bounds");
        let (next, previous) = (port(4), port(5));
        wiring.link_ports(switch, next, (switch + 1) % 4, previous);
    }
    wiring.finish(PORTS_DEFAULT, None).expect("within bounds")
}

/// A line of switches, each with `hosts` hosts.
///
/// # Errors
/// [`TopologyError::Parameter`].
pub fn line(switches: usize, hosts: usize) -> Result<Topology, TopologyError> {
    let mut wiring = Wiring::new("line", switches, hosts)?;
    for switch in 1..switches {
        wiring.link(switch - 1, switch)?;
    }
    wiring.finish(PORTS_DEFAULT, None)
}

/// A ring of three switches or more, each with `hosts` hosts.
///
/// # Errors
/// [`TopologyError::Parameter`].
pub fn ring(switches: usize, hosts: usize) -> Result<Topology, TopologyError> {
    let mut wiring = Wiring::new("ring", switches, hosts)?;
    if switches < 3 {
        return wiring.refuse(format!(
            "{switches} switches make no ring; it needs 3 or more"
        ));
    }
    for switch in 0..switches {
        wiring.link(switch, (switch + 1) % switches)?;
    }
    wiring.finish(PORTS_DEFAULT, None)
}

/// Switch 0 linked to every other, each with `hosts` hosts.
///
/// # Errors
/// [`TopologyError::Parameter`].
pub fn star(switches: usize, hosts: usize) -> Result<Topology, TopologyError> {
    let mut wiring = Wiring::new("star", switches, hosts)?;
    for switch in 1..switches {
        wiring.link(0, switch)?;
    }
    wiring.finish(PORTS_DEFAULT, None)
}

/// Every switch linked to every other, each with `hosts` hosts.
///
/// # Errors
/// [`TopologyError::Parameter`].
pub fn full_mesh(switches: usize, hosts: usize) -> Result<Topology, TopologyError> {
    let mut wiring = Wiring::new("full-mesh", switches, hosts)?;
    for a in 0..switches {
        for b in a + 1..switches {
            wiring.link(a, b)?;
        }
    }
    wiring.finish(PORTS_DEFAULT, None)
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Torus {
    /// Switches along each dimension, each 2 or more.
    pub radix: Vec<u16>,
    /// Hosts on each switch.
    pub hosts: usize,
    /// Whether links may be used in the increasing direction only (TORUS §2).
    pub unidirectional: bool,
}

/// A torus of any number of dimensions. Of a switch with h hosts, dimension d goes on at
/// port h+2d and back at port h+2d+1. In a dimension of two switches one link joins
/// them, from port h+2d of the first to port h+2d+1 of the second.
///
/// # Errors
/// [`TopologyError::Parameter`].
pub fn torus(torus: &Torus) -> Result<Topology, TopologyError> {
    let grid = Grid {
        radix: torus.radix.clone(),
        wraps: true,
        unidirectional: torus.unidirectional,
    };
    wire_grid("torus", grid, torus.hosts)
}

/// A mesh: a torus without the links that wrap, ports as there.
///
/// # Errors
/// [`TopologyError::Parameter`].
pub fn mesh(radix: &[u16], hosts: usize) -> Result<Topology, TopologyError> {
    wire_grid(
        "mesh",
        Grid {
            radix: radix.to_vec(),
            wraps: false,
            unidirectional: false,
        },
        hosts,
    )
}

fn wire_grid(kind: &str, grid: Grid, hosts: usize) -> Result<Topology, TopologyError> {
    let least = if grid.wraps { 2 } else { 1 };
    let bad = grid.radix.iter().find(|radix| **radix < least);
    if grid.radix.is_empty() || bad.is_some() {
        let found = bad.map_or("no dimension".to_owned(), |radix| {
            format!("a dimension of {radix}")
        });
        let reason = format!(
            "{found}; it needs one or more, each of {least} switches or more, {SWITCHES_MAX} switches at \
             most in all, as in 4 (4 by 4) or 4x4x2"
        );
        return Err(TopologyError::Parameter {
            kind: kind.to_owned(),
            reason,
        });
    }
    let cells = |radix: &[u16]| {
        radix.iter().fold(1usize, |cells, &radix| {
            cells.saturating_mul(usize::from(radix))
        })
    };
    let switches = cells(&grid.radix);
    let mut wiring = Wiring::new(kind, switches, hosts)?;
    for (dimension, &radix) in grid.radix.iter().enumerate() {
        let stride = cells(&grid.radix[..dimension]);
        let radix = usize::from(radix);
        for switch in 0..switches {
            let place = switch / stride % radix;
            let wraps = place + 1 == radix;
            if wraps && (!grid.wraps || radix == 2) {
                continue;
            }
            let next = if wraps {
                switch - place * stride
            } else {
                switch + stride
            };
            let onward = wiring.port(switch, hosts + 2 * dimension)?;
            let back = wiring.port(next, hosts + 2 * dimension + 1)?;
            wiring.link_ports(switch, onward, next, back);
        }
    }
    let ports = hosts + 2 * grid.radix.len();
    wiring.finish(ports.max(PORTS_DEFAULT), Some(grid))
}

/// A (p,k)-shufflenet: k columns of p^k switches, switch r of a column linked to switches
/// p·r … p·r+p−1 (modulo p^k) of the next, the last column to the first; links are
/// full-duplex, one for a pair. Id = column · p^k + r. (2,3) has 24 nodes (WORM §7.1).
///
/// # Errors
/// [`TopologyError::Parameter`].
pub fn shufflenet(p: usize, k: usize, hosts: usize) -> Result<Topology, TopologyError> {
    let rows = u32::try_from(k)
        .ok()
        .and_then(|k| p.checked_pow(k))
        .unwrap_or(usize::MAX);
    let switches = rows.saturating_mul(k);
    if p < 2 || k < 2 || switches > SWITCHES_MAX.min(usize::from(SWITCH_ID_MAX)) {
        let reason =
            format!("p = {p}, k = {k}; both must be 2 or more, with k·p^k ≤ {SWITCHES_MAX}");
        return Err(TopologyError::Parameter {
            kind: "shufflenet".into(),
            reason,
        });
    }
    let mut wiring = Wiring::new("shufflenet", switches, hosts)?;
    let mut linked = BTreeSet::new();
    for column in 0..k {
        for row in 0..rows {
            for branch in 0..p {
                let from = column * rows + row;
                let to = (column + 1) % k * rows + (p * row + branch) % rows;
                if linked.insert((from.min(to), from.max(to))) {
                    wiring.link(from, to)?;
                }
            }
        }
    }
    wiring.finish(PORTS_DEFAULT, None)
}
