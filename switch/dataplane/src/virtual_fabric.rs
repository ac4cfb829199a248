//! A whole fabric in one thread on virtual time: real switches, links in memory, no
//! sockets, no clock. What happens follows from the frames and the steps of time alone.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::mpsc;

use super::clock::Clock;
use super::input::LinkInput;
use super::layout::LinkPort;
use super::mailbox::Mailbox;
use super::open::Opening;
use super::port::LinkOutput;
use super::settings::{LinkEnd, LinkSettings, SwitchSettings};
use super::start_error::StartError;
use super::switch::Switch;
use super::traffic::{TO_CONTROLLER_MAX, ToController, TrafficManager};
use crate::log::Log;
use wormcast_switch_flow::cycle::{FabricPort, FabricQueue, find_rings};
use wormcast_switch_ports::memory;
use wormcast_switch_ports::receive::RING_BYTES_MAX;
use wormcast_switch_ports::{LinkReceiver, LinkSender};

/// Frames that may be on a link: what a receive ring would hold.
const LINK_FRAMES: usize = 16_384;

/// Turns a switch may have at one moment of virtual time.
const TURNS_MAX: usize = 10_000;

/// Switches, the links between them, and ports that lead to hosts.
pub struct VirtualFabric {
    switches: Vec<VirtualSwitch>,
    hosts: BTreeMap<LinkEnd, (LinkSender, LinkReceiver)>,
    links: Vec<(FabricPort, FabricPort)>,
    now_us: u64,
}

struct VirtualSwitch {
    switch: Switch,
    inputs: usize,
    /// The switch has a turn at multiples of this.
    turn_us: u64,
    /// Kept so that messages to controllers are not refused.
    _controller: mpsc::Receiver<ToController>,
}

impl VirtualFabric {
    /// Builds the switches. Ports of `links` lead to one another, those of `hosts` to the
    /// caller, who sends and receives there. The switches may have no interfaces.
    pub fn new(
        switches: &[SwitchSettings],
        links: &[LinkSettings],
        hosts: &[LinkEnd],
    ) -> Result<Self, StartError> {
        // Nobody sleeps here, so nobody is woken.
        let mailbox = Mailbox::new(1).map(Arc::new);
        let mailbox = mailbox.map_err(|error| StartError::System {
            step: "making an event descriptor",
            error,
        })?;
        let mut ends: BTreeMap<LinkEnd, (LinkSender, LinkReceiver)> = BTreeMap::new();
        let mut caller = BTreeMap::new();
        for link in links {
            let (there, arriving) = memory::link(LINK_FRAMES, RING_BYTES_MAX);
            let (back, returning) = memory::link(LINK_FRAMES, RING_BYTES_MAX);
            ends.insert(link.ends[0], (there, returning));
            ends.insert(link.ends[1], (back, arriving));
        }
        for host in hosts {
            let (there, arriving) = memory::link(LINK_FRAMES, RING_BYTES_MAX);
            let (back, returning) = memory::link(LINK_FRAMES, RING_BYTES_MAX);
            ends.insert(*host, (there, returning));
            caller.insert(*host, (back, arriving));
        }
        let clock = Clock::start();
        let mut built = Vec::new();
        for (number, settings) in switches.iter().enumerate() {
            let (own, others): (BTreeMap<_, _>, BTreeMap<_, _>) =
                ends.into_iter().partition(|(end, _)| end.switch == number);
            ends = others;
            let planned: Vec<LinkPort> = own
                .into_iter()
                .map(|(end, (sender, receiver))| LinkPort {
                    port: end.port,
                    peer: String::new(),
                    output: LinkOutput {
                        sender,
                        receiver_mailbox: Arc::clone(&mailbox),
                        receiver_event: 0,
                        unannounced: false,
                    },
                    input: LinkInput {
                        receiver,
                        sender_mailbox: Arc::clone(&mailbox),
                        sender_event: 0,
                    },
                })
                .collect();
            let inputs = planned.len();
            let (to_controller, controller) = mpsc::channel(TO_CONTROLLER_MAX);
            let opening = Opening::new(settings, 0, clock);
            let (ports, sources) = opening.open(opening.attach_own()?, planned)?;
            let mut traffic = TrafficManager::new(clock, ports, to_controller);
            traffic
                .set_queueing(&settings.queueing, settings.priorities)
                .map_err(StartError::Settings)?;
            traffic.start_buckets_at(0);
            built.push(VirtualSwitch {
                switch: Switch::new(settings.clone(), sources, traffic, Log::off()),
                inputs,
                turn_us: 1,
                _controller: controller,
            });
        }
        let name = |end: LinkEnd| FabricPort {
            switch: switches[end.switch].device_id,
            port: end.port.0,
        };
        Ok(Self {
            switches: built,
            hosts: caller,
            links: links
                .iter()
                .map(|link| (name(link.ends[0]), name(link.ends[1])))
                .collect(),
            now_us: 0,
        })
    }

    pub fn now_us(&self) -> u64 {
        self.now_us
    }

    /// A switch, by position.
    pub fn switch(&mut self, switch: usize) -> &mut Switch {
        &mut self.switches[switch].switch
    }

    /// From now on the switch has a turn only at multiples of this time, as if its thread
    /// were kept from running in between.
    pub fn slow_down(&mut self, switch: usize, turn_us: u64) {
        self.switches[switch].turn_us = turn_us.max(1);
    }

    /// A host sends a frame; `false` if the link is full.
    pub fn send(&mut self, host: LinkEnd, frame: &[u8]) -> bool {
        let link = self.hosts.get_mut(&host);
        link.is_some_and(|(sender, _)| sender.push(frame))
    }

    /// A host takes what has arrived.
    pub fn receive(&mut self, host: LinkEnd, take: impl FnMut(&[u8])) {
        if let Some((_, receiver)) = self.hosts.get_mut(&host) {
            receiver.receive(usize::MAX, take);
        }
    }

    /// Time goes on, and every switch does what there is to do then.
    pub fn step(&mut self, us: u64) {
        self.now_us += us;
        for switch in &mut self.switches {
            if !self.now_us.is_multiple_of(switch.turn_us) {
                continue;
            }
            for _ in 0..TURNS_MAX {
                for input in 0..switch.inputs {
                    switch.switch.frames_at(input);
                    switch.switch.room_at(input);
                }
                if !switch.switch.turn(self.now_us).more {
                    break;
                }
            }
        }
    }

    /// The rings of switches that wait for one another now.
    pub fn rings(&self) -> Vec<Vec<FabricQueue>> {
        let waits = self
            .switches
            .iter()
            .map(|switch| (switch.switch.device_id(), switch.switch.waits()))
            .collect();
        find_rings(&waits, &self.links)
    }
}
