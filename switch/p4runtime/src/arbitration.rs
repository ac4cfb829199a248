//! Which controller is the primary (§"Client Arbitration and Controller Replication").
//!
//! Pure: messages in, messages out. There is one device; each role has a primary of its own.

use std::collections::BTreeMap;

use tonic::Code;

use super::proto::google::protobuf::Any;
use super::proto::google::rpc;
use super::proto::p4::v1::{MasterArbitrationUpdate, Role, Uint128};
use super::rejection::Rejection;
use super::roles::Access;

/// Controllers of one role that may be connected at a time.
pub const STREAMS_MAX: usize = 64;

/// Roles that are remembered, the default one among them.
pub const ROLES_MAX: usize = 64;

/// Longest name of a role, bytes.
pub const ROLE_NAME_BYTES_MAX: usize = 256;

/// One stream channel, for as long as it is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StreamId(pub u64);

/// What controllers have said of themselves.
#[derive(Debug)]
pub struct Arbitration {
    device_id: u64,
    /// By name; the default role is always there. Roles stay when their controllers leave.
    roles: BTreeMap<String, RoleState>,
    /// The role of each controller that has introduced itself.
    of_stream: BTreeMap<StreamId, String>,
}

#[derive(Debug, Default)]
struct RoleState {
    controllers: BTreeMap<StreamId, Controller>,
    /// The highest election id a primary ever had.
    highest: Option<u128>,
    /// What the last primary said of the role.
    config: Option<Any>,
    access: Access,
}

#[derive(Debug)]
struct Controller {
    election_id: Option<u128>,
    /// How it names its role; unset for the default one.
    role: Option<Role>,
}

impl RoleState {
    fn primary(&self) -> Option<StreamId> {
        let highest = self.highest?;
        let mut controllers = self.controllers.iter();
        let found = controllers.find(|(_, controller)| controller.election_id == Some(highest));
        found.map(|(stream, _)| *stream)
    }
}

/// A message to a controller.
pub type Notification = (StreamId, MasterArbitrationUpdate);

impl Arbitration {
    /// No controller has ever been there.
    pub fn new(device_id: u64) -> Self {
        Self {
            device_id,
            roles: BTreeMap::from([(String::new(), RoleState::default())]),
            of_stream: BTreeMap::new(),
        }
    }

    /// Takes an arbitration message; gives the notifications that follow from it, the one of
    /// the sender last. After a rejection the stream is to be closed.
    pub fn update(
        &mut self,
        stream: StreamId,
        message: &MasterArbitrationUpdate,
    ) -> Result<Vec<Notification>, Rejection> {
        let name = self.check_identity(stream, message)?;
        let config = message.role.as_ref().and_then(|role| role.config.clone());
        let access = Access::parse(&name, config.as_ref())?;
        for (other, state) in &self.roles {
            if *other != name && !state.controllers.is_empty() {
                access.check_disjoint(&state.access)?;
            }
        }
        let election_id = message.election_id.map(to_u128);
        self.check_room(stream, &name, election_id)?;
        let state = self.roles.entry(name.clone()).or_default();
        let was_primary = state.primary() == Some(stream);
        let role = message.role.clone();
        let controller = Controller { election_id, role };
        state.controllers.insert(stream, controller);
        self.of_stream.insert(stream, name.clone());
        let wins = election_id.is_some() && election_id >= state.highest;
        if wins {
            state.highest = election_id;
            state.config = config;
            state.access = access;
        }
        Ok(if wins || was_primary {
            self.notify_all(&name, Some(stream))
        } else {
            vec![(stream, self.notification(&name, stream))]
        })
    }

    pub fn disconnect(&mut self, stream: StreamId) -> Vec<Notification> {
        let Some(name) = self.of_stream.remove(&stream) else {
            return Vec::new();
        };
        let Some(state) = self.roles.get_mut(&name) else {
            return Vec::new();
        };
        let was_primary = state.primary() == Some(stream);
        state.controllers.remove(&stream);
        if was_primary {
            self.notify_all(&name, None)
        } else {
            Vec::new()
        }
    }

    /// The primary of each role that has one, and what it may do.
    pub fn primaries(&self) -> impl Iterator<Item = (StreamId, &Access)> {
        self.roles
            .values()
            .filter_map(|state| Some((state.primary()?, &state.access)))
    }

    /// What a stream may do if it is the primary of its role.
    pub fn access_of(&self, stream: StreamId) -> Option<&Access> {
        let state = self.roles.get(self.of_stream.get(&stream)?)?;
        (state.primary() == Some(stream)).then_some(&state.access)
    }

    /// Whether a request names this device.
    pub fn check_device(&self, device_id: u64) -> Result<(), Rejection> {
        if device_id == self.device_id {
            return Ok(());
        }
        Err(Rejection::not_found(format!(
            "there is no device {device_id} here; this is device {}",
            self.device_id
        )))
    }

    /// What a role may do that a request names.
    pub fn check_role(&self, name: &str, id: u64) -> Result<&Access, Rejection> {
        let name = role_name(name, id)?;
        match self.roles.get(&name) {
            Some(state) => Ok(&state.access),
            None => Err(Rejection::not_found(format!(
                "there is no role `{name}` here: no controller has arbitrated for it"
            ))),
        }
    }

    /// Whether whoever sends this may write, and what.
    pub fn check_primary(
        &self,
        device_id: u64,
        (role, role_id): (&str, u64),
        election_id: Option<Uint128>,
    ) -> Result<Access, Rejection> {
        self.check_device(device_id)?;
        self.check_role(role, role_id)?;
        let name = role_name(role, role_id)?;
        let denied = |message| Err(Rejection::new(Code::PermissionDenied, message));
        let state = self.roles.get(&name);
        let Some(state) = state.filter(|state| state.primary().is_some()) else {
            return denied("no controller is primary; arbitrate on a stream channel".to_owned());
        };
        let highest = state.highest.unwrap_or_default();
        match election_id.map(to_u128) {
            Some(id) if id == highest => Ok(state.access.clone()),
            Some(id) => denied(format!(
                "election id {id} is not that of the primary, {highest}"
            )),
            None => denied(format!(
                "the election id is missing; that of the primary is {highest}"
            )),
        }
    }

    /// Gives the name of the role.
    fn check_identity(
        &self,
        stream: StreamId,
        message: &MasterArbitrationUpdate,
    ) -> Result<String, Rejection> {
        let known = self.of_stream.get(&stream);
        // What a stream once said it cannot take back.
        let again = |rejection: Rejection| match known {
            Some(_) => Rejection::new(Code::FailedPrecondition, rejection.message),
            None => rejection,
        };
        self.check_device(message.device_id).map_err(again)?;
        let name = match &message.role {
            None => String::new(),
            #[allow(deprecated, reason = "controllers of version 1.3 set it")]
            Some(role) => role_name(&role.name, role.id)?,
        };
        if name.len() > ROLE_NAME_BYTES_MAX {
            return Err(Rejection::invalid(format!(
                "the name of the role has {} bytes, more than {ROLE_NAME_BYTES_MAX}",
                name.len()
            )));
        }
        match known {
            Some(known) if *known != name => Err(Rejection::new(
                Code::FailedPrecondition,
                format!("this stream is for role `{known}`, not `{name}`; open another one"),
            )),
            _ => Ok(name),
        }
    }

    fn check_room(
        &self,
        stream: StreamId,
        name: &str,
        election_id: Option<u128>,
    ) -> Result<(), Rejection> {
        let full = |message| Err(Rejection::new(Code::ResourceExhausted, message));
        let Some(state) = self.roles.get(name) else {
            if self.roles.len() >= ROLES_MAX {
                return full(format!("there are {ROLES_MAX} roles, which is the most"));
            }
            return Ok(());
        };
        let mut others = state.controllers.iter();
        if let Some(id) = election_id
            && others
                .any(|(other, controller)| *other != stream && controller.election_id == Some(id))
        {
            return Err(Rejection::invalid(format!(
                "election id {id} is used by another controller that is connected"
            )));
        }
        let known = state.controllers.contains_key(&stream);
        if !known && state.controllers.len() >= STREAMS_MAX {
            return full(format!(
                "{STREAMS_MAX} controllers are connected, which is the most"
            ));
        }
        Ok(())
    }

    fn notify_all(&self, name: &str, last: Option<StreamId>) -> Vec<Notification> {
        let streams = self.roles.get(name).into_iter();
        let streams = streams.flat_map(|state| state.controllers.keys().copied());
        streams
            .filter(|stream| Some(*stream) != last)
            .chain(last)
            .map(|stream| (stream, self.notification(name, stream)))
            .collect()
    }

    fn notification(&self, name: &str, stream: StreamId) -> MasterArbitrationUpdate {
        let state = &self.roles[name];
        let (code, message) = match state.primary() {
            Some(primary) if primary == stream => (Code::Ok, "you are primary"),
            Some(_) => (
                Code::AlreadyExists,
                "you are backup; another controller is primary",
            ),
            None => (Code::NotFound, "you are backup; no controller is primary"),
        };
        let role = state.controllers[&stream].role.clone();
        MasterArbitrationUpdate {
            device_id: self.device_id,
            role: role.map(|role| Role {
                config: state.config.clone(),
                ..role
            }),
            election_id: state.highest.map(from_u128),
            status: Some(rpc::Status {
                code: code as i32,
                message: message.to_owned(),
                details: Vec::new(),
            }),
        }
    }
}

/// The name of a role. A number, which is how roles were told apart before version 1.4,
/// stands for the role whose name is that number in decimal.
fn role_name(name: &str, id: u64) -> Result<String, Rejection> {
    match (name, id) {
        (_, 0) => Ok(name.to_owned()),
        ("", id) => Ok(id.to_string()),
        (name, id) if *name == id.to_string() => Ok(name.to_owned()),
        (name, id) => Err(Rejection::invalid(format!(
            "the role is `{name}` by its name, but {id} by its deprecated id; set only the name"
        ))),
    }
}

fn to_u128(id: Uint128) -> u128 {
    u128::from(id.high) << 64 | u128::from(id.low)
}

fn from_u128(id: u128) -> Uint128 {
    Uint128 {
        high: (id >> 64) as u64,
        low: id as u64,
    }
}

#[cfg(test)]
mod tests;
