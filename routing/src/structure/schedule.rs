//! When who sends, if every host sends one packet a step.
//!
//! The steps in which a host sends its packets to one child are the larger of two lines
//! over the number of the packet, so that no packet need be replayed: packets that come
//! every r steps leave a host of f children every max(r, f) steps, one after the other to
//! all children (FPFS), or every max(r, 1) steps to the first child alone (FCFS).

use super::error::StructureError;
use super::sends::{Send, Sends};
use wormcast_wire::{BufferClass, HostId};

/// In which order a host sends the packets of a message to its children.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Discipline {
    /// First-Packet-First-Served (PACKET §3.2): each packet to all children, as soon as
    /// it is there, and then the next.
    #[default]
    Fpfs,
    /// First-Child-First-Served, the baseline of PACKET §3.1: all packets to the first
    /// child, then all to the next.
    Fcfs,
}

impl Discipline {
    pub const NAMES: &'static [&'static str] = &["fpfs", "fcfs"];

    pub const fn name(self) -> &'static str {
        match self {
            Discipline::Fpfs => "fpfs",
            Discipline::Fcfs => "fcfs",
        }
    }

    /// The discipline of that name.
    ///
    /// # Errors
    /// [`StructureError::UnknownName`].
    pub fn from_name(name: &str) -> Result<Discipline, StructureError> {
        match name {
            "fpfs" => Ok(Discipline::Fpfs),
            "fcfs" => Ok(Discipline::Fcfs),
            _ => Err(StructureError::UnknownName {
                what: "discipline",
                name: name.to_owned(),
                choices: Discipline::NAMES,
            }),
        }
    }
}

/// The larger of two lines: `first + packet · rate`, packets counted from 0.
#[derive(Clone, Copy, Debug, Default)]
struct Steps([(u64, u64); 2]);

impl Steps {
    fn one(first: u64, rate: u64) -> Steps {
        Steps([(first, rate); 2])
    }

    fn at(self, packet: u64) -> u64 {
        let [a, b] = self.0.map(|(first, rate)| first + packet * rate);
        a.max(b)
    }

    fn later(self, steps: u64) -> Steps {
        Steps(self.0.map(|(first, rate)| (first + steps, rate)))
    }

    fn no_faster_than(self, least: u64) -> Steps {
        Steps(self.0.map(|(first, rate)| (first, rate.max(least))))
    }
}

/// A send of all packets of a message.
#[derive(Clone, Copy, Debug)]
pub struct TimedSend {
    /// Place of the sender in the order of the members.
    pub(crate) from: usize,
    /// Place of the receiver.
    pub(crate) to: usize,
    class: BufferClass,
    steps: Steps,
}

impl TimedSend {
    /// The step in which this packet is sent, both counted from 1.
    pub fn step(&self, packet: u32) -> u64 {
        self.steps.at(u64::from(packet.saturating_sub(1)))
    }
}

/// One send from host to host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Edge {
    /// When, counted from 1, if every send takes one step and hosts forward as soon as
    /// they have received. Saturates.
    pub step: u32,
    pub from: HostId,
    pub to: HostId,
    /// Class of the buffer it needs at the receiver.
    pub class: BufferClass,
}

/// The sends of a structure, and how long each takes.
pub(super) struct Schedule {
    pub(super) sends: Sends,
    /// Place of the source.
    pub(super) source: usize,
    pub(super) members: usize,
    /// Units of time that a send takes: 1 if they are steps.
    pub(super) send: u64,
    /// Units until a packet that was sent has been received, but those it is sent in.
    pub(super) flight: u64,
}

impl Schedule {
    /// Every send, parents before children; a submission comes first.
    pub(super) fn timed_sends(&self, packets: u32, discipline: Discipline) -> Vec<TimedSend> {
        let Sends { submission, sends } = &self.sends;
        let (send_time, flight) = (self.send, self.flight);
        let packets = u64::from(packets.max(1));
        let mut timed = Vec::with_capacity(sends.len() + 1);
        let mut received = vec![None::<Steps>; self.members];
        let time = |send: Send, steps| TimedSend {
            from: send.from,
            to: send.to,
            class: send.class,
            steps,
        };
        if let Some(send) = *submission {
            let steps = Steps::one(send_time, send_time);
            timed.push(time(send, steps));
            received[send.to] = Some(steps.later(flight));
        } else {
            received[self.source] = Some(Steps::default());
        }
        for children in sends.chunk_by(|send, next| send.from == next.from) {
            let from = children[0].from;
            let mut ready = received[from].expect("parents come before children");
            if submission.is_some_and(|send| send.from == from) {
                // A source that submits forwards after its last packet has left.
                ready.0[1] = (packets * send_time, 0);
            }
            for (number, send) in children.iter().enumerate() {
                let steps = match discipline {
                    Discipline::Fpfs => ready
                        .no_faster_than(children.len() as u64 * send_time)
                        .later((number as u64 + 1) * send_time),
                    Discipline::Fcfs => ready.no_faster_than(send_time).later(send_time),
                };
                if discipline == Discipline::Fcfs {
                    // By then the last packet is there.
                    ready = Steps::one(steps.at(packets - 1), 0);
                }
                timed.push(time(*send, steps));
                // In a circuit that returns, the source has had it from the beginning.
                received[send.to].get_or_insert(steps.later(flight));
            }
        }
        timed
    }

    /// Every send of the first packet, with the hosts of these places.
    pub(super) fn edges(
        &self,
        order: &[HostId],
        packets: u32,
        discipline: Discipline,
    ) -> Vec<Edge> {
        let mut edges: Vec<Edge> = self
            .timed_sends(packets, discipline)
            .into_iter()
            .map(|send| Edge {
                step: u32::try_from(send.step(1)).unwrap_or(u32::MAX),
                from: order[send.from],
                to: order[send.to],
                class: send.class,
            })
            .collect();
        // Stable: sends of one step stay in the order in which parents got the message.
        edges.sort_by_key(|edge| edge.step);
        edges
    }

    /// Steps until the last host has the last packet.
    pub(super) fn steps(&self, packets: u32, discipline: Discipline) -> u64 {
        if packets == 0 {
            return 0;
        }
        self.timed_sends(packets, discipline)
            .iter()
            .map(|send| send.step(packets) + self.flight)
            .max()
            .unwrap_or(0)
    }
}
