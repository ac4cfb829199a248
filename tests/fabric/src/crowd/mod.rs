//! Programs of many connections on one host, over the agent's local API as it ships: those that send, each a process
//! of its own, and one that receives each group. Each may end, break off, be slow, give up or be killed. They note
//! what they did and what they were told ([`Record`]); whoever judges it comes later.

mod content;
mod reader;
mod record;
mod writer;

use crate::random::Random;
pub use content::{Content, Hash, Ident};
pub use reader::{Habits, Reader};
pub use record::{Fate, Outcome, Record, Sent, Taken};
use std::collections::{BTreeMap, BTreeSet};
use wormcast_agent_core::agent::Agent;
use wormcast_agent_core::api::{NumberedRequest, Request};
use wormcast_agent_core::clients::{ConnectionId, Outbound};
use wormcast_protocol::Instant;
pub use writer::{Draft, Ending, Writer};

/// Connections up to this number are of others.
const OTHERS_LAST: u64 = 1;
/// Lives of a stream that one life of an agent may begin.
const STAYS: u32 = 1_000;

/// What a program has at hand while it acts.
struct Desk<'a> {
    agent: &'a mut Agent,
    record: &'a mut Record,
    random: &'a mut Random,
    connections: &'a mut Connections,
    host: u16,
    /// Life of the agent, and stays in each group.
    life: u32,
    stays: &'a BTreeMap<u16, u32>,
    now: Instant,
    now_us: u64,
}

impl Desk<'_> {
    fn connect(&mut self, who: Who) -> ConnectionId {
        self.connections.last += 1;
        let id = ConnectionId(self.connections.last);
        self.connections.open.insert(id, who);
        self.agent.connect(id, format!("{who:?}"));
        id
    }

    fn disconnect(&mut self, id: ConnectionId) {
        self.connections.open.remove(&id);
        self.agent.disconnect(id, self.now);
    }

    /// Asks; gives the number that the answer will have.
    fn ask(&mut self, connection: ConnectionId, request: Request) -> u64 {
        self.connections.requests += 1;
        let id = self.connections.requests;
        let request = NumberedRequest { id, request };
        self.agent.request(connection, request, self.now);
        id
    }

    fn life_in(&self, group: u16) -> u32 {
        self.life * STAYS + self.stays.get(&group).copied().unwrap_or(0)
    }
}

/// Whose connection it is.
#[derive(Clone, Copy, Debug)]
enum Who {
    Writer(usize),
    Reader(u16),
}

#[derive(Debug)]
struct Connections {
    open: BTreeMap<ConnectionId, Who>,
    last: u64,
    requests: u64,
}

/// The programs of a host.
#[derive(Debug)]
pub struct Crowd {
    pub record: Record,
    /// By group.
    pub readers: BTreeMap<u16, Reader>,
    writers: Vec<Writer>,
    connections: Connections,
    random: Random,
    host: u16,
    life: u32,
    stays: BTreeMap<u16, u32>,
    /// Groups of the plan that the agent follows.
    groups: BTreeSet<u16>,
}

impl Crowd {
    pub fn new(host: u16) -> Crowd {
        Crowd {
            record: Record::default(),
            readers: BTreeMap::new(),
            writers: Vec::new(),
            connections: Connections {
                open: BTreeMap::new(),
                last: OTHERS_LAST,
                requests: 0,
            },
            random: Random::new(host.into()),
            host,
            life: 0,
            stays: BTreeMap::new(),
            groups: BTreeSet::new(),
        }
    }

    /// What they draw follows from this.
    pub fn seed(&mut self, seed: u64) {
        self.random = Random::new(seed ^ u64::from(self.host) << 20);
    }

    /// One more process that writes to a group, from that time on.
    pub fn write(&mut self, group: u16, drafts: Vec<Draft>, in_a_row: bool, starts_us: u64) {
        let number = self.writers.len();
        let writer = Writer::new((number, group), drafts, in_a_row, starts_us);
        self.writers.push(writer);
    }

    /// Whether everything that is to be written has been, and has its outcome.
    pub fn is_settled(&self) -> bool {
        self.record.awaited == 0 && self.writers.iter().all(Writer::is_done)
    }

    /// The agent is another one: all connections have broken.
    pub fn restart(&mut self, now_us: u64) {
        self.life += 1;
        self.stays.clear();
        self.groups.clear();
        self.connections.open.clear();
        for writer in &mut self.writers {
            writer.restart(&mut self.record, now_us);
        }
        for reader in self.readers.values_mut() {
            reader.restart(&mut self.record, now_us);
        }
    }

    /// The agent follows another plan.
    pub fn on_plan(&mut self, groups: BTreeSet<u16>) {
        for left in self.groups.difference(&groups) {
            *self.stays.entry(*left).or_default() += 1;
        }
        self.groups = groups;
    }

    fn parts(&mut self, agent: &mut Agent, now: Instant, now_us: u64, to: impl FnOnce(Parts<'_>)) {
        to(Parts {
            desk: Desk {
                agent,
                record: &mut self.record,
                random: &mut self.random,
                connections: &mut self.connections,
                host: self.host,
                life: self.life,
                stays: &self.stays,
                now,
                now_us,
            },
            writers: &mut self.writers,
            readers: &mut self.readers,
        });
    }

    /// Each does what it can. Gives the time at which to go on, if one wants to.
    pub fn act(&mut self, agent: &mut Agent, now: Instant, now_us: u64) -> Option<u64> {
        let mut next: Option<u64> = None;
        self.parts(agent, now, now_us, |parts| {
            let Parts {
                mut desk,
                writers,
                readers,
            } = parts;
            let writers = writers.iter_mut().filter(|writer| !writer.is_done());
            let wakes = writers.filter_map(|writer| writer.act(&mut desk));
            next = wakes.min();
            for reader in readers.values_mut() {
                next = [next, reader.act(&mut desk)].into_iter().flatten().min();
            }
        });
        next
    }

    /// Takes what the agent sends on a connection.
    pub fn take(
        &mut self,
        agent: &mut Agent,
        from: ConnectionId,
        outbound: Outbound,
        now: Instant,
        now_us: u64,
    ) {
        let who = self.connections.open.get(&from).copied();
        self.parts(agent, now, now_us, |parts| {
            let Parts {
                mut desk,
                writers,
                readers,
            } = parts;
            match who {
                Some(Who::Writer(number)) => writers[number].take(outbound, &mut desk),
                Some(Who::Reader(group)) => {
                    let reader = readers.get_mut(&group).expect("it is connected");
                    reader.take(outbound, &mut desk);
                }
                // It is closed already.
                None => {}
            }
        });
    }

    /// The program that receives a group does this now.
    pub fn at_reader(
        &mut self,
        group: u16,
        (agent, now, now_us): (&mut Agent, Instant, u64),
        does: Deed,
    ) {
        self.parts(agent, now, now_us, |parts| {
            let Parts {
                mut desk, readers, ..
            } = parts;
            if let Some(reader) = readers.get_mut(&group) {
                match does {
                    Deed::Closes => reader.close(&mut desk),
                    Deed::BreaksOff => reader.break_off(&mut desk),
                }
            }
        });
    }
}

/// What a program that receives may be made to do.
#[derive(Clone, Copy, Debug)]
pub enum Deed {
    Closes,
    BreaksOff,
}

struct Parts<'a> {
    desk: Desk<'a>,
    writers: &'a mut Vec<Writer>,
    readers: &'a mut BTreeMap<u16, Reader>,
}
