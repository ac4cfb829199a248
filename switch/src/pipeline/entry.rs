//! What a control plane writes into a pipeline and reads from it.

use super::bits::Bits;
use super::config::PortId;
use crate::program::ActionId;

/// What one field of a table key must be. The variant must suit the
/// [`MatchKind`](crate::program::MatchKind) of the field.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FieldMatch {
    /// Anything: a P4Runtime match field left out. For lpm, ternary, range and optional.
    Any,
    /// This value. For exact, optional and valid.
    Exact(Bits),
    /// The first `prefix_len` bits of the value. For lpm; bits past the prefix must be 0.
    Lpm {
        /// The value.
        value: Bits,
        /// Bits compared, 0 to the width of the field.
        prefix_len: u32,
    },
    /// The bits of the value where the mask has ones. For ternary; other bits must be 0.
    Ternary {
        /// The value.
        value: Bits,
        /// Ones where bits are compared.
        mask: Bits,
    },
    /// A value from low to high, both included. For range.
    Range {
        /// Least value.
        low: Bits,
        /// Greatest value, not below `low`.
        high: Bits,
    },
}

/// An action with its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActionCall {
    /// One of the table's actions.
    pub action: ActionId,
    /// One argument for each parameter, in order.
    pub arguments: Vec<Bits>,
}

/// A member or a group of an action profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntryAction {
    /// An action (a table without an action profile).
    Call(ActionCall),
    /// A member of the table's action profile.
    Member(u32),
    /// A group of the table's action profile.
    Group(u32),
}

/// One entry of a table.
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

/// Rates and bursts of one cell of a meter (RFC 2698). Units: those of the meter, a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MeterRates {
    /// Committed information rate.
    pub committed_rate: u64,
    /// Committed burst size.
    pub committed_burst: u64,
    /// Peak information rate, not below the committed one.
    pub peak_rate: u64,
    /// Peak burst size.
    pub peak_burst: u64,
}

/// One copy that the packet replication engine makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Replica {
    /// Port the copy leaves by.
    pub port: PortId,
    /// `standard_metadata.egress_rid` of the copy.
    pub instance: u16,
}

/// Where clones of a session go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CloneSession {
    /// The copies.
    pub replicas: Vec<Replica>,
    /// Copies are cut to this many bytes; 0 leaves them whole.
    pub packet_length_bytes: u16,
}
