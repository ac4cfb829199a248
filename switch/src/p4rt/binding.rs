//! Binding: finds every object of a P4Info in a program, or says what does not fit.

use std::collections::BTreeMap;
use std::fmt;

use super::digests::Shape;
use super::proto::p4::config::v1::{
    self as info, P4Info, Preamble, action_ref::Scope, counter_spec::Unit, match_field,
};
use super::schema::{
    ActionSchema, CounterSchema, CounterUnit, DigestSchema, FieldSchema, MeterSchema, PacketField,
    ParameterSchema, ProfileSchema, RegisterSchema, Schema, TableSchema,
};
use crate::program::{DigestId, KeyField, MatchKind, Program, TableId};

/// Why a P4Info does not fit a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaError(String);

impl fmt::Display for SchemaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the P4Info does not fit the program: {}", self.0)
    }
}

impl std::error::Error for SchemaError {}

type Bound<T> = Result<T, SchemaError>;

fn misfit<T>(message: String) -> Bound<T> {
    Err(SchemaError(message))
}

impl Schema {
    /// Finds every object of the P4Info in the program.
    pub fn bind(p4info: &P4Info, program: &Program) -> Bound<Self> {
        let mut schema = Self::default();
        let actions = bind_actions(p4info)?;
        for table in &p4info.tables {
            let bound = bind_table(table, &actions, p4info, program)?;
            schema.table_ids.insert(bound.table, bound.id);
            insert(&mut schema.tables, bound.id, bound, "table")?;
        }
        for counter in &p4info.counters {
            let bound = bind_counter(counter, program)?;
            insert(&mut schema.counters, bound.id, bound, "counter")?;
        }
        for register in &p4info.registers {
            let bound = bind_register(register, program)?;
            insert(&mut schema.registers, bound.id, bound, "register")?;
        }
        for meter in &p4info.meters {
            let bound = bind_meter(meter, program)?;
            insert(&mut schema.meters, bound.id, bound, "meter")?;
        }
        for profile in &p4info.action_profiles {
            let bound = bind_profile(profile, &schema.tables, program)?;
            insert(&mut schema.profiles, bound.id, bound, "action profile")?;
        }
        for digest in &p4info.digests {
            let (bound, of_program) = bind_digest(digest, p4info, program)?;
            schema.digest_ids.insert(of_program, bound.id);
            insert(&mut schema.digests, bound.id, bound, "digest")?;
        }
        for meta in &p4info.controller_packet_metadata {
            let (_, name) = identity(meta.preamble.as_ref(), "packet metadata")?;
            match name {
                "packet_in" => schema.packet_in = bind_packet_fields(meta, name)?,
                "packet_out" => schema.packet_out = bind_packet_fields(meta, name)?,
                _ => {
                    return misfit(format!(
                        "packet metadata `{name}` is not known: packet_in or packet_out"
                    ));
                }
            }
        }
        Ok(schema)
    }
}

fn insert<T>(into: &mut BTreeMap<u32, T>, id: u32, value: T, what: &str) -> Bound<()> {
    if into.insert(id, value).is_some() {
        return misfit(format!("two of its {what}s have the id {id}"));
    }
    Ok(())
}

/// Id and name.
fn identity<'a>(preamble: Option<&'a Preamble>, what: &str) -> Bound<(u32, &'a str)> {
    match preamble {
        Some(preamble) if preamble.id != 0 => Ok((preamble.id, &preamble.name)),
        Some(preamble) => misfit(format!("{what} `{}` has the id 0", preamble.name)),
        None => misfit(format!("a {what} has no preamble")),
    }
}

fn width(bits: i32, what: impl fmt::Display) -> Bound<u32> {
    match u32::try_from(bits) {
        Ok(bits) if bits > 0 => Ok(bits),
        _ => misfit(format!(
            "{what} has a width of {bits} bits; translated types are not supported"
        )),
    }
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
    p4info: &P4Info,
    program: &Program,
) -> Bound<TableSchema> {
    let (id, name) = identity(table.preamble.as_ref(), "table")?;
    let Some(of_program) = program.table(name) else {
        return misfit(format!("table `{name}` is not in the program"));
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
        fields.push(bind_field(field, key, name)?);
    }
    let mut of_table = BTreeMap::new();
    for reference in &table.action_refs {
        let Some(action) = actions.get(&reference.id) else {
            return misfit(format!(
                "table `{name}` refers to an action with the id {}, which there is not",
                reference.id
            ));
        };
        let bound = bind_action(action, reference, of_program, name, program)?;
        insert(&mut of_table, bound.id, bound, "table's action")?;
    }
    let mut schema = TableSchema {
        id,
        name: name.to_owned(),
        table: of_program,
        fields,
        actions: of_table,
        has_priority: described.has_priority,
        const_entries: described.const_entries,
        const_default: described.const_default,
        direct_counter: None,
        ages: table.idle_timeout_behavior == info::table::IdleTimeoutBehavior::NotifyControl as i32,
        has_direct_meter: false,
        profile_id: (table.implementation_id != 0).then_some(table.implementation_id),
    };
    if schema.ages && !described.supports_timeout {
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
            if described.direct_counter.is_none() {
                return misfit(format!(
                    "direct counter `{counter_name}` of table `{name}` is not in the program"
                ));
            }
            schema.direct_counter = Some(counter_unit(counter.spec.as_ref()));
        }
    }
    for meter in &p4info.direct_meters {
        if meter.direct_table_id == id {
            if described.direct_meter.is_none() {
                let (_, meter_name) = identity(meter.preamble.as_ref(), "meter")?;
                return misfit(format!(
                    "direct meter `{meter_name}` of table `{name}` is not in the program"
                ));
            }
            schema.has_direct_meter = true;
        }
    }
    Ok(schema)
}

fn bind_field(field: &info::MatchField, key: &KeyField, table: &str) -> Bound<FieldSchema> {
    let what = || format!("table `{table}`: match field `{}`", field.name);
    let width_bits = width(field.bitwidth, what())?;
    if width_bits != key.width_bits {
        return misfit(format!(
            "{} has {width_bits} bits, in the program {}",
            what(),
            key.width_bits
        ));
    }
    let kind = match &field.r#match {
        Some(match_field::Match::MatchType(kind)) => {
            match match_field::MatchType::try_from(*kind) {
                Ok(match_field::MatchType::Exact) => Some(MatchKind::Exact),
                Ok(match_field::MatchType::Lpm) => Some(MatchKind::Lpm),
                Ok(match_field::MatchType::Ternary) => Some(MatchKind::Ternary),
                Ok(match_field::MatchType::Range) => Some(MatchKind::Range),
                Ok(match_field::MatchType::Optional) => Some(MatchKind::Optional),
                Ok(match_field::MatchType::Unspecified) | Err(_) => None,
            }
        }
        Some(match_field::Match::OtherMatchType(_)) | None => None,
    };
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
        width_bits,
    })
}

fn bind_action(
    action: &info::Action,
    reference: &info::ActionRef,
    table: TableId,
    table_name: &str,
    program: &Program,
) -> Bound<ActionSchema> {
    let (id, name) = identity(action.preamble.as_ref(), "action")?;
    let Some(of_program) = program.table_action(table, name) else {
        return misfit(format!(
            "action `{name}` is not one of table `{table_name}` in the program"
        ));
    };
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
        let width_bits = width(parameter.bitwidth, what())?;
        if width_bits != described.width_bits {
            return misfit(format!(
                "{} has {width_bits} bits, in the program {}",
                what(),
                described.width_bits
            ));
        }
        parameters.push(ParameterSchema {
            id: parameter.id,
            name: parameter.name.clone(),
            width_bits,
        });
    }
    let scope = Scope::try_from(reference.scope).unwrap_or(Scope::TableAndDefault);
    Ok(ActionSchema {
        id,
        name: name.to_owned(),
        action: of_program,
        parameters,
        for_entries: scope != Scope::DefaultOnly,
        for_default: scope != Scope::TableOnly,
    })
}

fn counter_unit(spec: Option<&info::CounterSpec>) -> CounterUnit {
    let unit = spec.and_then(|spec| Unit::try_from(spec.unit).ok());
    CounterUnit {
        packets: unit != Some(Unit::Bytes),
        bytes: unit != Some(Unit::Packets),
    }
}

fn same_size(what: &str, name: &str, size: i64, of_program: usize) -> Bound<()> {
    if usize::try_from(size) != Ok(of_program) {
        return misfit(format!(
            "{what} `{name}` has {size} cells, in the program {of_program}"
        ));
    }
    Ok(())
}

fn bind_counter(counter: &info::Counter, program: &Program) -> Bound<CounterSchema> {
    let (id, name) = identity(counter.preamble.as_ref(), "counter")?;
    let Some(of_program) = program.counter(name) else {
        return misfit(format!("counter `{name}` is not in the program"));
    };
    let size = program.counters()[of_program.index()].size;
    same_size("counter", name, counter.size, size)?;
    Ok(CounterSchema {
        id,
        name: name.to_owned(),
        counter: of_program,
        size,
        unit: counter_unit(counter.spec.as_ref()),
    })
}

fn bind_register(register: &info::Register, program: &Program) -> Bound<RegisterSchema> {
    let (id, name) = identity(register.preamble.as_ref(), "register")?;
    let Some(of_program) = program.register(name) else {
        return misfit(format!("register `{name}` is not in the program"));
    };
    let described = &program.registers()[of_program.index()];
    same_size("register", name, i64::from(register.size), described.size)?;
    Ok(RegisterSchema {
        id,
        name: name.to_owned(),
        register: of_program,
        size: described.size,
        width_bits: described.width_bits,
    })
}

fn bind_meter(meter: &info::Meter, program: &Program) -> Bound<MeterSchema> {
    let (id, name) = identity(meter.preamble.as_ref(), "meter")?;
    let Some(of_program) = program.meter(name) else {
        return misfit(format!("meter `{name}` is not in the program"));
    };
    let size = program.meters()[of_program.index()].size;
    same_size("meter", name, meter.size, size)?;
    Ok(MeterSchema {
        id,
        name: name.to_owned(),
        meter: of_program,
        size,
    })
}

fn bind_profile(
    profile: &info::ActionProfile,
    tables: &BTreeMap<u32, TableSchema>,
    program: &Program,
) -> Bound<ProfileSchema> {
    let (id, name) = identity(profile.preamble.as_ref(), "action profile")?;
    let Some(of_program) = program.action_profile(name) else {
        return misfit(format!("action profile `{name}` is not in the program"));
    };
    let described = &program.action_profiles()[of_program.index()];
    if profile.with_selector != described.has_selector {
        return misfit(format!(
            "action profile `{name}` has a selector on one side only"
        ));
    }
    let mut actions = BTreeMap::new();
    for table in tables.values().filter(|table| table.profile_id == Some(id)) {
        for (action_id, action) in &table.actions {
            actions.insert(*action_id, action.clone());
        }
    }
    Ok(ProfileSchema {
        id,
        name: name.to_owned(),
        profile: of_program,
        has_selector: described.has_selector,
        group_size_max: usize::try_from(profile.max_group_size).unwrap_or(0),
        actions,
    })
}

fn bind_digest(
    digest: &info::Digest,
    p4info: &P4Info,
    program: &Program,
) -> Bound<(DigestSchema, DigestId)> {
    let (id, name) = identity(digest.preamble.as_ref(), "digest")?;
    let Some(of_program) = program.digest(name) else {
        return misfit(format!("digest `{name}` is not in the program"));
    };
    let types = p4info.type_info.clone().unwrap_or_default();
    let spec = digest.type_spec.clone().unwrap_or_default();
    let shape = Shape::of(&spec, &types);
    let widths = &program.digests()[of_program.index()].fields_bits;
    if let Ok(shape) = &shape
        && shape.widths() != *widths
    {
        return misfit(format!(
            "digest `{name}` has fields of {:?} bits, in the program {widths:?}",
            shape.widths()
        ));
    }
    let bound = DigestSchema {
        id,
        name: name.to_owned(),
        shape,
    };
    Ok((bound, of_program))
}

fn bind_packet_fields(
    metadata: &info::ControllerPacketMetadata,
    header: &str,
) -> Bound<Vec<PacketField>> {
    let mut fields = Vec::new();
    for field in &metadata.metadata {
        let what = format!("packet metadata `{header}`: field `{}`", field.name);
        let is_padding = matches!(field.name.as_str(), "pad" | "_pad" | "padding" | "_padding")
            || field
                .annotations
                .iter()
                .any(|annotation| annotation == "@padding");
        fields.push(PacketField {
            id: field.id,
            name: field.name.clone(),
            width_bits: width(field.bitwidth, what)?,
            is_padding,
        });
    }
    let bits: u32 = fields.iter().map(|field| field.width_bits).sum();
    if !bits.is_multiple_of(8) {
        return misfit(format!(
            "packet metadata `{header}` has {bits} bits, which are not whole bytes"
        ));
    }
    Ok(fields)
}
