//! What can be wrong with a topology.

use std::fmt;

use super::SWITCHES_MAX;
use wormcast_wire::{HostId, PortId, SwitchId};

/// Who uses a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Host(HostId),
    /// The link at this place in the list of links, from 0.
    Link(usize),
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            End::Host(host) => write!(f, "host {host}"),
            End::Link(link) => write!(f, "links[{link}]"),
        }
    }
}

/// Why a topology is refused. Messages name the value, the bound and the choices.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TopologyError {
    #[error("topology is not JSON: line {line}, column {column}: {reason}")]
    Malformed {
        /// Where, counted from 1.
        line: usize,
        /// Where, counted from 1.
        column: usize,
        reason: String,
    },
    /// A field that has to be there is not.
    #[error("{at}: field \"{field}\" is missing")]
    MissingField {
        /// Where, as in `links[3]`.
        at: String,
        field: &'static str,
    },
    /// A field of another type than it should be.
    #[error("{at}: {found} is not {expected}")]
    WrongType {
        /// Where, as in `links[3].a_port`.
        at: String,
        found: String,
        expected: &'static str,
    },
    /// A number outside its bounds.
    #[error("{what}: {value} is outside {least} to {most}")]
    OutsideBounds {
        what: String,
        value: i128,
        least: i128,
        most: i128,
    },
    /// There has to be one at least.
    #[error("topology has no switches; it needs at least one")]
    NoSwitches,
    /// More than [`SWITCHES_MAX`].
    #[error("topology has {count} switches; at most {SWITCHES_MAX} are supported")]
    TooManySwitches { count: usize },
    /// Two switches with one id.
    #[error("switch id {switch} is given twice")]
    DuplicateSwitch { switch: SwitchId },
    /// Two hosts with one id.
    #[error("host id {host} is given twice")]
    DuplicateHost { host: HostId },
    /// A switch that is not in the topology.
    #[error("{at}: there is no switch {switch}; switches are {}", list(.choices))]
    UnknownSwitch {
        switch: u64,
        at: String,
        choices: Vec<SwitchId>,
    },
    /// A host that is not in the topology.
    #[error("there is no host {host}; hosts are {}", list(.choices))]
    UnknownHost { host: u64, choices: Vec<HostId> },
    /// A port that the switch does not have.
    #[error("{at}: port {port} is outside switch {switch}, which has {ports} ports, 0 to {}", .ports - 1)]
    PortOutsideSwitch {
        switch: SwitchId,
        port: PortId,
        /// How many ports it has.
        ports: u16,
        at: End,
    },
    /// Two ends on one port.
    #[error("port {port} of switch {switch} is used twice, by {first} and by {second}")]
    PortUsedTwice {
        switch: SwitchId,
        port: PortId,
        first: End,
        second: End,
    },
    /// Both ends of a link on one switch.
    #[error("links[{link}] joins switch {switch} to itself")]
    LinkToItself {
        /// Place in the list of links.
        link: usize,
        switch: SwitchId,
    },
    /// A link between two switches that are not linked that way.
    #[error("there is no link at {link}; {among} {}", list(.choices))]
    UnknownLink {
        /// What was asked for, `switch:port`.
        link: String,
        among: String,
        choices: Vec<String>,
    },
    /// Some switches cannot be reached.
    #[error("topology is not connected: switch {from} cannot reach switches {}", list(.unreachable))]
    NotConnected {
        from: SwitchId,
        unreachable: Vec<SwitchId>,
    },
    /// The grid has fewer cells than there are switches.
    #[error("grid {} has no place for switch {largest}", .radix
                    .iter()
                    .map(ToString::to_string)
                    .collect::<Vec<_>>()
                    .join("x"))]
    GridMismatch {
        /// Switches along each dimension.
        radix: Vec<u16>,
        largest: usize,
    },
    /// A parameter of a generator that makes no topology.
    #[error("{kind}: {reason}")]
    Parameter {
        kind: String,
        /// Which parameter, what it is, what it may be.
        reason: String,
    },
}

impl TopologyError {
    /// A word for programs that tells one kind of mistake from another; it does not change
    /// from version to version.
    pub const fn code(&self) -> &'static str {
        match self {
            TopologyError::Malformed { .. } => "syntax",
            TopologyError::MissingField { .. } => "missing-field",
            TopologyError::WrongType { .. } => "wrong-type",
            TopologyError::OutsideBounds { .. } => "outside-bounds",
            TopologyError::NoSwitches => "no-switches",
            TopologyError::TooManySwitches { .. } => "too-many-switches",
            TopologyError::DuplicateSwitch { .. } => "duplicate-switch",
            TopologyError::DuplicateHost { .. } => "duplicate-host",
            TopologyError::UnknownSwitch { .. } => "unknown-switch",
            TopologyError::UnknownHost { .. } => "unknown-host",
            TopologyError::PortOutsideSwitch { .. } => "port-outside-switch",
            TopologyError::PortUsedTwice { .. } => "port-used-twice",
            TopologyError::LinkToItself { .. } => "link-to-itself",
            TopologyError::UnknownLink { .. } => "unknown-link",
            TopologyError::NotConnected { .. } => "not-connected",
            TopologyError::GridMismatch { .. } => "grid-mismatch",
            TopologyError::Parameter { .. } => "parameter",
        }
    }

    pub(crate) fn outside(
        what: &str,
        value: impl Into<i128>,
        least: impl Into<i128>,
        most: impl Into<i128>,
    ) -> Self {
        TopologyError::OutsideBounds {
            what: what.to_owned(),
            value: value.into(),
            least: least.into(),
            most: most.into(),
        }
    }
}

/// Lists at most this many choices in a message.
const CHOICES_SHOWN_MAX: usize = 16;

pub(crate) fn list<T: fmt::Display>(choices: &[T]) -> String {
    let mut text: Vec<String> = choices
        .iter()
        .take(CHOICES_SHOWN_MAX)
        .map(ToString::to_string)
        .collect();
    if choices.len() > CHOICES_SHOWN_MAX {
        text.push(format!("… ({} in all)", choices.len()));
    }
    if text.is_empty() {
        "none".into()
    } else {
        text.join(", ")
    }
}
