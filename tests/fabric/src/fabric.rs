//! The event loop: hosts, switches and links on virtual time.

use crate::host::Host;
use crate::link::{Link, LinkConfig};
use crate::planner::HostPlan;
use crate::program_switch::ProgramSwitch;
use crate::random::Random;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use wormcast_protocol::{EngineConfig, Instant};
use wormcast_routing::topology::{Attachment, Topology};
use wormcast_wire::HostId;
use wormcast_wire::forward;
use wormcast_wire::pdu::{self, Body};
use wormcast_wire::{PortId, SwitchId, worm};

/// A full frame, for queue depths in frames.
const FRAME_BYTES: u64 = 1_514;

/// An end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// A host's only interface.
    Host(u16),
    /// A switch and its port.
    Switch(u16, u8),
}

#[derive(Debug)]
enum Happening {
    Arrives(Place, Vec<u8>),
    Wakes(u16),
}

struct Scheduled {
    at_ns: u64,
    order: u64,
    happening: Happening,
}

impl PartialEq for Scheduled {
    fn eq(&self, other: &Self) -> bool {
        self.order == other.order
    }
}
impl Eq for Scheduled {}
impl PartialOrd for Scheduled {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Scheduled {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at_ns, self.order).cmp(&(other.at_ns, other.order))
    }
}

/// A fabric in one process.
pub struct Fabric {
    /// What is wired to what.
    pub topology: Topology,
    /// By number.
    pub hosts: BTreeMap<u16, Host>,
    /// By the end a frame leaves from.
    pub links: BTreeMap<Place, Link>,
    /// Configuration of every engine; the host and its incarnation are put in.
    pub engine_config: EngineConfig,
    /// The time.
    pub now_ns: u64,
    /// How often each link carried each DATA packet, by sequence number.
    copies: Option<BTreeMap<Place, BTreeMap<u32, u64>>>,
    /// Switches that run the P4 program; the others follow the model.
    programs: BTreeMap<u16, ProgramSwitch>,
    /// Times a host woke by its own timer: a loop that finds nothing to do shows here.
    pub wakes: u64,
    random: Random,
    heap: BinaryHeap<Reverse<Scheduled>>,
    order: u64,
}

impl Fabric {
    /// A fabric of that shape, all links alike, agents started.
    pub fn new(
        topology: Topology,
        link: LinkConfig,
        engine_config: EngineConfig,
        seed: u64,
    ) -> Fabric {
        let mut links = BTreeMap::new();
        let mut hosts = BTreeMap::new();
        for host in topology.hosts() {
            links.insert(Place::Host(host.id.0), Link::new(link));
            links.insert(
                Place::Switch(host.switch.0, host.port.get()),
                Link::new(link),
            );
            hosts.insert(host.id.0, Host::new(host.id.0, engine_config.mtu));
        }
        for wire in topology.links() {
            links.insert(Place::Switch(wire.a.0, wire.a_port.get()), Link::new(link));
            links.insert(Place::Switch(wire.b.0, wire.b_port.get()), Link::new(link));
        }
        let mut fabric = Fabric {
            topology,
            hosts,
            links,
            engine_config,
            now_ns: 1_000_000,
            copies: None,
            programs: BTreeMap::new(),
            wakes: 0,
            random: Random::new(seed),
            heap: BinaryHeap::new(),
            order: 0,
        };
        let ids: Vec<u16> = fabric.hosts.keys().copied().collect();
        for id in ids {
            fabric.start_agent(id);
        }
        fabric
    }

    /// Counts from now on how often each link carries each DATA packet.
    pub fn count_copies(&mut self) {
        self.copies = Some(BTreeMap::new());
    }

    /// For each link that carried DATA, the most copies of one packet it carried.
    pub fn data_copies(&self) -> impl Iterator<Item = (Place, u64)> + '_ {
        self.copies
            .iter()
            .flatten()
            .map(|(place, copies)| (*place, copies.values().max().copied().unwrap_or(0)))
    }

    /// All switches run the P4 program from now on.
    pub fn use_program(&mut self) {
        for switch in self.topology.switches() {
            let ports: Vec<u8> = self
                .links
                .keys()
                .filter_map(|place| match place {
                    Place::Switch(id, port) if *id == switch.id.0 => Some(*port),
                    _ => None,
                })
                .collect();
            self.programs
                .insert(switch.id.0, ProgramSwitch::new(&ports, switch.id.0.into()));
        }
    }

    /// The time, as engines see it.
    pub fn now(&self) -> Instant {
        Instant::from_micros(self.now_ns / 1_000)
    }

    /// Starts, or starts anew, the agent of a host.
    pub fn start_agent(&mut self, id: u16) {
        let now = self.now();
        let mut config = self.engine_config.clone();
        config.seed ^= u64::from(id) << 32;
        config.host = HostId(id);
        config.mac = [2, 0, 0, 0, (id >> 8) as u8, id as u8];
        self.host(id).start(config, now);
        self.run_host(id);
    }

    /// Starts an agent that no controller has reached.
    pub fn start_agent_without_plan(&mut self, id: u16) {
        self.host(id).forget_plan();
        self.start_agent(id);
    }

    /// The agent of a host is gone.
    pub fn stop_agent(&mut self, id: u16) {
        self.host(id).engine = None;
    }

    /// The host of that number.
    pub fn host(&mut self, id: u16) -> &mut Host {
        self.hosts.get_mut(&id).expect("a host of the topology")
    }

    /// Hands every agent its plan.
    pub fn apply(&mut self, plans: &BTreeMap<u16, HostPlan>) {
        let now = self.now();
        for (id, plan) in plans {
            self.host(*id).apply(plan.clone(), now);
        }
        for id in plans.keys() {
            self.run_host(*id);
        }
    }

    /// Cuts or mends a link, both directions.
    pub fn set_link_down(&mut self, switch: u16, port: u8, down: bool) {
        let near = Place::Switch(switch, port);
        let far = self.far_end(near).expect("a link");
        for end in [near, far] {
            self.links.get_mut(&end).expect("a link").down = down;
        }
    }

    fn far_end(&self, place: Place) -> Option<Place> {
        match place {
            Place::Host(id) => {
                let host = self.topology.host(wormcast_wire::HostId(id)).ok()?;
                Some(Place::Switch(host.switch.0, host.port.get()))
            }
            Place::Switch(switch, port) => {
                match self
                    .topology
                    .attachment(SwitchId(switch), PortId::new(port)?)?
                {
                    Attachment::Host(host) => Some(Place::Host(host.0)),
                    Attachment::Switch(other, port) => Some(Place::Switch(other.0, port.get())),
                }
            }
        }
    }

    fn schedule(&mut self, at_ns: u64, happening: Happening) {
        self.order += 1;
        self.heap.push(Reverse(Scheduled {
            at_ns,
            order: self.order,
            happening,
        }));
    }

    fn send(&mut self, from: Place, mut frame: Vec<u8>) {
        let Some(to) = self.far_end(from) else { return };
        let now_ns = self.now_ns;
        let Some(link) = self.links.get_mut(&from) else {
            return;
        };
        // The program marks by itself.
        let by_model = match from {
            Place::Switch(switch, _) => !self.programs.contains_key(&switch),
            Place::Host(_) => false,
        };
        if by_model && link.marks(now_ns) {
            forward::mark(&mut frame);
        }
        if let Some(copies) = &mut self.copies
            && let Some(seq) = data_seq(&frame)
        {
            *copies.entry(from).or_default().entry(seq).or_default() += 1;
        }
        for arrival in link.send(frame, now_ns, &mut self.random) {
            self.schedule(arrival.at_ns, Happening::Arrives(to, arrival.frame));
        }
    }

    fn forward(&mut self, switch: u16, port: u8, frame: &[u8]) -> Vec<forward::Copy> {
        let now_ns = self.now_ns;
        let Some(program) = self.programs.get_mut(&switch) else {
            return forward::forward(frame);
        };
        let links = &self.links;
        program.forward(frame, port, now_ns / 1_000, |port| {
            let link = links.get(&Place::Switch(switch, port));
            let marks = link.filter(|link| link.config.mark_bytes.is_some());
            marks.map_or(0, |link| (link.backlog_bytes(now_ns) / FRAME_BYTES) as u32)
        })
    }

    /// Lets a host act now.
    pub fn run_host(&mut self, id: u16) {
        let now = self.now();
        let mut frames = Vec::new();
        let host = self.host(id);
        let wake_before = host.wake_us;
        host.run(now, |frame| frames.push(frame.to_vec()));
        let wake = host.wake_us;
        for frame in frames {
            self.send(Place::Host(id), frame);
        }
        if let Some(wake_us) = wake
            && wake != wake_before
        {
            self.schedule(wake_us * 1_000, Happening::Wakes(id));
        }
    }

    /// Runs until nothing happens, `stop` says so, or the time is over. True if `stop`
    /// did. `stop` is asked every millisecond.
    pub fn run_until(
        &mut self,
        deadline_us: u64,
        mut stop: impl FnMut(&mut Fabric) -> bool,
    ) -> bool {
        let mut ask_ns = self.now_ns;
        while let Some(Reverse(next)) = self.heap.peek() {
            if next.at_ns > deadline_us * 1_000 {
                break;
            }
            if next.at_ns >= ask_ns {
                if stop(self) {
                    return true;
                }
                ask_ns = next_ms(self.heap.peek().map_or(ask_ns, |next| next.0.at_ns));
            }
            let Some(Reverse(next)) = self.heap.pop() else {
                break;
            };
            self.now_ns = self.now_ns.max(next.at_ns);
            match next.happening {
                Happening::Arrives(Place::Host(id), frame) => {
                    let now = self.now();
                    self.host(id).receive(&frame, now);
                    self.run_host(id);
                }
                Happening::Arrives(Place::Switch(switch, port), frame) => {
                    for copy in self.forward(switch, port, &frame) {
                        self.send(Place::Switch(switch, copy.port), copy.frame);
                    }
                }
                Happening::Wakes(id) => {
                    let due = self
                        .host(id)
                        .wake_us
                        .is_some_and(|at| at * 1_000 <= self.now_ns);
                    if due {
                        self.wakes += 1;
                        self.run_host(id);
                    }
                }
            }
        }
        self.now_ns = self.now_ns.max(deadline_us * 1_000);
        stop(self)
    }
}

fn next_ms(now_ns: u64) -> u64 {
    (now_ns / 1_000_000 + 1) * 1_000_000
}

fn data_seq(frame: &[u8]) -> Option<u32> {
    let worm = worm::decode(frame).ok()?;
    match pdu::decode(worm.header.source, worm.payload).ok()?.body {
        Body::Data(data) => Some(data.seq.0),
        _ => None,
    }
}
