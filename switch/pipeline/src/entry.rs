//! What a control plane writes into a pipeline and reads from it.

use std::collections::BTreeMap;

use super::config::PortId;
use wormcast_switch_program::{ActionCall, FieldMatch};

/// Names an entry of a table for as long as it is there.
///
/// Numbers are used again, the lowest first; the generation tells the entries apart that
/// had one number (the last 256 of them).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EntryHandle {
    /// Place in the table.
    pub number: u32,
    /// Entries that had the number before, modulo 256.
    pub generation: u8,
}

impl EntryHandle {
    /// As BMv2 writes it: the generation above 24 bits of the number.
    pub fn to_u32(self) -> u32 {
        u32::from(self.generation) << 24 | self.number
    }
}

/// What an entry of a table does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntryAction {
    /// An action (a table without an action profile).
    Call(ActionCall),
    /// A member of the table's action profile.
    Member(u32),
    /// A group of the table's action profile.
    Group(u32),
    /// Actions of its own to choose among (a table whose action profile has a selector).
    Set(ActionSet),
}

/// How a group chooses among its members.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SelectionMode {
    /// As the program says: by the hash of the selector.
    #[default]
    Selector,
    Hash,
    /// At random, each packet anew.
    Random,
}

/// What the size of a group is (P4Runtime §"ActionProfile", `selector_size_semantics`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SizeSemantics {
    /// The weights of its members added up.
    SumOfWeights,
    /// The number of its members, whatever they weigh.
    SumOfMembers,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupMember {
    /// Id of the member in the action profile.
    pub member: u32,
    /// How often it is chosen relative to the others, at least 1.
    pub weight: u32,
    /// It is left out while this port is down.
    pub watch_port: Option<PortId>,
}

impl GroupMember {
    /// A member of weight 1 that watches no port.
    pub fn new(member: u32) -> Self {
        Self {
            member,
            weight: 1,
            watch_port: None,
        }
    }
}

/// One action of a set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WeightedCall {
    pub call: ActionCall,
    /// How often it is chosen relative to the others, at least 1.
    pub weight: u32,
    /// It is left out while this port is down.
    pub watch_port: Option<PortId>,
}

/// Actions an entry chooses among (P4Runtime §"One Shot Action Selector Programming").
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ActionSet {
    /// The actions; the same one may be there several times.
    pub actions: Vec<WeightedCall>,
    /// How one of them is chosen.
    pub mode: SelectionMode,
    /// What its size is; `None`: as the action profile says.
    pub size_semantics: Option<SizeSemantics>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableEntry {
    /// One match for each field of the table's key, in order.
    pub key: Vec<FieldMatch>,
    /// Higher wins, as in P4Runtime; at least 1 in a table with priorities, 0 in others.
    pub priority: i32,
    /// What happens on a match.
    pub action: EntryAction,
}

impl From<&TableEntry> for TableEntry {
    fn from(entry: &TableEntry) -> Self {
        entry.clone()
    }
}

/// One cell of a counter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CounterValue {
    /// Packets, modulo 2^64.
    pub packets: u64,
    /// Bytes of those packets as they arrived, modulo 2^64.
    pub bytes: u64,
}

impl CounterValue {
    #[inline]
    pub(super) fn add(&mut self, bytes: u64) {
        self.packets = self.packets.wrapping_add(1);
        self.bytes = self.bytes.wrapping_add(bytes);
    }
}

/// Rates and bursts of one cell of a meter. Units: those of the meter, a second.
///
/// Without [`excess_burst`](Self::excess_burst) the meter has two rates (RFC 2698); with it,
/// one rate (RFC 2697), and then the peak rate and burst equal the committed ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MeterRates {
    pub committed_rate: u64,
    pub committed_burst: u64,
    /// Peak information rate, not below the committed one.
    pub peak_rate: u64,
    pub peak_burst: u64,
    /// Excess burst size of a meter with one rate.
    pub excess_burst: Option<u64>,
}

/// Packets by the colour a meter gave them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ColourCounts {
    /// Within the committed rate.
    pub green: CounterValue,
    /// Above the committed rate, within the peak rate or the excess burst.
    pub yellow: CounterValue,
    /// Above both.
    pub red: CounterValue,
}

/// One copy that the packet replication engine makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Replica {
    /// Port the copy leaves by.
    pub port: PortId,
    /// `standard_metadata.egress_rid` of the copy.
    pub instance: u16,
}

/// What takes the place of a replica while its port is down: the first one whose port is
/// up. With none up the copy goes to the port of the replica itself, which drops it.
pub type Backups = BTreeMap<Replica, Vec<Replica>>;

/// Where clones of a session go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CloneSession {
    pub replicas: Vec<Replica>,
    /// Backups of those of the replicas that have any.
    pub backups: Backups,
    /// Copies are also made for each replica of this multicast group.
    pub group: Option<u32>,
    /// `standard_metadata.priority` of the copies; 0 leaves it as the program has set it.
    pub class_of_service: u8,
    /// Copies are cut to this many bytes; 0 leaves them whole.
    pub packet_length_bytes: u16,
}
