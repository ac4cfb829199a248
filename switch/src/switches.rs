//! The switches of this process: one, or those of `--fabric`.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;

use crate::command_line::Settings;
use crate::console::{complain, say};
use crate::traces::Traces;
use wormcast_switch::fabric::FabricFile;
use wormcast_switch::metrics::Device;
use wormcast_switch_bmv2::thrift;
use wormcast_switch_dataplane::log::{Level, Log};
use wormcast_switch_dataplane::{
    Attachment, Dataplane, DataplaneHandle, DataplaneSettings, MessagePorts, SentFrame, Snapshot,
    SwitchSettings, ToController,
};
use wormcast_switch_flow::QueueSettings;
use wormcast_switch_p4runtime::{Configs, Devices, Server, ServerSettings, TranslationTables};
use wormcast_switch_pipeline::LoadedProgram;
use wormcast_switch_pipeline::{Pipeline, PipelineConfig};

/// Spreads the seeds of switches: 2^64 divided by the golden ratio.
const SEED_STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// How often deadlocks are looked for without watchdogs, µs.
const DEADLOCK_US: u64 = 40_000;

/// How often rings of switches that wait for one another are looked for: twice before the
/// first watchdog breaks one. `None` where no switch is lossless, so that none ever waits.
fn deadlock_interval<'s>(queueing: impl Iterator<Item = &'s QueueSettings>) -> Option<Duration> {
    let lossless = queueing.filter_map(|queueing| queueing.lossless.as_ref());
    let interval_us = lossless.map(|lossless| {
        let watchdog = lossless.watchdog.as_ref();
        watchdog.map_or(DEADLOCK_US, |watchdog| watchdog.detect_us / 5)
    });
    Some(Duration::from_micros(interval_us.min()?.max(1_000)))
}

/// What is to be run.
pub struct Startup {
    dataplane: DataplaneSettings,
    /// Program to start with, of each switch.
    programs: Vec<Option<Arc<LoadedProgram>>>,
    translations: TranslationTables,
    /// Text of the state to start with, and its file.
    state: Option<(PathBuf, String)>,
    /// What leaves by ports without interfaces, if frames come in messages.
    sent_frames: Option<mpsc::Receiver<SentFrame>>,
    is_fabric: bool,
}

impl Startup {
    /// Reads the files that the command line names.
    pub fn new(settings: &Settings) -> Result<Self, Box<dyn Error>> {
        let messages = settings
            .drop_in
            .message_option()
            .map(|_| MessagePorts::new());
        let (message_ports, sent_frames) = messages.unzip();
        let common = SwitchSettings {
            device_id: settings.device_id,
            name: String::new(),
            ports: settings.ports.clone(),
            cpu_port: settings.cpu_port,
            priorities: settings.priority_queues,
            queue_frames: settings.queue_frames,
            queueing: settings.queueing.clone(),
            ring_frames: settings.ring_frames,
            receive: settings.receive,
            port_rate: settings.port_rate,
            impairments: settings.impairments.clone(),
            capture_directory: settings.capture_directory.clone(),
            message_ports,
        };
        let translations = settings.translation.tables()?;
        let mut loaded = Loaded::default();
        let Some(path) = &settings.fabric else {
            return Ok(Self {
                programs: vec![loaded.load(settings.json.as_deref())?],
                state: read_state(settings.drop_in.restore_state.as_deref())?,
                dataplane: DataplaneSettings {
                    workers: settings.workers,
                    spin_us: settings.spin_us,
                    ..DataplaneSettings::single(common, settings.seed)
                },
                translations,
                sent_frames,
                is_fabric: false,
            });
        };
        let fail = |error: &dyn Error| format!("--fabric {}: {error}", path.display());
        let text = fs::read_to_string(path).map_err(|error| fail(&error))?;
        let fabric =
            FabricFile::parse(&text, settings.drop_port.0).map_err(|error| fail(&error))?;
        let (switches, links) = fabric.settings(&common);
        // What the file names is beside it.
        let directory = path.parent().unwrap_or(Path::new("."));
        let mut programs = Vec::with_capacity(switches.len());
        for switch in &fabric.switches {
            let path = match &switch.program {
                Some(program) => Some(directory.join(program)),
                None => settings.json.clone(),
            };
            programs.push(loaded.load(path.as_deref())?);
        }
        Ok(Self {
            dataplane: DataplaneSettings {
                switches,
                links,
                workers: settings.workers,
                spin_us: settings.spin_us,
                seed: settings.seed,
            },
            programs,
            translations,
            state: None,
            sent_frames,
            is_fabric: true,
        })
    }

    /// Opens the ports and starts the threads.
    pub fn start(self, log: Log) -> Result<Started, Box<dyn Error>> {
        let (dataplane, from_dataplane) = Dataplane::start(&self.dataplane, log.clone())?;
        for switch in &self.dataplane.switches {
            for port in &switch.ports {
                let name = port.attachment.name();
                let files = match port.attachment {
                    Attachment::Files(_) => " (files)",
                    Attachment::Interface(_) => "",
                };
                let of = match switch.name.as_str() {
                    "" => String::new(),
                    name => format!(" of {name}"),
                };
                say(format_args!(
                    "Adding interface {name} as port {}{of}{files}",
                    port.number.0
                ));
            }
        }
        Ok(Started {
            startup: self,
            dataplane,
            from_dataplane,
            log,
        })
    }
}

fn read_state(path: Option<&Path>) -> Result<Option<(PathBuf, String)>, Box<dyn Error>> {
    let Some(path) = path else { return Ok(None) };
    let text = fs::read_to_string(path)
        .map_err(|error| format!("--restore-state {}: {error}", path.display()))?;
    Ok(Some((path.to_owned(), text)))
}

/// Programs by their files: switches with the same file share it.
#[derive(Default)]
struct Loaded(BTreeMap<PathBuf, Arc<LoadedProgram>>);

impl Loaded {
    fn load(&mut self, path: Option<&Path>) -> Result<Option<Arc<LoadedProgram>>, Box<dyn Error>> {
        let Some(path) = path else { return Ok(None) };
        if let Some(program) = self.0.get(path) {
            return Ok(Some(Arc::clone(program)));
        }
        let fail = |error: &dyn Error| format!("{}: {error}", path.display());
        let json = fs::read_to_string(path).map_err(|error| fail(&error))?;
        let program = LoadedProgram::from_json(&json).map_err(|error| fail(&error))?;
        let program = Arc::new(program);
        self.0.insert(path.to_owned(), Arc::clone(&program));
        Ok(Some(program))
    }
}

/// A data plane that runs, whose switches have no program yet and nobody to control them.
pub struct Started {
    startup: Startup,
    dataplane: Dataplane,
    from_dataplane: Vec<(u64, mpsc::Receiver<ToController>)>,
    log: Log,
}

impl Started {
    /// Installs the programs to start with and makes the servers, on the present runtime.
    pub async fn control(
        self,
        config: PipelineConfig,
        traces: &Traces<'_>,
    ) -> Result<Switches, Box<dyn Error>> {
        let configs = Arc::new(Configs::default());
        let translations = self.startup.translations;
        let mut servers = Vec::with_capacity(self.from_dataplane.len());
        let switches = self.from_dataplane.into_iter().zip(self.startup.programs);
        for ((device_id, from_dataplane), program) in switches {
            let Some(handle) = self.dataplane.handle(device_id) else {
                return Err(format!("the data plane has no device {device_id}").into());
            };
            let cpu_port = handle.run(|switch| switch.cpu_port()).await?;
            for (filter, sink) in traces.of_switch(cpu_port)? {
                let added = handle.run(|switch| switch.tracing().add(filter, sink));
                added.await??;
            }
            let mut pipeline_config = config;
            if self.startup.is_fabric {
                let step = device_id.wrapping_mul(SEED_STEP);
                pipeline_config.seed = config.seed.wrapping_add(step);
            }
            if let Some(program) = program {
                let mut pipeline = Pipeline::new(program, pipeline_config);
                if let Some((path, text)) = &self.startup.state {
                    thrift::restore(&mut pipeline, text)
                        .map_err(|error| format!("--restore-state {}: {error}", path.display()))?;
                }
                handle.run(move |switch| switch.install(pipeline)).await?;
            }
            let settings = ServerSettings {
                device_id,
                pipeline: pipeline_config,
            };
            let (log, configs) = (self.log.clone(), Arc::clone(&configs));
            let server = Server::sharing(settings, handle, from_dataplane, log, configs);
            server.translate_with(translations.clone()).await;
            servers.push((device_id, server));
        }
        let switches = self.startup.dataplane.switches.iter();
        let named = switches.clone().filter(|switch| !switch.name.is_empty());
        Ok(Switches {
            names: named
                .map(|switch| (switch.device_id, switch.name.clone()))
                .collect(),
            deadlock_interval: deadlock_interval(switches.map(|switch| &switch.queueing)),
            dataplane: self.dataplane,
            devices: Devices::new(servers),
            is_fabric: self.startup.is_fabric,
            sent_frames: self.startup.sent_frames,
            log: self.log,
        })
    }
}

/// Switches that run, with their servers.
pub struct Switches {
    pub dataplane: Dataplane,
    pub devices: Devices,
    /// Names of those that have one, by device id.
    pub names: BTreeMap<u64, String>,
    pub is_fabric: bool,
    /// What leaves by ports without interfaces, if frames come in messages.
    pub sent_frames: Option<mpsc::Receiver<SentFrame>>,
    /// How often rings of switches that wait for one another are looked for, if there can
    /// be any.
    pub deadlock_interval: Option<Duration>,
    /// Where they write their log.
    pub log: Log,
}

impl Switches {
    /// Their handles and servers, by device id.
    pub fn each(&self) -> impl Iterator<Item = (u64, DataplaneHandle, &Server)> {
        let handle = |id| self.dataplane.handle(id);
        let servers = self.devices.servers();
        servers.filter_map(move |(id, server)| Some((id, handle(id)?, server)))
    }

    /// Says something that whoever runs the switches should know.
    pub fn warn(&self, text: std::fmt::Arguments<'_>) {
        self.log.write(Level::Warn, text);
    }

    /// What the metrics server asks.
    pub fn metrics_devices(&self) -> Vec<Device> {
        let device = |(id, dataplane, server): (u64, DataplaneHandle, &Server)| {
            let server = server.clone();
            Device {
                id,
                dataplane,
                complete: Arc::new(move |snapshot| server.complete(snapshot)),
            }
        };
        self.each().map(device).collect()
    }

    /// Writes the statistics to `file` and, at a level, to the log: those of the switch, or
    /// those of each switch of a fabric under its device id. Where the log is not to have them
    /// all, it gets their sums.
    pub async fn report(&self, file: Option<&Path>, level: Level) {
        let mut snapshots = BTreeMap::new();
        for (id, handle, server) in self.each() {
            let Ok(counts) = handle.run(|switch| switch.counts()).await else {
                return;
            };
            let mut snapshot = Snapshot::from(counts);
            server.complete(&mut snapshot);
            snapshots.insert(id, snapshot);
        }
        let json = match snapshots.values().next() {
            Some(only) if !self.is_fabric => serde_json::to_string(only),
            _ => serde_json::to_string(&snapshots),
        };
        let json = match json {
            Ok(json) => json,
            Err(error) => {
                let text = format_args!("statistics: {error}");
                return self.log.write(Level::Error, text);
            }
        };
        if self.log.enabled(level) {
            self.log.write(level, format_args!("statistics: {json}"));
        } else {
            let sums = Sums::of(snapshots.values());
            self.log.write(Level::Info, format_args!("{sums}"));
        }
        if let Some(path) = file
            && let Err(error) = fs::write(path, json + "\n")
        {
            let text = format_args!("{}: {error}", path.display());
            self.log.write(Level::Error, text);
            complain(format_args!("{}: {error}", path.display()));
        }
    }
}

/// Sums over all ports of all switches, to be read in one line.
#[derive(Debug, Default, PartialEq, Eq)]
struct Sums {
    uptime_us: u64,
    received: u64,
    sent: u64,
    dropped_by_program: u64,
    dropped_at_ports: u64,
    packet_outs: u64,
    packet_ins: u64,
}

impl Sums {
    fn of<'s>(snapshots: impl Iterator<Item = &'s Snapshot>) -> Self {
        let mut sums = Self::default();
        for snapshot in snapshots {
            sums.uptime_us = sums.uptime_us.max(snapshot.uptime_us);
            sums.packet_outs += snapshot.packet_outs;
            sums.packet_ins += snapshot.packet_ins;
            let drops = snapshot.pipeline.iter();
            let drops = drops.filter(|(name, _)| name.starts_with("drop."));
            sums.dropped_by_program += drops.map(|(_, packets)| packets).sum::<u64>();
            for port in &snapshot.ports {
                sums.received += port.received_frames;
                sums.sent += port.sent_frames;
                sums.dropped_at_ports += port.dropped_frames();
            }
        }
        sums
    }
}

impl std::fmt::Display for Sums {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "in {} s received {} frames and sent {}; dropped {} in the program and {} at ports; {} \
             packet-outs, {} packet-ins and digests (--statistics writes all counts, and at level \
             debug the log has them)",
            self.uptime_us / 1_000_000,
            self.received,
            self.sent,
            self.dropped_by_program,
            self.dropped_at_ports,
            self.packet_outs,
            self.packet_ins
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wormcast_switch::lossless_arguments::LosslessArguments;

    fn interval_ms(switches: &[&str]) -> Option<u128> {
        let queueing = switches.iter().map(|options| {
            let options: Vec<String> = options.split_whitespace().map(str::to_owned).collect();
            LosslessArguments::read(&options).unwrap()
        });
        let queueing: Vec<QueueSettings> = queueing.collect();
        deadlock_interval(queueing.iter()).map(|interval| interval.as_millis())
    }

    /// Looking takes a call to every switch, so hundreds of idle switches would not be idle.
    #[test]
    fn deadlocks_are_looked_for_only_where_there_can_be_any() {
        assert_eq!(interval_ms(&["", "--scheduler strict"]), None);
        assert_eq!(interval_ms(&["", "--lossless"]), Some(200));
        let quick = "--lossless --watchdog detect=50ms";
        assert_eq!(interval_ms(&["--lossless", quick, ""]), Some(10));
        assert_eq!(interval_ms(&["--lossless --watchdog off"]), Some(40));
    }
}
