//! A program that is ready to run.

use std::collections::BTreeMap;
use std::ops::{Deref, Range};

use super::calculation::{Calculation, Checksum};
use super::code::Code;
use super::control::{Control, ControlNode, Selector, Stage};
use super::description::{
    ActionId, ActionInfo, ActionProfileId, ActionProfileInfo, CounterId, CounterInfo, DigestId,
    DigestInfo, HeaderTypeInfo, MeterId, MeterInfo, RegisterId, RegisterInfo, TableId, TableInfo,
    ValueSetId, ValueSetInfo,
};
use super::entry::FieldMatch;
use super::layout::{FieldRef, Layout, Slot};
use super::metadata::{CoreErrors, FieldList, Intrinsics};
use super::names::Names;
use super::parser::Parser;
use super::table::Table;

/// Sets of words of the header vector, as ascending ranges.
#[derive(Clone, Debug, Default)]
pub struct Footprint {
    /// Validities, fills of stacks and fields that may be read before they are written.
    pub reset: Vec<Range<usize>>,
    /// What the egress control and the deparser may write.
    pub egress_writes: Vec<Range<usize>>,
}

/// A validated program.
#[derive(Debug)]
pub struct Program {
    pub(super) text: String,
    pub(super) name: String,
    pub(super) header_types: Vec<HeaderTypeInfo>,
    pub(super) tables: Vec<TableInfo>,
    pub(super) actions: Vec<ActionInfo>,
    pub(super) counters: Vec<CounterInfo>,
    pub(super) registers: Vec<RegisterInfo>,
    pub(super) meters: Vec<MeterInfo>,
    pub(super) value_sets: Vec<ValueSetInfo>,
    pub(super) digests: Vec<DigestInfo>,
    pub(super) action_profiles: Vec<ActionProfileInfo>,
    pub(super) ir: Ir,
}

/// What a program does, for whoever runs or compiles it. Every index in it is valid, and every
/// word lies in the frame: a [`Program`] hands it out for reading alone.
#[derive(Debug)]
pub struct Ir {
    pub layout: Layout,
    pub code: Code,
    pub parser: Parser,
    pub ingress: Control,
    pub egress: Control,
    pub table_plans: Vec<Table>,
    pub selectors: Vec<Option<Selector>>,
    /// Start of each action's code.
    pub action_code: Vec<u32>,
    /// First word and width of each action's arguments.
    pub action_arguments: Vec<Vec<(Slot, u32)>>,
    pub calculations: Vec<Calculation>,
    /// Names of those of the program; the selectors' follow without.
    pub calculation_names: Vec<String>,
    pub verified: Vec<Checksum>,
    pub updated: Vec<Checksum>,
    /// Headers in the order the deparser writes them.
    pub deparser: Vec<u32>,
    /// Code the deparser runs first.
    pub deparser_code: Option<u32>,
    pub field_lists: BTreeMap<u64, FieldList>,
    /// Id in the JSON and fields of each digest.
    pub digest_lists: BTreeMap<u64, (DigestId, Vec<FieldRef>)>,
    pub intrinsics: Intrinsics,
    pub errors: CoreErrors,
    pub names: Names,
    pub footprint: Footprint,
}

impl Deref for Program {
    type Target = Ir;

    #[inline]
    fn deref(&self) -> &Ir {
        &self.ir
    }
}

impl Program {
    /// The JSON it was read from.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The name of the P4 source, if the compiler wrote it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Header types and metadata structures.
    pub fn header_types(&self) -> &[HeaderTypeInfo] {
        &self.header_types
    }

    /// Tables of ingress, then of egress.
    pub fn tables(&self) -> &[TableInfo] {
        &self.tables
    }

    /// Actions. Several can have one name, see [`ActionInfo`].
    pub fn actions(&self) -> &[ActionInfo] {
        &self.actions
    }

    /// Counter arrays, direct ones included.
    pub fn counters(&self) -> &[CounterInfo] {
        &self.counters
    }

    pub fn registers(&self) -> &[RegisterInfo] {
        &self.registers
    }

    /// Meter arrays, direct ones included.
    pub fn meters(&self) -> &[MeterInfo] {
        &self.meters
    }

    pub fn value_sets(&self) -> &[ValueSetInfo] {
        &self.value_sets
    }

    pub fn digests(&self) -> &[DigestInfo] {
        &self.digests
    }

    pub fn action_profiles(&self) -> &[ActionProfileInfo] {
        &self.action_profiles
    }

    pub fn table(&self, name: &str) -> Option<TableId> {
        position(&self.tables, |table| table.name == name).map(TableId::from_index)
    }

    /// The action with a name among those of a table.
    pub fn table_action(&self, table: TableId, name: &str) -> Option<ActionId> {
        let actions = &self.tables.get(table.index())?.actions;
        actions
            .iter()
            .copied()
            .find(|action| self.actions[action.index()].name == name)
    }

    /// The action of a table for packets that match no entry, as the program has it.
    pub fn default_action(&self, table: TableId) -> Option<ActionId> {
        let plan = self.table_plans.get(table.index())?;
        plan.default.as_ref().map(|call| call.action)
    }

    /// Keys and actions of the entries that a table comes with, in their order.
    pub fn initial_entries(
        &self,
        table: TableId,
    ) -> impl Iterator<Item = (&[FieldMatch], ActionId)> {
        let plan = self.table_plans.get(table.index());
        let entries = plan.map_or(&[][..], |plan| plan.entries.as_slice());
        entries
            .iter()
            .map(|entry| (entry.key.as_slice(), entry.action.action))
    }

    /// The counter array with a name.
    pub fn counter(&self, name: &str) -> Option<CounterId> {
        position(&self.counters, |counter| counter.name == name).map(CounterId::from_index)
    }

    /// The register array with a name.
    pub fn register(&self, name: &str) -> Option<RegisterId> {
        position(&self.registers, |register| register.name == name).map(RegisterId::from_index)
    }

    /// The meter array with a name.
    pub fn meter(&self, name: &str) -> Option<MeterId> {
        position(&self.meters, |meter| meter.name == name).map(MeterId::from_index)
    }

    /// The parser value set with a name.
    pub fn value_set(&self, name: &str) -> Option<ValueSetId> {
        position(&self.value_sets, |set| set.name == name).map(ValueSetId::from_index)
    }

    /// The digests with a name: p4c makes one for each call of `digest`, and those of one
    /// struct have one name, and are one digest of the P4Info.
    pub fn digests_named<'p>(&'p self, name: &'p str) -> impl Iterator<Item = DigestId> + 'p {
        let digests = self.digests.iter().enumerate();
        let named = digests.filter(move |(_, digest)| digest.name == name);
        named.map(|(index, _)| DigestId::from_index(index))
    }

    /// The condition whose code begins there: its node and the word with its result.
    pub fn condition_at(&self, stage: Stage, start: u32) -> Option<(u32, Slot)> {
        let control = match stage {
            Stage::Ingress => &self.ingress,
            Stage::Egress => &self.egress,
        };
        (0..)
            .zip(&control.nodes)
            .find_map(|(index, node)| match node {
                ControlNode::Condition { code, result, .. } if *code == start => {
                    Some((index, *result))
                }
                _ => None,
            })
    }

    pub fn action_profile(&self, name: &str) -> Option<ActionProfileId> {
        position(&self.action_profiles, |profile| profile.name == name)
            .map(ActionProfileId::from_index)
    }
}

fn position<T>(items: &[T], matches: impl Fn(&T) -> bool) -> Option<usize> {
    items.iter().position(matches)
}
