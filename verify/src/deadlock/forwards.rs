//! Worms from host to host, and hosts that pass them on.
//!
//! A message that a host passes on lies in a buffer there, and needs the channels to the
//! next host and, if that passes it on too, a buffer there. With [`Forwarding::Store`]
//! the next host refuses it while it has no buffer, and no channel is held; with
//! [`Forwarding::CutThrough`] it waits with all its channels.

use super::{Branching, Buffers, ChannelGraph, DeadlockError, Forwarding, Worm};
use wormcast_routing::routes::Route;
use wormcast_routing::topology::Attachment;
use wormcast_wire::{BufferClass, HostId, PortId};

/// A way from one place where a whole worm can lie to the next.
struct Piece {
    channels: Vec<u32>,
    /// Host at its end, by index.
    to: u32,
}

/// A send of a group's message from host to host; see [`ChannelGraph::add_forwards`].
#[derive(Clone, Debug)]
pub struct Forward {
    pub route: Route,
    /// Class of the buffer it needs at the receiver.
    pub class: BufferClass,
}

impl ChannelGraph<'_> {
    /// Adds the message of a group that starts at `src`, sends in the order they happen:
    /// a host sends after it has received. The source holds the message in class 1.
    ///
    /// # Errors
    /// A route that the topology does not have, or from a host that has no message yet.
    pub fn add_forwards(&mut self, src: HostId, sends: &[Forward]) -> Result<(), DeadlockError> {
        let mut held = vec![None; self.topology.hosts().len()];
        held[self.topology.host_index(src)? as usize] = Some(BufferClass::One);
        for send in sends {
            let (from, to) = (send.route.src, send.route.dst);
            let at = self.topology.host_index(from)? as usize;
            let Some(class) = held[at] else {
                return Err(DeadlockError::ForwardsBefore { src, from, to });
            };
            let worm = Worm::Forwarded { src, from, to };
            self.add_message(&send.route, Some(class), Some(send.class), &worm)?;
            held[self.topology.host_index(to)? as usize] = Some(send.class);
        }
        self.count("forwards", sends.len());
        Ok(())
    }

    /// Adds what a message needs from host to host: `held` is the class of the buffer it
    /// lies in at the start, and `needed` that at the end, if there are any.
    pub(super) fn add_message(
        &mut self,
        route: &Route,
        held: Option<BufferClass>,
        needed: Option<BufferClass>,
        worm: &Worm,
    ) -> Result<(), DeadlockError> {
        let pieces = self.pieces(route)?;
        let mut from = self.topology.host_index(route.src)?;
        let mut class = held.unwrap_or(BufferClass::One);
        let mut lies_in = held.and_then(|class| self.buffer(from, class));
        for (place, piece) in pieces.iter().enumerate() {
            let next = if place + 1 == pieces.len() {
                needed.and_then(|class| self.buffer(piece.to, class))
            } else {
                // Indices ascend with ids.
                if piece.to < from {
                    class = BufferClass::Two;
                }
                self.buffer(piece.to, class)
            };
            self.add_piece(&piece.channels, lies_in, next, worm);
            (from, lies_in) = (piece.to, next);
        }
        Ok(())
    }

    fn add_piece(
        &mut self,
        channels: &[u32],
        lies_in: Option<u32>,
        next: Option<u32>,
        worm: &Worm,
    ) {
        for pair in channels.windows(2) {
            self.add_dependency(pair[0], pair[1], worm);
        }
        let (first, last) = (channels[0], channels[channels.len() - 1]);
        if let Some(held) = lies_in {
            self.add_dependency(held, first, worm);
            if self.model.branching == Branching::Flushed {
                // Flushed and sent again, the worm gives up its channels, not its buffer.
                for &channel in channels {
                    self.add_dependency(held, channel, worm);
                }
            }
        }
        match (self.model.forwarding, lies_in, next) {
            (Forwarding::Store, Some(held), Some(next)) => self.add_dependency(held, next, worm),
            (Forwarding::CutThrough, _, Some(next)) => self.add_dependency(last, next, worm),
            _ => {}
        }
    }

    /// The buffer a message lies in, where it can run out.
    pub(super) fn buffer(&self, host: u32, class: BufferClass) -> Option<u32> {
        match self.model.buffers {
            Buffers::Spill => None,
            Buffers::Classes => Some(self.numbers.buffer(host, class)),
            Buffers::Shared => Some(self.numbers.buffer(host, BufferClass::One)),
        }
    }

    fn pieces(&self, route: &Route) -> Result<Vec<Piece>, DeadlockError> {
        let (src, dst) = (route.src, route.dst);
        let wrong = |reason: String| DeadlockError::Route { src, dst, reason };
        let start = self.topology.host_index(src)?;
        let mut channels = vec![self.numbers.injection(start)];
        let mut pieces = Vec::new();
        let mut at = Attachment::Host(src);
        let mut in_transit = route.in_transit.iter();
        for (&switch, &byte) in route.switches.iter().zip(&route.ports) {
            let arrived = match at {
                Attachment::Switch(switch, _) => switch,
                Attachment::Host(host) => {
                    if channels.len() > 1 {
                        if in_transit.next() != Some(&host) {
                            return Err(wrong(format!(
                                "host {host} re-injects but is not in in_transit"
                            )));
                        }
                        let to = self.topology.host_index(host)?;
                        let done =
                            std::mem::replace(&mut channels, vec![self.numbers.injection(to)]);
                        pieces.push(Piece { channels: done, to });
                    }
                    self.topology.host(host)?.switch
                }
            };
            if arrived != switch {
                return Err(wrong(format!(
                    "switch {switch} is named where switch {arrived} is"
                )));
            }
            let port = PortId::new(byte)
                .ok_or_else(|| wrong(format!("byte {byte} is no port; ports are 0 to 253")))?;
            let (channel, end) = self.numbers.leave(switch, port)?;
            channels.push(channel);
            at = end;
        }
        if at != Attachment::Host(dst) || channels.len() == 1 {
            return Err(wrong("it does not end at its destination".into()));
        }
        if let Some(host) = in_transit.next() {
            return Err(wrong(format!("it does not pass in-transit host {host}")));
        }
        let to = self.topology.host_index(dst)?;
        pieces.push(Piece { channels, to });
        Ok(pieces)
    }
}
