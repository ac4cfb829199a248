//! Switches in wormhole mode, and hosts that send trains and obey STOP and GO, on virtual time; beside
//! them the same worms in packet mode, a frame a packet.

use crate::random::Random;
use crate::switch::{Copy, Switch};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use wormcast_planner::{ClassDNumbers, Guard, Planner};
use wormcast_routing::routes::{Algorithm, Setting};
use wormcast_routing::topology::{Attachment, Topology};
use wormcast_routing::updown::UpDown;
use wormcast_wire::tree_route::encode_tree;
use wormcast_wire::worm::checksum;
use wormcast_wire::{HostId, PortId, SwitchId};

/// Cells of `channel_*`: of what the switch takes itself.
pub const OWN_CHANNEL: usize = 254;
/// Time a link takes for a frame, and a frame that waits for a round.
pub const STEP_US: u64 = 10;
/// Frames of a channel that may wait at a switch; the neighbour is sent STOP before.
pub const HELD_MAX: u128 = 16;

const ETHERNET: usize = 14;
const HEADER: usize = 12;
const TRAIN: usize = 20;
const HEAD: u8 = 0x02;
const TAIL: u8 = 0x04;
const RESUMED: u8 = 0x08;
const TRAIN_FLAG: u8 = 0x40;
/// The train ended early.
pub const ABORT: u8 = 0x80;
const UNICAST: u8 = 0;
const TREE: u8 = 1;
const CONTROL: u8 = 4;
/// A channel whose head waits for an output (`channel_state_t`).
const CLAIMING: u64 = 1;
const STOP: u8 = 1;
const GO: u8 = 2;

/// What `wormhole_mode` calls plain waiting, flushing and interrupting (WORM §3, schemes C and B); or packet mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// Every frame has its own route, and waits in the queues of outputs.
    Packet = 0,
    /// Worms wait.
    Plain = 1,
    /// Unicast yields to a multicast that waits elsewhere.
    Flush = 2,
    /// A multicast that is blocked gives all its outputs up.
    Interrupt = 3,
}

/// Of the switch at the root, under [`Scheme::Interrupt`].
const INTERRUPT_ROOT: u128 = 4;

/// A worm that a host has to send.
#[derive(Clone, Debug)]
pub struct Worm {
    /// Numbers it among those of the host.
    pub sequence: u16,
    /// A TREE route, or port bytes.
    pub is_tree: bool,
    pub route: Vec<u8>,
    pub frames: u16,
    pub source: u16,
}

#[derive(Default)]
struct Sender {
    queue: VecDeque<(u64, Worm)>,
    position: u16,
    stopped_until_us: u64,
    sent: BTreeMap<u16, Worm>,
    /// Worms that were reset and are sent again, and how often that happened.
    resets: u64,
    next_sequence: u16,
}

/// A worm as its host wanted it sent, whatever number it goes by after a reset.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    pub at_us: u64,
    pub frames: u16,
}

/// What a host got of a worm: positions in the order in which they came, and whether it was aborted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Received {
    pub positions: Vec<u16>,
    pub aborted: bool,
}

/// A network whose switches hold worms.
pub struct Trains {
    topology: Topology,
    /// By number.
    pub switches: BTreeMap<u16, Switch>,
    senders: BTreeMap<u16, Sender>,
    /// By receiver, source and sequence.
    pub received: BTreeMap<(u16, u16, u16), Received>,
    /// When the last frame of each came, µs.
    pub came_us: BTreeMap<(u16, u16, u16), u64>,
    /// The number that the root gave a multicast, as it came to a receiver, by the same key.
    pub orders: BTreeMap<(u16, u16, u16), u16>,
    /// Multicasts of which frames came to a receiver, source and sequence, each time after those of another.
    pub sequence: BTreeMap<u16, Vec<(u16, u16)>>,
    /// By source and sequence.
    pub wanted: BTreeMap<(u16, u16), Wanted>,
    /// Frames on each direction of a link, by the end they leave from.
    links: BTreeMap<(u16, u8), VecDeque<Vec<u8>>>,
    now_us: u64,
    random: Random,
    /// Frames that links lose, in 1/1000.
    pub loss: f64,
    /// Frames that are lost once: the end of the link they leave from, and their position.
    pub lost: BTreeSet<(u16, u8, u16)>,
    /// Most frames that waited at a switch.
    pub waited_max: usize,
    /// Most frames in the queues of a switch's outputs.
    pub queued_max: usize,
    scheme: Scheme,
    moved: bool,
}

impl Trains {
    /// All switches with tables of the planner, in wormhole mode.
    pub fn new(topology: Topology, scheme: Scheme, silent_us: u64, seed: u64) -> Trains {
        Trains::with(topology, scheme, silent_us, seed, Guard::default())
    }

    /// The same, and this guard.
    pub fn with(
        topology: Topology,
        scheme: Scheme,
        silent_us: u64,
        seed: u64,
        guard: Guard,
    ) -> Trains {
        let hosts = wormcast_planner::Hosts {
            agents: topology.hosts().iter().map(|host| host.id).collect(),
            ..wormcast_planner::Hosts::default()
        };
        let mut planner = Planner::new(Setting::plain(Algorithm::Osud));
        planner.set_guard(guard);
        let plan = planner.plan(&topology, &topology, &[], &hosts, &ClassDNumbers::default());
        let updown = UpDown::new(&topology, None).expect("a tree");
        let roots = updown.roots(&topology);
        let mut switches = BTreeMap::new();
        for switch in topology.switches() {
            let mut made = Switch::new(seed);
            for update in made.difference(&plan.switches[&switch.id]) {
                made.write(&update);
            }
            if scheme != Scheme::Packet {
                let is_root = scheme == Scheme::Interrupt && roots.contains(&switch.id);
                made.set_wormhole(
                    switch.ports,
                    &[
                        (
                            "scheme",
                            if is_root {
                                INTERRUPT_ROOT
                            } else {
                                scheme as u128
                            },
                        ),
                        ("stop_frames", 8),
                        ("go_frames", 5),
                        ("held_max", HELD_MAX),
                        ("gap_us", STEP_US.into()),
                        ("stop_us", 10_000),
                        ("idle_us", 500),
                        ("silent_us", silent_us.into()),
                    ],
                );
            }
            switches.insert(switch.id.0, made);
        }
        let senders = topology.hosts().iter();
        let senders = senders.map(|host| (host.id.0, Sender::default()));
        Trains {
            senders: senders.collect(),
            topology,
            switches,
            received: BTreeMap::new(),
            came_us: BTreeMap::new(),
            orders: BTreeMap::new(),
            sequence: BTreeMap::new(),
            wanted: BTreeMap::new(),
            links: BTreeMap::new(),
            now_us: 1_000_000,
            random: Random::new(seed),
            loss: 0.0,
            lost: BTreeSet::new(),
            waited_max: 0,
            queued_max: 0,
            scheme,
            moved: false,
        }
    }

    /// A host sends a worm in so many µs; its number.
    pub fn send(
        &mut self,
        host: u16,
        after_us: u64,
        is_tree: bool,
        route: &[u8],
        frames: u16,
    ) -> u16 {
        self.send_as(host, host, after_us, is_tree, route, frames)
    }

    /// The same, with another source.
    pub fn send_as(
        &mut self,
        host: u16,
        source: u16,
        after_us: u64,
        is_tree: bool,
        route: &[u8],
        frames: u16,
    ) -> u16 {
        let at_us = self.now_us + after_us;
        let sender = self.senders.get_mut(&host).expect("a host");
        sender.next_sequence += 1;
        let worm = Worm {
            sequence: sender.next_sequence,
            is_tree,
            route: route.to_vec(),
            frames,
            source,
        };
        sender.queue.push_back((at_us, worm));
        let number = sender.next_sequence;
        self.wanted.insert((host, number), Wanted { at_us, frames });
        number
    }

    /// Times that worms of a host were reset.
    pub fn resets(&self, host: u16) -> u64 {
        self.senders[&host].resets
    }

    /// Worms that came whole, each time one came to a member: when it was wanted, and when its last frame came.
    pub fn whole(&self) -> impl Iterator<Item = (Wanted, u64)> {
        self.received.iter().filter_map(|(key, received)| {
            let wanted = self.wanted[&(key.1, key.2)];
            let is_whole =
                !received.aborted && received.positions.len() == usize::from(wanted.frames);
            is_whole.then(|| (wanted, self.came_us[key]))
        })
    }

    pub fn now_us(&self) -> u64 {
        self.now_us
    }

    /// How often something happened at all switches: a name of `train_event_t`.
    pub fn events(&self, name: &str) -> u64 {
        let ids = include_str!("../../../p4src/shared/ids.p4");
        let line = ids.lines().map(str::trim).find_map(|line| {
            let (own, rest) = line.split_once(" = ")?;
            let value: String = rest.chars().take_while(char::is_ascii_digit).collect();
            (own == name).then(|| value.parse::<usize>().ok())?
        });
        let index = line.unwrap_or_else(|| panic!("no event {name}"));
        let count = |switch: &Switch| switch.counter("trains", index);
        self.switches.values().map(count).sum()
    }

    /// Lets time pass until nothing has moved for so many µs, at most `most_us`. Whether all that
    /// there was to send has left the network.
    pub fn run(&mut self, quiet_us: u64, most_us: u64) -> bool {
        let (mut quiet, end_us) = (0, self.now_us + most_us);
        while quiet < quiet_us && self.now_us < end_us {
            self.step();
            quiet = if self.moved { 0 } else { quiet + STEP_US };
        }
        let waits = self.switches.values().any(|switch| switch.waiting() > 0);
        !waits && self.senders.values().all(|sender| sender.queue.is_empty())
    }

    fn step(&mut self) {
        self.now_us += STEP_US;
        self.moved = false;
        let arriving: Vec<((u16, u8), Vec<u8>)> = self
            .links
            .iter_mut()
            .filter_map(|(&end, queue)| Some((end, queue.pop_front()?)))
            .collect();
        let ids: Vec<u16> = self.switches.keys().copied().collect();
        for id in ids {
            let switch = self.switches.get_mut(&id).expect("a switch");
            self.waited_max = self.waited_max.max(switch.waiting());
            let copies = switch.go_round(self.now_us);
            self.leave(id, copies);
        }
        for ((switch, port), frame) in arriving {
            let is_control = frame[ETHERNET] & 0x0F == CONTROL;
            let position =
                u16::from_be_bytes([frame[ETHERNET + HEADER], frame[ETHERNET + HEADER + 1]]);
            let is_lost =
                self.random.chance(self.loss) || self.lost.remove(&(switch, port, position));
            if !is_control && is_lost {
                continue;
            }
            let port = PortId::new(port).expect("a port");
            match self.topology.attachment(SwitchId(switch), port) {
                Some(Attachment::Host(host)) => self.arrives(host, &frame),
                Some(Attachment::Switch(next, next_port)) => {
                    self.forward(next.0, next_port.get(), &frame);
                }
                None => {}
            }
        }
        let hosts: Vec<HostId> = self.topology.hosts().iter().map(|host| host.id).collect();
        for id in hosts {
            let place = self.topology.host(id).expect("a host");
            if let Some(frame) = self.next_frame(id.0) {
                self.moved = true;
                if !self.random.chance(self.loss) {
                    self.forward(place.switch.0, place.port.get(), &frame);
                }
            }
        }
    }

    fn forward(&mut self, switch: u16, port: u8, frame: &[u8]) {
        let now_us = self.now_us;
        let at = self.switches.get_mut(&switch).expect("a switch");
        let copies = at.forward(frame, port, now_us, |_| 0);
        self.leave(switch, copies);
    }

    fn leave(&mut self, switch: u16, copies: Vec<Copy>) {
        for copy in copies {
            let is_signal = copy.frame[ETHERNET] & 0x0F == CONTROL;
            self.moved |= !is_signal;
            let queue = self.links.entry((switch, copy.port)).or_default();
            queue.push_back(copy.frame);
        }
        let outputs = self.links.range((switch, 0)..=(switch, u8::MAX));
        self.queued_max = self
            .queued_max
            .max(outputs.map(|(_, queue)| queue.len()).sum());
    }

    /// The next frame that a host sends now.
    fn next_frame(&mut self, host: u16) -> Option<Vec<u8>> {
        let now_us = self.now_us;
        let sender = self.senders.get_mut(&host)?;
        if sender.stopped_until_us > now_us {
            return None;
        }
        let (at_us, worm) = sender.queue.front()?;
        if *at_us > now_us {
            return None;
        }
        let frame = frame_of(worm, sender.position, self.scheme);
        sender.position += 1;
        if sender.position == worm.frames {
            sender.position = 0;
            let (_, worm) = sender.queue.pop_front()?;
            sender.sent.insert(worm.sequence, worm);
        }
        Some(frame)
    }

    fn arrives(&mut self, host: HostId, frame: &[u8]) {
        let worm = &frame[ETHERNET..];
        let number = |at: usize| u16::from_be_bytes([worm[at], worm[at + 1]]);
        if worm[0] & 0x0F == CONTROL {
            let signal = HEADER + usize::from(worm[2]);
            assert_eq!(worm[2], 0, "a route that goes on behind a host");
            let sender = self.senders.get_mut(&host.0).expect("a host");
            match worm[signal] {
                STOP => {
                    let bytes = worm[signal + 6..signal + 10].try_into().expect("4 bytes");
                    sender.stopped_until_us = self.now_us + u64::from(u32::from_be_bytes(bytes));
                }
                GO => sender.stopped_until_us = 0,
                _ => self.is_reset(host.0, number(signal + 2), number(signal + 4)),
            }
            return;
        }
        assert_eq!(worm[2], 0, "a route that goes on behind a host");
        let key = (host.0, number(4), number(6));
        if worm[0] & 0x0F == TREE {
            let seen = self.sequence.entry(host.0).or_default();
            if seen.last() != Some(&(key.1, key.2)) {
                seen.push((key.1, key.2));
            }
        }
        if worm[1] & (HEAD | TAIL | RESUMED) == TAIL | RESUMED {
            return; // the end of a fragment carries nothing
        }
        if worm[1] & TRAIN_FLAG != 0 {
            let order = *self.orders.entry(key).or_insert(number(HEADER + 3));
            assert_eq!(order, number(HEADER + 3), "two numbers in one worm");
            assert_eq!(number(HEADER + TRAIN), number(HEADER), "another payload");
        }
        self.came_us.insert(key, self.now_us);
        let received = self.received.entry(key).or_default();
        received.positions.push(number(HEADER));
        received.aborted |= worm[1] & ABORT != 0;
    }

    /// A worm comes back: its host sends it again after a random time (WORM §3).
    fn is_reset(&mut self, host: u16, source: u16, sequence: u16) {
        assert_eq!(host, source, "a RESET of another host's worm");
        let wait_us = 100 + self.random.below(2_000);
        let at_us = self.now_us + wait_us;
        let sender = self.senders.get_mut(&host).expect("a host");
        sender.resets += 1;
        let sending = sender
            .queue
            .front()
            .is_some_and(|(_, worm)| worm.sequence == sequence);
        let worm = if sending {
            sender.position = 0;
            sender.queue.pop_front().map(|(_, worm)| worm)
        } else {
            sender.sent.remove(&sequence) // once: several switches may send it back
        };
        if let Some(mut worm) = worm {
            sender.next_sequence += 1;
            let wanted = self.wanted[&(host, worm.sequence)];
            worm.sequence = sender.next_sequence;
            self.wanted.insert((host, worm.sequence), wanted);
            // Before the others, but not into the middle of one.
            let place = usize::from(sender.position > 0);
            sender.queue.insert(place, (at_us, worm));
        }
    }

    /// What channels hold and wait for: for messages of failures.
    pub fn state(&self) -> String {
        let mut lines = Vec::new();
        for switch in self.topology.switches() {
            let (id, at) = (switch.id.0, &self.switches[&switch.id.0]);
            for port in (0..usize::from(switch.ports)).chain([OWN_CHANNEL]) {
                let cell = |name| at.register(name, port);
                let waits = cell("channel_came") as u16 - cell("channel_gone") as u16;
                if waits == 0 && cell("channel_state") == 0 {
                    continue;
                }
                let worm = cell("channel_worm");
                lines.push(format!(
                    "switch {id} port {port}: worm {} of host {}, state {}, outputs {:b}, claimed {}, place {:x} of line {} (head {:x}), stops {:b}, {waits} wait",
                    worm & 0xFFFF,
                    worm >> 16,
                    cell("channel_state"),
                    cell("channel_outputs"),
                    cell("channel_claimed"),
                    cell("channel_place"),
                    cell("channel_line"),
                    at.register("output_line_head", cell("channel_line") as usize),
                    cell("channel_stops"),
                ));
            }
        }
        lines.join("\n")
    }

    /// Worms that wait in a circle, each for an output that the next one has. None can go on, since a
    /// branch that waits stops all others.
    pub fn circle(&self) -> Option<String> {
        let waits = self.waits();
        let mut over = BTreeSet::new();
        waits.keys().find_map(|&first| {
            let circle = circle_from(first, &waits, &mut Vec::new(), &mut over)?;
            let names = circle
                .iter()
                .map(|worm| format!("worm {} of host {}", worm & 0xFFFF, worm >> 16));
            let names: Vec<String> = names.collect();
            Some(format!("each waits for the next: {}", names.join(", ")))
        })
    }

    /// For each worm with a head that waits, the worms that have what it waits for.
    fn waits(&self) -> BTreeMap<u64, Vec<u64>> {
        let mut waits: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
        for switch in self.topology.switches() {
            let at = &self.switches[&switch.id.0];
            let ports = (0..usize::from(switch.ports)).chain([OWN_CHANNEL]);
            let line = |port: usize| at.register("channel_line", port);
            for port in ports.filter(|&port| at.register("channel_state", port) == CLAIMING) {
                if at.register("channel_place", port) == 0 {
                    continue;
                }
                let output = line(port) as usize;
                let owner = at.register("output_owner", output);
                let Some(owner) = owner.checked_sub(1).map(|owner| owner as usize) else {
                    continue;
                };
                if owner != port && at.register("channel_outputs", owner) >> output & 1 == 1 {
                    let worm = at.register("channel_worm", port);
                    waits
                        .entry(worm)
                        .or_default()
                        .push(at.register("channel_worm", owner));
                }
            }
        }
        waits
    }
}

/// The route of a multicast by way of the root, along the spanning tree (WORM §3, scheme B).
pub fn rooted(topology: &Topology, from: HostId, members: &[HostId]) -> Vec<u8> {
    let updown = UpDown::new(topology, None).expect("a tree");
    let links = updown.tree_links(topology);
    // Links to the root, the switch's own first, each as the ports of its lower and its upper end.
    let climb = |host| {
        let mut at = topology.host(host).expect("a host").switch;
        std::iter::from_fn(move || {
            let link = links.iter().find(|link| link.b == at)?;
            at = link.a;
            Some((link.b_port.get(), link.a_port.get()))
        })
    };
    let way = |&member: &HostId| {
        let mut ports: Vec<u8> = climb.clone()(from).map(|(up, _)| up).collect();
        let down: Vec<u8> = climb.clone()(member).map(|(_, down)| down).collect();
        ports.extend(down.iter().rev());
        ports.push(topology.host(member).expect("a host").port.get());
        (member, ports)
    };
    let ways: Vec<(HostId, Vec<u8>)> = members.iter().map(way).collect();
    let mut trees = encode_tree(&ways).expect("a route");
    assert_eq!(trees.len(), 1, "a worm for all members");
    trees.remove(0).bytes
}

/// A circle that can be reached from a worm over those of `path`; `over` lead to none.
fn circle_from(
    worm: u64,
    waits: &BTreeMap<u64, Vec<u64>>,
    path: &mut Vec<u64>,
    over: &mut BTreeSet<u64>,
) -> Option<Vec<u64>> {
    if let Some(start) = path.iter().position(|met| *met == worm) {
        return Some(path[start..].to_vec());
    }
    if over.contains(&worm) {
        return None;
    }
    path.push(worm);
    let next = waits.get(&worm).into_iter().flatten();
    let found = next
        .copied()
        .find_map(|next| circle_from(next, waits, path, over));
    path.pop();
    over.insert(worm);
    found
}

/// A frame of a worm as its host sends it; in packet mode one without a train header.
pub fn frame_of(worm: &Worm, position: u16, scheme: Scheme) -> Vec<u8> {
    let is_packet = scheme == Scheme::Packet;
    let (is_head, is_tail) = (position == 0, position + 1 == worm.frames);
    let mut flags = if is_packet { 0 } else { TRAIN_FLAG };
    flags |= if is_head && !is_packet { HEAD } else { 0 };
    flags |= if is_tail && !is_packet { TAIL } else { 0 };
    let route: &[u8] = if is_head || is_packet {
        &worm.route
    } else {
        &[]
    };
    let mut bytes = vec![
        0x03, 0x57, 0x4f, 0x52, 0x4d, 0x00, 2, 0, 0, 0, 0, 1, 0x88, 0xB5,
    ];
    let kind = if worm.is_tree { TREE } else { UNICAST };
    bytes.extend([0x10 | kind, flags, route.len() as u8, 0]);
    bytes.extend(worm.source.to_be_bytes());
    bytes.extend(worm.sequence.to_be_bytes());
    bytes.extend([0x88, 0xB6, 0, 0]);
    if is_packet {
        bytes.extend(route);
    } else {
        bytes.extend(position.to_be_bytes());
        bytes.extend([0; TRAIN - 2]);
        bytes.extend(route);
    }
    let sum = checksum(&bytes[ETHERNET..]);
    bytes[ETHERNET + 10..ETHERNET + 12].copy_from_slice(&sum.to_be_bytes());
    // Where a train's header has it once the route is used up.
    bytes.extend(position.to_be_bytes());
    bytes.extend([0xAA; 38]);
    bytes
}
