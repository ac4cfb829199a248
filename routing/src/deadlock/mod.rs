//! Deadlock check: the channel dependency graph of a set of routes.
//!
//! A channel is one direction of a link, a host's link included. A worm that holds a
//! channel and needs the next one on its way makes the second a dependency of the
//! first. In-transit hosts take a worm in whole, so that dependencies end there (ITB
//! §III.B). If the graph has no cycle, no set of worms can wait for each other.
//!
//! Worms that branch add more where a branch that is blocked stops the others
//! ([`Branching::Coupled`]): such a worm holds channels of its other branches while it
//! waits. These are dependencies *of one worm*, in both directions between two branches,
//! so that a cycle counts only if every worm that branches is in it once; see
//! `coupled.rs`.

mod coupled;
mod error;
mod json;

pub use error::DeadlockError;

use crate::digraph::Digraph;
use crate::ids::{HostId, PortId, SwitchId};
use crate::intransit::is_cut;
use crate::routes::{Route, Routes};
use crate::topology::{Attachment, Topology};
use crate::tree_route::branches;
use crate::updown::UpDown;

/// One direction of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Channel {
    /// From a host into its switch.
    Injection {
        /// The host.
        host: HostId,
        /// Its switch.
        switch: SwitchId,
        /// Port of the switch.
        port: PortId,
    },
    /// From a switch to another.
    Link {
        /// Switch it leaves.
        from: SwitchId,
        /// Port it leaves by.
        from_port: PortId,
        /// Switch it leads to.
        to: SwitchId,
        /// Port it arrives at.
        to_port: PortId,
    },
    /// From a switch to a host.
    Ejection {
        /// Switch it leaves.
        switch: SwitchId,
        /// Port it leaves by.
        port: PortId,
        /// The host.
        host: HostId,
    },
}

/// What makes a dependency.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Worm {
    /// From host to host.
    Unicast {
        /// Host that sends.
        src: HostId,
        /// Host that receives.
        dst: HostId,
    },
    /// One TREE route.
    Tree {
        /// Host that sends.
        src: HostId,
        /// Hosts that receive, ascending.
        hosts: Vec<HostId>,
    },
}

/// What a worm that branches does while a branch is blocked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Branching {
    /// Every branch goes on by itself: each switch has room for the whole worm (packet
    /// mode), or interrupts it and resumes later (WORM §3, scheme B).
    Independent,
    /// The other branches stop too, hold their channels and fill them with IDLE (WORM
    /// §3, scheme A).
    Coupled,
}

impl Branching {
    /// All of them.
    pub const ALL: [Branching; 2] = [Branching::Independent, Branching::Coupled];

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Branching::Independent => "independent",
            Branching::Coupled => "coupled",
        }
    }
}

impl std::str::FromStr for Branching {
    type Err = DeadlockError;

    fn from_str(name: &str) -> Result<Branching, DeadlockError> {
        Branching::ALL
            .into_iter()
            .find(|branching| branching.name() == name)
            .ok_or_else(|| DeadlockError::UnknownBranching {
                name: name.to_owned(),
            })
    }
}

/// A channel held by a worm that waits for the next channel of the cycle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    /// The channel.
    pub channel: Channel,
    /// The worm that holds it.
    pub worm: Worm,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// No set of worms can wait for each other.
    DeadlockFree {
        /// All channels, so that every worm takes them in this order.
        order: Vec<Channel>,
    },
    /// Worms that can wait for each other.
    Deadlock {
        /// A shortest cycle; each worm waits for the channel after its own, the last for
        /// the first.
        cycle: Vec<Wait>,
        /// False if a worm that branches is in the cycle twice, and no cycle was found
        /// where none is: then there may be a deadlock, and may not.
        proven: bool,
    },
}

/// Channels of a topology, and who waits for which.
#[derive(Clone, Debug)]
pub struct ChannelGraph<'t> {
    topology: &'t Topology,
    branching: Branching,
    worms: Vec<Worm>,
    /// For each channel, the channels that unicast worms need next, and one that does.
    next: Vec<Vec<(u32, u32)>>,
    trees: Vec<coupled::Tree>,
}

impl<'t> ChannelGraph<'t> {
    /// All channels of a topology, and no worms yet.
    pub fn new(topology: &'t Topology, branching: Branching) -> ChannelGraph<'t> {
        let channels = topology.arcs().len() + 2 * topology.hosts().len();
        ChannelGraph {
            topology,
            branching,
            worms: Vec::new(),
            next: vec![Vec::new(); channels],
            trees: Vec::new(),
        }
    }

    /// Adds one route, cut at its in-transit hosts.
    ///
    /// # Errors
    /// A route that the topology does not have.
    pub fn add_route(&mut self, route: &Route) -> Result<(), DeadlockError> {
        let channels = self.channels_of(route)?;
        let worm = Worm::Unicast {
            src: route.src,
            dst: route.dst,
        };
        for pair in channels.windows(2) {
            let (held, needed) = (pair[0], pair[1]);
            // A host re-injects from a buffer that has room for the whole worm.
            if !self.is_ejection(held) {
                self.add_dependency(held, needed, &worm);
            }
        }
        Ok(())
    }

    /// Adds the routes between all hosts.
    ///
    /// # Panics
    /// If they were planned on another topology.
    pub fn add_routes(&mut self, routes: &Routes<'_>) {
        assert!(
            self.topology == routes.topology(),
            "routes of another topology"
        );
        let occupied: Vec<u32> = (0..self.topology.switch_count() as u32)
            .filter(|&switch| self.topology.hosts_at(switch).len() > 0)
            .collect();
        for &to in &occupied {
            for &from in &occupied {
                for path in routes.paths(from, to).unwrap_or_default() {
                    self.add_between(from, to, &path.arcs, routes.updown());
                }
            }
        }
    }

    /// Adds the worm of one TREE route.
    ///
    /// # Errors
    /// A route that does not parse, or leads where the topology has nothing.
    pub fn add_tree(&mut self, src: HostId, route: &[u8]) -> Result<(), DeadlockError> {
        let host = self.topology.host_index(src)?;
        let mut tree = coupled::Tree::new(self.injection(host));
        let mut hosts = Vec::new();
        // Switches the worm arrives at, over which channel of the tree, and its route.
        let mut arriving = vec![(self.topology.host(src)?.switch, 0, route.to_vec())];
        while let Some((switch, over, route)) = arriving.pop() {
            let branches =
                branches(&route).map_err(|error| DeadlockError::Tree { switch, error })?;
            for branch in branches {
                let (channel, end) = self.leave(switch, branch.port)?;
                let node = tree
                    .grow(over, channel)
                    .ok_or(DeadlockError::TreeMeetsItself {
                        switch,
                        port: branch.port,
                    })?;
                match end {
                    Attachment::Host(host) => hosts.push(host),
                    Attachment::Switch(next, _) => arriving.push((next, node, branch.copy_route())),
                }
            }
        }
        hosts.sort_unstable();
        let worm = Worm::Tree { src, hosts };
        tree.belong_to(self.number(&worm));
        if !self.trees.iter_mut().any(|known| known.absorb(&tree)) {
            self.trees.push(tree);
        }
        Ok(())
    }

    /// Looks for worms that can wait for each other.
    pub fn check(&self) -> Verdict {
        let mut graph = Digraph::default();
        for _ in &self.next {
            graph.add_node();
        }
        for (held, needed) in self.next.iter().enumerate() {
            for &(needed, _) in needed {
                graph.add_arc(held as u32, needed);
            }
        }
        for (held, needed) in self.trees.iter().flat_map(coupled::Tree::steps) {
            graph.add_arc(held, needed);
        }
        if let Some(cycle) = graph.shortest_cycle() {
            return Verdict::Deadlock {
                cycle: self.name_cycle(&cycle),
                proven: true,
            };
        }
        if self.branching == Branching::Coupled
            && let Some(found) = coupled::find_cycle(&self.next, &self.trees)
        {
            let cycle = found
                .waits
                .iter()
                .map(|&(channel, worm)| self.name_wait(channel, worm))
                .collect();
            return Verdict::Deadlock {
                cycle,
                proven: found.proven,
            };
        }
        let order = graph.topological_order().expect("no cycle was found");
        Verdict::DeadlockFree {
            order: order.into_iter().map(|node| self.channel(node)).collect(),
        }
    }

    fn channels_of(&self, route: &Route) -> Result<Vec<u32>, DeadlockError> {
        let (src, dst) = (route.src, route.dst);
        let wrong = |reason: String| DeadlockError::Route { src, dst, reason };
        let host = self.topology.host_index(src)?;
        let mut channels = vec![self.injection(host)];
        let mut at = Attachment::Host(src);
        let mut in_transit = route.in_transit.iter();
        for (&switch, &byte) in route.switches.iter().zip(&route.ports) {
            let arrived = match at {
                Attachment::Switch(switch, _) => switch,
                Attachment::Host(host) => {
                    if channels.len() > 1 {
                        if in_transit.next() != Some(&host) {
                            return Err(wrong(format!(
                                "host {host} re-injects but is not in in_transit"
                            )));
                        }
                        channels.push(self.injection(self.topology.host_index(host)?));
                    }
                    self.topology.host(host)?.switch
                }
            };
            if arrived != switch {
                return Err(wrong(format!(
                    "switch {switch} is named where switch {arrived} is"
                )));
            }
            let port = PortId::new(byte)
                .ok_or_else(|| wrong(format!("byte {byte} is no port; ports are 0 to 253")))?;
            let (channel, end) = self.leave(switch, port)?;
            channels.push(channel);
            at = end;
        }
        if at != Attachment::Host(dst) || channels.len() == 1 {
            return Err(wrong("it does not end at its destination".into()));
        }
        match in_transit.next() {
            Some(host) => Err(wrong(format!("it does not pass in-transit host {host}"))),
            None => Ok(channels),
        }
    }

    /// The channel out of a port, and what it leads to.
    fn leave(&self, switch: SwitchId, port: PortId) -> Result<(u32, Attachment), DeadlockError> {
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

    fn add_between(&mut self, from: u32, to: u32, arcs: &[u32], updown: &UpDown) {
        let topology = self.topology;
        let id = |host: u32| topology.hosts()[host as usize].id;
        let first_host = topology.hosts_at(from).next().expect("occupied");
        let last_host = topology.hosts_at(to).next().expect("occupied");
        let unicast = |src, dst| Worm::Unicast {
            src: id(src),
            dst: id(dst),
        };
        for pair in arcs.windows(2) {
            let worm = unicast(first_host, last_host);
            if !is_cut(updown, pair[0], pair[1]) {
                self.add_dependency(pair[0], pair[1], &worm);
                continue;
            }
            // Which of the hosts re-injects depends on the pair of hosts; all may.
            for host in topology.hosts_at(topology.arcs()[pair[0] as usize].to) {
                self.add_dependency(pair[0], self.ejection(host), &worm);
                self.add_dependency(self.injection(host), pair[1], &worm);
            }
        }
        match (arcs.first(), arcs.last()) {
            (Some(&first), Some(&last)) => {
                for host in topology.hosts_at(from) {
                    self.add_dependency(self.injection(host), first, &unicast(host, last_host));
                }
                for host in topology.hosts_at(to) {
                    self.add_dependency(last, self.ejection(host), &unicast(first_host, host));
                }
            }
            _ => {
                for src in topology.hosts_at(from) {
                    for dst in topology.hosts_at(to).filter(|dst| *dst != src) {
                        let (held, needed) = (self.injection(src), self.ejection(dst));
                        self.add_dependency(held, needed, &unicast(src, dst));
                    }
                }
            }
        }
    }

    fn add_dependency(&mut self, held: u32, needed: u32, worm: &Worm) {
        // A channel leads to one switch, so that there are few.
        if self.next[held as usize]
            .iter()
            .all(|(known, _)| *known != needed)
        {
            let worm = self.number(worm);
            self.next[held as usize].push((needed, worm));
        }
    }

    /// Number of a worm; one that is added over and over keeps its number.
    fn number(&mut self, worm: &Worm) -> u32 {
        if self.worms.last() != Some(worm) {
            self.worms.push(worm.clone());
        }
        self.worms.len() as u32 - 1
    }

    fn injection(&self, host: u32) -> u32 {
        self.topology.arcs().len() as u32 + host
    }

    fn ejection(&self, host: u32) -> u32 {
        self.injection(host) + self.topology.hosts().len() as u32
    }

    fn is_ejection(&self, channel: u32) -> bool {
        channel >= self.ejection(0)
    }

    fn channel(&self, number: u32) -> Channel {
        let (arcs, hosts) = (self.topology.arcs(), self.topology.hosts());
        if let Some(arc) = arcs.get(number as usize) {
            let back = arcs[arc.reverse as usize];
            return Channel::Link {
                from: self.topology.switch_id(back.to),
                from_port: arc.port,
                to: self.topology.switch_id(arc.to),
                to_port: back.port,
            };
        }
        let host = hosts[(number as usize - arcs.len()) % hosts.len()];
        let (switch, port) = (host.switch, host.port);
        match self.is_ejection(number) {
            true => Channel::Ejection {
                switch,
                port,
                host: host.id,
            },
            false => Channel::Injection {
                host: host.id,
                switch,
                port,
            },
        }
    }

    fn name_wait(&self, channel: u32, worm: u32) -> Wait {
        Wait {
            channel: self.channel(channel),
            worm: self.worms[worm as usize].clone(),
        }
    }

    fn name_cycle(&self, cycle: &[u32]) -> Vec<Wait> {
        (0..cycle.len())
            .map(|place| {
                let (held, needed) = (cycle[place], cycle[(place + 1) % cycle.len()]);
                let unicast = self.next[held as usize]
                    .iter()
                    .find(|(known, _)| *known == needed);
                let worm = unicast.map(|(_, worm)| *worm).or_else(|| {
                    let tree = self.trees.iter().find(|tree| tree.has_step(held, needed));
                    tree.map(|tree| tree.worm_with(held, needed).0)
                });
                self.name_wait(held, worm.expect("somebody makes every dependency"))
            })
            .collect()
    }
}
