//! Which controller is the primary (§"Client Arbitration and Controller Replication").
//!
//! Pure: messages in, messages out. There is one device and the default role.

use std::collections::BTreeMap;

use tonic::Code;

use super::proto::google::rpc;
use super::proto::p4::v1::{MasterArbitrationUpdate, Uint128};
use super::rejection::Rejection;

/// Controllers that may be connected at a time.
pub const STREAMS_MAX: usize = 64;

/// One stream channel, for as long as it is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StreamId(pub u64);

/// What controllers have said of themselves.
#[derive(Debug)]
pub struct Arbitration {
    device_id: u64,
    /// Election id of each controller that has introduced itself.
    controllers: BTreeMap<StreamId, Option<u128>>,
    /// The highest election id a primary ever had.
    highest: Option<u128>,
}

/// What a controller is to be told.
pub type Notification = (StreamId, MasterArbitrationUpdate);

impl Arbitration {
    /// No controller has ever been there.
    pub fn new(device_id: u64) -> Self {
        Self {
            device_id,
            controllers: BTreeMap::new(),
            highest: None,
        }
    }

    /// Takes an arbitration message; gives the notifications that follow from it. After
    /// a rejection the stream is to be closed.
    pub fn update(
        &mut self,
        stream: StreamId,
        message: &MasterArbitrationUpdate,
    ) -> Result<Vec<Notification>, Rejection> {
        let known = self.controllers.contains_key(&stream);
        self.check_identity(known, message)?;
        let election_id = message.election_id.map(to_u128);
        let taken =
            |(other, id): (&StreamId, &Option<u128>)| *other != stream && *id == election_id;
        if let Some(id) = election_id
            && self.controllers.iter().any(taken)
        {
            return Err(Rejection::invalid(format!(
                "election id {id} is used by another controller that is connected"
            )));
        }
        if !known && self.controllers.len() >= STREAMS_MAX {
            return Err(Rejection::new(
                Code::ResourceExhausted,
                format!("{STREAMS_MAX} controllers are connected, which is the most"),
            ));
        }
        let was_primary = self.primary() == Some(stream);
        self.controllers.insert(stream, election_id);
        let wins = election_id.is_some() && election_id >= self.highest;
        if wins {
            self.highest = election_id;
        }
        if wins || was_primary {
            Ok(self.notify_all())
        } else {
            Ok(vec![(stream, self.notification(stream))])
        }
    }

    /// A stream has ended.
    pub fn disconnect(&mut self, stream: StreamId) -> Vec<Notification> {
        let was_primary = self.primary() == Some(stream);
        self.controllers.remove(&stream);
        if was_primary {
            self.notify_all()
        } else {
            Vec::new()
        }
    }

    /// The controller that may write.
    pub fn primary(&self) -> Option<StreamId> {
        let highest = self.highest?;
        let mut controllers = self.controllers.iter();
        let found = controllers.find(|(_, election_id)| **election_id == Some(highest));
        found.map(|(stream, _)| *stream)
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

    /// Whether a request names the default role.
    pub fn check_role(role: &str) -> Result<(), Rejection> {
        if role.is_empty() {
            return Ok(());
        }
        Err(Rejection::not_found(format!(
            "there is no role `{role}` here; only the default role, which has no name"
        )))
    }

    /// Whether whoever sends this may write.
    pub fn check_primary(
        &self,
        device_id: u64,
        role: &str,
        election_id: Option<Uint128>,
    ) -> Result<(), Rejection> {
        self.check_device(device_id)?;
        Self::check_role(role)?;
        let denied = |message| Err(Rejection::new(Code::PermissionDenied, message));
        let Some(highest) = self.highest.filter(|_| self.primary().is_some()) else {
            return denied("no controller is primary; arbitrate on a stream channel".to_owned());
        };
        match election_id.map(to_u128) {
            Some(id) if id == highest => Ok(()),
            Some(id) => denied(format!(
                "election id {id} is not that of the primary, {highest}"
            )),
            None => denied(format!(
                "the election id is missing; that of the primary is {highest}"
            )),
        }
    }

    fn check_identity(
        &self,
        known: bool,
        message: &MasterArbitrationUpdate,
    ) -> Result<(), Rejection> {
        let role = message.role.as_ref();
        let checked = self
            .check_device(message.device_id)
            .and_then(|()| Self::check_role(role.map_or("", |role| &role.name)));
        if let Err(rejection) = checked {
            // What a stream once said it cannot take back.
            let code = if known {
                Code::FailedPrecondition
            } else {
                rejection.code
            };
            return Err(Rejection { code, ..rejection });
        }
        if role.is_some_and(|role| role.config.is_some()) {
            return Err(Rejection::invalid(
                "role.config must be unset: there is only the default role, with full access",
            ));
        }
        Ok(())
    }

    fn notify_all(&self) -> Vec<Notification> {
        let streams = self.controllers.keys();
        streams
            .map(|stream| (*stream, self.notification(*stream)))
            .collect()
    }

    fn notification(&self, stream: StreamId) -> MasterArbitrationUpdate {
        let (code, message) = match self.primary() {
            Some(primary) if primary == stream => (Code::Ok, "you are primary"),
            Some(_) => (
                Code::AlreadyExists,
                "you are backup; another controller is primary",
            ),
            None => (Code::NotFound, "you are backup; no controller is primary"),
        };
        MasterArbitrationUpdate {
            device_id: self.device_id,
            role: None,
            election_id: self.highest.map(from_u128),
            status: Some(rpc::Status {
                code: code as i32,
                message: message.to_owned(),
                details: Vec::new(),
            }),
        }
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
mod tests {
    use super::super::proto::p4::v1::Role;
    use super::*;

    const A: StreamId = StreamId(1);
    const B: StreamId = StreamId(2);

    fn message(election_id: Option<u128>) -> MasterArbitrationUpdate {
        MasterArbitrationUpdate {
            device_id: 7,
            role: None,
            election_id: election_id.map(from_u128),
            status: None,
        }
    }

    fn codes(notifications: &[Notification]) -> Vec<(u64, i32, Option<u128>)> {
        notifications
            .iter()
            .map(|(stream, message)| {
                let code = message.status.as_ref().unwrap().code;
                (stream.0, code, message.election_id.map(to_u128))
            })
            .collect()
    }

    #[test]
    fn highest_election_id_wins_and_all_are_told() {
        let mut arbitration = Arbitration::new(7);
        let told = arbitration.update(A, &message(Some(5))).unwrap();
        assert_eq!(codes(&told), [(1, 0, Some(5))]);
        let told = arbitration.update(B, &message(Some(3))).unwrap();
        assert_eq!(codes(&told), [(2, 6, Some(5))]);
        let told = arbitration.update(B, &message(Some(1 << 64))).unwrap();
        assert_eq!(codes(&told), [(1, 6, Some(1 << 64)), (2, 0, Some(1 << 64))]);
        assert_eq!(arbitration.primary(), Some(B));
    }

    #[test]
    fn without_the_primary_nobody_follows_by_itself() {
        let mut arbitration = Arbitration::new(7);
        arbitration.update(A, &message(Some(5))).unwrap();
        arbitration.update(B, &message(Some(4))).unwrap();
        assert_eq!(codes(&arbitration.disconnect(A)), [(2, 5, Some(5))]);
        assert_eq!(arbitration.primary(), None);
        // Lower than the highest ever: still a backup.
        assert_eq!(
            codes(&arbitration.update(B, &message(Some(4))).unwrap()),
            [(2, 5, Some(5))]
        );
        // Equal to the highest ever will do.
        assert_eq!(
            codes(&arbitration.update(B, &message(Some(5))).unwrap()),
            [(2, 0, Some(5))]
        );
        assert_eq!(arbitration.disconnect(A), []);
    }

    #[test]
    fn a_primary_can_step_down() {
        let mut arbitration = Arbitration::new(7);
        arbitration.update(A, &message(Some(5))).unwrap();
        arbitration.update(B, &message(None)).unwrap();
        let told = arbitration.update(A, &message(Some(2))).unwrap();
        assert_eq!(codes(&told), [(1, 5, Some(5)), (2, 5, Some(5))]);
    }

    #[test]
    fn an_unset_election_id_is_always_backup_and_shared_by_many() {
        let mut arbitration = Arbitration::new(7);
        for stream in [A, B] {
            let told = arbitration.update(stream, &message(None)).unwrap();
            assert_eq!(codes(&told), [(stream.0, 5, None)]);
        }
        // Zero is an election id.
        assert_eq!(
            codes(&arbitration.update(A, &message(Some(0))).unwrap())[0],
            (1, 0, Some(0))
        );
    }

    #[test]
    fn rejections_have_the_codes_of_the_specification() {
        let mut arbitration = Arbitration::new(7);
        arbitration.update(A, &message(Some(5))).unwrap();
        let mut reject = |stream, message: &MasterArbitrationUpdate| {
            arbitration.update(stream, message).unwrap_err()
        };
        let rejection = reject(B, &message(Some(5)));
        assert_eq!(rejection.code, Code::InvalidArgument);
        assert_eq!(
            rejection.message,
            "election id 5 is used by another controller that is connected"
        );
        let other_device = MasterArbitrationUpdate {
            device_id: 8,
            ..message(Some(6))
        };
        let rejection = reject(B, &other_device);
        assert_eq!(rejection.code, Code::NotFound);
        assert_eq!(
            rejection.message,
            "there is no device 8 here; this is device 7"
        );
        assert_eq!(reject(A, &other_device).code, Code::FailedPrecondition);
        let role = |name: &str, config| MasterArbitrationUpdate {
            role: Some(Role {
                name: name.to_owned(),
                config,
                ..Role::default()
            }),
            ..message(Some(6))
        };
        assert_eq!(reject(B, &role("r", None)).code, Code::NotFound);
        assert_eq!(reject(A, &role("r", None)).code, Code::FailedPrecondition);
        let config = Some(super::super::proto::google::protobuf::Any::default());
        assert_eq!(reject(B, &role("", config)).code, Code::InvalidArgument);
    }

    #[test]
    fn controllers_are_bounded() {
        let mut arbitration = Arbitration::new(7);
        for stream in 0..STREAMS_MAX as u64 {
            arbitration
                .update(StreamId(stream), &message(None))
                .unwrap();
        }
        let rejection = arbitration
            .update(StreamId(999), &message(None))
            .unwrap_err();
        assert_eq!(rejection.code, Code::ResourceExhausted);
        assert!(arbitration.update(StreamId(3), &message(Some(1))).is_ok());
    }

    #[test]
    fn only_the_primary_may_write() {
        let mut arbitration = Arbitration::new(7);
        let id = |low| Some(Uint128 { high: 0, low });
        let denied = |arbitration: &Arbitration, election_id| {
            arbitration.check_primary(7, "", election_id).unwrap_err()
        };
        assert_eq!(
            denied(&arbitration, id(1)).message,
            "no controller is primary; arbitrate on a stream channel"
        );
        arbitration.update(A, &message(Some(5))).unwrap();
        assert_eq!(arbitration.check_primary(7, "", id(5)), Ok(()));
        assert_eq!(
            denied(&arbitration, id(6)).message,
            "election id 6 is not that of the primary, 5"
        );
        assert_eq!(denied(&arbitration, None).code, Code::PermissionDenied);
        assert_eq!(
            arbitration.check_primary(8, "", id(5)).unwrap_err().code,
            Code::NotFound
        );
        assert_eq!(
            arbitration.check_primary(7, "x", id(5)).unwrap_err().code,
            Code::NotFound
        );
        arbitration.disconnect(A);
        assert_eq!(denied(&arbitration, id(5)).code, Code::PermissionDenied);
    }
}
