//! What a loaded program offers to a control plane: names, widths, sizes.
//!
//! Everything is addressed by dense ids that are indices into the lists of
//! [`Program`](super::Program). Names are those of the JSON, which p4c keeps equal to
//! the fully qualified names of the P4Info (`ingress.ports`).

use std::fmt;

use crate::Bits;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);

        impl $name {
            /// Position in the list of the program that describes these objects.
            pub fn index(self) -> usize {
                self.0 as usize
            }

            #[allow(dead_code)]
            pub fn from_index(index: usize) -> Self {
                Self(u32::try_from(index).expect("the loader bounds every list far below 2^32"))
            }
        }
    };
}

id!(
    /// A match-action table: index into [`Program::tables`](super::Program::tables).
    TableId
);
id!(
    /// An action: index into [`Program::actions`](super::Program::actions).
    ActionId
);
id!(
    /// A counter array: index into [`Program::counters`](super::Program::counters).
    CounterId
);
id!(
    /// A register array: index into [`Program::registers`](super::Program::registers).
    RegisterId
);
id!(
    /// A meter array: index into [`Program::meters`](super::Program::meters).
    MeterId
);
id!(
    /// A parser value set: index into [`Program::value_sets`](super::Program::value_sets).
    ValueSetId
);
id!(
    /// A digest (learn list): index into [`Program::digests`](super::Program::digests).
    DigestId
);
id!(
    /// An action profile: index into [`Program::action_profiles`](super::Program::action_profiles).
    ActionProfileId
);

/// How one field of a table key is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MatchKind {
    /// Equal, all bits.
    Exact,
    /// Equal in the first `prefix_len` bits; the longest prefix wins.
    Lpm,
    /// Equal where the mask has ones; the entry's priority decides.
    Ternary,
    /// Between two bounds, both included; the entry's priority decides.
    Range,
    /// Either a value or anything; the entry's priority decides.
    Optional,
    /// Validity of a header, a one-bit value (P4-14 programs only).
    Valid,
}

impl fmt::Display for MatchKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            MatchKind::Exact => "exact",
            MatchKind::Lpm => "lpm",
            MatchKind::Ternary => "ternary",
            MatchKind::Range => "range",
            MatchKind::Optional => "optional",
            MatchKind::Valid => "valid",
        })
    }
}

/// One field of a table key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyField {
    /// Name as in the P4Info.
    pub name: String,
    pub kind: MatchKind,
    pub width_bits: u32,
    /// The bits that are compared, where the program masks the field (`field & 0xf0: exact`).
    pub mask: Option<Bits>,
}

/// One parameter of an action, given by the control plane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    pub name: String,
    pub width_bits: u32,
}

/// An action as the control plane sees it.
///
/// p4c makes copies of one P4 action, so several actions of a program can have one name;
/// look a name up among the actions of a table ([`TableInfo::actions`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActionInfo {
    /// Name as in the P4Info.
    pub name: String,
    /// Parameters, in order.
    pub parameters: Vec<Parameter>,
}

/// A table as the control plane sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableInfo {
    /// Name as in the P4Info. p4c also makes tables of its own (`tbl_act…`), which have no
    /// key and do not appear in the P4Info.
    pub name: String,
    /// Key fields, in order; empty for a table without a key.
    pub key: Vec<KeyField>,
    /// Actions an entry or the default may call.
    pub actions: Vec<ActionId>,
    /// Most entries it can hold.
    pub size: usize,
    /// Entries are fixed by the program; the control plane can only read them.
    pub const_entries: bool,
    /// The default action is fixed by the program.
    pub const_default: bool,
    /// Entries have priorities (a ternary, range or optional key field); higher wins.
    pub has_priority: bool,
    /// The counter with one cell an entry, if the table has one.
    pub direct_counter: Option<CounterId>,
    /// The meter with one cell an entry, if the table has one.
    pub direct_meter: Option<MeterId>,
    /// Entries refer to members or groups of this action profile instead of actions.
    pub action_profile: Option<ActionProfileId>,
    /// Entries can age (`support_timeout`).
    pub supports_timeout: bool,
}

/// A counter array. It counts packets and bytes at once, as BMv2 does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CounterInfo {
    /// Name as in the P4Info.
    pub name: String,
    /// Cells; for a direct counter the size of its table.
    pub size: usize,
    /// The table whose entries it counts, for a direct counter.
    pub table: Option<TableId>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegisterInfo {
    /// Name as in the P4Info.
    pub name: String,
    /// Cells.
    pub size: usize,
    /// Width of a cell in bits.
    pub width_bits: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeterUnit {
    /// Rates in packets a second, bursts in packets.
    Packets,
    /// Rates in bytes a second, bursts in bytes.
    Bytes,
}

/// A meter array, two rates and three colours (RFC 2698).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeterInfo {
    /// Name as in the P4Info.
    pub name: String,
    /// Cells; for a direct meter the size of its table.
    pub size: usize,
    pub unit: MeterUnit,
    /// The table whose entries it meters, for a direct meter.
    pub table: Option<TableId>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueSetInfo {
    /// Name as in the P4Info.
    pub name: String,
    /// Width of a member in bits: the fields of the select key, one after another.
    pub width_bits: u32,
    /// Width of each field of the select key it is compared with; one field of the whole
    /// width where no state of the parser uses it.
    pub fields_bits: Vec<u32>,
}

/// A digest the data plane can send to the control plane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DigestInfo {
    /// Name as in the P4Info.
    pub name: String,
    /// Width of each field in bits.
    pub fields_bits: Vec<u32>,
}

/// An action profile, with or without a selector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActionProfileInfo {
    /// Name as in the P4Info.
    pub name: String,
    /// Most members.
    pub size: usize,
    /// Groups choose among members by hash.
    pub has_selector: bool,
}

/// A header type or a metadata structure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderTypeInfo {
    pub name: String,
    /// Fields in order: name and width in bits; for a `varbit` the most it can have.
    pub fields: Vec<Parameter>,
}
