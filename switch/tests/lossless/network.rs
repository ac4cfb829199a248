//! Switches, links and hosts, put together.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use wormcast_switch_dataplane::{
    LinkEnd, LinkSettings, LosslessSnapshot, SwitchSettings, VirtualFabric,
};
use wormcast_switch_flow::BitRate;
use wormcast_switch_flow::{
    LosslessSettings, PauseFrame, PrioritySet, QueueSettings, SchedulerKind,
};
use wormcast_switch_pipeline::LoadedProgram;
use wormcast_switch_pipeline::{EntryAction, Pipeline, PipelineConfig, PortId, TableEntry};
use wormcast_switch_program::{ActionCall, Bits, FieldMatch};

use super::lossless_lab::host::{Flow, Host};

pub const STEP_US: u64 = 10;

pub fn rate(text: &str) -> BitRate {
    text.parse().unwrap()
}

/// A PFC frame of a neighbour that pauses priority 3 for so long; 0 ends the pause.
pub fn pfc(quanta: u16) -> [u8; 60] {
    let mut all = [0; 8];
    all[3] = quanta;
    let priorities = PrioritySet::of(3);
    PauseFrame::Pfc {
        priorities,
        quanta: all,
    }
    .to_bytes([2, 0, 0, 0, 0, 1])
}

pub fn end(switch: usize, port: u16) -> LinkEnd {
    LinkEnd {
        switch,
        port: PortId(port),
    }
}

/// The worm data plane, read and compiled once.
fn program() -> Arc<LoadedProgram> {
    static PROGRAM: OnceLock<Arc<LoadedProgram>> = OnceLock::new();
    let read = || {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../p4src/compiled/wormcast.json");
        Arc::new(LoadedProgram::from_json(&std::fs::read_to_string(path).unwrap()).unwrap())
    };
    Arc::clone(PROGRAM.get_or_init(read))
}

/// The worm data plane with all these ports known.
fn pipeline(ports: &[u16]) -> Pipeline {
    let program = program();
    let mut pipeline = Pipeline::new(Arc::clone(&program), PipelineConfig::default());
    let table = program.table("ingress.ports").unwrap();
    let action = program.table_action(table, "ingress.port_known").unwrap();
    for port in ports {
        let entry = TableEntry {
            key: vec![FieldMatch::Exact(Bits::from_u64(u64::from(*port)))],
            priority: 0,
            action: EntryAction::Call(ActionCall {
                action,
                arguments: Vec::new(),
            }),
        };
        pipeline.insert_entry(table, &entry).unwrap();
    }
    pipeline
}

fn switch_settings(number: usize, queueing: QueueSettings) -> SwitchSettings {
    SwitchSettings {
        queueing,
        ..SwitchSettings::without_ports(number as u64 + 1, 64)
    }
}

/// A port of a switch.
type Place = (usize, u16);

/// A fabric and its hosts.
pub struct Network {
    pub fabric: VirtualFabric,
    pub hosts: Vec<(LinkEnd, Host)>,
}

impl Network {
    /// `links` as ((switch, port), (switch, port)), `hosts` as (switch, port). Hosts are
    /// numbered in order. Switches have ports 0 to 15.
    pub fn new(
        switches: usize,
        links: &[(Place, Place)],
        hosts: &[Place],
        change: impl Fn(usize, &mut LosslessSettings),
    ) -> Self {
        let settings: Vec<SwitchSettings> = (0..switches)
            .map(|number| {
                let mut lossless = LosslessSettings {
                    response_us: Some(100),
                    watchdog: None,
                    ..LosslessSettings::default()
                };
                change(number, &mut lossless);
                switch_settings(
                    number,
                    QueueSettings {
                        lossless: Some(lossless),
                        scheduler: SchedulerKind::FAIR,
                        ecn_threshold: None,
                    },
                )
            })
            .collect();
        Self::with_settings(&settings, links, hosts)
    }

    /// Two switches that drop, the first with a slow link to the second, which may mark.
    pub fn lossy(ecn_threshold: Option<u32>) -> Self {
        let queueing = QueueSettings {
            ecn_threshold,
            ..QueueSettings::default()
        };
        let mut first = switch_settings(0, queueing);
        first.impairments.add("15:rate=10mbit").unwrap();
        let second = switch_settings(1, QueueSettings::default());
        Self::with_settings(&[first, second], &[((0, 15), (1, 15))], &[(0, 0), (1, 0)])
    }

    fn with_settings(
        settings: &[SwitchSettings],
        links: &[(Place, Place)],
        hosts: &[Place],
    ) -> Self {
        let switches = settings.len();
        let links: Vec<LinkSettings> = links
            .iter()
            .map(|(one, other)| LinkSettings {
                ends: [end(one.0, one.1), end(other.0, other.1)],
            })
            .collect();
        let ends: Vec<LinkEnd> = hosts.iter().map(|host| end(host.0, host.1)).collect();
        let mut fabric = VirtualFabric::new(settings, &links, &ends).unwrap();
        for number in 0..switches {
            fabric
                .switch(number)
                .install(pipeline(&(0..16).collect::<Vec<_>>()));
        }
        let link_rate = |end: &LinkEnd| {
            let queueing = &settings[end.switch].queueing;
            let lossless = queueing.lossless.as_ref();
            lossless.map_or(rate("1gbit"), |lossless| lossless.link_of(end.port.0).rate)
        };
        let host =
            |(number, end): (usize, &LinkEnd)| (*end, Host::new(number as u16, link_rate(end), 0));
        Self {
            hosts: ends.iter().enumerate().map(host).collect(),
            fabric,
        }
    }

    /// A host sends worms along a route without end.
    pub fn add_flow(&mut self, host: usize, route: &[u8], class2: bool, length: usize) {
        let flow = Flow {
            route: route.to_vec(),
            class2,
            length,
        };
        self.hosts[host].1.flows.push(flow);
    }

    /// Everybody stops sending anew.
    pub fn stop(&mut self) {
        for (_, host) in &mut self.hosts {
            host.flows.clear();
        }
    }

    pub fn run(&mut self, time_us: u64) {
        let until_us = self.fabric.now_us() + time_us;
        while self.fabric.now_us() < until_us {
            let now_us = self.fabric.now_us();
            for (end, host) in &mut self.hosts {
                self.fabric.receive(*end, |frame| host.take(frame, now_us));
                while let Some(frame) = host.poll(now_us) {
                    assert!(self.fabric.send(*end, &frame), "the link of a host is full");
                }
            }
            self.fabric.step(STEP_US);
        }
    }

    pub fn lossless(&mut self, switch: usize) -> LosslessSnapshot {
        self.fabric.switch(switch).snapshot().lossless.unwrap()
    }

    pub fn sent(&self) -> u64 {
        self.hosts.iter().map(|(_, host)| host.sent).sum()
    }

    pub fn received(&self) -> u64 {
        self.hosts.iter().map(|(_, host)| host.received()).sum()
    }

    /// Every frame that was sent has arrived, once and in order, and nothing was dropped.
    ///
    /// Gives how often frames were left in front of a switch because its headroom was full.
    pub fn assert_lossless(&mut self, switches: usize) -> u64 {
        let mut held_back = 0;
        for switch in 0..switches {
            let snapshot = self.fabric.switch(switch).snapshot();
            let drops = snapshot
                .pipeline
                .iter()
                .filter(|(name, _)| name.starts_with("drop."));
            for (name, count) in drops {
                assert_eq!(*count, 0, "switch {switch}: {name}");
            }
            let lossless = snapshot.lossless.unwrap();
            for port in &lossless.ports {
                assert_eq!(
                    (port.counts.headroom_full, port.counts.storm_drops),
                    (0, 0),
                    "{port:?}"
                );
                held_back += port.counts.held_back;
            }
            assert!(lossless.held_bytes_max <= lossless.buffer_bytes);
            for queue in &lossless.queues {
                assert!(queue.held_bytes_max <= queue.limit_bytes, "{queue:?}");
            }
            assert_eq!(lossless.held_bytes, 0, "switch {switch} still holds frames");
        }
        assert_eq!(self.sent(), self.received());
        for (_, host) in &self.hosts {
            assert_eq!(
                host.wrong(),
                0,
                "worms to {}: {:?}",
                host.source,
                host.arrived
            );
        }
        held_back
    }
}
