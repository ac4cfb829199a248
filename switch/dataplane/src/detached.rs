//! A switch without a thread, whose links end in the caller's hands: for tests that run
//! whole fabrics on virtual time.

use std::io;
use std::sync::Arc;

use tokio::sync::mpsc;

use super::clock::Clock;
use super::input::LinkInput;
use super::layout::LinkPort;
use super::mailbox::Mailbox;
use super::open::Opening;
use super::port::LinkOutput;
use super::settings::SwitchSettings;
use super::start_error::StartError;
use super::switch::Switch;
use super::traffic::{TO_CONTROLLER_MAX, ToController, TrafficManager};
use crate::log::Log;
use wormcast_switch_pipeline::PortId;
use wormcast_switch_ports::memory;
use wormcast_switch_ports::memory::{LINK_BYTES_MAX, LINK_FRAMES_MAX};
use wormcast_switch_ports::{LinkReceiver, LinkSender};

/// One switch that works when it is called.
pub struct DetachedSwitch {
    pub switch: Switch,
    /// The far ends of its links, in the order in which the ports were given.
    pub links: Vec<FarEnd>,
    pub for_controller: mpsc::Receiver<ToController>,
}

/// The far end of a link.
pub struct FarEnd {
    /// The port at the near end.
    pub port: PortId,
    /// Frames put in here arrive at the port.
    pub sender: LinkSender,
    /// Frames that left by the port come out here.
    pub receiver: LinkReceiver,
}

impl DetachedSwitch {
    /// A switch with links in memory at `ports`, and at those that `settings` name.
    pub fn new(settings: &SwitchSettings, seed: u64, ports: &[PortId]) -> Result<Self, StartError> {
        let clock = Clock::start();
        let nobody = Mailbox::new(1).map(Arc::new).map_err(no_mailbox)?;
        let mut links = Vec::new();
        let mut ends = Vec::new();
        for port in ports {
            let (sender, arriving) = memory::link(LINK_FRAMES_MAX, LINK_BYTES_MAX);
            let (leaving, receiver) = memory::link(LINK_FRAMES_MAX, LINK_BYTES_MAX);
            links.push(FarEnd {
                port: *port,
                sender,
                receiver,
            });
            ends.push(LinkPort {
                port: *port,
                peer: String::new(),
                output: LinkOutput {
                    sender: leaving,
                    receiver_mailbox: Arc::clone(&nobody),
                    receiver_event: 0,
                    unannounced: false,
                },
                input: LinkInput {
                    receiver: arriving,
                    sender_mailbox: Arc::clone(&nobody),
                    sender_event: 0,
                },
            });
        }
        let (to_controller, for_controller) = mpsc::channel(TO_CONTROLLER_MAX);
        let opening = Opening::new(settings, seed, clock);
        let (ports, inputs) = opening.open(opening.attach_own()?, ends)?;
        let traffic = TrafficManager::new(clock, ports, to_controller);
        Ok(Self {
            switch: Switch::new(settings.clone(), inputs, traffic, Log::off()),
            links,
            for_controller,
        })
    }

    /// One turn at `now_us`, which must not fall back. Gives whether it has more to do at
    /// once, and else when the next turn is due without anything happening before.
    pub fn turn(&mut self, now_us: u64) -> (bool, Option<u64>) {
        for position in 0..self.switch.inputs.len() {
            self.switch.frames_at(position);
            self.switch.room_at(position);
        }
        let turn = self.switch.turn(now_us);
        (turn.more, turn.next_us)
    }
}

fn no_mailbox(error: io::Error) -> StartError {
    StartError::System {
        step: "making an event descriptor",
        error,
    }
}
