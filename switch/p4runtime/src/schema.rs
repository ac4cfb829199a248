//! P4Info bound to a program: ids of the control plane on one side, objects of the
//! pipeline on the other.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::absent::Absent;
use super::digests::Shape;
use super::translation::Translation;
use super::values::ValueType;
use wormcast_switch_pipeline::SizeSemantics;
use wormcast_switch_program::{
    ActionId, ActionProfileId, CounterId, DigestId, MatchKind, MeterId, RegisterId, TableId,
    ValueSetId,
};

/// Everything a controller can name.
#[derive(Debug, Default)]
pub struct Schema {
    pub(super) tables: BTreeMap<u32, TableSchema>,
    pub(super) table_ids: BTreeMap<TableId, u32>,
    pub(super) counters: BTreeMap<u32, CounterSchema>,
    pub(super) registers: BTreeMap<u32, RegisterSchema>,
    pub(super) meters: BTreeMap<u32, MeterSchema>,
    pub(super) profiles: BTreeMap<u32, ProfileSchema>,
    pub(super) value_sets: BTreeMap<u32, ValueSetSchema>,
    pub(super) digests: BTreeMap<u32, DigestSchema>,
    pub(super) digest_ids: BTreeMap<DigestId, u32>,
    /// What the P4Info has besides, and the program has not.
    pub absent: Absent,
    /// What controllers have for ports, if it is not their number.
    pub port_type: Option<Arc<Translation>>,
    /// Highest port: what `standard_metadata.egress_spec` can hold.
    pub port_max: u16,
    /// Fields of the header in front of a packet-in.
    pub packet_in: Vec<PacketField>,
    /// Fields of the header in front of a packet-out.
    pub packet_out: Vec<PacketField>,
}

#[derive(Debug)]
pub struct TableSchema {
    /// Id in the P4Info.
    pub id: u32,
    /// Name in the P4Info.
    pub name: String,
    /// The table of the pipeline.
    pub table: TableId,
    /// Key fields, in the order of the key.
    pub fields: Vec<FieldSchema>,
    /// Actions by their id in the P4Info.
    pub actions: BTreeMap<u32, ActionSchema>,
    pub has_priority: bool,
    pub const_entries: bool,
    /// Most entries, as the P4Info says.
    pub size: usize,
    /// The default action cannot be changed.
    pub const_default: bool,
    /// Unit of the counter that each entry has, if they have one.
    pub direct_counter: Option<CounterUnit>,
    /// Kind of the meter that each entry has, if they have one.
    pub direct_meter: Option<MeterKind>,
    pub has_idle_timeout: bool,
    /// Id of the action profile whose members and groups entries refer to.
    pub profile_id: Option<u32>,
}

/// A field of a table's key.
#[derive(Debug)]
pub struct FieldSchema {
    /// Id within the table.
    pub id: u32,
    pub name: String,
    /// How it is compared, for the control plane.
    pub kind: MatchKind,
    /// The program compares it by value and mask: what p4c makes of `optional`.
    pub is_ternary_in_program: bool,
    pub value: ValueType,
}

/// An action of a table.
#[derive(Clone, Debug)]
pub struct ActionSchema {
    /// Id in the P4Info.
    pub id: u32,
    pub name: String,
    /// The action of the pipeline; `None`: the program does not have it.
    pub action: Option<ActionId>,
    /// Parameters that the program does not have of it; then it does not have it.
    pub lacks: Vec<String>,
    /// Parameters, in order.
    pub parameters: Vec<ParameterSchema>,
    /// Entries may call it.
    pub for_entries: bool,
    /// The default may be it.
    pub for_default: bool,
}

/// A parameter of an action.
#[derive(Clone, Debug)]
pub struct ParameterSchema {
    /// Id within the action.
    pub id: u32,
    pub name: String,
    pub value: ValueType,
}

/// What of a counter the control plane sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CounterUnit {
    pub packets: bool,
    pub bytes: bool,
}

/// Which configs a meter takes (`MeterSpec.Type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeterKind {
    /// RFC 2698.
    TwoRates,
    /// RFC 2697.
    OneRateThreeColours,
    /// RFC 2697 without an excess burst.
    OneRateTwoColours,
}

#[derive(Debug)]
pub struct CounterSchema {
    /// Id in the P4Info.
    pub id: u32,
    pub name: String,
    /// The counter of the pipeline.
    pub counter: CounterId,
    /// Cells.
    pub size: usize,
    /// What controllers have for indexes, if it is not their number.
    pub index: Option<Arc<Translation>>,
    pub unit: CounterUnit,
}

#[derive(Debug)]
pub struct MeterSchema {
    /// Id in the P4Info.
    pub id: u32,
    pub name: String,
    /// The meter of the pipeline.
    pub meter: MeterId,
    /// Cells.
    pub size: usize,
    /// What controllers have for indexes, if it is not their number.
    pub index: Option<Arc<Translation>>,
    pub kind: MeterKind,
}

#[derive(Debug)]
pub struct ProfileSchema {
    /// Id in the P4Info.
    pub id: u32,
    pub name: String,
    /// The action profile of the pipeline.
    pub profile: ActionProfileId,
    /// Groups choose among members.
    pub has_selector: bool,
    /// Greatest size of a group; 0: any.
    pub group_size_max: u32,
    /// What the size of a group is.
    pub size_semantics: SizeSemantics,
    /// Greatest weight of a member; 0: any.
    pub member_weight_max: u32,
    pub weights_disallowed: bool,
    /// Actions of members by their id in the P4Info.
    pub actions: BTreeMap<u32, ActionSchema>,
}

#[derive(Debug)]
pub struct RegisterSchema {
    /// Id in the P4Info.
    pub id: u32,
    pub name: String,
    /// The register of the pipeline.
    pub register: RegisterId,
    /// Cells.
    pub size: usize,
    /// What controllers have for indexes, if it is not their number.
    pub index: Option<Arc<Translation>>,
    /// Which form of `P4Data` a cell has.
    pub form: DataForm,
    pub value: ValueType,
}

/// The form of a `P4Data` message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataForm {
    /// `bitstring`, without a sign.
    Unsigned,
    /// `bitstring` in two's complement.
    Signed,
    Bool,
    /// `enum_value`.
    Enum,
}

#[derive(Debug)]
pub struct ValueSetSchema {
    /// Id in the P4Info.
    pub id: u32,
    /// Name in the P4Info.
    pub name: String,
    /// The value set of the pipeline.
    pub set: ValueSetId,
    /// Fields of a member, in the order of the select key.
    pub fields: Vec<FieldSchema>,
    /// Most members.
    pub size: usize,
}

#[derive(Debug)]
pub struct DigestSchema {
    /// Id in the P4Info.
    pub id: u32,
    pub name: String,
    /// Type of its data, or why messages of this type cannot be sent.
    pub shape: Result<Shape, String>,
}

/// A field of the header of packet-ins or packet-outs.
#[derive(Clone, Debug)]
pub struct PacketField {
    /// Id of the metadata.
    pub id: u32,
    pub name: String,
    pub value: ValueType,
    /// Only fills up a byte: nobody misses it.
    pub is_padding: bool,
}

impl Schema {
    /// A table by its id in the P4Info.
    pub fn table(&self, id: u32) -> Option<&TableSchema> {
        self.tables.get(&id)
    }

    /// Tables in order of their id.
    pub fn tables(&self) -> impl Iterator<Item = &TableSchema> {
        self.tables.values()
    }

    /// An indirect counter by its id in the P4Info.
    pub fn counter(&self, id: u32) -> Option<&CounterSchema> {
        self.counters.get(&id)
    }

    /// Indirect counters in order of their id.
    pub fn counters(&self) -> impl Iterator<Item = &CounterSchema> {
        self.counters.values()
    }

    /// A register by its id in the P4Info.
    pub fn register(&self, id: u32) -> Option<&RegisterSchema> {
        self.registers.get(&id)
    }

    /// Registers in order of their id.
    pub fn registers(&self) -> impl Iterator<Item = &RegisterSchema> {
        self.registers.values()
    }

    /// An indirect meter by its id in the P4Info.
    pub fn meter(&self, id: u32) -> Option<&MeterSchema> {
        self.meters.get(&id)
    }

    /// Indirect meters in order of their id.
    pub fn meters(&self) -> impl Iterator<Item = &MeterSchema> {
        self.meters.values()
    }

    /// An action profile by its id in the P4Info.
    pub fn profile(&self, id: u32) -> Option<&ProfileSchema> {
        self.profiles.get(&id)
    }

    /// Action profiles in order of their id.
    pub fn profiles(&self) -> impl Iterator<Item = &ProfileSchema> {
        self.profiles.values()
    }

    /// A parser value set by its id in the P4Info.
    pub fn value_set(&self, id: u32) -> Option<&ValueSetSchema> {
        self.value_sets.get(&id)
    }

    /// Parser value sets in order of their id.
    pub fn value_sets(&self) -> impl Iterator<Item = &ValueSetSchema> {
        self.value_sets.values()
    }

    /// A digest by its id in the P4Info.
    pub fn digest(&self, id: u32) -> Option<&DigestSchema> {
        self.digests.get(&id)
    }

    /// A digest by its place in the program.
    pub fn digest_of(&self, digest: DigestId) -> Option<&DigestSchema> {
        self.digests.get(self.digest_ids.get(&digest)?)
    }

    /// Digests in order of their id.
    pub fn digests(&self) -> impl Iterator<Item = &DigestSchema> {
        self.digests.values()
    }
}
