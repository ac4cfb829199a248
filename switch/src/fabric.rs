//! Many switches in one process: the file of `--fabric`.
//!
//! Switches, links between their ports, and edge ports on network interfaces. The format
//! is described in `docs/fabric.md`. Everything is checked here; what is left to fail is
//! the system's to refuse.

use std::collections::BTreeMap;
use std::path::PathBuf;
use wormcast_switch_dataplane::list;

use serde::Deserialize;

use crate::lossless_arguments::LosslessArguments;
use wormcast_switch_dataplane::{
    LinkEnd, LinkSettings, PortSettings, SWITCHES_MAX, SwitchSettings,
};
use wormcast_switch_flow::QueueSettings;
use wormcast_switch_flow::{BitRate, Duration, UnitError};
use wormcast_switch_pipeline::PortId;
use wormcast_switch_ports::ImpairmentError;

/// Highest port number: v1model has nine bits for it.
pub const PORT_MAX: u16 = 511;

/// A fabric as its file describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FabricFile {
    /// Switches, in the order of the file.
    pub switches: Vec<FabricSwitch>,
    links: Vec<FabricLink>,
    edges: Vec<FabricEdge>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FabricSwitch {
    pub name: String,
    /// Device id; its position in the file unless it is given.
    pub device_id: u64,
    /// Program to start with, as p4c-bm2-ss writes it.
    pub program: Option<PathBuf>,
    /// Port that leads to the controller, if this switch has its own.
    pub cpu_port: Option<u16>,
    /// How its queues behave, if they have options of their own.
    pub queueing: Option<QueueSettings>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct FabricLink {
    ends: [LinkEnd; 2],
    faults: Vec<(String, String)>,
    timing: Timing,
}

/// Rate and delay that lossless ports at a link reckon with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Timing {
    rate: Option<BitRate>,
    delay: Option<Duration>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct FabricEdge {
    end: LinkEnd,
    interface: String,
    faults: Vec<(String, String)>,
    timing: Timing,
}

/// A fabric that cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FabricError {
    /// Not JSON, or not of the format: what serde says, with the place.
    #[error("{0}")]
    Json(String),
    /// Too many switches, or none.
    #[error("{0} switches: a fabric has 1 to {SWITCHES_MAX}")]
    SwitchCount(usize),
    /// A name that no switch can have.
    #[error("`{0}` is not a name of a switch: 1 to 64 letters, digits, `-`, `_` and `.`")]
    Name(String),
    /// Two switches have one name.
    #[error("two switches have the name `{0}`")]
    NameTwice(String),
    /// Two switches have one device id: its value and their names.
    #[error("switches `{1}` and `{2}` have the same device id {0}")]
    DeviceTwice(u64, String, String),
    /// Not of the form SWITCH:PORT.
    #[error("`{0}` is not a port of a switch: SWITCH:PORT (like s1:3)")]
    End(String),
    /// No switch has the name: the end, and what there is.
    #[error("`{0}`: there is no such switch; there are {1}")]
    NoSwitch(String, String),
    /// No such port: the end, and why.
    #[error("`{0}`: {1}")]
    Port(String, String),
    /// A port is in two places of the file.
    #[error("port `{0}` is used twice: in {1} and in {2}")]
    PortTwice(String, String, String),
    /// Two ports have one interface.
    #[error("interface `{0}` is attached to two ports: in {1} and in {2}")]
    InterfaceTwice(String, String, String),
    /// A fault of a link that cannot be: where, and why.
    #[error("{0}: {1}")]
    Fault(String, ImpairmentError),
    /// Options of a switch's queues, or rate or delay of a link, that cannot be: where, and
    /// why.
    #[error("{0}: {1}")]
    Queueing(String, String),
}

/// The file as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    program: Option<PathBuf>,
    cpu_port: Option<u16>,
    switches: Vec<FileSwitch>,
    #[serde(default)]
    links: Vec<FileLink>,
    #[serde(default)]
    edges: Vec<FileEdge>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileSwitch {
    name: String,
    device_id: Option<u64>,
    program: Option<PathBuf>,
    cpu_port: Option<u16>,
    queueing: Option<Vec<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileLink {
    ends: [String; 2],
    rate: Option<String>,
    delay: Option<String>,
    #[serde(default)]
    faults: Faults,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileEdge {
    port: String,
    interface: String,
    rate: Option<String>,
    delay: Option<String>,
    #[serde(default)]
    faults: Faults,
}

/// The same keys and values as `--impair` has.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Faults {
    loss: Option<String>,
    duplicate: Option<String>,
    corrupt: Option<String>,
    reorder: Option<String>,
    delay: Option<String>,
    rate: Option<String>,
}

impl Faults {
    fn pairs(self) -> Vec<(String, String)> {
        let pairs = [
            ("loss", self.loss),
            ("duplicate", self.duplicate),
            ("corrupt", self.corrupt),
            ("reorder", self.reorder),
            ("delay", self.delay),
            ("rate", self.rate),
        ];
        let given = |(key, value): (&str, Option<String>)| Some((key.to_owned(), value?));
        pairs.into_iter().filter_map(given).collect()
    }
}

impl FabricFile {
    /// Reads the file. `drop_port`: the port that no link may lead to.
    pub fn parse(json: &str, drop_port: u16) -> Result<Self, FabricError> {
        let file: File =
            serde_json::from_str(json).map_err(|error| FabricError::Json(error.to_string()))?;
        let count = file.switches.len();
        if !(1..=SWITCHES_MAX).contains(&count) {
            return Err(FabricError::SwitchCount(count));
        }
        let mut names = BTreeMap::new();
        let mut device_ids = BTreeMap::new();
        let mut switches = Vec::with_capacity(count);
        for (position, switch) in file.switches.into_iter().enumerate() {
            check_name(&switch.name)?;
            if names.insert(switch.name.clone(), position).is_some() {
                return Err(FabricError::NameTwice(switch.name));
            }
            let device_id = switch.device_id.unwrap_or(position as u64);
            if let Some(first) = device_ids.insert(device_id, switch.name.clone()) {
                return Err(FabricError::DeviceTwice(device_id, first, switch.name));
            }
            let cpu_port = switch.cpu_port.or(file.cpu_port);
            if let Some(port) = cpu_port {
                check_number(&format!("{}:{port}", switch.name), port, drop_port, None)?;
            }
            let queueing = switch
                .queueing
                .map(|options| LosslessArguments::read(&options));
            let queueing = queueing.transpose().map_err(|error| {
                let place = format!("switches[{position}].queueing");
                FabricError::Queueing(place, error.to_string())
            })?;
            switches.push(FabricSwitch {
                queueing,
                name: switch.name,
                device_id,
                program: switch.program.or_else(|| file.program.clone()),
                cpu_port,
            });
        }
        let mut ends = Ends {
            names,
            switches: &switches,
            drop_port,
            used: BTreeMap::new(),
        };
        let mut links = Vec::with_capacity(file.links.len());
        for (number, link) in file.links.into_iter().enumerate() {
            let place = format!("links[{number}]");
            let [first, second] = &link.ends;
            links.push(FabricLink {
                ends: [ends.take(first, &place)?, ends.take(second, &place)?],
                timing: check_timing(&place, link.rate, link.delay)?,
                faults: check_faults(&place, link.faults)?,
            });
        }
        let mut interfaces = BTreeMap::new();
        let mut edges = Vec::with_capacity(file.edges.len());
        for (number, edge) in file.edges.into_iter().enumerate() {
            let place = format!("edges[{number}]");
            let end = ends.take(&edge.port, &place)?;
            if let Some(first) = interfaces.insert(edge.interface.clone(), place.clone()) {
                return Err(FabricError::InterfaceTwice(edge.interface, first, place));
            }
            edges.push(FabricEdge {
                end,
                interface: edge.interface,
                timing: check_timing(&place, edge.rate, edge.delay)?,
                faults: check_faults(&place, edge.faults)?,
            });
        }
        Ok(Self {
            switches,
            links,
            edges,
        })
    }

    /// Settings of the data plane: switches in order, and links between them. `common`
    /// has what the file does not say, and is the same for all switches.
    pub fn settings(&self, common: &SwitchSettings) -> (Vec<SwitchSettings>, Vec<LinkSettings>) {
        let own = |switch: &FabricSwitch| SwitchSettings {
            device_id: switch.device_id,
            name: switch.name.clone(),
            ports: Vec::new(),
            cpu_port: switch.cpu_port.map(PortId).or(common.cpu_port),
            queueing: switch
                .queueing
                .clone()
                .unwrap_or_else(|| common.queueing.clone()),
            ..common.clone()
        };
        let mut switches: Vec<SwitchSettings> = self.switches.iter().map(own).collect();
        let mut impair = |end: LinkEnd, faults: &[(String, String)]| {
            if let Some(argument) = fault_argument(end.port.0, faults) {
                let added = switches[end.switch].impairments.add(&argument);
                debug_assert!(added.is_ok(), "checked when the file was read");
            }
        };
        for link in &self.links {
            link.ends.iter().for_each(|end| impair(*end, &link.faults));
        }
        for edge in &self.edges {
            impair(edge.end, &edge.faults);
        }
        let links = self
            .links
            .iter()
            .flat_map(|link| link.ends.map(|end| (end, link.timing)));
        let edges = self.edges.iter().map(|edge| (edge.end, edge.timing));
        for (end, Timing { rate, delay }) in links.chain(edges) {
            if rate.is_some() || delay.is_some() {
                switches[end.switch]
                    .queueing
                    .set_link(end.port.0, rate, delay);
            }
        }
        for edge in &self.edges {
            let port = PortSettings::interface(edge.end.port.0, edge.interface.clone());
            switches[edge.end.switch].ports.push(port);
        }
        let links = self
            .links
            .iter()
            .map(|link| LinkSettings { ends: link.ends });
        (switches, links.collect())
    }

    /// Links as (device id, port) pairs.
    pub fn links(&self) -> impl Iterator<Item = [(u64, PortId); 2]> {
        self.links.iter().map(|link| {
            link.ends
                .map(|end| (self.switches[end.switch].device_id, end.port))
        })
    }
}

/// Ports that links and edges may take, each once.
struct Ends<'a> {
    names: BTreeMap<String, usize>,
    switches: &'a [FabricSwitch],
    drop_port: u16,
    used: BTreeMap<LinkEnd, String>,
}

impl Ends<'_> {
    fn take(&mut self, text: &str, place: &str) -> Result<LinkEnd, FabricError> {
        let malformed = || FabricError::End(text.to_owned());
        let (name, number) = text.rsplit_once(':').ok_or_else(malformed)?;
        let number: u64 = number.parse().map_err(|_| malformed())?;
        let Some(&switch) = self.names.get(name) else {
            let known = list(self.switches.iter().map(|switch| switch.name.clone()));
            return Err(FabricError::NoSwitch(text.to_owned(), known));
        };
        let number = u16::try_from(number).unwrap_or(u16::MAX);
        let cpu_port = self.switches[switch].cpu_port;
        check_number(text, number, self.drop_port, cpu_port)?;
        let end = LinkEnd {
            switch,
            port: PortId(number),
        };
        match self.used.insert(end, place.to_owned()) {
            Some(first) => Err(FabricError::PortTwice(
                text.to_owned(),
                first,
                place.to_owned(),
            )),
            None => Ok(end),
        }
    }
}

fn check_name(name: &str) -> Result<(), FabricError> {
    let good = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if (1..=64).contains(&name.len()) && name.bytes().all(good) {
        Ok(())
    } else {
        Err(FabricError::Name(name.to_owned()))
    }
}

fn check_number(
    end: &str,
    number: u16,
    drop_port: u16,
    cpu_port: Option<u16>,
) -> Result<(), FabricError> {
    let reason = if number > PORT_MAX {
        format!("ports are 0 to {PORT_MAX}")
    } else if number == drop_port {
        format!("port {number} is the drop port")
    } else if Some(number) == cpu_port {
        format!("port {number} is the CPU port")
    } else {
        return Ok(());
    };
    Err(FabricError::Port(end.to_owned(), reason))
}

fn check_faults(place: &str, faults: Faults) -> Result<Vec<(String, String)>, FabricError> {
    let faults = faults.pairs();
    if let Some(argument) = fault_argument(0, &faults) {
        wormcast_switch_ports::ImpairmentTable::default()
            .add(&argument)
            .map_err(|error| FabricError::Fault(place.to_owned(), error))?;
    }
    Ok(faults)
}

fn check_timing(
    place: &str,
    rate: Option<String>,
    delay: Option<String>,
) -> Result<Timing, FabricError> {
    let fail = |error: UnitError| FabricError::Queueing(place.to_owned(), error.to_string());
    let rate = rate.map(|rate| rate.parse()).transpose().map_err(fail)?;
    let delay = delay.map(|delay| delay.parse()).transpose().map_err(fail)?;
    Ok(Timing { rate, delay })
}

/// What `--impair` would be given for a port.
fn fault_argument(port: u16, faults: &[(String, String)]) -> Option<String> {
    let pairs: Vec<String> = faults
        .iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    (!pairs.is_empty()).then(|| format!("{port}:{}", pairs.join(",")))
}

#[cfg(test)]
mod tests;
