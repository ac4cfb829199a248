//! Statements of a script as calls of BMv2's Thrift interface.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::keys::{key_matches, number_bits, parse_number};
use super::names;
use super::statement::{Call, Statement};
use wormcast_switch_bmv2::thrift::{CallError, Client, Type, Value, write_key};
use wormcast_switch_pipeline::LoadedProgram;
use wormcast_switch_program::{ActionId, ActionProfileId, TableId};

/// Priorities of scripts count upwards, BMv2's downwards from here.
const PRIORITY_MAX: i32 = i32::MAX - 1;

/// What was made so far, under the handles that the switch gave it.
pub(super) struct Calls {
    pub(super) program: Arc<LoadedProgram>,
    pub(super) entries: Vec<Added>,
    members: BTreeMap<(ActionProfileId, u32), i32>,
    groups: BTreeMap<(ActionProfileId, u32), i32>,
    /// Nodes of multicast groups, in the order in which they were made.
    nodes: Vec<i32>,
}

/// An entry that was added.
pub(super) struct Added {
    /// Its name in the script.
    pub(super) name: Option<String>,
    pub(super) table: TableId,
    pub(super) handle: i32,
}

impl Calls {
    pub(super) fn new(program: Arc<LoadedProgram>) -> Self {
        Self {
            program,
            entries: Vec::new(),
            members: BTreeMap::new(),
            groups: BTreeMap::new(),
            nodes: Vec::new(),
        }
    }

    /// Tells that a digest was seen.
    pub(super) fn acknowledge(
        &self,
        client: &mut Client,
        list: i32,
        buffer: i64,
    ) -> Result<(), String> {
        let arguments = vec![Value::I32(list), Value::I64(buffer)];
        call(client, "bm_learning_ack_buffer", arguments).map(|_| ())
    }

    /// Does what a statement says; how many things it compared.
    pub(super) fn carry_out(
        &mut self,
        client: &mut Client,
        statement: &Statement,
    ) -> Result<usize, String> {
        match statement {
            Statement::Add { .. } | Statement::Remove { .. } | Statement::SetDefault { .. } => {
                self.change_table(client, statement)?;
                Ok(0)
            }
            Statement::Member { .. } | Statement::Group { .. } => {
                self.change_profile(client, statement)?;
                Ok(0)
            }
            Statement::RegisterRead { .. }
            | Statement::CounterRead { .. }
            | Statement::CheckCounter { .. } => self.read(client, statement),
            Statement::RegisterWrite { .. }
            | Statement::RegisterReset { .. }
            | Statement::CounterWrite { .. }
            | Statement::MeterSetRates { .. }
            | Statement::MeterGetRates { .. } => {
                self.change_cells(client, statement)?;
                Ok(0)
            }
            other => {
                self.change_replication(client, other)?;
                Ok(0)
            }
        }
    }

    fn change_table(&mut self, client: &mut Client, statement: &Statement) -> Result<(), String> {
        match statement {
            Statement::Add {
                table,
                priority,
                key,
                call: action,
                handle,
            } => {
                let table = names::table(&self.program, table)?;
                let info = &self.program.tables()[table.index()];
                let key = write_key(info, &key_matches(&info.key, key)?);
                let priority = if info.has_priority {
                    PRIORITY_MAX - priority.unwrap_or(0).max(0)
                } else {
                    0
                };
                let options = Value::Struct(vec![(1, Value::I32(priority))]);
                let mut arguments = vec![Value::text(&info.name), key];
                let method = match info.action_profile {
                    None => {
                        let (name, data) = self.action(&info.actions, action)?;
                        arguments.extend([name, data]);
                        "bm_mt_add_entry"
                    }
                    Some(profile) => {
                        let (method, handle) = self.choice(profile, action)?;
                        arguments.push(Value::I32(handle));
                        method
                    }
                };
                arguments.push(options);
                let added = Added {
                    name: handle.clone(),
                    table,
                    handle: handle_of(call(client, method, arguments)?)?,
                };
                self.entries.push(added);
            }
            Statement::Remove { handle } => {
                let gone = names::take_named(&mut self.entries, handle, |added| &added.name)?;
                for added in gone {
                    let info = &self.program.tables()[added.table.index()];
                    let method = match info.action_profile {
                        None => "bm_mt_delete_entry",
                        Some(_) => "bm_mt_indirect_delete_entry",
                    };
                    let entry = Value::I32(added.handle);
                    call(client, method, vec![Value::text(&info.name), entry])?;
                }
            }
            Statement::SetDefault {
                table,
                call: action,
            } => {
                let table = names::table(&self.program, table)?;
                let info = &self.program.tables()[table.index()];
                let (name, data) = self.action(&info.actions, action)?;
                let arguments = vec![Value::text(&info.name), name, data];
                call(client, "bm_mt_set_default_action", arguments)?;
            }
            _ => {}
        }
        Ok(())
    }

    /// The method that adds an entry with a member or a group, and the handle of that.
    fn choice(
        &self,
        profile: ActionProfileId,
        action: &Call,
    ) -> Result<(&'static str, i32), String> {
        let id = action.1.iter().find(|(name, _)| name == "id");
        let id = id.and_then(|(_, value)| parse_number(value));
        let id = id.and_then(|id| u32::try_from(id).ok());
        let (method, known) = match action.0.as_str() {
            "member" => ("bm_mt_indirect_add_entry", &self.members),
            "group" => ("bm_mt_indirect_ws_add_entry", &self.groups),
            other => return Err(format!("`{other}` is not member(id:N) or group(id:N)")),
        };
        let handle = id.and_then(|id| known.get(&(profile, id)));
        let missing = || format!("there is no such {}", action.0);
        Ok((method, *handle.ok_or_else(missing)?))
    }

    /// Name and data of an action.
    fn action(&self, among: &[ActionId], given: &Call) -> Result<(Value, Value), String> {
        let action = names::action(&self.program, among, &given.0)?;
        let info = &self.program.actions()[action.index()];
        let data = info.parameters.iter().map(|parameter| {
            let argument = given.1.iter().find(|(name, _)| *name == parameter.name);
            let missing = || format!("argument `{}` is missing", parameter.name);
            let bits = number_bits(&argument.ok_or_else(missing)?.1)?;
            Ok(Value::Binary(bits.to_padded_bytes(parameter.width_bits)))
        });
        let data = data.collect::<Result<Vec<Value>, String>>()?;
        Ok((Value::text(&info.name), Value::List(Type::Binary, data)))
    }

    fn change_profile(&mut self, client: &mut Client, statement: &Statement) -> Result<(), String> {
        match statement {
            Statement::Member {
                profile: name,
                member,
                call: action,
            } => {
                let profile = names::profile(&self.program, name)?;
                let users = self.program.tables().iter();
                let users = users.filter(|table| table.action_profile == Some(profile));
                let among: Vec<ActionId> = users
                    .flat_map(|table| table.actions.iter().copied())
                    .collect();
                let (action, data) = self.action(&among, action)?;
                let arguments = vec![self.profile_name(profile), action, data];
                let made = call(client, "bm_mt_act_prof_add_member", arguments)?;
                self.members.insert((profile, *member), handle_of(made)?);
            }
            Statement::Group {
                profile,
                group,
                members,
            } => {
                let profile = names::profile(&self.program, profile)?;
                let name = self.profile_name(profile);
                let arguments = vec![name.clone()];
                let made = call(client, "bm_mt_act_prof_create_group", arguments)?;
                let handle = handle_of(made)?;
                self.groups.insert((profile, *group), handle);
                for member in members {
                    let known = self.members.get(&(profile, *member));
                    let known = *known.ok_or_else(|| format!("there is no member {member}"))?;
                    let pair = [Value::I32(known), Value::I32(handle)];
                    let arguments = [name.clone()].into_iter().chain(pair).collect();
                    let method = "bm_mt_act_prof_add_member_to_group";
                    call(client, method, arguments)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn profile_name(&self, profile: ActionProfileId) -> Value {
        Value::text(&self.program.action_profiles()[profile.index()].name)
    }

    fn change_replication(
        &mut self,
        client: &mut Client,
        statement: &Statement,
    ) -> Result<(), String> {
        let mut groups = |method: &str, arguments: Vec<Value>| {
            let context = std::iter::once(Value::I32(0));
            let method = format!("simple_pre_lag:bm_mc_{method}");
            called(
                &method,
                client.call(&method, context.chain(arguments).collect()),
            )
        };
        let node = |nodes: &[i32], node: usize| {
            let handle = nodes.get(node).copied();
            handle.ok_or_else(|| format!("there is no node {node}"))
        };
        match statement {
            Statement::GroupCreate { group } => {
                groups("mgrp_create", vec![Value::I32((*group).into())])?;
            }
            Statement::NodeCreate { instance, ports } => {
                let instance = Value::I32((*instance).into());
                let made = groups(
                    "node_create",
                    vec![instance, port_map(ports), Value::text("")],
                )?;
                self.nodes.push(handle_of(made)?);
            }
            Statement::NodeUpdate {
                node: number,
                ports,
            } => {
                let handle = Value::I32(node(&self.nodes, *number)?);
                groups(
                    "node_update",
                    vec![handle, port_map(ports), Value::text("")],
                )?;
            }
            Statement::NodeAssociate {
                group,
                node: number,
            } => {
                let handle = Value::I32(node(&self.nodes, *number)?);
                groups("node_associate", vec![Value::I32((*group).into()), handle])?;
            }
            Statement::MirroringAdd { session, port } => {
                session_call(client, "add", *session, Some((1, *port)))?;
            }
            Statement::MirroringAddGroup { session, group } => {
                session_call(client, "add", *session, Some((2, *group)))?;
            }
            Statement::MirroringDelete { session } => {
                session_call(client, "delete", *session, None)?;
            }
            Statement::MirroringGet { session } => {
                session_call(client, "get", *session, None)?;
            }
            _ => {}
        }
        Ok(())
    }
}

/// Calls a method of `standard`.
pub(super) fn call(
    client: &mut Client,
    method: &str,
    arguments: Vec<Value>,
) -> Result<Option<Value>, String> {
    called(method, client.standard(method, arguments))
}

fn called(
    method: &str,
    outcome: Result<Option<Value>, CallError>,
) -> Result<Option<Value>, String> {
    outcome.map_err(|error| format!("{method}: {error}"))
}

fn session_call(
    client: &mut Client,
    what: &str,
    session: u16,
    target: Option<(i16, u16)>,
) -> Result<(), String> {
    let mut arguments = vec![Value::I32(session.into())];
    if let Some((field, number)) = target {
        arguments.push(Value::Struct(vec![(field, Value::I32(number.into()))]));
    }
    let method = format!("simple_switch:mirroring_session_{what}");
    called(&method, client.call(&method, arguments)).map(|_| ())
}

/// Ports as BMv2 writes sets of them: digits, that of port 0 last.
fn port_map(ports: &[u16]) -> Value {
    let most = ports.iter().max().copied().unwrap_or(0);
    let digits = (0..=most).rev();
    let digits = digits.map(|port| if ports.contains(&port) { '1' } else { '0' });
    Value::text(&digits.collect::<String>())
}

fn handle_of(value: Option<Value>) -> Result<i32, String> {
    match value {
        Some(Value::I32(handle)) => Ok(handle),
        other => Err(format!("{other:?} is no handle")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_of_ports() {
        for (ports, expected) in [
            (&[][..], "0"),
            (&[0], "1"),
            (&[3, 1], "1010"),
            (&[8], "100000000"),
        ] {
            assert_eq!(port_map(ports), Value::text(expected));
        }
    }
}
