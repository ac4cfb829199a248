//! Channels of a network, and routes of hosts as the channels that a worm takes.

use std::collections::VecDeque;

use wormcast_routing::routes::{Algorithm, Route, Routes, Share};
use wormcast_routing::topology::Topology;
use wormcast_routing::updown::UpDown;

use crate::traffic::Message;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paths {
    Planned(Algorithm),
    /// As osud, but the load is not spread: of equally short up\*/down\* paths the one that is
    /// found first, by ports.
    First,
}

impl Paths {
    pub const ALL: [Paths; 6] = [
        Paths::Planned(Algorithm::Osud),
        Paths::Planned(Algorithm::Omit),
        Paths::Planned(Algorithm::Rmit),
        Paths::Planned(Algorithm::Rrmit),
        Paths::Planned(Algorithm::RrmitMin),
        Paths::First,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Paths::Planned(algorithm) => algorithm.name(),
            Paths::First => "first",
        }
    }
}

/// Channels from one host to another, or to the host that re-injects.
pub type Piece = Vec<u32>;

/// A route: one piece, and one more for each in-transit host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Track {
    pub pieces: Vec<Piece>,
}

/// Tracks of all pairs. Channels are numbered: of each host the one into the network, then of each
/// host the one out of it, then the directed links between switches.
pub struct Network {
    pub hosts: u32,
    pub channels: usize,
    draws: bool,
    /// By source × hosts + destination; with shares of [`Share::WHOLE`].
    tracks: Vec<Vec<(u32, Track)>>,
}

impl Network {
    /// Routes between all hosts, which must reach each other.
    pub fn plan(topology: &Topology, paths: Paths) -> Result<Network, String> {
        let hosts = topology.hosts();
        let channels = 2 * hosts.len() + topology.arcs().len();
        let draws = matches!(paths, Paths::Planned(algorithm) if algorithm.draws_routes());
        let count = hosts.len() as u32;
        let mut network = Network::new(count, channels, draws);
        let pairs = (0..count).flat_map(|src| (0..count).map(move |dst| (src, dst)));
        let pairs = pairs.filter(|(src, dst)| src != dst);
        match paths {
            Paths::Planned(algorithm) => {
                let routes = Routes::plan(topology, algorithm, None).map_err(text)?;
                for (src, dst) in pairs {
                    let [from, to] = [src, dst].map(|host| hosts[host as usize].id);
                    for one in routes.alternatives(from, to).map_err(text)? {
                        network.add(src, dst, one.share.parts(), track(topology, &one.route));
                    }
                }
            }
            Paths::First => {
                let updown = UpDown::new(topology, None).map_err(text)?;
                let trees = (0..topology.switch_count() as u32)
                    .map(|from| first_paths(topology, &updown, from));
                let trees: Vec<Vec<Vec<u32>>> = trees.collect();
                for (src, dst) in pairs {
                    let [from, to] = [src, dst].map(|host| topology.switch_of(host) as usize);
                    let arcs = trees[from][to].iter().map(|arc| 2 * count + arc);
                    let piece = [src].into_iter().chain(arcs).chain([count + dst]);
                    let pieces = vec![piece.collect()];
                    network.add(src, dst, Share::WHOLE.parts(), Track { pieces });
                }
            }
        }
        Ok(network)
    }

    pub fn new(hosts: u32, channels: usize, draws: bool) -> Network {
        Network {
            hosts,
            channels,
            draws,
            tracks: vec![Vec::new(); (hosts * hosts) as usize],
        }
    }

    /// Adds a route of a pair of hosts. Shares of a pair come to [`Share::WHOLE`].
    pub fn add(&mut self, src: u32, dst: u32, share: u32, track: Track) {
        self.tracks[(src * self.hosts + dst) as usize].push((share, track));
    }

    /// Number of a pair of hosts.
    pub fn pair(&self, message: &Message) -> usize {
        (message.src * self.hosts + message.dst) as usize
    }

    /// What a message takes: drawn by shares, or in turn.
    pub fn track(&self, message: &Message) -> &Track {
        let of_pair = &self.tracks[self.pair(message)];
        if !self.draws {
            return &of_pair[message.turn as usize % of_pair.len()].1;
        }
        let whole = u64::from(Share::WHOLE.parts());
        let mut mark = (u64::from(message.draw) * whole) >> 32;
        for (parts, track) in of_pair {
            match mark.checked_sub(u64::from(*parts)) {
                Some(rest) => mark = rest,
                None => return track,
            }
        }
        unreachable!("shares add up to the whole")
    }

    /// Whether a channel leads to a host; which one.
    pub fn sink(&self, channel: u32) -> Option<u32> {
        (self.hosts..2 * self.hosts)
            .contains(&channel)
            .then(|| channel - self.hosts)
    }

    /// Load of the fullest channel if each host sends 1, evenly to each of its peers. Its inverse
    /// bounds what a host can send, so long as its peers get equal parts.
    pub fn fullest(&self, peers: &[Vec<u32>]) -> f64 {
        let mut load = vec![0.0; self.channels];
        for (src, of_host) in peers.iter().enumerate() {
            for &dst in of_host {
                let pair = src * self.hosts as usize + dst as usize;
                for (parts, track) in &self.tracks[pair] {
                    let share = f64::from(*parts) / f64::from(Share::WHOLE.parts());
                    for &channel in track.pieces.iter().flatten() {
                        load[channel as usize] += share / of_host.len() as f64;
                    }
                }
            }
        }
        load.into_iter().fold(0.0, f64::max)
    }
}

/// The channels of a route; a port that leads to a host ends a piece.
fn track(topology: &Topology, route: &Route) -> Track {
    let hosts = topology.hosts().len() as u32;
    let index = |host| topology.host_index(host).expect("hosts of the topology");
    let mut ends = route.in_transit.iter().chain([&route.dst]);
    let mut pieces = Vec::new();
    let mut piece = vec![index(route.src)];
    for (switch, port) in route.switches.iter().zip(&route.ports) {
        let at = topology.switch_index(*switch).expect("a switch of it");
        let arcs = topology.arcs_of(at);
        match arcs.iter().position(|arc| arc.port.get() == *port) {
            Some(place) => piece.push(2 * hosts + topology.arc_first(at) + place as u32),
            None => {
                let end = index(*ends.next().expect("a host for each piece"));
                piece.push(hosts + end);
                pieces.push(std::mem::replace(&mut piece, vec![end]));
            }
        }
    }
    assert!(ends.next().is_none(), "a piece for each host: {route:?}");
    Track { pieces }
}

/// The arcs of a shortest up\*/down\* path to every switch, the first that is found.
fn first_paths(topology: &Topology, updown: &UpDown, from: u32) -> Vec<Vec<u32>> {
    let mut paths: Vec<Option<Vec<u32>>> = vec![None; topology.switch_count()];
    // By switch, and whether a path has turned down there.
    let mut seen = vec![[false; 2]; topology.switch_count()];
    let mut queue = VecDeque::from([(from, false, Vec::new())]);
    while let Some((at, down, arcs)) = queue.pop_front() {
        if std::mem::replace(&mut seen[at as usize][usize::from(down)], true) {
            continue;
        }
        let first = topology.arc_first(at);
        for (arc, ahead) in (first..).zip(topology.arcs_of(at)) {
            let leads_up = updown.is_up(arc);
            if !(down && leads_up) {
                let further = arcs.iter().copied().chain([arc]).collect();
                queue.push_back((ahead.to, !leads_up, further));
            }
        }
        paths[at as usize].get_or_insert(arcs);
    }
    let paths = paths.into_iter();
    paths.map(|path| path.expect("all are connected")).collect()
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}
