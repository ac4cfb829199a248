//! Members and groups of action profiles.

use std::collections::BTreeMap;

use super::entry::{ActionUse, parse_call, write_call};
use super::proto::p4::v1::{
    ActionProfileGroup, ActionProfileMember, Entity, action_profile_group, entity,
};
use super::read::{Source, of};
use super::rejection::Rejection;
use super::schema::{ProfileSchema, Schema};
use super::write::{Kind, Target};

/// Most members of a group, counted with their weights, where the P4Info sets no limit.
const GROUP_MEMBERS_MAX: usize = 4_096;

fn find_profile(schema: &Schema, id: u32) -> Result<&ProfileSchema, Rejection> {
    schema
        .profile(id)
        .ok_or_else(|| Rejection::not_found(format!("there is no action profile with the id {id}")))
}

/// Writes a member.
pub fn write_member(
    target: &mut Target<'_>,
    kind: Kind,
    member: &ActionProfileMember,
) -> Result<(), Rejection> {
    let schema = target.schema;
    let profile = find_profile(schema, member.action_profile_id)?;
    let what = format!("action profile `{}`", profile.name);
    let (place, id) = (profile.profile, member.member_id);
    if kind == Kind::Delete {
        return Ok(target.pipeline.delete_member(place, id)?);
    }
    let Some(action) = &member.action else {
        return Err(Rejection::invalid(format!(
            "{what}: member {id} has no action"
        )));
    };
    let call = parse_call(&what, &profile.actions, action, ActionUse::Entry)?;
    match kind {
        Kind::Insert => target.pipeline.insert_member(place, id, &call)?,
        Kind::Modify | Kind::Delete => target.pipeline.modify_member(place, id, &call)?,
    }
    Ok(())
}

/// Writes a group.
pub fn write_group(
    target: &mut Target<'_>,
    kind: Kind,
    group: &ActionProfileGroup,
) -> Result<(), Rejection> {
    let schema = target.schema;
    let profile = find_profile(schema, group.action_profile_id)?;
    let (place, id) = (profile.profile, group.group_id);
    let what = format!("action profile `{}`: group {id}", profile.name);
    if !profile.has_selector {
        return Err(Rejection::invalid(format!(
            "{what}: the profile has no selector"
        )));
    }
    if kind == Kind::Delete {
        return Ok(target.pipeline.delete_group(place, id)?);
    }
    let members = parse_members(profile, group).map_err(|rejection| rejection.within(&what))?;
    match kind {
        Kind::Insert => target.pipeline.insert_group(place, id, &members)?,
        Kind::Modify | Kind::Delete => target.pipeline.modify_group(place, id, &members)?,
    }
    Ok(())
}

/// Each member as often as it weighs.
fn parse_members(
    profile: &ProfileSchema,
    group: &ActionProfileGroup,
) -> Result<Vec<u32>, Rejection> {
    let limit = match profile.group_size_max {
        0 => GROUP_MEMBERS_MAX,
        limit => limit,
    };
    let mut members = Vec::new();
    for member in &group.members {
        let id = member.member_id;
        if member.watch_kind.is_some() {
            return Err(Rejection::unimplemented(format!(
                "member {id}: ports to watch are not supported"
            )));
        }
        let weight = usize::try_from(member.weight).unwrap_or(0);
        if weight == 0 {
            return Err(Rejection::invalid(format!(
                "member {id}: weight {} is not valid: at least 1",
                member.weight
            )));
        }
        if members.contains(&id) {
            return Err(Rejection::invalid(format!("member {id} is there twice")));
        }
        if members.len().saturating_add(weight) > limit {
            return Err(Rejection::new(
                tonic::Code::ResourceExhausted,
                format!("its weights add up to more than {limit}"),
            ));
        }
        members.extend(std::iter::repeat_n(id, weight));
    }
    Ok(members)
}

/// Members that a filter matches.
pub fn read_members(
    source: &Source<'_>,
    filter: &ActionProfileMember,
) -> Result<Vec<Entity>, Rejection> {
    let mut found = Vec::new();
    for profile in chosen(source.schema, filter.action_profile_id)? {
        for (id, call) in source.pipeline.members(profile.profile) {
            if filter.member_id == 0 || filter.member_id == id {
                found.push(of(entity::Entity::ActionProfileMember(
                    ActionProfileMember {
                        action_profile_id: profile.id,
                        member_id: id,
                        action: write_call(&profile.actions, call),
                    },
                )));
            }
        }
    }
    Ok(found)
}

/// Groups that a filter matches.
pub fn read_groups(
    source: &Source<'_>,
    filter: &ActionProfileGroup,
) -> Result<Vec<Entity>, Rejection> {
    let mut found = Vec::new();
    for profile in chosen(source.schema, filter.action_profile_id)? {
        for (id, members) in source.pipeline.groups(profile.profile) {
            if filter.group_id != 0 && filter.group_id != id {
                continue;
            }
            let mut weights: BTreeMap<u32, i32> = BTreeMap::new();
            for member in members {
                *weights.entry(*member).or_default() += 1;
            }
            let members =
                weights
                    .into_iter()
                    .map(|(member_id, weight)| action_profile_group::Member {
                        member_id,
                        weight,
                        watch_kind: None,
                    });
            found.push(of(entity::Entity::ActionProfileGroup(ActionProfileGroup {
                action_profile_id: profile.id,
                group_id: id,
                members: members.collect(),
                max_size: 0,
            })));
        }
    }
    Ok(found)
}

fn chosen(schema: &Schema, id: u32) -> Result<Vec<&ProfileSchema>, Rejection> {
    match id {
        0 => Ok(schema.profiles().collect()),
        id => Ok(vec![find_profile(schema, id)?]),
    }
}
