//! The event loop: hosts, switches and links on virtual time.

use crate::host::Host;
use crate::link::{Link, LinkConfig};
use crate::random::Random;
use crate::switch::{Copy, Switch};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::sync::Arc;
use wormcast_agent_core::transit::TransitLimits;
use wormcast_agent_proto as proto;
use wormcast_planner::{Stage, SwitchState, Update};
use wormcast_protocol::EngineConfig;
use wormcast_routing::topology::{Attachment, Topology};
use wormcast_wire::HostId;
use wormcast_wire::pdu::{self, Body, Data};
use wormcast_wire::worm::{self, Kind};
use wormcast_wire::{PortId, SwitchId};

/// A full frame, for queue depths in frames.
const FRAME_BYTES: u64 = 1_514;

/// Longer than any worm is under way, those that hosts hold in transit included, µs.
pub const LEFT_US: u64 = 10_000_000;

/// As the agent sets it.
const SEND_BUFFER_BYTES: u64 = 256 << 10;

/// Time of a round of the frames that wait at a switch in wormhole mode, ns.
const ROUND_NS: u64 = 5_000;

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
    Writes(u16, Vec<Update>),
    Planned(u16, Box<proto::Plan>),
    Revokes(u64, Vec<(u16, Arc<SwitchState>)>),
    Thaws(u16),
    GoesRound(u16),
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
    pub now_ns: u64,
    /// How often each link carried each DATA packet, by sequence number.
    copies: Option<BTreeMap<Place, BTreeMap<u32, u64>>>,
    /// Kinds of worms in which each host sent DATA, counted with the copies.
    kinds: BTreeMap<u16, BTreeSet<Kind>>,
    /// By number.
    pub switches: BTreeMap<u16, Switch>,
    /// Bytes on their way out at which a host's kernel takes no more frames.
    send_buffer_bytes: u64,
    /// Plans brought out so far.
    plans: u64,
    /// A host whose memory is bad: DATA leaves it with a wrong byte and right checksums.
    pub spoilt: Option<u16>,
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
        let switches = topology
            .switches()
            .iter()
            .map(|switch| (switch.id.0, Switch::new(switch.id.0.into())))
            .collect();
        let mut fabric = Fabric {
            topology,
            hosts,
            links,
            engine_config,
            now_ns: 1_000_000,
            copies: None,
            kinds: BTreeMap::new(),
            switches,
            send_buffer_bytes: SEND_BUFFER_BYTES,
            plans: 0,
            spoilt: None,
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

    /// Counts from now on how often each link carries each DATA packet, and notes in which kinds of worms
    /// hosts send them.
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

    pub fn now_us(&self) -> u64 {
        self.now_ns / 1_000
    }

    /// Starts, or starts anew, the agent of a host.
    pub fn start_agent(&mut self, id: u16) {
        let now = self.now_us();
        let mut config = self.engine_config.clone();
        config.seed ^= u64::from(id) << 32;
        config.host = HostId(id);
        config.mac = [2, 0, 0, 0, (id >> 8) as u8, id as u8];
        self.host(id).start(config, now);
        self.run_host(id);
    }

    /// Hosts keep so much of worms in transit and of what leaves from now on. Agents start anew.
    pub fn set_memory(&mut self, transit: TransitLimits, send_buffer_bytes: u64) {
        self.send_buffer_bytes = send_buffer_bytes;
        let ids: Vec<u16> = self.hosts.keys().copied().collect();
        for id in ids {
            self.host(id).transit = transit;
            self.start_agent(id);
        }
    }

    /// Starts an agent that no controller has reached.
    pub fn start_agent_without_plan(&mut self, id: u16) {
        self.host(id).forget_plan();
        self.start_agent(id);
    }

    /// The agent of a host is gone.
    pub fn stop_agent(&mut self, id: u16) {
        self.host(id).agent = None;
    }

    /// The host of that number.
    pub fn host(&mut self, id: u16) -> &mut Host {
        self.hosts.get_mut(&id).expect("a host of the topology")
    }

    /// An agent gets its plan.
    pub fn apply(&mut self, id: u16, plan: proto::Plan) {
        let now = self.now_us();
        self.host(id).apply(plan, now);
        self.run_host(id);
    }

    /// A switch gets updates in so many µs.
    pub fn write_later(&mut self, switch: u16, updates: Vec<Update>, us: u64) {
        self.schedule(self.now_ns + us * 1_000, Happening::Writes(switch, updates));
    }

    /// Another plan is brought out from now on: what the one before would have revoked stays.
    pub fn begin_plan(&mut self) {
        self.plans += 1;
    }

    /// Once all agents follow the plan and older worms have left, in so many µs or later, switches let in no more
    /// than these states, unless another plan comes before.
    pub fn revoke_later(&mut self, states: Vec<(u16, Arc<SwitchState>)>, us: u64) {
        let revokes = Happening::Revokes(self.plans, states);
        self.schedule(self.now_ns + us * 1_000, revokes);
    }

    fn revoke(&mut self, plan: u64, states: Vec<(u16, Arc<SwitchState>)>) {
        if plan != self.plans {
            return;
        }
        if !self.hosts.values().all(Host::follows) {
            return self.revoke_later(states, LEFT_US);
        }
        for (id, desired) in &states {
            let switch = self.switches.get_mut(id).expect("of the topology");
            let updates = switch.difference(desired).into_iter();
            let revokes = updates.filter(|update| update.stage == Stage::Revoke);
            revokes.for_each(|update| switch.write(&update));
        }
    }

    /// An agent gets its plan in so many µs.
    pub fn apply_later(&mut self, id: u16, plan: proto::Plan, us: u64) {
        let plan = Box::new(plan);
        self.schedule(self.now_ns + us * 1_000, Happening::Planned(id, plan));
    }

    /// A host stops for so many µs.
    pub fn freeze(&mut self, id: u16, us: u64) {
        self.host(id).freeze();
        self.schedule(self.now_ns + us * 1_000, Happening::Thaws(id));
    }

    /// Cuts or mends a link, both directions. Switches know at once that their port is down or up.
    pub fn set_link_down(&mut self, switch: u16, port: u8, down: bool) {
        let near = Place::Switch(switch, port);
        let far = self.far_end(near).expect("a link");
        for end in [near, far] {
            self.links.get_mut(&end).expect("a link").down = down;
            if let Place::Switch(switch, port) = end {
                let switch = self.switches.get_mut(&switch).expect("of the topology");
                switch.set_port_up(port, !down);
            }
        }
    }

    /// Kinds of worms in which a host sent DATA.
    pub fn data_kinds(&self, host: u16) -> Vec<Kind> {
        self.kinds
            .get(&host)
            .into_iter()
            .flatten()
            .copied()
            .collect()
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

    fn send(&mut self, from: Place, frame: Vec<u8>) {
        let Some(to) = self.far_end(from) else { return };
        let now_ns = self.now_ns;
        let Some(link) = self.links.get_mut(&from) else {
            return;
        };
        if let Some(copies) = &mut self.copies
            && let Some(seq) = data_seq(&frame)
        {
            *copies.entry(from).or_default().entry(seq).or_default() += 1;
            if let (Place::Host(id), Ok(worm)) = (from, worm::decode(&frame)) {
                self.kinds.entry(id).or_default().insert(worm.header.kind);
            }
        }
        for arrival in link.send(frame, now_ns, &mut self.random) {
            self.schedule(arrival.at_ns, Happening::Arrives(to, arrival.frame));
        }
    }

    fn forward(&mut self, id: u16, port: u8, frame: &[u8]) -> Vec<Copy> {
        let (now_ns, links) = (self.now_ns, &self.links);
        let switch = self
            .switches
            .get_mut(&id)
            .expect("a switch of the topology");
        switch.forward(frame, port, now_ns / 1_000, |port| {
            let link = links.get(&Place::Switch(id, port));
            link.map_or(0, |link| (link.backlog_bytes(now_ns) / FRAME_BYTES) as u32)
        })
    }

    fn leave(&mut self, switch: u16, copies: Vec<Copy>) {
        for copy in copies {
            self.send(Place::Switch(switch, copy.port), copy.frame);
        }
    }

    /// Frames that wait at a switch come to it once more.
    fn go_round_later(&mut self, switch: u16) {
        if self.switches[&switch].waiting() > 0 {
            self.schedule(self.now_ns + ROUND_NS, Happening::GoesRound(switch));
        }
    }

    /// Lets a host act now.
    pub fn run_host(&mut self, id: u16) {
        let now = self.now_us();
        let mut frames = Vec::new();
        let link = &self.links[&Place::Host(id)];
        let (now_ns, rate_bps) = (self.now_ns, link.config.rate_bps);
        let mut waiting = link.backlog_bytes(now_ns);
        let most = self.send_buffer_bytes;
        let host = self.host(id);
        let wake_before = host.wake_us;
        host.run(now, |frame| {
            waiting += frame.len() as u64;
            frames.push(frame);
            // A socket is writable again when half of its buffer is free.
            let drained_ns = || waiting.saturating_sub(most / 2) * 8_000_000_000 / rate_bps;
            (waiting >= most).then(|| (now_ns + drained_ns()) / 1_000 + 1)
        });
        let wake = host.wake_us;
        for mut frame in frames {
            if self.spoilt == Some(id) {
                spoil(&mut frame);
            }
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
                    let now = self.now_us();
                    self.host(id).receive(frame, now);
                    self.run_host(id);
                }
                Happening::Arrives(Place::Switch(switch, port), frame) => {
                    let waited = self.switches[&switch].waiting() > 0;
                    let copies = self.forward(switch, port, &frame);
                    self.leave(switch, copies);
                    if !waited {
                        self.go_round_later(switch);
                    }
                }
                Happening::GoesRound(switch) => {
                    let now = self.now_us();
                    let at = self.switches.get_mut(&switch).expect("of the topology");
                    let copies = at.go_round(now);
                    self.leave(switch, copies);
                    self.go_round_later(switch);
                }
                Happening::Writes(id, updates) => {
                    let switch = self.switches.get_mut(&id).expect("of the topology");
                    updates.iter().for_each(|update| switch.write(update));
                }
                Happening::Planned(id, plan) => self.apply(id, *plan),
                Happening::Revokes(plan, states) => self.revoke(plan, states),
                Happening::Thaws(id) => {
                    let now = self.now_us();
                    self.host(id).thaw(now);
                    self.run_host(id);
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

fn spoil(frame: &mut [u8]) {
    let whole = frame.to_vec();
    let Ok(worm) = worm::decode(&whole) else {
        return;
    };
    let source = worm.header.source;
    if let Ok(pdu) = pdu::decode(source, worm.payload)
        && let Body::Data(data) = pdu.body
    {
        let mut payload = data.payload.to_vec();
        payload.iter_mut().take(1).for_each(|byte| *byte ^= 1);
        let data = Data {
            payload: &payload,
            ..data
        };
        let at = whole.len() - worm.payload.len();
        pdu::encode(&mut frame[at..], source, &pdu.common, &Body::Data(data));
    }
}

fn data_seq(frame: &[u8]) -> Option<u32> {
    let worm = worm::decode(frame).ok()?;
    match pdu::decode(worm.header.source, worm.payload).ok()?.body {
        Body::Data(data) => Some(data.seq.0),
        _ => None,
    }
}
