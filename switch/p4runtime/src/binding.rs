//! Binding: finds every object of a P4Info in a program, or says what does not fit.

use std::collections::{BTreeMap, BTreeSet};

use super::absent::Absent;
use super::digests::Shape;
use super::entry::can_say;
use super::fit::{Bound, Object, absent, bind_match_kind, identity, misfit};
use super::objects::{
    bind_counter, bind_meter, bind_profile, bind_register, bind_value_set, counter_unit, meter_kind,
};
use super::packet_io::bind_fields;
use super::proto::p4::config::v1::{
    self as info, P4Info, Preamble, action_ref::Scope, table::IdleTimeoutBehavior,
};
use super::schema::{
    ActionSchema, DigestSchema, FieldSchema, ParameterSchema, Schema, TableSchema,
};
use super::translation::TranslationTables;
use super::types::Types;
use wormcast_switch_program::{ActionId, KeyField, MatchKind, Program, TableId};

impl Schema {
    /// Finds every object of the P4Info in the program.
    pub fn bind(p4info: &P4Info, program: &Program) -> Bound<Self> {
        Self::bind_translated(p4info, program, &TranslationTables::default())
    }

    /// The same, with what a file says of translated types.
    pub fn bind_translated(
        p4info: &P4Info,
        program: &Program,
        tables: &TranslationTables,
    ) -> Bound<Self> {
        let mut schema = Self::default();
        check_names("table", p4info.tables.iter().map(|one| &one.preamble))?;
        check_names("counter", p4info.counters.iter().map(|one| &one.preamble))?;
        check_names("register", p4info.registers.iter().map(|one| &one.preamble))?;
        check_names("meter", p4info.meters.iter().map(|one| &one.preamble))?;
        let profiles = p4info.action_profiles.iter();
        check_names("action profile", profiles.map(|one| &one.preamble))?;
        check_names(
            "value set",
            p4info.value_sets.iter().map(|one| &one.preamble),
        )?;
        let types = Types::new(p4info, tables);
        let actions = bind_actions(p4info)?;
        for table in &p4info.tables {
            let bound = bind_table(table, &actions, &types, p4info, program, &mut schema.absent);
            if let Some(bound) = schema.absent.sift(bound)? {
                schema.table_ids.insert(bound.table, bound.id);
                insert(&mut schema.tables, bound.id, bound, "table")?;
            }
        }
        for counter in &p4info.counters {
            let bound = bind_counter(counter, &types, program);
            if let Some(bound) = schema.absent.sift(bound)? {
                insert(&mut schema.counters, bound.id, bound, "counter")?;
            }
        }
        for register in &p4info.registers {
            let bound = bind_register(register, &types, program);
            if let Some(bound) = schema.absent.sift(bound)? {
                insert(&mut schema.registers, bound.id, bound, "register")?;
            }
        }
        for meter in &p4info.meters {
            let bound = bind_meter(meter, &types, program);
            if let Some(bound) = schema.absent.sift(bound)? {
                insert(&mut schema.meters, bound.id, bound, "meter")?;
            }
        }
        for profile in &p4info.action_profiles {
            let bound = bind_profile(profile, &schema.tables, program);
            if let Some(bound) = schema.absent.sift(bound)? {
                insert(&mut schema.profiles, bound.id, bound, "action profile")?;
            }
        }
        for set in &p4info.value_sets {
            let bound = bind_value_set(set, &types, program);
            if let Some(bound) = schema.absent.sift(bound)? {
                insert(&mut schema.value_sets, bound.id, bound, "value set")?;
            }
        }
        for digest in &p4info.digests {
            let bound = bind_digest(digest, p4info, program);
            let Some(bound) = schema.absent.sift(bound)? else {
                continue;
            };
            let of_program = program.digests_named(&bound.name);
            let ids = of_program.map(|of_program| (of_program, bound.id));
            schema.digest_ids.extend(ids);
            insert(&mut schema.digests, bound.id, bound, "digest")?;
        }
        for meta in &p4info.controller_packet_metadata {
            let (_, name) = identity(meta.preamble.as_ref(), "packet metadata")?;
            match name {
                "packet_in" => schema.packet_in = bind_fields(meta, name, &types, program)?,
                "packet_out" => schema.packet_out = bind_fields(meta, name, &types, program)?,
                // A header of the controller that packet-ins and packet-outs do not have.
                _ => schema.absent.note(format!("packet metadata `{name}`")),
            }
        }
        schema.port_type = types.ports(program)?;
        let ports = wormcast_switch_program::ones(program.intrinsics.egress_spec.width);
        schema.port_max = u16::try_from(ports).unwrap_or(u16::MAX);
        Ok(schema)
    }
}

/// Two objects of one name would be the same one of the program, with two sizes perhaps.
fn check_names<'a>(what: &str, preambles: impl Iterator<Item = &'a Option<Preamble>>) -> Bound<()> {
    let mut names = BTreeSet::new();
    for preamble in preambles.flatten() {
        if !names.insert(preamble.name.as_str()) {
            return misfit(format!(
                "two of its {what}s have the name `{}`",
                preamble.name
            ));
        }
    }
    Ok(())
}

fn insert<T>(into: &mut BTreeMap<u32, T>, id: u32, value: T, what: &str) -> Bound<()> {
    if into.insert(id, value).is_some() {
        return misfit(format!("two of its {what}s have the id {id}"));
    }
    Ok(())
}

fn bind_actions(p4info: &P4Info) -> Bound<BTreeMap<u32, &info::Action>> {
    let mut actions = BTreeMap::new();
    for action in &p4info.actions {
        let (id, _) = identity(action.preamble.as_ref(), "action")?;
        insert(&mut actions, id, action, "action")?;
    }
    Ok(actions)
}

fn bind_table(
    table: &info::Table,
    actions: &BTreeMap<u32, &info::Action>,
    types: &Types<'_>,
    p4info: &P4Info,
    program: &Program,
    left_out: &mut Absent,
) -> Bound<TableSchema> {
    let (id, name) = identity(table.preamble.as_ref(), "table")?;
    let Some(of_program) = program.table(name) else {
        return absent(Object::Table, id, name);
    };
    let described = &program.tables()[of_program.index()];
    if table.match_fields.len() != described.key.len() {
        return misfit(format!(
            "table `{name}` has {} match fields, in the program {}",
            table.match_fields.len(),
            described.key.len()
        ));
    }
    let mut fields = Vec::new();
    for (field, key) in table.match_fields.iter().zip(&described.key) {
        fields.push(bind_field(field, key, name, types)?);
    }
    let mut of_table = BTreeMap::new();
    for reference in &table.action_refs {
        let Some(action) = actions.get(&reference.id) else {
            return misfit(format!(
                "table `{name}` refers to an action with the id {}, which there is not",
                reference.id
            ));
        };
        let bound = bind_action(action, reference, of_program, types, program)?;
        if bound.action.is_none() {
            let which = match bound.lacks.as_slice() {
                [] => String::new(),
                lacks => format!("parameter `{}` of ", lacks.join("`, `")),
            };
            left_out.note(format!("{which}action `{}` of table `{name}`", bound.name));
        }
        insert(&mut of_table, bound.id, bound, "table's action")?;
    }
    let const_entries = described.const_entries
        // BMv2's JSON does not tell entries that can be changed from constant ones.
        && (table.is_const_table || !table.has_initial_entries);
    check_initial_keys((of_program, name), &fields, program)?;
    if !const_entries {
        check_initial_actions((of_program, name), &of_table, program)?;
    }
    if !described.const_default {
        check_default((of_program, name), &of_table, program)?;
    }
    let mut schema = TableSchema {
        id,
        name: name.to_owned(),
        table: of_program,
        fields,
        actions: of_table,
        has_priority: described.has_priority,
        const_entries,
        size: usize::try_from(table.size).unwrap_or(0),
        // p4c's JSON has no default entry of a table with an action profile; the P4Info says more.
        const_default: described.const_default || table.const_default_action_id != 0,
        direct_counter: None,
        direct_meter: None,
        has_idle_timeout: table.idle_timeout_behavior == IdleTimeoutBehavior::NotifyControl as i32,
        profile_id: (table.implementation_id != 0).then_some(table.implementation_id),
    };
    if schema.has_idle_timeout && !described.supports_timeout {
        return misfit(format!(
            "table `{name}` has idle timeouts, in the program not"
        ));
    }
    if schema.profile_id.is_some() != described.action_profile.is_some() {
        return misfit(format!(
            "table `{name}` has an action profile on one side only"
        ));
    }
    for counter in &p4info.direct_counters {
        if counter.direct_table_id == id {
            let (_, counter_name) = identity(counter.preamble.as_ref(), "counter")?;
            if described.direct_counter.is_some() {
                schema.direct_counter = Some(counter_unit(counter.spec.as_ref()));
            } else {
                left_out.note(format!("direct counter `{counter_name}` of table `{name}`"));
            }
        }
    }
    for meter in &p4info.direct_meters {
        if meter.direct_table_id == id {
            let (_, meter_name) = identity(meter.preamble.as_ref(), "meter")?;
            if described.direct_meter.is_some() {
                let (spec, preamble) = (meter.spec.as_ref(), meter.preamble.as_ref());
                schema.direct_meter = Some(meter_kind(spec, preamble));
            } else {
                left_out.note(format!("direct meter `{meter_name}` of table `{name}`"));
            }
        }
    }
    Ok(schema)
}

/// Entries that the program comes with must be such as a controller can read: matches of the
/// kinds that the P4Info names.
fn check_initial_keys(
    (table, name): (TableId, &str),
    fields: &[FieldSchema],
    program: &Program,
) -> Bound<()> {
    for (key, _) in program.initial_entries(table) {
        let mut pairs = fields.iter().zip(key);
        if let Some((field, of_key)) = pairs.find(|(field, of_key)| !can_say(field, of_key)) {
            return misfit(format!(
                "entries that the program gives table `{name}` match field `{}` by {of_key}, \
                 which a match of kind {}{} cannot say",
                field.name,
                field.kind,
                if field.value.is_ordered() {
                    ""
                } else {
                    " on translated values"
                }
            ));
        }
    }
    Ok(())
}

/// Entries that the program comes with and a controller may change must be such as it can
/// write: their actions are among those of the table.
fn check_initial_actions(
    (table, name): (TableId, &str),
    actions: &BTreeMap<u32, ActionSchema>,
    program: &Program,
) -> Bound<()> {
    for (_, action) in program.initial_entries(table) {
        let is_known = |schema: &ActionSchema| schema.action == Some(action) && schema.for_entries;
        if !actions.values().any(is_known) {
            let action = &program.actions()[action.index()].name;
            return misfit(format!(
                "entries that the program gives table `{name}` have the action `{action}`, \
                 which is not among its actions for entries"
            ));
        }
    }
    Ok(())
}

/// A default action that a controller may set again must not be one for entries only.
fn check_default(
    (table, name): (TableId, &str),
    actions: &BTreeMap<u32, ActionSchema>,
    program: &Program,
) -> Bound<()> {
    let default = program.default_action(table);
    let of_default = actions
        .values()
        .find(|schema| schema.action.is_some() && schema.action == default);
    match of_default {
        Some(schema) if !schema.for_default => misfit(format!(
            "the program gives table `{name}` the default action `{}`, which is for entries only",
            schema.name
        )),
        Some(_) | None => Ok(()),
    }
}

fn bind_field(
    field: &info::MatchField,
    key: &KeyField,
    table: &str,
    types: &Types<'_>,
) -> Bound<FieldSchema> {
    let what = || format!("table `{table}`: match field `{}`", field.name);
    let value = types.value(
        field.type_name.as_ref(),
        field.bitwidth,
        key.width_bits,
        what(),
    )?;
    let kind = bind_match_kind(field);
    let fits = match kind {
        // p4c compiles a match on validity to an exact match of one bit, and `optional`
        // to a ternary match.
        Some(MatchKind::Exact) => matches!(key.kind, MatchKind::Exact | MatchKind::Valid),
        Some(MatchKind::Optional | MatchKind::Lpm) if key.kind == MatchKind::Ternary => true,
        Some(kind) => kind == key.kind,
        None => false,
    };
    let Some(kind) = kind.filter(|_| fits) else {
        return misfit(format!("{} is not of kind {}", what(), key.kind));
    };
    if field.name != key.name {
        return misfit(format!("{} is `{}` in the program", what(), key.name));
    }
    Ok(FieldSchema {
        id: field.id,
        name: field.name.clone(),
        kind,
        is_ternary_in_program: key.kind == MatchKind::Ternary,
        value,
    })
}

fn bind_action(
    action: &info::Action,
    reference: &info::ActionRef,
    table: TableId,
    types: &Types<'_>,
    program: &Program,
) -> Bound<ActionSchema> {
    let (id, name) = identity(action.preamble.as_ref(), "action")?;
    let mut of_program = program.table_action(table, name);
    let lacks = of_program.map_or_else(Vec::new, |id| lacking(action, id, program));
    if !lacks.is_empty() {
        of_program = None;
    }
    let parameters = match of_program {
        Some(of_program) => bind_parameters((action, name), of_program, types, program)?,
        None => Vec::new(),
    };
    let scope = Scope::try_from(reference.scope).unwrap_or(Scope::TableAndDefault);
    Ok(ActionSchema {
        id,
        name: name.to_owned(),
        action: of_program,
        lacks,
        parameters,
        for_entries: scope != Scope::DefaultOnly,
        for_default: scope != Scope::TableOnly,
    })
}

/// Names of the parameters that p4c has left out of an action, because nothing reads them; none
/// where the program has some that the P4Info does not have, which is another action then.
fn lacking(action: &info::Action, of_program: ActionId, program: &Program) -> Vec<String> {
    let described = &program.actions()[of_program.index()].parameters;
    let is_there = |name: &str| described.iter().any(|one| one.name == name);
    let (there, lacks): (Vec<_>, Vec<_>) = action
        .params
        .iter()
        .map(|parameter| parameter.name.clone())
        .partition(|name| is_there(name));
    if there.len() == described.len() {
        lacks
    } else {
        Vec::new()
    }
}

fn bind_parameters(
    (action, name): (&info::Action, &str),
    of_program: ActionId,
    types: &Types<'_>,
    program: &Program,
) -> Bound<Vec<ParameterSchema>> {
    let described = &program.actions()[of_program.index()].parameters;
    if described.len() != action.params.len() {
        return misfit(format!(
            "action `{name}` has {} parameters, in the program {}",
            action.params.len(),
            described.len()
        ));
    }
    let mut parameters = Vec::new();
    for (parameter, described) in action.params.iter().zip(described) {
        let what = || format!("action `{name}`: parameter `{}`", parameter.name);
        let named = parameter.type_name.as_ref();
        parameters.push(ParameterSchema {
            id: parameter.id,
            name: parameter.name.clone(),
            value: types.value(named, parameter.bitwidth, described.width_bits, what())?,
        });
    }
    Ok(parameters)
}

fn bind_digest(digest: &info::Digest, p4info: &P4Info, program: &Program) -> Bound<DigestSchema> {
    let (id, name) = identity(digest.preamble.as_ref(), "digest")?;
    if program.digests_named(name).next().is_none() {
        return absent(Object::Digest, id, name);
    }
    let types = p4info.type_info.clone().unwrap_or_default();
    let spec = digest.type_spec.clone().unwrap_or_default();
    let shape = Shape::of(&spec, &types);
    for of_program in program.digests_named(name) {
        let widths = &program.digests()[of_program.index()].fields_bits;
        if let Ok(shape) = &shape
            && shape.widths() != *widths
        {
            return misfit(format!(
                "digest `{name}` has fields of {:?} bits, in the program {widths:?}",
                shape.widths()
            ));
        }
    }
    Ok(DigestSchema {
        id,
        name: name.to_owned(),
        shape,
    })
}
