//! Methods for action profiles: members and groups.

use std::sync::Arc;

use super::arguments::Arguments;
use super::context::{Context, State};
use super::failure::{Failure, Outcome, TableError};
use super::keys::{read_call, write_call};
use super::wire::{Type, Value};
use wormcast_switch_pipeline::LoadedProgram;
use wormcast_switch_pipeline::{EntryAction, GroupMember, Pipeline};
use wormcast_switch_program::ActionCall;
use wormcast_switch_program::{ActionProfileId, Program, TableId};

/// The id of a member: ids of P4Runtime begin with 1, handles of BMv2 with 0.
pub fn member_id(handle: i64) -> u32 {
    (handle as i32 as u32).wrapping_add(1)
}

pub fn group_id(handle: i64) -> u32 {
    member_id(handle)
}

/// The handle of a member or group.
pub fn handle_of(id: u32) -> Value {
    Value::I32(id.wrapping_sub(1) as i32)
}

/// The call of a member as one of a table's own: p4c makes an action for each table that names it,
/// and a member has that of the first table.
pub fn own_call(program: &Program, table: TableId, call: &ActionCall) -> ActionCall {
    let name = &program.actions()[call.action.index()].name;
    let action = program.table_action(table, name).unwrap_or(call.action);
    ActionCall {
        action,
        ..call.clone()
    }
}

struct Profile<'a> {
    pipeline: &'a mut Pipeline,
    state: &'a State,
    program: Arc<LoadedProgram>,
    id: ActionProfileId,
}

fn profile<'a>(context: &'a mut Context<'_>, call: &Arguments) -> Result<Profile<'a>, Failure> {
    let name = call.text(1);
    let (pipeline, state) = context.parts()?;
    let program = Arc::clone(pipeline.program());
    let id = program.action_profile(name).ok_or_else(|| {
        TableError::InvalidActionProfileName.because(format!("no action profile {name:?}"))
    })?;
    Ok(Profile {
        pipeline,
        state,
        program,
        id,
    })
}

fn selecting<'a>(context: &'a mut Context<'_>, call: &Arguments) -> Result<Profile<'a>, Failure> {
    let profile = profile(context, call)?;
    let info = &profile.program.action_profiles()[profile.id.index()];
    if info.has_selector {
        return Ok(profile);
    }
    Err(TableError::NoActionProfileSelection
        .because(format!("action profile {} has no selector", info.name)))
}

impl Profile<'_> {
    fn call(&self, name: &str, data: &[Value]) -> Result<ActionCall, Failure> {
        let tables = self.program.tables().iter();
        let action = tables
            .filter(|table| table.action_profile == Some(self.id))
            .flat_map(|table| &table.actions)
            .find(|action| self.program.actions()[action.index()].name == name);
        let action = action.ok_or_else(|| {
            let profile = &self.program.action_profiles()[self.id.index()].name;
            let why = format!("action profile {profile} has no action {name:?}");
            TableError::InvalidActionName.because(why)
        })?;
        read_call(&self.program, *action, data)
    }

    fn member(&self, handle: i64) -> Result<(u32, ActionCall), Failure> {
        let id = member_id(handle);
        let mut members = self.pipeline.members(self.id);
        let member = members.find(|(candidate, _)| *candidate == id);
        let member = member.map(|(id, action)| (id, action.clone()));
        member.ok_or_else(|| {
            TableError::InvalidMemberHandle.because(format!("there is no member {handle}"))
        })
    }

    /// A group: its id, its members and the greatest size it was given.
    fn group(&self, handle: i64) -> Result<(u32, Vec<GroupMember>, u32), Failure> {
        let id = group_id(handle);
        let mut groups = self.pipeline.groups(self.id);
        let group = groups.find(|(candidate, ..)| *candidate == id);
        let group = group.map(|(id, members, max_size)| (id, members.to_vec(), max_size));
        group.ok_or_else(|| {
            TableError::InvalidGroupHandle.because(format!("there is no group {handle}"))
        })
    }

    /// Tables whose default is a member.
    fn tables_with_default(&self, handle: i64) -> Vec<TableId> {
        let defaults = self.state.default_members.iter();
        let of_member = defaults.filter(|(_, member)| i64::from(**member) == handle);
        let tables = of_member.map(|(table, _)| *table);
        let infos = self.program.tables();
        tables
            .filter(|table| infos[table.index()].action_profile == Some(self.id))
            .collect()
    }

    /// Whether an entry refers to a member or group.
    fn is_used(&self, action: &EntryAction) -> bool {
        let tables = self.program.tables().iter();
        tables
            .filter(|table| table.action_profile == Some(self.id))
            .filter_map(|table| self.program.table(&table.name))
            .any(|table| {
                let mut entries = self.pipeline.entries_by_number(table);
                entries.any(|(_, entry)| entry.action == *action)
            })
    }
}

/// The lowest id from 1 on that is not in an ascending list.
fn unused(ids: impl Iterator<Item = u32>) -> u32 {
    let mut unused = 1;
    for id in ids {
        if id == unused {
            unused += 1;
        } else if id > unused {
            break;
        }
    }
    unused
}

/// `bm_mt_act_prof_add_member`.
pub fn add_member(context: &mut Context<'_>, call: &Arguments) -> Outcome {
    let profile = profile(context, call)?;
    let action = profile.call(call.text(2), call.items(3))?;
    let id = unused(profile.pipeline.members(profile.id).map(|(id, _)| id));
    profile.pipeline.insert_member(profile.id, id, &action)?;
    Ok(Some(handle_of(id)))
}

/// `bm_mt_act_prof_delete_member`.
pub fn delete_member(context: &mut Context<'_>, call: &Arguments) -> Outcome {
    let profile = profile(context, call)?;
    let (id, _) = profile.member(call.integer(2))?;
    let mut groups = profile.pipeline.groups(profile.id);
    let grouped = groups.any(|(_, members, _)| has_member(members, id));
    drop(groups);
    let is_default = !profile.tables_with_default(call.integer(2)).is_empty();
    if grouped || is_default || profile.is_used(&EntryAction::Member(id)) {
        let why = format!("member {} is in use", call.integer(2));
        return Err(TableError::MemberStillUsed.because(why));
    }
    profile.pipeline.delete_member(profile.id, id)?;
    Ok(None)
}

/// `bm_mt_act_prof_modify_member`.
pub fn modify_member(context: &mut Context<'_>, call: &Arguments) -> Outcome {
    let profile = profile(context, call)?;
    let action = profile.call(call.text(3), call.items(4))?;
    let (id, _) = profile.member(call.integer(2))?;
    profile.pipeline.modify_member(profile.id, id, &action)?;
    for table in profile.tables_with_default(call.integer(2)) {
        let own = own_call(&profile.program, table, &action);
        profile.pipeline.set_default(table, Some(&own))?;
    }
    Ok(None)
}

/// `bm_mt_act_prof_create_group`.
pub fn create_group(context: &mut Context<'_>, call: &Arguments) -> Outcome {
    let profile = selecting(context, call)?;
    let id = unused(profile.pipeline.groups(profile.id).map(|(id, ..)| id));
    profile.pipeline.insert_group(profile.id, id, &[], 0)?;
    Ok(Some(handle_of(id)))
}

/// `bm_mt_act_prof_delete_group`.
pub fn delete_group(context: &mut Context<'_>, call: &Arguments) -> Outcome {
    let profile = selecting(context, call)?;
    let (id, ..) = profile.group(call.integer(2))?;
    if profile.is_used(&EntryAction::Group(id)) {
        let why = format!("group {} is in use", call.integer(2));
        return Err(TableError::GroupStillUsed.because(why));
    }
    profile.pipeline.delete_group(profile.id, id)?;
    Ok(None)
}

/// `bm_mt_act_prof_add_member_to_group`.
pub fn join_group(context: &mut Context<'_>, call: &Arguments) -> Outcome {
    let profile = selecting(context, call)?;
    let (member, _) = profile.member(call.integer(2))?;
    let (group, mut members, max_size) = profile.group(call.integer(3))?;
    if has_member(&members, member) {
        let why = format!("member {} is in the group", call.integer(2));
        return Err(TableError::MemberAlreadyInGroup.because(why));
    }
    members.push(GroupMember::new(member));
    profile
        .pipeline
        .modify_group(profile.id, group, &members, max_size)?;
    Ok(None)
}

/// `bm_mt_act_prof_remove_member_from_group`.
pub fn leave_group(context: &mut Context<'_>, call: &Arguments) -> Outcome {
    let profile = selecting(context, call)?;
    let (member, _) = profile.member(call.integer(2))?;
    let (group, mut members, max_size) = profile.group(call.integer(3))?;
    if !has_member(&members, member) {
        let why = format!("member {} is not in the group", call.integer(2));
        return Err(TableError::MemberNotInGroup.because(why));
    }
    members.retain(|candidate| candidate.member != member);
    profile
        .pipeline
        .modify_group(profile.id, group, &members, max_size)?;
    Ok(None)
}

fn write_member(program: &Program, id: u32, action: &ActionCall) -> Value {
    let (name, data) = write_call(program, action);
    Value::Struct(vec![(1, handle_of(id)), (2, name), (3, data)])
}

fn has_member(members: &[GroupMember], id: u32) -> bool {
    members.iter().any(|member| member.member == id)
}

fn write_group(id: u32, members: &[GroupMember]) -> Value {
    let members = members.iter();
    let members = members.map(|member| handle_of(member.member)).collect();
    Value::Struct(vec![
        (1, handle_of(id)),
        (2, Value::List(Type::I32, members)),
    ])
}

/// `bm_mt_act_prof_get_members`.
pub fn members(context: &mut Context<'_>, call: &Arguments) -> Outcome {
    let profile = profile(context, call)?;
    let members = profile.pipeline.members(profile.id);
    let members = members.map(|(id, action)| write_member(&profile.program, id, action));
    Ok(Some(Value::List(Type::Struct, members.collect())))
}

/// `bm_mt_act_prof_get_member`.
pub fn member(context: &mut Context<'_>, call: &Arguments) -> Outcome {
    let profile = profile(context, call)?;
    let (id, action) = profile.member(call.integer(2))?;
    Ok(Some(write_member(&profile.program, id, &action)))
}

/// `bm_mt_act_prof_get_groups`.
pub fn groups(context: &mut Context<'_>, call: &Arguments) -> Outcome {
    let profile = selecting(context, call)?;
    let groups = profile.pipeline.groups(profile.id);
    let groups = groups.map(|(id, members, _)| write_group(id, members));
    Ok(Some(Value::List(Type::Struct, groups.collect())))
}

/// `bm_mt_act_prof_get_group`.
pub fn group(context: &mut Context<'_>, call: &Arguments) -> Outcome {
    let profile = selecting(context, call)?;
    let (id, members, _) = profile.group(call.integer(2))?;
    Ok(Some(write_group(id, &members)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_id_is_used_first() {
        assert_eq!(unused([].into_iter()), 1);
        assert_eq!(unused([0, 1, 2, 4].into_iter()), 3);
        assert_eq!(unused([5, 6].into_iter()), 1);
        assert_eq!((member_id(0), handle_of(1)), (1, Value::I32(0)));
    }

    #[test]
    fn a_table_has_actions_of_its_own() {
        let json = include_str!("../../../tests/programs/objects.json");
        let program = LoadedProgram::from_json(json).unwrap();
        let no_action = |table: &str| {
            let table = program.table(table).unwrap();
            (table, program.table_action(table, "NoAction").unwrap())
        };
        let (types, of_types) = no_action("ingress.types");
        let (spread, of_spread) = no_action("ingress.spread");
        assert_ne!(of_types, of_spread);
        let call = ActionCall {
            action: of_spread,
            arguments: Vec::new(),
        };
        assert_eq!(own_call(&program, types, &call).action, of_types);
        assert_eq!(own_call(&program, spread, &call), call);
    }
}
