//! Which worker has which switch, and how links connect them.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use super::input::LinkInput;
use super::mailbox::Mailbox;
use super::port::LinkOutput;
use super::settings::{DataplaneSettings, LinkEnd};
use super::start_error::StartError;
use wormcast_switch_pipeline::PortId;
use wormcast_switch_ports::memory;
use wormcast_switch_ports::memory::{LINK_BYTES_MAX, LINK_FRAMES_MAX};
use wormcast_switch_ports::{LinkReceiver, LinkSender};

/// The layout of a whole data plane.
pub(super) struct Layout {
    pub(super) places: Vec<Place>,
    /// Of each worker.
    pub(super) mailboxes: Vec<Arc<Mailbox>>,
    /// What the events of each worker mean.
    pub(super) events: Vec<Vec<Event>>,
    /// What the ports at the ends of links get; each is taken once.
    ends: BTreeMap<LinkEnd, (LinkSender, LinkReceiver)>,
    peers: BTreeMap<LinkEnd, Peer>,
    /// The event of an end at its own worker that says there are frames; the next one
    /// says there is room.
    first_events: BTreeMap<LinkEnd, usize>,
    /// Of the further threads of each worker.
    pub(super) helper_mailboxes: Vec<Vec<Arc<Mailbox>>>,
}

/// Where a switch runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) worker: usize,
    /// Its position there.
    pub(super) switch: usize,
}

/// What an event in the mailbox of a worker means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    Frames {
        switch: usize,
        input: usize,
    },
    /// The link of a port has room again.
    Room {
        switch: usize,
        port: usize,
    },
}

struct Peer {
    end: LinkEnd,
    name: String,
}

/// What a port at the end of a link gets.
pub(super) struct LinkPort {
    pub(super) port: PortId,
    /// Name of the port at the other end.
    pub(super) peer: String,
    pub(super) output: LinkOutput,
    pub(super) input: LinkInput,
}

impl Layout {
    /// `settings` have been checked.
    pub(super) fn new(settings: &DataplaneSettings) -> Result<Self, StartError> {
        let count = settings.switches.len();
        let threads = settings.threads();
        let workers = threads.len();
        let places = place(count, workers);
        let mut ends = BTreeMap::new();
        let mut peers = BTreeMap::new();
        for link in &settings.links {
            let (there, arriving) = memory::link(LINK_FRAMES_MAX, LINK_BYTES_MAX);
            let (back, returning) = memory::link(LINK_FRAMES_MAX, LINK_BYTES_MAX);
            let [first, second] = link.ends;
            ends.insert(first, (there, returning));
            ends.insert(second, (back, arriving));
            for (end, peer) in [(first, second), (second, first)] {
                let name = settings.switches[peer.switch].port_name(peer.port);
                peers.insert(end, Peer { end: peer, name });
            }
        }
        let mut events = vec![Vec::new(); workers];
        let mut first_events = BTreeMap::new();
        let mut linked = vec![0; count];
        for end in ends.keys() {
            // Ports of links come in this order, after those that lead out of the process.
            let position = settings.switches[end.switch].ports.len() + linked[end.switch];
            linked[end.switch] += 1;
            let Place { worker, switch } = places[end.switch];
            first_events.insert(*end, events[worker].len());
            events[worker].push(Event::Frames {
                switch,
                input: position,
            });
            events[worker].push(Event::Room {
                switch,
                port: position,
            });
        }
        let helper_mailboxes: Result<_, _> = threads
            .iter()
            .map(|threads| mailboxes(std::iter::repeat_n(0, threads - 1)))
            .collect();
        Ok(Self {
            places,
            mailboxes: mailboxes(events.iter().map(Vec::len))?,
            events,
            ends,
            peers,
            first_events,
            helper_mailboxes: helper_mailboxes?,
        })
    }

    /// The ends of links at one switch, by port; they are given once.
    pub(super) fn ends_of(&mut self, switch: usize) -> Vec<LinkPort> {
        let first = LinkEnd {
            switch,
            port: PortId(0),
        };
        let mut later = self.ends.split_off(&first);
        let beyond = LinkEnd {
            switch: switch + 1,
            ..first
        };
        self.ends.append(&mut later.split_off(&beyond));
        let planned = |(end, (sender, receiver)): (LinkEnd, (LinkSender, LinkReceiver))| {
            let peer = &self.peers[&end];
            let mailbox = &self.mailboxes[self.places[peer.end.switch].worker];
            let event = self.first_events[&peer.end];
            LinkPort {
                port: end.port,
                peer: peer.name.clone(),
                output: LinkOutput {
                    sender,
                    receiver_mailbox: Arc::clone(mailbox),
                    receiver_event: event,
                    unannounced: false,
                },
                input: LinkInput {
                    receiver,
                    sender_mailbox: Arc::clone(mailbox),
                    sender_event: event + 1,
                },
            }
        };
        later.into_iter().map(planned).collect()
    }
}

/// One for each count of events.
fn mailboxes(counts: impl Iterator<Item = usize>) -> Result<Vec<Arc<Mailbox>>, StartError> {
    let mailboxes: io::Result<Vec<_>> = counts
        .map(|events| Mailbox::new(events).map(Arc::new))
        .collect();
    mailboxes.map_err(|error| StartError::System {
        step: "making an event descriptor",
        error,
    })
}

/// Spreads switches over workers in equal runs: neighbours are often neighbours in the
/// list too, and had better share a thread.
fn place(count: usize, workers: usize) -> Vec<Place> {
    let mut sizes = vec![0; workers];
    (0..count)
        .map(|number| {
            let worker = number * workers / count;
            let switch = sizes[worker];
            sizes[worker] += 1;
            Place { worker, switch }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switches_are_spread_in_runs() {
        let places = place(5, 2);
        let pairs: Vec<_> = places
            .iter()
            .map(|place| (place.worker, place.switch))
            .collect();
        assert_eq!(pairs, [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1)]);
    }
}
