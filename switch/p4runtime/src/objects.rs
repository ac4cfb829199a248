//! Binding counters, registers, meters, action profiles and parser value sets.

use std::collections::BTreeMap;

use super::fit::{Bound, Object, absent, bind_match_kind, identity, misfit};
use super::proto::p4::config::v1::{
    self as info, Preamble, action_profile::SelectorSizeSemantics, counter_spec::Unit, meter_spec,
};
use super::schema::{
    CounterSchema, CounterUnit, FieldSchema, MeterKind, MeterSchema, ProfileSchema, RegisterSchema,
    TableSchema, ValueSetSchema,
};
use super::types::Types;
use wormcast_switch_pipeline::SizeSemantics;
use wormcast_switch_program::Program;

pub fn counter_unit(spec: Option<&info::CounterSpec>) -> CounterUnit {
    let unit = spec.and_then(|spec| Unit::try_from(spec.unit).ok());
    CounterUnit {
        packets: unit != Some(Unit::Bytes),
        bytes: unit != Some(Unit::Packets),
    }
}

/// Which configs a meter takes: `MeterSpec.Type`, or the annotation of the program that it
/// is made of, which p4c leaves to whoever reads the P4Info.
pub fn meter_kind(spec: Option<&info::MeterSpec>, preamble: Option<&Preamble>) -> MeterKind {
    use meter_spec::Type;
    let annotated = |name: &str| {
        let annotations = preamble.map(|preamble| preamble.annotations.as_slice());
        let mut annotations = annotations.unwrap_or_default().iter();
        annotations.any(|annotation| annotation == name)
    };
    match spec.and_then(|spec| Type::try_from(spec.r#type).ok()) {
        Some(Type::SingleRateThreeColor) => MeterKind::OneRateThreeColours,
        Some(Type::SingleRateTwoColor) => MeterKind::OneRateTwoColours,
        _ if annotated("@single_rate_three_color") => MeterKind::OneRateThreeColours,
        _ if annotated("@single_rate_two_color") => MeterKind::OneRateTwoColours,
        Some(Type::TwoRateThreeColor) | None => MeterKind::TwoRates,
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

pub fn bind_counter(
    counter: &info::Counter,
    types: &Types<'_>,
    program: &Program,
) -> Bound<CounterSchema> {
    let (id, name) = identity(counter.preamble.as_ref(), "counter")?;
    let Some(of_program) = program.counter(name) else {
        return absent(Object::Counter, id, name);
    };
    let size = program.counters()[of_program.index()].size;
    same_size("counter", name, counter.size, size)?;
    Ok(CounterSchema {
        id,
        name: name.to_owned(),
        counter: of_program,
        size,
        index: types.index(counter.index_type_name.as_ref(), size)?,
        unit: counter_unit(counter.spec.as_ref()),
    })
}

pub fn bind_register(
    register: &info::Register,
    types: &Types<'_>,
    program: &Program,
) -> Bound<RegisterSchema> {
    let (id, name) = identity(register.preamble.as_ref(), "register")?;
    let Some(of_program) = program.register(name) else {
        return absent(Object::Register, id, name);
    };
    let described = &program.registers()[of_program.index()];
    same_size("register", name, i64::from(register.size), described.size)?;
    let what = format!("register `{name}`");
    let (form, value) = types.data(register.type_spec.as_ref(), described.width_bits, what)?;
    Ok(RegisterSchema {
        id,
        name: name.to_owned(),
        register: of_program,
        size: described.size,
        index: types.index(register.index_type_name.as_ref(), described.size)?,
        form,
        value,
    })
}

pub fn bind_meter(meter: &info::Meter, types: &Types<'_>, program: &Program) -> Bound<MeterSchema> {
    let (id, name) = identity(meter.preamble.as_ref(), "meter")?;
    let Some(of_program) = program.meter(name) else {
        return absent(Object::Meter, id, name);
    };
    let size = program.meters()[of_program.index()].size;
    same_size("meter", name, meter.size, size)?;
    Ok(MeterSchema {
        id,
        name: name.to_owned(),
        meter: of_program,
        size,
        index: types.index(meter.index_type_name.as_ref(), size)?,
        kind: meter_kind(meter.spec.as_ref(), meter.preamble.as_ref()),
    })
}

pub fn bind_profile(
    profile: &info::ActionProfile,
    tables: &BTreeMap<u32, TableSchema>,
    program: &Program,
) -> Bound<ProfileSchema> {
    let (id, name) = identity(profile.preamble.as_ref(), "action profile")?;
    let Some(of_program) = program.action_profile(name) else {
        return absent(Object::Profile, id, name);
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
    let (size_semantics, member_weight_max) = match &profile.selector_size_semantics {
        Some(SelectorSizeSemantics::SumOfMembers(members)) => {
            (SizeSemantics::SumOfMembers, members.max_member_weight)
        }
        Some(SelectorSizeSemantics::SumOfWeights(_)) | None => (SizeSemantics::SumOfWeights, 0),
    };
    Ok(ProfileSchema {
        id,
        name: name.to_owned(),
        profile: of_program,
        has_selector: described.has_selector,
        group_size_max: u32::try_from(profile.max_group_size).unwrap_or(0),
        size_semantics,
        member_weight_max: u32::try_from(member_weight_max).unwrap_or(0),
        weights_disallowed: profile.weights_disallowed,
        actions,
    })
}

pub fn bind_value_set(
    set: &info::ValueSet,
    types: &Types<'_>,
    program: &Program,
) -> Bound<ValueSetSchema> {
    let (id, name) = identity(set.preamble.as_ref(), "value set")?;
    let Some(of_program) = program.value_set(name) else {
        return absent(Object::ValueSet, id, name);
    };
    let described = &program.value_sets()[of_program.index()];
    let widths = set.r#match.iter().map(|field| i64::from(field.bitwidth));
    if described.fields_bits == [described.width_bits]
        && set.r#match.len() > 1
        && widths.sum::<i64>() == i64::from(described.width_bits)
    {
        // No state of the parser asks it, so that nothing says how it is divided into fields.
        return absent(Object::ValueSet, id, name);
    }
    if described.fields_bits.len() != set.r#match.len() {
        return misfit(format!(
            "value set `{name}` has {} match fields, in the program {}",
            set.r#match.len(),
            described.fields_bits.len()
        ));
    }
    let mut fields = Vec::new();
    for (field, bits) in set.r#match.iter().zip(&described.fields_bits) {
        let what = format!("value set `{name}`: match field {}", field.id);
        let Some(kind) = bind_match_kind(field) else {
            return misfit(format!(
                "{what} is not exact, lpm, ternary, range or optional"
            ));
        };
        fields.push(FieldSchema {
            id: field.id,
            name: field.name.clone(),
            kind,
            is_ternary_in_program: false,
            value: types.value(field.type_name.as_ref(), field.bitwidth, *bits, what)?,
        });
    }
    Ok(ValueSetSchema {
        id,
        name: name.to_owned(),
        set: of_program,
        fields,
        size: usize::try_from(set.size).unwrap_or(0),
    })
}
