//! Forwarding tables: for every switch and host the port that leads there.
//!
//! The entry of (switch, host) is the first byte of the route of a worm injected at that
//! switch. It tells where such a worm goes first, not where one that is passing through
//! goes on: the source writes the whole route, and a worm that has gone down may have to
//! leave a switch by another port than one that starts there. So following the entries
//! from switch to switch need not give the route, nor a legal path.

use super::{Kept, NO_SLOT, NextHops, Phase, Routes};
use crate::topology::Topology;
use crate::updown::UpDown;
use wormcast_wire::SWITCHES_CROSSED_MAX;

/// The entry of a host that cannot be reached; no port has this number.
pub const NO_PORT: u8 = u8::MAX;

/// Switches and runs of hosts that are turned from columns into rows at a time: few
/// enough for the first-level cache.
const TILE: usize = 64;

/// First ports from every switch to every host: a byte for each, row by row. 2,048
/// switches with 16,384 hosts take 34 MB, 10,000 with 40,000 take 400 MB.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForwardingTables {
    hosts: usize,
    ports: Vec<u8>,
}

impl ForwardingTables {
    /// The port of the switch with this index by which a worm to the host with this index
    /// leaves; [`NO_PORT`] if it cannot be reached.
    ///
    /// # Panics
    /// If there is no such switch or host.
    pub fn port(&self, switch: u32, host: u32) -> u8 {
        self.row(switch)[host as usize]
    }

    /// Ports of one switch, by index of host.
    ///
    /// # Panics
    /// If there is no such switch.
    pub fn row(&self, switch: u32) -> &[u8] {
        let first = switch as usize * self.hosts;
        &self.ports[first..first + self.hosts]
    }

    /// All rows, in ascending order of switch ids; columns in that of host ids.
    pub fn as_bytes(&self) -> &[u8] {
        &self.ports
    }

    /// As [`ForwardingTables::as_bytes`], without a copy.
    pub fn into_bytes(self) -> Vec<u8> {
        self.ports
    }
}

/// Hosts with neighbouring indices on one switch.
struct Run {
    switch: u32,
    first: usize,
    last: usize,
}

impl Routes<'_> {
    /// The first port of every route, and of the routes that hosts on other switches
    /// would have. Of several routes of a pair, the first counts. Time and memory
    /// O(switches · hosts).
    pub fn forwarding_tables(&self) -> ForwardingTables {
        let topology = self.topology();
        let (switches, hosts) = (topology.switch_count(), topology.hosts().len());
        let mut ports = vec![NO_PORT; switches * hosts];
        let runs = runs(topology);
        let columns = Columns::new(self);
        let mut tile = [[NO_PORT; TILE]; TILE];
        for runs in runs.chunks(TILE) {
            for first in (0..switches).step_by(TILE) {
                let last = (first + TILE).min(switches);
                for (place, run) in runs.iter().enumerate() {
                    columns.read(run.switch, first..last, |row, port| tile[row][place] = port);
                }
                for (switch, tile) in (first..last).zip(&tile) {
                    let row = &mut ports[switch * hosts..(switch + 1) * hosts];
                    for (run, &port) in runs.iter().zip(tile) {
                        row[run.first..run.last]
                            .iter_mut()
                            .for_each(|entry| *entry = port);
                    }
                }
            }
        }
        for (index, host) in topology.hosts().iter().enumerate() {
            let switch = topology.switch_of(index as u32) as usize;
            ports[switch * hosts + index] = host.port.get();
        }
        ForwardingTables { hosts, ports }
    }
}

fn runs(topology: &Topology) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for host in 0..topology.hosts().len() {
        let switch = topology.switch_of(host as u32);
        match runs.last_mut() {
            Some(run) if run.switch == switch => run.last = host + 1,
            _ => runs.push(Run {
                switch,
                first: host,
                last: host + 1,
            }),
        }
    }
    runs
}

/// First ports, from many switches to one.
struct Columns<'a> {
    routes: &'a Routes<'a>,
    /// Next hops, if all routes along them are short enough.
    tables: Option<&'a NextHops>,
    ports: Vec<u8>,
}

impl<'a> Columns<'a> {
    fn new(routes: &'a Routes<'a>) -> Columns<'a> {
        let topology = routes.topology();
        let tables = match &routes.kept {
            Kept::NextHops(tables) if all_fit(topology, routes.updown(), tables) => Some(tables),
            _ => None,
        };
        let ports = topology.arcs().iter().map(|arc| arc.port.get()).collect();
        Columns {
            routes,
            tables,
            ports,
        }
    }

    /// Visits (place in the range, port towards `dst`) of switches, by index.
    fn read(&self, dst: u32, from: std::ops::Range<usize>, mut visit: impl FnMut(usize, u8)) {
        let topology = self.routes.topology();
        if let Some(tables) = self.tables {
            let slots = &tables.row(dst, Phase::Up)[from.clone()];
            for (place, (&slot, at)) in slots.iter().zip(from).enumerate() {
                let first = topology.arc_first(at as u32) as usize;
                let port = match slot {
                    NO_SLOT => NO_PORT,
                    slot => self.ports[first + usize::from(slot)],
                };
                visit(place, port);
            }
            return;
        }
        for (place, at) in from.enumerate() {
            let paths = self.routes.paths(at as u32, dst);
            let arc = paths.ok().and_then(|paths| paths[0].arcs.first().copied());
            visit(place, arc.map_or(NO_PORT, |arc| self.ports[arc as usize]));
        }
    }
}

/// Whether no route along next hops crosses more switches than a worm may.
fn all_fit(topology: &Topology, updown: &UpDown, tables: &NextHops) -> bool {
    // By way of the root, a path has at most twice as many links as the tree is deep, and
    // a cut at every other switch; that is nearly always enough to know.
    let deep = updown
        .depth()
        .is_none_or(|depth| 3 * depth as usize >= SWITCHES_CROSSED_MAX);
    if !deep {
        return true;
    }
    let mut search = Crossed {
        topology,
        updown,
        crossed: vec![UNKNOWN; 2 * topology.switch_count()],
        way: Vec::new(),
    };
    (0..topology.switch_count() as u32)
        .all(|dst| search.longest(tables, dst) <= SWITCHES_CROSSED_MAX)
}

const UNKNOWN: u32 = u32::MAX;

struct Crossed<'a> {
    topology: &'a Topology,
    updown: &'a UpDown,
    /// Switches crossed from each state to the destination, 0 if there is no way.
    crossed: Vec<u32>,
    /// States on the way to one that is known, and what is crossed in each.
    way: Vec<(usize, u32)>,
}

impl Crossed<'_> {
    /// Most switches crossed from any switch to the destination.
    fn longest(&mut self, tables: &NextHops, dst: u32) -> usize {
        self.crossed.fill(UNKNOWN);
        for phase in [Phase::Up, Phase::Down] {
            self.crossed[2 * dst as usize + phase as usize] = 1;
        }
        let switches = self.topology.switch_count() as u32;
        let from_each = (0..switches).map(|from| self.follow(tables, dst, from));
        from_each.max().unwrap_or(0) as usize
    }

    fn follow(&mut self, tables: &NextHops, dst: u32, from: u32) -> u32 {
        let (mut at, mut phase) = (from, Phase::Up);
        let mut crossed = loop {
            let state = 2 * at as usize + phase as usize;
            if self.crossed[state] != UNKNOWN {
                break self.crossed[state];
            }
            let slot = tables.get(dst, at, phase);
            if slot == NO_SLOT {
                self.crossed[state] = 0;
                break 0;
            }
            let arc = self.topology.arc_first(at) + u32::from(slot);
            let up = self.updown.is_up(arc);
            // Where a host re-injects, the worm crosses the switch twice.
            let is_cut = up && phase == Phase::Down;
            self.way.push((state, 1 + u32::from(is_cut)));
            at = self.topology.arcs()[arc as usize].to;
            phase = if up { Phase::Up } else { Phase::Down };
        };
        while let Some((state, here)) = self.way.pop() {
            crossed = if crossed == 0 { 0 } else { crossed + here };
            self.crossed[state] = crossed;
        }
        crossed
    }
}
