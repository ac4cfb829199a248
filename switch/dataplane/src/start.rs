//! Opening all ports and starting the threads.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::thread;

use tokio::sync::mpsc;

use super::clock::Clock;
use super::control::{COMMANDS_MAX, DataplaneHandle};
use super::deadlock::DeadlockWatch;
use super::layout::{Layout, Place};
use super::link_watch::LinkWatch;
use super::load::Load;
use super::mailbox::Mailbox;
use super::open::{Opening, attach_all};
use super::settings::{DataplaneSettings, LinkEnd, SwitchSettings};
use super::start_error::StartError;
use super::switch::Switch;
use super::thread_work::ThreadWork;
use super::traffic::{TO_CONTROLLER_MAX, ToController, TrafficManager};
use super::worker::Worker;
use super::worker_thread::WorkerThread;
use crate::log::Log;
use wormcast_switch_flow::cycle::FabricPort;

/// What each switch has for its controllers, by device id.
pub type FromDataplane = Vec<(u64, mpsc::Receiver<ToController>)>;

pub struct Dataplane {
    handles: BTreeMap<u64, DataplaneHandle>,
    workers: Vec<(Arc<Mailbox>, thread::JoinHandle<()>)>,
    links: Vec<(FabricPort, FabricPort)>,
}

impl Dataplane {
    /// Opens all ports and starts the threads. The second value receives what the switches
    /// have for their controllers.
    pub fn start(
        settings: &DataplaneSettings,
        log: Log,
    ) -> Result<(Self, FromDataplane), StartError> {
        settings.check().map_err(StartError::Settings)?;
        let clock = Clock::start();
        let mut layout = Layout::new(settings)?;
        let mut from_dataplane = Vec::new();
        let mut switches: Vec<Vec<Switch>> = Vec::new();
        switches.resize_with(layout.mailboxes.len(), Vec::new);
        let openings = settings.switches.iter();
        let openings = openings.map(|switch| Opening::new(switch, settings.seed, clock));
        let openings: Vec<_> = openings.collect();
        let attached = attach_all(&openings)?;
        let parts = settings.switches.iter().zip(openings).zip(attached);
        for (number, ((switch, opening), attached)) in parts.enumerate() {
            let (to_controller, receiver) = mpsc::channel(TO_CONTROLLER_MAX);
            from_dataplane.push((switch.device_id, receiver));
            let (ports, inputs) = opening.open(attached, layout.ends_of(number))?;
            let mut traffic = TrafficManager::new(clock, ports, to_controller);
            traffic
                .set_queueing(&switch.queueing, switch.priorities)
                .map_err(StartError::Settings)?;
            let switch = Switch::new(switch.clone(), inputs, traffic, log.clone());
            switches[layout.places[number].worker].push(switch);
        }
        let mut senders = Vec::new();
        let mut workers = Vec::new();
        let mailboxes = layout.mailboxes.into_iter().zip(layout.helper_mailboxes);
        let parts = layout.events.into_iter().zip(mailboxes).zip(switches);
        for (number, ((events, (mailbox, helper_mailboxes)), switches)) in parts.enumerate() {
            let (sender, commands) = mpsc::channel(COMMANDS_MAX);
            senders.push((sender, Arc::clone(&mailbox)));
            let members = switches.len();
            let worker = Worker::new(
                clock,
                switches,
                events,
                Arc::clone(&mailbox),
                helper_mailboxes.clone(),
                commands,
            );
            let worker = Arc::new(Mutex::new(worker));
            let is_shared = !helper_mailboxes.is_empty();
            for (thread, mailbox) in std::iter::once(mailbox).chain(helper_mailboxes).enumerate() {
                let runner = WorkerThread::new(
                    Arc::clone(&worker),
                    ThreadWork::new(thread, is_shared, members),
                    Arc::clone(&mailbox),
                    Load::new(settings.spin_us),
                )
                .map_err(|error| StartError::System {
                    step: "making a set of descriptors",
                    error,
                })?;
                let name = match thread {
                    0 => format!("dataplane-{number}"),
                    _ => format!("dataplane-{number}.{thread}"),
                };
                workers.push((mailbox, spawn(name, move || runner.run())?));
            }
        }
        let handle = |(switch, place): (&SwitchSettings, &Place)| {
            let (sender, mailbox) = &senders[place.worker];
            let handle = DataplaneHandle::new(sender.clone(), Arc::clone(mailbox), place.switch);
            (switch.device_id, handle)
        };
        let handles = settings.switches.iter().zip(&layout.places).map(handle);
        let handles = handles.collect();
        let fabric_port = |end: LinkEnd| FabricPort {
            switch: settings.switches[end.switch].device_id,
            port: end.port.0,
        };
        let links = settings.links.iter().map(|link| {
            let [one, other] = link.ends;
            (fabric_port(one), fabric_port(other))
        });
        let links = links.collect();
        let dataplane = Self {
            handles,
            workers,
            links,
        };
        Ok((dataplane, from_dataplane))
    }

    /// Runs operations on the switch with this device id, if there is one.
    pub fn handle(&self, device_id: u64) -> Option<DataplaneHandle> {
        self.handles.get(&device_id).cloned()
    }

    /// What looks for deadlocks among the switches.
    pub fn deadlock_watch(&self) -> DeadlockWatch {
        let switches = self.handles.iter();
        let switches = switches.map(|(id, handle)| (*id, handle.clone()));
        DeadlockWatch::new(switches.collect(), self.links.clone())
    }

    /// What keeps the switches informed of their interfaces.
    pub fn link_watch(&self, log: Log) -> LinkWatch {
        LinkWatch::new(self.handles.values().cloned().collect(), log)
    }

    /// All switches, by device id.
    pub fn handles(&self) -> impl Iterator<Item = (u64, &DataplaneHandle)> {
        self.handles.iter().map(|(id, handle)| (*id, handle))
    }

    /// Whether one of its threads has ended, which they do only when stopped, or by a bug.
    pub fn has_ended(&self) -> bool {
        self.workers.iter().any(|(_, thread)| thread.is_finished())
    }

    /// Tells the threads to end after this turn.
    pub fn stop(&self) {
        for (mailbox, _) in &self.workers {
            mailbox.stop();
        }
    }

    /// Waits for the threads to end; `false` if one ended by a panic.
    pub fn join(self) -> bool {
        let ended = self.workers.into_iter().map(|(_, thread)| thread.join());
        ended.fold(true, |well, result| well & result.is_ok())
    }
}

fn spawn(
    name: String,
    run: impl FnOnce() + Send + 'static,
) -> Result<thread::JoinHandle<()>, StartError> {
    let spawned = thread::Builder::new().name(name).spawn(run);
    spawned.map_err(|error| StartError::System {
        step: "starting a thread",
        error,
    })
}
