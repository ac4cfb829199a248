//! Dragonflies (Kim, Dally, Scott, Abts: Technology-Driven, Highly-Scalable Dragonfly
//! Topology, ISCA 2008).
//!
//! Groups of switches, each group a full mesh; every switch has a few global links, and
//! over these every group is linked to every other, so that two switches are at most a
//! local, a global and a local link apart.

use std::fmt;
use std::str::FromStr;

use super::Wiring;
use crate::topology::{SWITCHES_MAX, Topology, TopologyError};

const PORTS_DEFAULT: usize = 8;

/// Which global port of a group leads to which other group. The paper leaves it open; the
/// names are those of Camarero et al. (Topological Characterization of Hamming and
/// Dragonfly Networks, ACM TACO 2014, §3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Arrangement {
    /// Global port j of group i leads to group i − j − 1, counted around the ring of
    /// groups. **choice**: the default, since then all groups are wired alike.
    #[default]
    Palmtree,
    /// Global port j of group i leads to the j-th other group in order of number.
    Consecutive,
}

impl Arrangement {
    pub const ALL: [Arrangement; 2] = [Arrangement::Palmtree, Arrangement::Consecutive];

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Arrangement::Palmtree => "palmtree",
            Arrangement::Consecutive => "consecutive",
        }
    }

    /// Where global port `port` (below groups − 1) of a group leads: the other group and
    /// its port.
    fn peer(self, groups: usize, group: usize, port: usize) -> (usize, usize) {
        match self {
            Arrangement::Palmtree => ((group + groups - port - 1) % groups, groups - 2 - port),
            Arrangement::Consecutive if port < group => (port, group - 1),
            Arrangement::Consecutive => (port + 1, group),
        }
    }
}

impl fmt::Display for Arrangement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Arrangement {
    type Err = TopologyError;

    fn from_str(name: &str) -> Result<Arrangement, TopologyError> {
        let found = Arrangement::ALL.into_iter().find(|one| one.name() == name);
        found.ok_or_else(|| TopologyError::Parameter {
            kind: "dragonfly".into(),
            reason: format!(
                "there is no arrangement \"{name}\"; choices are {}",
                Arrangement::ALL.map(Arrangement::name).join(", ")
            ),
        })
    }
}

/// Parameters of a dragonfly, with the letters of the paper. Balanced is a = 2p = 2h.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dragonfly {
    /// Switches of each group.
    pub a: usize,
    /// Hosts on each switch.
    pub p: usize,
    /// Global links of each switch.
    pub h: usize,
    /// Groups, 1 to a·h + 1. Every pair of groups has ⌊a·h / (groups − 1)⌋ links; global
    /// ports that are left over stay free.
    pub groups: usize,
    /// Where the global links lead.
    pub arrangement: Arrangement,
}

impl Dragonfly {
    /// The largest with these numbers: a·h + 1 groups.
    pub const fn largest(a: usize, p: usize, h: usize) -> Dragonfly {
        Dragonfly {
            a,
            p,
            h,
            groups: a.saturating_mul(h).saturating_add(1),
            arrangement: Arrangement::Palmtree,
        }
    }

    /// The largest balanced one with h global links a switch: a = 2h, p = h.
    pub const fn balanced(h: usize) -> Dragonfly {
        Dragonfly::largest(h.saturating_mul(2), h, h)
    }
}

/// A dragonfly. Switch r of group g has id g·a + r. Its ports: p hosts; then the a − 1
/// other switches of the group in order of id; then h global links, of which the n-th is
/// the group's global port r·h + n.
///
/// # Errors
/// [`TopologyError::Parameter`].
pub fn dragonfly(shape: &Dragonfly) -> Result<Topology, TopologyError> {
    let &Dragonfly {
        a,
        p,
        h,
        groups,
        arrangement,
    } = shape;
    let global_ports = a.saturating_mul(h);
    if a == 0 || groups == 0 || groups > global_ports.saturating_add(1) {
        return Err(TopologyError::Parameter {
            kind: "dragonfly".into(),
            reason: format!(
                "a = {a}, h = {h}, {groups} groups; a must be 1 or more and groups 1 to a·h + 1"
            ),
        });
    }
    let switches = a.saturating_mul(groups);
    if switches > SWITCHES_MAX {
        return Err(TopologyError::Parameter {
            kind: "dragonfly".into(),
            reason: format!("{groups} groups of {a} switches are more than {SWITCHES_MAX}"),
        });
    }
    let mut wiring = Wiring::new("dragonfly", switches, p)?;
    for group in 0..groups {
        for low in 0..a {
            for high in low + 1..a {
                let low_port = wiring.port(group * a + low, p + high - 1)?;
                let high_port = wiring.port(group * a + high, p + low)?;
                wiring.link_ports(group * a + low, low_port, group * a + high, high_port);
            }
        }
    }
    let others = groups - 1;
    let rounds = global_ports.checked_div(others).unwrap_or(0);
    let first_global = p + a - 1;
    for group in 0..groups {
        for port in 0..rounds * others {
            let (round, place) = (port / others, port % others);
            let (peer, peer_place) = arrangement.peer(groups, group, place);
            if group > peer {
                continue; // wired from the other end
            }
            let peer_port = round * others + peer_place;
            let (from, to) = (group * a + port / h, peer * a + peer_port / h);
            let from_port = wiring.port(from, first_global + port % h)?;
            let to_port = wiring.port(to, first_global + peer_port % h)?;
            wiring.link_ports(from, from_port, to, to_port);
        }
    }
    wiring.finish((first_global + h).max(PORTS_DEFAULT), None)
}
