//! Action profiles: members, and groups that choose among them by hash.

use std::collections::BTreeMap;

use super::entry::ActionCall;
use super::error::ControlError;
use super::table::{argument_words, check_arguments};
use crate::program::Program;

/// A member ready to run.
#[derive(Clone, Debug)]
pub(super) struct Member {
    pub(super) call: ActionCall,
    pub(super) arguments: Vec<u64>,
}

/// The members and groups of one profile.
#[derive(Debug, Default)]
pub(super) struct Profile {
    members: BTreeMap<u32, Member>,
    groups: BTreeMap<u32, Vec<u32>>,
}

impl Profile {
    #[inline]
    pub(super) fn member(&self, id: u32) -> Option<&Member> {
        self.members.get(&id)
    }

    pub(super) fn group(&self, id: u32) -> Option<&[u32]> {
        self.groups.get(&id).map(Vec::as_slice)
    }

    pub(super) fn members(&self) -> impl Iterator<Item = (u32, &ActionCall)> {
        self.members.iter().map(|(&id, member)| (id, &member.call))
    }

    pub(super) fn groups(&self) -> impl Iterator<Item = (u32, &[u32])> {
        self.groups
            .iter()
            .map(|(&id, members)| (id, members.as_slice()))
    }

    pub(super) fn put_member(
        &mut self,
        program: &Program,
        profile: usize,
        id: u32,
        call: &ActionCall,
        replace: bool,
    ) -> Result<(), ControlError> {
        let info = &program.action_profiles()[profile];
        let what = || format!("member {id} of action profile {}", info.name);
        match (self.members.contains_key(&id), replace) {
            (true, false) => return Err(ControlError::AlreadyExists { what: what() }),
            (false, true) => return Err(ControlError::NotFound { what: what() }),
            _ => {}
        }
        let allowed = program.tables().iter().any(|table| {
            table.action_profile.is_some_and(|id| id.index() == profile)
                && table.actions.contains(&call.action)
        });
        if !allowed {
            return Err(ControlError::InvalidArgument {
                what: what(),
                value: format!("action {}", call.action.index()),
                bound: "the actions of the tables that use the profile".to_string(),
            });
        }
        check_arguments(program, call)?;
        if !replace && self.members.len() >= info.size {
            return Err(ControlError::ResourceExhausted {
                what: format!("action profile {}", info.name),
                limit: info.size,
            });
        }
        let member = Member {
            arguments: argument_words(program, call),
            call: call.clone(),
        };
        self.members.insert(id, member);
        Ok(())
    }

    pub(super) fn delete_member(&mut self, name: &str, id: u32) -> Result<(), ControlError> {
        if !self.members.contains_key(&id) {
            return Err(ControlError::NotFound {
                what: format!("member {id} of action profile {name}"),
            });
        }
        let user = self
            .groups
            .iter()
            .find(|(_, members)| members.contains(&id));
        if let Some((group, _)) = user {
            return Err(in_use(format!("member {id}"), format!("group {group}")));
        }
        self.members.remove(&id);
        Ok(())
    }

    /// Brings a member to what it was; `None`: it was not there.
    pub(super) fn put_back_member(&mut self, id: u32, before: Option<Member>) {
        match before {
            Some(member) => self.members.insert(id, member),
            None => self.members.remove(&id),
        };
    }

    /// Brings a group to what it was; `None`: it was not there.
    pub(super) fn put_back_group(&mut self, id: u32, before: Option<Vec<u32>>) {
        match before {
            Some(members) => self.groups.insert(id, members),
            None => self.groups.remove(&id),
        };
    }

    pub(super) fn put_group(
        &mut self,
        name: &str,
        id: u32,
        members: &[u32],
        replace: bool,
    ) -> Result<(), ControlError> {
        let what = || format!("group {id} of action profile {name}");
        match (self.groups.contains_key(&id), replace) {
            (true, false) => return Err(ControlError::AlreadyExists { what: what() }),
            (false, true) => return Err(ControlError::NotFound { what: what() }),
            _ => {}
        }
        if let Some(missing) = members.iter().find(|id| !self.members.contains_key(id)) {
            return Err(ControlError::NotFound {
                what: format!("member {missing} of action profile {name}"),
            });
        }
        self.groups.insert(id, members.to_vec());
        Ok(())
    }

    pub(super) fn delete_group(&mut self, name: &str, id: u32) -> Result<(), ControlError> {
        match self.groups.remove(&id) {
            Some(_) => Ok(()),
            None => Err(ControlError::NotFound {
                what: format!("group {id} of action profile {name}"),
            }),
        }
    }
}

/// The refusal to delete what something else refers to.
pub(super) fn in_use(what: String, user: String) -> ControlError {
    ControlError::InvalidArgument {
        what: "deletion".to_string(),
        value: what,
        bound: format!("what nothing refers to; {user} does"),
    }
}
