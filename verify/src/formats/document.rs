//! What a file of a topology is: its format, what it has, and how it is to be read.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use super::error::FormatError;
use wormcast_routing::topology::Topology;
use wormcast_wire::{HostId, SwitchId};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Our own: nothing is lost.
    Json,
    /// Net list for the InfiniBand simulator ibsim, which ibnetdiscover and OpenSM then see
    /// as a fabric. InfiniBand counts ports from 1, so our port p is its port p + 1.
    Ibsim,
    /// As ibnetdiscover prints what it found: a net list with a fuller header.
    Ibnetdiscover,
    /// A link a line: see [`Format::Edges`] in the documentation of the folder.
    Edges,
    /// GraphML, with what kind a node is and the ports as attributes.
    Graphml,
}

impl Format {
    pub const ALL: [Format; 5] = [
        Format::Json,
        Format::Ibsim,
        Format::Ibnetdiscover,
        Format::Edges,
        Format::Graphml,
    ];

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Format::Json => "json",
            Format::Ibsim => "ibsim",
            Format::Ibnetdiscover => "ibnetdiscover",
            Format::Edges => "edges",
            Format::Graphml => "graphml",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Format {
    type Err = FormatError;

    fn from_str(name: &str) -> Result<Format, FormatError> {
        let found = Format::ALL.into_iter().find(|one| one.name() == name);
        found.ok_or_else(|| {
            FormatError::new(
                "unknown-format",
                format!(
                    "there is no format \"{name}\"; formats are {}",
                    Format::ALL.map(Format::name).join(", ")
                ),
            )
        })
    }
}

/// What a file calls its switches and hosts, where that says more than their ids.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    pub switches: BTreeMap<SwitchId, String>,
    pub hosts: BTreeMap<HostId, String>,
}

/// A topology with what its file says besides.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    pub topology: Topology,
    /// Names of its nodes. Where a file names nodes by words, ids come from the words: if
    /// all switches have one word followed by distinct numbers, as in `leaf1`, `leaf2`, the
    /// ids are these numbers; if not, ids count from 0 in the order of the words, numbers
    /// in them compared as numbers. Hosts likewise. GUIDs count in ascending order, unless
    /// all are ours, which hold the id.
    pub names: Names,
    /// What the topology was generated from, as in `torus:4`, if its file says so.
    pub kind: Option<String>,
    /// What was left out or added, a sentence each, with its place.
    pub warnings: Vec<String>,
}

impl Document {
    pub fn new(topology: Topology) -> Document {
        Document {
            topology,
            names: Names::default(),
            kind: None,
            warnings: Vec::new(),
        }
    }
}

/// How to read a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// Its format; found out from its content if not given.
    pub format: Option<Format>,
    /// Whether the fabric may be split.
    pub allow_split: bool,
    /// So many hosts are added on every switch, on its lowest free ports, with the ids that
    /// follow those in the file. For files that know no hosts.
    pub hosts_per_switch: usize,
    /// Whether every switch gets a host where a file of other tools has none, with a warning.
    pub give_hosts: bool,
}
