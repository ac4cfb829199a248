//! Topologies as files: our own JSON, the net lists of ibsim and ibnetdiscover, edge lists
//! and GraphML, each read and written.
//!
//! A [`Document`] is a topology with the names its file gave to switches and hosts. Whatever
//! is refused says where in the file (line, column), what is there and what may be; a code
//! tells one kind of mistake from another.
//!
//! Other tools name their nodes by words or GUIDs. Ids follow from these names alone, never
//! from the order of the file: see [`Document::names`].

mod detect;
mod draft;
mod edges;
mod error;
mod graphml;
mod graphml_arcs;
mod graphml_parse;
mod infiniband;
mod infiniband_lines;
mod infiniband_ports;
mod infiniband_write;
mod json;
mod numbering;
mod place;

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

pub use error::FormatError;
pub use infiniband::{Addresses, Owner};
pub use place::Place;
pub(crate) use place::lines;

use wormcast_routing::topology::Topology;
use wormcast_wire::{HostId, SwitchId};

/// A file format.
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
    /// Every format.
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
    /// Of switches.
    pub switches: BTreeMap<SwitchId, String>,
    /// Of hosts.
    pub hosts: BTreeMap<HostId, String>,
}

/// A topology with what its file says besides.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    /// The topology.
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
    /// A topology without names.
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

/// Reads a topology in any format.
///
/// # Errors
/// [`FormatError`]: whatever is wrong first, with its place.
pub fn read(text: &str, reading: &Reading) -> Result<Document, FormatError> {
    read_with_addresses(text, reading).map(|(document, _)| document)
}

/// As [`read`], with the addresses of a net list, whose ports count from 1; `None` for the
/// other formats.
///
/// # Errors
/// As [`read`].
pub fn read_with_addresses(
    text: &str,
    reading: &Reading,
) -> Result<(Document, Option<Addresses>), FormatError> {
    let text = text.trim_start_matches('\u{feff}');
    let mut addresses = None;
    let format = reading.format.unwrap_or_else(|| detect::detect(text));
    let mut reading = *reading;
    // Our own files say that there are none.
    reading.give_hosts &= format != Format::Json;
    let draft = match format {
        Format::Json => json::read(text),
        Format::Ibsim | Format::Ibnetdiscover => infiniband::read(text).map(|(draft, found)| {
            addresses = Some(found);
            draft
        }),
        Format::Edges => edges::read(text),
        Format::Graphml => graphml::read(text),
    };
    let document = draft.and_then(|draft| draft.finish(text, &reading))?;
    Ok((document, addresses))
}

/// Writes a topology. Net lists have no place for a grid and for a kind; all else is read
/// back as it was.
///
/// # Errors
/// [`FormatError`] with the code `unsupported` if a name has characters that the format
/// cannot hold.
pub fn write(document: &Document, format: Format) -> Result<String, FormatError> {
    match format {
        Format::Json => Ok(json::write(document)),
        Format::Ibsim => infiniband_write::write(document, infiniband_write::Header::Short),
        Format::Ibnetdiscover => infiniband_write::write(document, infiniband_write::Header::Full),
        Format::Edges => edges::write(document),
        Format::Graphml => graphml::write(document),
    }
}
