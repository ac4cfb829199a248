//! Packets followed through forwarding tables, destination by destination.

use std::str::FromStr;

use super::graph::{Graph, Verdict};
use super::lost::{Lost, LostKind};
use super::network::Network;
use super::packet::Packet;
use crate::formats::FormatError;

/// Most packets that do not arrive that are named; of more only the number is given.
pub const LOST_MAX: usize = 1000;
/// Port of an InfiniBand switch that is the switch itself.
const OWN_PORT: u16 = 0;

/// Who sends to whom.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ends {
    #[default]
    Hosts,
    /// Switches too, which have addresses of their own.
    All,
}

impl FromStr for Ends {
    type Err = FormatError;

    fn from_str(name: &str) -> Result<Ends, FormatError> {
        match name {
            "hosts" => Ok(Ends::Hosts),
            "all" => Ok(Ends::All),
            _ => Err(FormatError::new(
                "refused",
                format!("ends cannot be \"{name}\"; choices are hosts, all"),
            )),
        }
    }
}

/// Where a switch sends packets to a destination.
pub(super) enum Out<'a> {
    /// It says nothing.
    Nowhere,
    Dropped,
    /// By these ports; each packet by one of them, or a copy by each.
    Ports(&'a [u16]),
}

/// Forwarding tables that look only at the destination.
pub(super) trait Forwarding {
    /// Destinations are numbered below this.
    fn destinations(&self) -> u32;
    fn out(&self, switch: u32, destination: u32) -> Out<'_>;
    /// The node that is meant; `None` if that is not known.
    fn end(&self, destination: u32) -> Option<u32>;
    /// As people write it.
    fn name(&self, destination: u32) -> String;
    /// The virtual channels, by their place in [`Forwarding::vcs`], on which a node sends there; a bit each.
    fn lanes(&self, _src: u32, _destination: u32) -> u16 {
        1
    }
    /// Names of the virtual channels; none if all packets use one.
    fn vcs(&self) -> Vec<String> {
        Vec::new()
    }
    /// Whether a packet is never sent back by the port it came from.
    fn never_back(&self) -> bool {
        false
    }
    /// Whether a port 0 is the switch itself.
    fn has_own_port(&self) -> bool {
        false
    }
    /// Whether a switch has a table at all.
    fn has_table(&self, switch: u32) -> bool;
    /// How many destinations of the tables belong to nobody.
    fn strangers(&self) -> usize {
        0
    }
}

/// No round yet.
const NEVER: u32 = u32::MAX;

/// Follows tables, one after the other.
pub(super) struct Follower<'n> {
    network: &'n Network,
    ends: Ends,
    lanes: u32,
    /// Rounds are counted through all tables.
    round: u32,
    /// For each wire the last round in which it was taken.
    taken: Vec<u32>,
    /// For each wire whether it is on the way that is being followed.
    on_way: Vec<bool>,
    /// Wires on the way that is being followed.
    way: Vec<u32>,
    steps: Vec<Step>,
    /// For each virtual channel and wire out of a switch whether packets of its hosts begin with it.
    first: Vec<bool>,
    lost: Vec<Lost>,
    lost_count: usize,
    destinations: usize,
    /// Wires that packets to each destination take, counted for each.
    hops: usize,
    /// For each switch whether some table of it was read.
    has_table: Vec<bool>,
    strangers: usize,
    /// For each switch and kind the last destination for which that was found.
    found: Vec<usize>,
}

/// What is still to be followed.
#[derive(Clone, Copy)]
enum Step {
    /// Over a wire.
    On(u32),
    /// Back, when all behind a wire has been followed.
    Back(u32),
}

impl Step {
    fn wire(self) -> u32 {
        let (Step::On(wire) | Step::Back(wire)) = self;
        wire
    }
}

/// One destination of one table.
struct Round<'t, T> {
    table: &'t T,
    destination: u32,
    end: Option<u32>,
    src: u32,
    /// Number of the first channel of the virtual channel that is used.
    first: u32,
}

impl<'n> Follower<'n> {
    /// `vcs`: how many virtual channels the graph has.
    pub fn new(network: &'n Network, ends: Ends, vcs: usize) -> Follower<'n> {
        let wires = network.wires().len();
        let lanes = vcs.max(1);
        Follower {
            network,
            ends,
            lanes: lanes as u32,
            round: 0,
            taken: vec![NEVER; wires],
            on_way: vec![false; wires],
            way: Vec::new(),
            steps: Vec::new(),
            first: vec![false; wires * lanes],
            lost: Vec::new(),
            lost_count: 0,
            destinations: 0,
            hops: 0,
            has_table: vec![false; network.switches() as usize],
            strangers: 0,
            found: vec![0; network.switches() as usize * 5],
        }
    }

    /// Adds what packets to all destinations hold and need.
    pub fn follow(&mut self, graph: &mut Graph, table: &impl Forwarding) {
        self.strangers += table.strangers();
        for (switch, has) in (0..).zip(&mut self.has_table) {
            *has |= table.has_table(switch);
        }
        for destination in 0..table.destinations() {
            let end = table.end(destination);
            if self.ends == Ends::Hosts && end.is_some_and(|end| self.network.is_switch(end)) {
                continue;
            }
            self.destinations += 1;
            for lane in 0..self.lanes {
                let first = lane * self.network.wires().len() as u32;
                for switch in 0..self.network.switches() {
                    if let Some(src) = self.sender(table, switch, destination, lane) {
                        let round = Round {
                            table,
                            destination,
                            end,
                            src,
                            first,
                        };
                        self.from(graph, switch, &round);
                    }
                }
                self.round += 1;
            }
        }
    }

    /// Somebody at a switch, or the switch itself, who sends to a destination.
    fn sender(
        &self,
        table: &impl Forwarding,
        switch: u32,
        destination: u32,
        lane: u32,
    ) -> Option<u32> {
        let sends = |node: &u32| {
            Some(*node) != table.end(destination)
                && table.lanes(*node, destination) >> lane & 1 == 1
        };
        let hosts = self.network.hosts_at(switch);
        let itself = (self.ends == Ends::All).then_some(switch);
        hosts.iter().copied().find(sends).or(itself.filter(sends))
    }

    pub fn destinations(&self) -> usize {
        self.destinations
    }

    /// Whether no packet goes anywhere, and none is lost: nothing has been checked.
    pub fn saw_nothing(&self) -> bool {
        self.hops == 0 && self.lost_count == 0
    }

    pub fn finish(self, graph: Graph) -> Verdict {
        let hosts = self.network.nodes().len() - self.network.switches() as usize;
        let mut checked = vec![
            ("switches", self.network.switches() as usize),
            ("hosts", hosts),
            ("destinations", self.destinations),
            ("hops", self.hops),
        ];
        let without = self.has_table.iter().filter(|has| !**has).count();
        if without > 0 {
            checked.push(("switches_without_table", without));
        }
        if self.strangers > 0 {
            checked.push(("unknown_destinations", self.strangers));
        }
        Verdict {
            checked,
            lost: self.lost,
            lost_count: self.lost_count,
            warnings: self.network.warnings.clone(),
            ..graph.check()
        }
    }

    /// Follows a packet that begins at a switch.
    fn from<T: Forwarding>(&mut self, graph: &mut Graph, switch: u32, round: &Round<'_, T>) {
        self.leave(graph, switch, None, round);
        for place in 0..self.steps.len() {
            // Once for all destinations: all hosts of a switch begin alike.
            let wire = self.steps[place].wire();
            let (first, begun) = (round.first, (round.first + wire) as usize);
            if !std::mem::replace(&mut self.first[begun], true) {
                for &host in self.network.hosts_at(switch) {
                    let (into, _) = self.network.home(host);
                    graph.add(first + into, first + wire, || self.packet(round, host));
                }
            }
        }
        while let Some(step) = self.steps.pop() {
            let wire = step.wire();
            if let Step::Back(_) = step {
                self.on_way[wire as usize] = false;
                self.way.pop();
                continue;
            }
            let taken = std::mem::replace(&mut self.taken[wire as usize], self.round);
            if taken == self.round {
                if self.on_way[wire as usize] {
                    self.report_loop(wire, round);
                }
                continue;
            }
            self.hops += 1;
            let to = self.network.wires()[wire as usize].to;
            if self.network.is_switch(to) {
                self.on_way[wire as usize] = true;
                self.way.push(wire);
                self.steps.push(Step::Back(wire));
                self.leave(graph, to, Some(wire), round);
            }
        }
    }

    /// Adds what a packet at a switch needs, and the next steps.
    fn leave<T: Forwarding>(
        &mut self,
        graph: &mut Graph,
        switch: u32,
        held: Option<u32>,
        round: &Round<'_, T>,
    ) {
        let ports = match round.table.out(switch, round.destination) {
            Out::Ports(ports) => ports,
            Out::Dropped => return,
            Out::Nowhere => {
                // Who is meant is not known: perhaps no host here sends there.
                if round.end.is_some() || held.is_some() {
                    self.report(LostKind::NoEntry, switch, None, round);
                }
                return;
            }
        };
        let network = self.network;
        let came_by = held.and_then(|wire| network.wires()[wire as usize].to_port);
        for &port in ports {
            if round.table.never_back() && came_by == Some(port) {
                continue;
            }
            if round.table.has_own_port() && port == OWN_PORT {
                if round.end != Some(switch) {
                    self.report(LostKind::KeptBySwitch, switch, Some(port), round);
                }
                continue;
            }
            let Some(wire) = network.leaving(switch, port) else {
                if round.end.is_some() {
                    self.report(LostKind::NoLink, switch, Some(port), round);
                }
                continue;
            };
            if let Some(held) = held {
                let (held, needed) = (round.first + held, round.first + wire);
                graph.add(held, needed, || self.packet(round, round.src));
            }
            let to = network.wires()[wire as usize].to;
            if !network.is_switch(to) && round.end.is_some_and(|end| end != to) {
                self.report(LostKind::WrongHost, switch, Some(port), round);
            }
            self.steps.push(Step::On(wire));
        }
    }

    fn report<T: Forwarding>(
        &mut self,
        kind: LostKind,
        switch: u32,
        port: Option<u16>,
        round: &Round<'_, T>,
    ) {
        let place = switch as usize * 5 + kind as usize;
        if std::mem::replace(&mut self.found[place], self.destinations) == self.destinations {
            return;
        }
        self.lost_count += 1;
        if self.lost.len() < LOST_MAX {
            self.lost.push(Lost {
                kind,
                switch: self.network.name_of(switch).to_owned(),
                port,
                packet: self.packet(round, round.src),
                path: Vec::new(),
            });
        }
    }

    fn report_loop<T: Forwarding>(&mut self, wire: u32, round: &Round<'_, T>) {
        let wires = self.network.wires();
        let begin = wires[wire as usize];
        let before = self.lost.len();
        self.report(LostKind::Loop, begin.from, begin.from_port, round);
        if let Some(lost) = self.lost.get_mut(before) {
            let about = self.way.iter().skip_while(|on| **on != wire);
            let steps = about.map(|on| wires[*on as usize]);
            let network = self.network;
            lost.path = steps
                .filter_map(|on| Some((network.name_of(on.from).to_owned(), on.from_port?)))
                .collect();
        }
    }

    fn packet<T: Forwarding>(&self, round: &Round<'_, T>, src: u32) -> Packet {
        Packet {
            src: self.network.name_of(src).to_owned(),
            dst: round.end.map(|end| self.network.name_of(end).to_owned()),
            key: Some(round.table.name(round.destination)),
            line: None,
        }
    }
}
