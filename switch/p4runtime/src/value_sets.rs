//! Parser value sets (§"ValueSetEntry").

use super::entry::{parse_matches, write_matches};
use super::fit::Object;
use super::kind::{Kind, only_modify};
use super::proto::p4::v1::{Entity, ValueSetEntry, ValueSetMember, entity};
use super::rejection::Rejection;
use super::schema::{Schema, ValueSetSchema};
use super::source::{Source, of};
use super::target::Target;
use tonic::Code;

fn find(schema: &Schema, id: u32) -> Result<&ValueSetSchema, Rejection> {
    schema
        .value_set(id)
        .ok_or_else(|| schema.absent.rejection(Object::ValueSet, id))
}

/// Replaces all members of a value set.
pub fn write_value_set(
    target: &mut Target<'_>,
    kind: Kind,
    entry: &ValueSetEntry,
) -> Result<(), Rejection> {
    let set = find(target.schema, entry.value_set_id)?;
    let what = format!("value set `{}`", set.name);
    only_modify(&what, kind)?;
    if entry.members.len() > set.size {
        return Err(Rejection::new(
            Code::ResourceExhausted,
            format!(
                "{what}: {} members are too many: it holds at most {}",
                entry.members.len(),
                set.size
            ),
        ));
    }
    let mut members = Vec::with_capacity(entry.members.len());
    for (place, member) in entry.members.iter().enumerate() {
        let what = format!("{what}: member {}", place + 1);
        members.push(parse_matches(what, &set.fields, &member.r#match)?);
    }
    Ok(target.pipeline.set_value_set(set.set, &members)?)
}

/// The value set with an id, or with 0 all of them, each with all its members.
pub fn read_value_sets(
    source: &Source<'_>,
    filter: &ValueSetEntry,
) -> Result<Vec<Entity>, Rejection> {
    let sets = match filter.value_set_id {
        0 => source.schema.value_sets().collect(),
        id if source.schema.absent.has(Object::ValueSet, id) => Vec::new(),
        id => vec![find(source.schema, id)?],
    };
    let describe = |set: &ValueSetSchema| {
        let members = source.pipeline.value_set(set.set).iter();
        let members = members.map(|member| ValueSetMember {
            r#match: write_matches(&set.fields, member),
        });
        of(entity::Entity::ValueSetEntry(ValueSetEntry {
            value_set_id: set.id,
            members: members.collect(),
        }))
    };
    Ok(sets.into_iter().map(describe).collect())
}
