//! Routes that others made: forwarding tables of running switches, and paths in a CSV file.
//!
//! Everything has the name that its own file gives it, ports too. A [`Network`] says what is
//! wired to what; tables are followed through it, paths may do without one. What packets
//! hold and need next becomes a graph of channels, and the [`Verdict`] is an order that all
//! of them follow, or a shortest cycle. A channel is one direction of a link, or one virtual
//! channel of it.

mod error;
mod follow;
mod graph;
mod json;
mod levels;
mod lfts;
mod lost;
mod network;
mod packet;
mod path_element;
mod paths;
mod prefixes;
mod rows;
mod syntax;

pub use error::ForeignError;
pub use follow::{Ends, LOST_MAX};
pub use graph::{Channel, Held, Verdict};
pub use lost::{Lost, LostKind};
pub use network::{Network, Node};
pub use packet::Packet;
pub use paths::verify_paths;

use crate::formats::FormatError;
use follow::{Follower, Forwarding};
use graph::Graph;

/// Follows forwarding tables through a network, and looks for packets that can wait for
/// each other.
///
/// Each text is what `dump_lfts` or `ibroute` of infiniband-diags print, OpenSM's
/// `opensm-lfts.dump` or `opensm.fdbs`, or a tables file (JSON); found out from its content.
/// `records` is what `saquery PR` prints: with it each packet of InfiniBand uses the virtual
/// lane of its service level; without, all use one.
///
/// # Errors
/// What cannot be read, with the number of its text; `records` comes after the tables.
pub fn verify_tables(
    network: &Network,
    texts: &[&str],
    records: Option<&str>,
    ends: Ends,
) -> Result<Verdict, ForeignError> {
    let is_file = |text: &str| {
        let blank = ['\u{feff}', ' ', '\t', '\r', '\n'];
        text.trim_start_matches(blank).starts_with('{')
    };
    let (files, dumps): (Vec<_>, Vec<_>) = texts
        .iter()
        .enumerate()
        .partition(|(_, text)| is_file(text));
    if ends == Ends::Hosts && network.nodes().len() == network.switches() as usize {
        let reason = "this topology has no hosts, so nobody sends; with ends all, switches do";
        return Err(ForeignError::network("no-hosts", reason.to_owned()));
    }
    let tables = if dumps.is_empty() {
        None
    } else {
        Some(read_lfts(network, &dumps, (texts.len(), records), ends)?)
    };
    let vcs = tables.as_ref().map_or(Vec::new(), Forwarding::vcs);
    if let Some((number, _)) = files.first().filter(|_| records.is_some()) {
        let reason = "path records do not go together with a tables file".to_owned();
        return Err(ForeignError::of(
            *number,
            FormatError::new("unsupported", reason),
        ));
    }
    let mut graph = Graph::of_network(network, &vcs);
    let mut follower = Follower::new(network, ends, vcs.len());
    if let Some(tables) = &tables {
        follower.follow(&mut graph, tables);
    }
    for (number, text) in files {
        let read = prefixes::read(network, text);
        for table in read.map_err(|error| ForeignError::of(number, error))? {
            follower.follow(&mut graph, &table);
        }
    }
    if follower.saw_nothing() {
        let whose = match ends {
            Ends::Hosts => "of a host",
            Ends::All => "of a host or a switch",
        };
        let reason = format!(
            "no packet {whose} goes anywhere by these tables, so there is nothing to check; they have entries for \
             {} destinations",
            follower.destinations()
        );
        let error = FormatError::new("nothing-to-check", reason);
        return Err(ForeignError::of(0, error));
    }
    Ok(follower.finish(graph))
}

/// The tables of dumps, given with their numbers, and the records with theirs.
fn read_lfts<'n>(
    network: &'n Network,
    dumps: &[(usize, &&str)],
    (last, records): (usize, Option<&str>),
    ends: Ends,
) -> Result<lfts::Tables<'n>, ForeignError> {
    let mut tables = lfts::Tables::new(network)
        .map_err(|reason| ForeignError::network("no-addresses", reason))?;
    for (number, text) in dumps {
        tables
            .read(text)
            .map_err(|error| ForeignError::of(*number, error))?;
    }
    if let Some(text) = records {
        let levels = levels::Levels::read(network, text);
        let set = levels.and_then(|levels| tables.set_levels(levels, ends));
        set.map_err(|error| ForeignError::of(last, error))?;
    }
    Ok(tables)
}
