//! What the sends of a group cost the network (TORUS §4, PACKET §3), by replaying them
//! link by link.

use super::error::GroupError;
use super::request::GroupRequest;
use super::scheme::Scheme;
use super::shape::plan_structure;
use super::unicast::Unicast;
use crate::structure::torus_latency::{
    Constants, PROCESS_MD_NS, PROCESS_MU_NS, PROCESS_S_NS, PROCESS_SEPARATE_NS, PROCESS_U_NS,
    PathCounts, forwarded_ns, full_ns, separate_ns,
};
use crate::structure::{Discipline, Structure, TimedSend};
use crate::topology::{Attachment, Grid, Topology};
use wormcast_wire::{PortId, SwitchId};

/// Most sends, of all packets together, that are replayed.
pub const SENDS_MAX: u64 = 1 << 22;

/// Message size that the latency models take unless bytes are given: the size at which
/// TORUS states them.
const MODEL_BYTES_DEFAULT: u64 = 128;

/// What the sends cost the network. Steps are those of the schedule: a host sends one
/// packet a step.
#[derive(Clone, Debug, PartialEq)]
pub struct Metrics {
    /// Steps in which anybody sends.
    pub busy_steps: u64,
    /// Those in which two packets meet on a link, in the same direction.
    pub contended_steps: u64,
    /// Those in which they would still meet if every link of a ring had two virtual channels, one
    /// for packets that are yet to pass the end of the ring and one for all others, as
    /// the proof of U-torus supposes. As many as `contended_steps` for other paths than
    /// dimension order on a torus.
    pub contended_steps_two_lanes: u64,
    /// Sends, of all packets.
    pub sends: u64,
    /// Those that meet another on a link of their path in the same step.
    pub contended_sends: u64,
    /// Links from switch to switch that one packet visits, counted each time.
    pub link_visits: u64,
    /// Those links counted once, each direction for itself.
    pub links_used: u64,
    /// Most packets in transit at once.
    pub link_concurrency: u64,
    /// Steps until the source has sent its last packet.
    pub startup_steps: u64,
    /// Most hosts that take a packet and send it on, on the way to one member.
    pub intermediate_hosts: u32,
    /// Steps of the whole message and what a host holds meanwhile, FPFS.
    pub fpfs: Holding,
    pub fcfs: Holding,
    /// Of the torus schemes, what the models of TORUS §5 say.
    pub latency: Option<Latency>,
}

/// What hosts that forward hold in their adapters.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Holding {
    /// Steps until the last member has the last packet.
    pub steps: u64,
    /// Most steps a host holds a packet, from when it has it until its last copy is sent.
    pub held_max: u64,
    /// The same on average over forwarding hosts and packets; 0 if no host forwards.
    pub held_mean: f64,
    /// Most packets a host holds at once.
    pub packets_max: u64,
}

/// Latency by the models of TORUS §5.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Latency {
    pub bytes: u64,
    /// Without the network (eq. 6–8), ns.
    pub simplified_ns: f64,
    /// With it (eq. 4), ns.
    pub full_ns: f64,
}

impl Metrics {
    /// Share of the busy steps in which two packets meet on a link.
    pub fn contention_share(&self) -> f64 {
        share(self.contended_steps, self.busy_steps)
    }

    /// Share of the sends that meet another on a link.
    pub fn contended_sends_share(&self) -> f64 {
        share(self.contended_sends, self.sends)
    }

    /// Link visits by links used (TORUS §4.4); 0 if no link is used.
    pub fn link_concentration(&self) -> f64 {
        share(self.link_visits, self.links_used)
    }
}

fn share(part: u64, whole: u64) -> f64 {
    match whole {
        0 => 0.0,
        whole => part as f64 / whole as f64,
    }
}

/// Replays the schedule of a request; `None` if switches replicate.
///
/// # Errors
/// As [`super::plan_group`], and more than [`SENDS_MAX`] sends.
pub fn measure_group<'r, 't: 'r>(
    paths: impl Into<Unicast<'r, 't>>,
    request: &GroupRequest,
) -> Result<Option<Metrics>, GroupError> {
    let paths = paths.into();
    let Some(structure) = plan_structure(paths, request)? else {
        return Ok(None);
    };
    let packets = request.packets;
    let sends = structure.timed_sends(packets, request.discipline);
    let count = sends.len() as u64 * u64::from(packets);
    if count > SENDS_MAX {
        return Err(GroupError::Request {
            at: "metrics".into(),
            reason: format!(
                "{} sends of {packets} packets are {count} to replay; there may be {SENDS_MAX}",
                sends.len()
            ),
        });
    }
    let links = Links::of(paths, &structure, &sends)?;
    let busy = links.replay(&structure, &sends, packets);
    let counts = path_counts(&structure, &sends, &links);
    let source = structure.place_of_source();
    let startup = sends.iter().filter(|send| send.from == source);
    Ok(Some(Metrics {
        busy_steps: busy.steps,
        contended_steps: busy.contended,
        contended_steps_two_lanes: busy.contended_two_lanes,
        sends: count,
        contended_sends: busy.contended_sends,
        link_visits: links.arcs.len() as u64,
        links_used: links.used(),
        link_concurrency: busy.concurrency,
        startup_steps: startup.map(|send| send.step(packets)).max().unwrap_or(0),
        intermediate_hosts: counts
            .iter()
            .map(|path| path.intermediate)
            .max()
            .unwrap_or(0),
        fpfs: holding(&structure, packets, Discipline::Fpfs),
        fcfs: holding(&structure, packets, Discipline::Fcfs),
        latency: latency(request, &structure, &counts),
    }))
}

/// The links from switch to switch that each send goes along.
struct Links<'t> {
    topology: &'t Topology,
    /// Index of the arc, send after send.
    arcs: Vec<u32>,
    /// For each of them, whether the packet takes the second virtual channel there.
    second_channel: Vec<bool>,
    /// For each send where its arcs start; then where the last end.
    first: Vec<usize>,
}

impl<'t> Links<'t> {
    fn of(
        paths: Unicast<'_, 't>,
        structure: &Structure,
        sends: &[TimedSend],
    ) -> Result<Links<'t>, GroupError> {
        let topology = paths.topology();
        let mut links = Links {
            topology,
            arcs: Vec::new(),
            second_channel: Vec::new(),
            first: vec![0],
        };
        let rings = match (paths, topology.grid()) {
            (Unicast::DimensionOrder(_), Some(grid)) if grid.wraps => Some(grid),
            _ => None,
        };
        for send in sends {
            let route = paths.route(structure.order()[send.from], structure.order()[send.to])?;
            let end = route.switches[route.switches.len() - 1];
            for (&switch, &port) in route.switches.iter().zip(&route.ports) {
                let port = PortId::new(port).expect("routes have ports only");
                // Ports to hosts are of one sender or receiver alone.
                if let Some(Attachment::Switch(next, _)) = topology.attachment(switch, port) {
                    let at = topology.switch_index(switch)?;
                    let slot = topology.arcs_of(at).partition_point(|arc| arc.port < port);
                    links.arcs.push(topology.arc_first(at) + slot as u32);
                    let channel = rings.is_some_and(|grid| is_yet_to_wrap(grid, switch, next, end));
                    links.second_channel.push(channel);
                }
            }
            links.first.push(links.arcs.len());
        }
        Ok(links)
    }

    fn range_of(&self, send: usize) -> std::ops::Range<usize> {
        self.first[send]..self.first[send + 1]
    }

    fn of_send(&self, send: usize) -> &[u32] {
        &self.arcs[self.range_of(send)]
    }

    fn used(&self) -> u64 {
        let mut arcs = self.arcs.clone();
        arcs.sort_unstable();
        arcs.dedup();
        arcs.len() as u64
    }

    /// Goes through the schedule step by step.
    fn replay(&self, structure: &Structure, sends: &[TimedSend], packets: u32) -> Busy {
        let mut events: Vec<(u64, u32)> = Vec::with_capacity(sends.len() * packets as usize);
        for (index, send) in sends.iter().enumerate() {
            events.extend((1..=packets).map(|packet| (send.step(packet), index as u32)));
        }
        events.sort_unstable();
        let mut busy = Busy::default();
        let flight = u64::from(structure.lambda());
        let mut arrived = 0;
        for (sent, event) in events.iter().enumerate() {
            // Packets sent before this one that have arrived before this step.
            while events[arrived].0 + flight <= event.0 {
                arrived += 1;
            }
            busy.concurrency = busy.concurrency.max((sent + 1 - arrived) as u64);
        }
        // The step in which each virtual channel of each link was last visited, and by which send of
        // that step first; steps count from 1.
        let mut visited = vec![[(0u64, 0usize); 2]; self.topology.arcs().len()];
        let mut meets = Vec::new();
        for step in events.chunk_by(|event, next| event.0 == next.0) {
            let mut meet_in_lane = false;
            meets.clear();
            meets.resize(step.len(), false);
            for (number, &(step, send)) in step.iter().enumerate() {
                for at in self.range_of(send as usize) {
                    let channels = &mut visited[self.arcs[at] as usize];
                    for (_, first) in channels.iter().filter(|channel| channel.0 == step) {
                        meets[*first] = true;
                        meets[number] = true;
                    }
                    let channel = &mut channels[usize::from(self.second_channel[at])];
                    if channel.0 == step {
                        meet_in_lane = true;
                    } else {
                        *channel = (step, number);
                    }
                }
            }
            let sends = meets.iter().filter(|meets| **meets).count();
            busy.steps += 1;
            busy.contended += u64::from(sends > 0);
            busy.contended_sends += sends as u64;
            busy.contended_two_lanes += u64::from(meet_in_lane);
        }
        busy
    }
}

#[derive(Default)]
struct Busy {
    steps: u64,
    contended: u64,
    contended_two_lanes: u64,
    contended_sends: u64,
    concurrency: u64,
}

/// Whether a packet that goes from one switch of a ring to the next has the end of the ring
/// before it on its way to the place of `end`.
fn is_yet_to_wrap(grid: &Grid, at: SwitchId, next: SwitchId, end: SwitchId) -> bool {
    let [at, next, end] = [at, next, end].map(|switch| grid.coordinates(switch));
    (0..at.len())
        .find(|&dimension| at[dimension] != next[dimension])
        .is_some_and(|dimension| {
            let (at, next, end) = (at[dimension], next[dimension], end[dimension]);
            if next == (at + 1) % grid.radix[dimension] {
                end < at
            } else {
                end > at
            }
        })
}

/// What a packet passes on its way to each member, in the order of the sends.
fn path_counts(structure: &Structure, sends: &[TimedSend], links: &Links<'_>) -> Vec<PathCounts> {
    let mut reached: Vec<Option<PathCounts>> = vec![None; structure.order().len()];
    let mut paths = Vec::with_capacity(sends.len());
    for (index, send) in sends.iter().enumerate() {
        let mut path = match reached[send.from] {
            Some(path) => PathCounts {
                intermediate: path.intermediate + 1,
                ..path
            },
            None => PathCounts::default(),
        };
        let arcs = links.of_send(index);
        path.hops += arcs.len() as u32;
        for pair in arcs.windows(2) {
            if dimension(links.topology, pair[0]) == dimension(links.topology, pair[1]) {
                path.forwarding += 1;
            } else {
                path.switching += 1;
            }
        }
        reached[send.to].get_or_insert(path);
        paths.push(path);
    }
    paths
}

/// The dimension of a torus or mesh that a link leads along; of other links 0.
fn dimension(topology: &Topology, arc: u32) -> usize {
    let Some(grid) = topology.grid() else {
        return 0;
    };
    let arcs = topology.arcs();
    let to = topology.switch_id(arcs[arc as usize].to);
    let from = topology.switch_id(arcs[arcs[arc as usize].reverse as usize].to);
    let differs = |(from, to): (u16, u16)| from != to;
    let pairs = grid.coordinates(from).into_iter().zip(grid.coordinates(to));
    pairs.into_iter().position(differs).unwrap_or(0)
}

/// Replays what each host that forwards holds.
fn holding(structure: &Structure, packets: u32, discipline: Discipline) -> Holding {
    let sends = structure.timed_sends(packets, discipline);
    let flight = u64::from(structure.lambda()) - 1;
    let mut received: Vec<Option<&TimedSend>> = vec![None; structure.order().len()];
    let mut holding = Holding {
        steps: structure.steps_under(packets, discipline),
        ..Holding::default()
    };
    let (mut sum, mut count) = (0u64, 0u64);
    for children in sends.chunk_by(|send, next| send.from == next.from) {
        if let (Some(parent), Some(last)) = (received[children[0].from], children.last()) {
            let mut gone = 1;
            for packet in 1..=packets {
                let arrived = parent.step(packet) + flight;
                let held = last.step(packet) - arrived;
                holding.held_max = holding.held_max.max(held);
                (sum, count) = (sum + held, count + 1);
                while last.step(gone) <= arrived {
                    gone += 1;
                }
                holding.packets_max = holding.packets_max.max(u64::from(packet + 1 - gone));
            }
        }
        for send in children {
            received[send.to].get_or_insert(send);
        }
    }
    holding.held_mean = share(sum, count);
    holding
}

fn latency(request: &GroupRequest, structure: &Structure, paths: &[PathCounts]) -> Option<Latency> {
    let process_ns = match request.scheme {
        Scheme::Repeat => PROCESS_SEPARATE_NS,
        Scheme::UTorus => PROCESS_U_NS,
        Scheme::STorus => PROCESS_S_NS,
        Scheme::MdTorus => PROCESS_MD_NS,
        Scheme::MuTorus { .. } => PROCESS_MU_NS,
        _ => return None,
    };
    let constants = &Constants::TORUS;
    let message_bytes = request.bytes.unwrap_or(MODEL_BYTES_DEFAULT);
    let bytes = message_bytes as f64;
    let members = structure.order().len();
    let (simplified_ns, full_ns) = if members < 2 {
        (0.0, 0.0)
    } else if request.scheme == Scheme::Repeat {
        let simplified = separate_ns(constants, members, process_ns, bytes);
        // The last copy leaves when the copies before it have; each crosses the network.
        let o = constants.overhead(bytes);
        let full = paths.iter().enumerate().map(|(copy, &path)| {
            (copy + 1) as f64 * (o + process_ns) + o + constants.network(path)
        });
        (simplified, full.fold(0.0, f64::max))
    } else {
        let intermediate = paths
            .iter()
            .map(|path| path.intermediate)
            .max()
            .unwrap_or(0);
        (
            forwarded_ns(constants, intermediate, process_ns, bytes),
            full_ns(constants, paths.iter().copied(), process_ns, bytes),
        )
    };
    Some(Latency {
        bytes: message_bytes,
        simplified_ns,
        full_ns,
    })
}
