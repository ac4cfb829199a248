//! Channels and hosts of two topologies together.

use std::collections::{BTreeMap, BTreeSet};

use wormcast_routing::topology::{Host, Link, Topology};
use wormcast_wire::{HostId, PortId, SwitchId};

/// One direction of a link.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hop {
    /// Switch it leaves, by number.
    pub from: u32,
    pub from_port: PortId,
    /// Switch it leads to, by number.
    pub to: u32,
    pub to_port: PortId,
    /// Whether the old topology has it.
    pub was: bool,
    /// Whether the new topology has it.
    pub stays: bool,
}

/// Hosts that hang on one switch before and on one switch after.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// Their switch before, by number.
    pub old: Option<u32>,
    /// Their switch after, by number.
    pub new: Option<u32>,
    /// Whether their ports are the same.
    pub steady: bool,
    /// The hosts, ascending.
    pub hosts: Vec<HostId>,
}

/// The channels of an old and a new topology under common numbers: 2·link and
/// 2·link + 1, so that `channel ^ 1` is the way back. A link that was plugged elsewhere
/// is another link.
#[derive(Clone, Debug)]
pub(crate) struct Channels {
    switches: Vec<SwitchId>,
    hops: Vec<Hop>,
    old_of_arc: Vec<u32>,
    new_of_arc: Vec<u32>,
    /// Channels of the new topology that leave each switch.
    leaving: Vec<Vec<u32>>,
    /// Hosts that stay where they are and may re-inject worms from now on.
    re_injecting: BTreeSet<HostId>,
    /// For each switch, whether a host that was there is not, or elsewhere, or re-injects no more.
    loses_hosts: Vec<bool>,
    pub places: Vec<Place>,
}

impl Channels {
    /// Numbers the channels. With `each_host` every host is a place of its own.
    pub fn new(old: &Topology, new: &Topology, each_host: bool) -> Channels {
        let both: BTreeSet<SwitchId> = (old.switches().iter())
            .chain(new.switches())
            .map(|switch| switch.id)
            .collect();
        let switches: Vec<SwitchId> = both.into_iter().collect();
        let (before, after) = (links(old), links(new));
        let all: Vec<Link> = (&before | &after).into_iter().collect();
        let number = |id: SwitchId| switches.binary_search(&id).expect("collected") as u32;
        let mut hops = Vec::with_capacity(2 * all.len());
        let mut channel = BTreeMap::new();
        for link in &all {
            let (was, stays) = (before.contains(link), after.contains(link));
            for (from, from_port, to, to_port) in [
                (link.a, link.a_port, link.b, link.b_port),
                (link.b, link.b_port, link.a, link.a_port),
            ] {
                channel.insert((from, from_port, to, to_port), hops.len() as u32);
                let (from, to) = (number(from), number(to));
                hops.push(Hop {
                    from,
                    from_port,
                    to,
                    to_port,
                    was,
                    stays,
                });
            }
        }
        let of_arcs = |topology: &Topology| {
            let arcs = topology.arcs();
            arcs.iter()
                .map(|arc| {
                    let back = arcs[arc.reverse as usize];
                    let (from, to) = (topology.switch_id(back.to), topology.switch_id(arc.to));
                    channel[&(from, arc.port, to, back.port)]
                })
                .collect()
        };
        let (old_of_arc, new_of_arc) = (of_arcs(old), of_arcs(new));
        let mut leaving = vec![Vec::new(); switches.len()];
        for (channel, hop) in (0..).zip(&hops).filter(|(_, hop)| hop.stays) {
            leaving[hop.from as usize].push(channel);
        }
        let mut channels = Channels {
            switches,
            hops,
            old_of_arc,
            new_of_arc,
            leaving,
            re_injecting: BTreeSet::new(),
            loses_hosts: Vec::new(),
            places: Vec::new(),
        };
        let re_injects = |host: &&Host| {
            let is = new.host(host.id);
            is.is_ok_and(|is| is_where_it_was(&is, host) && is.transit)
        };
        channels.re_injecting = old
            .hosts()
            .iter()
            .filter(re_injects)
            .map(|host| host.id)
            .collect();
        channels.places = channels.find_places(old, new, each_host);
        channels.loses_hosts = vec![false; channels.switches.len()];
        for place in channels.places.iter().filter(|place| !place.steady) {
            if let Some(old) = place.old {
                channels.loses_hosts[old as usize] = true;
            }
        }
        // One that does not re-inject any more is lost to the worms that it re-injected.
        for host in old.hosts().iter().filter(|host| host.transit) {
            if !channels.re_injects(host.id) {
                let switch = channels.number(host.switch);
                channels.loses_hosts[switch as usize] = true;
            }
        }
        channels
    }

    pub fn len(&self) -> usize {
        self.hops.len()
    }

    pub fn switches(&self) -> usize {
        self.switches.len()
    }

    pub fn switch_id(&self, number: u32) -> SwitchId {
        self.switches[number as usize]
    }

    /// Number of a switch of either topology.
    pub fn number(&self, id: SwitchId) -> u32 {
        self.switches
            .binary_search(&id)
            .expect("a switch of one of the two") as u32
    }

    pub fn hop(&self, channel: u32) -> Hop {
        self.hops[channel as usize]
    }

    /// Channel of an arc of the old topology.
    pub fn of_old_arc(&self, arc: u32) -> u32 {
        self.old_of_arc[arc as usize]
    }

    /// Channel of an arc of the new topology.
    pub fn of_new_arc(&self, arc: u32) -> u32 {
        self.new_of_arc[arc as usize]
    }

    /// Whether all hosts that were on a switch stay where they are and re-inject as before.
    pub fn keeps_hosts(&self, switch: u32) -> bool {
        !self.loses_hosts[switch as usize]
    }

    /// Whether a host stays where it is and may re-inject worms.
    pub fn re_injects(&self, host: HostId) -> bool {
        self.re_injecting.contains(&host)
    }

    /// Channels of the new topology that leave a switch.
    pub fn from(&self, switch: u32) -> &[u32] {
        &self.leaving[switch as usize]
    }

    /// Channels by the switch and port they leave, in the old topology or the new.
    pub fn by_port(&self, old: bool) -> BTreeMap<(SwitchId, PortId), u32> {
        (0u32..)
            .zip(&self.hops)
            .filter(|(_, hop)| if old { hop.was } else { hop.stays })
            .map(|(channel, hop)| ((self.switch_id(hop.from), hop.from_port), channel))
            .collect()
    }

    fn find_places(&self, old: &Topology, new: &Topology, each_host: bool) -> Vec<Place> {
        let by_id = |topology: &Topology| -> BTreeMap<HostId, Host> {
            topology
                .hosts()
                .iter()
                .map(|host| (host.id, *host))
                .collect()
        };
        let (before, after) = (by_id(old), by_id(new));
        let ids: BTreeSet<HostId> = before.keys().chain(after.keys()).copied().collect();
        let mut places: BTreeMap<_, Vec<HostId>> = BTreeMap::new();
        for id in ids {
            let (was, is) = (before.get(&id), after.get(&id));
            let at = |host: Option<&Host>| host.map(|host| self.number(host.switch));
            let steady = was
                .zip(is)
                .is_some_and(|(was, is)| is_where_it_was(is, was));
            let own = each_host.then_some(id);
            places
                .entry((at(is), at(was), steady, own))
                .or_default()
                .push(id);
        }
        places
            .into_iter()
            .map(|((new, old, steady, _), hosts)| Place {
                old,
                new,
                steady,
                hosts,
            })
            .collect()
    }
}

/// Links with their ends in order, so that they can be compared.
fn links(topology: &Topology) -> BTreeSet<Link> {
    topology
        .links()
        .iter()
        .map(|link| {
            if (link.a, link.a_port) <= (link.b, link.b_port) {
                *link
            } else {
                Link {
                    a: link.b,
                    a_port: link.b_port,
                    b: link.a,
                    b_port: link.a_port,
                }
            }
        })
        .collect()
}

fn is_where_it_was(is: &Host, was: &Host) -> bool {
    (is.switch, is.port) == (was.switch, was.port)
}
