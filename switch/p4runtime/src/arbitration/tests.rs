//! Tests of arbitration.

use super::super::roles::P4RoleConfig;
use super::*;
use prost::Message;

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

fn of_role(name: &str, config: Option<Any>, election_id: Option<u128>) -> MasterArbitrationUpdate {
    MasterArbitrationUpdate {
        role: Some(Role {
            name: name.to_owned(),
            config,
            ..Role::default()
        }),
        ..message(election_id)
    }
}

fn config(exclusive: u32) -> Any {
    let config = P4RoleConfig {
        exclusive_p4_ids: vec![exclusive],
        ..P4RoleConfig::default()
    };
    Any {
        type_url: "type.googleapis.com/stratum.P4RoleConfig".to_owned(),
        value: config.encode_to_vec(),
    }
}

fn primaries(arbitration: &Arbitration) -> Vec<u64> {
    arbitration
        .primaries()
        .map(|(stream, _)| stream.0)
        .collect()
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
    assert_eq!(primaries(&arbitration), [2]);
}

#[test]
fn without_the_primary_nobody_follows_by_itself() {
    let mut arbitration = Arbitration::new(7);
    arbitration.update(A, &message(Some(5))).unwrap();
    arbitration.update(B, &message(Some(4))).unwrap();
    assert_eq!(codes(&arbitration.disconnect(A)), [(2, 5, Some(5))]);
    assert!(primaries(&arbitration).is_empty());
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
    assert_eq!(codes(&told), [(2, 5, Some(5)), (1, 5, Some(5))]);
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
        codes(&arbitration.update(A, &message(Some(0))).unwrap())[1],
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
    let rejection = reject(A, &of_role("r", None, Some(6)));
    assert_eq!(rejection.code, Code::FailedPrecondition);
    assert_eq!(
        rejection.message,
        "this stream is for role ``, not `r`; open another one"
    );
    let config = of_role("", Some(Any::default()), Some(6));
    assert_eq!(reject(B, &config).code, Code::InvalidArgument);
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
        arbitration
            .check_primary(7, ("", 0), election_id)
            .unwrap_err()
    };
    assert_eq!(
        denied(&arbitration, id(1)).message,
        "no controller is primary; arbitrate on a stream channel"
    );
    arbitration.update(A, &message(Some(5))).unwrap();
    assert_eq!(
        arbitration.check_primary(7, ("", 0), id(5)),
        Ok(Access::Full)
    );
    assert_eq!(
        denied(&arbitration, id(6)).message,
        "election id 6 is not that of the primary, 5"
    );
    assert_eq!(denied(&arbitration, None).code, Code::PermissionDenied);
    assert_eq!(
        arbitration
            .check_primary(8, ("", 0), id(5))
            .unwrap_err()
            .code,
        Code::NotFound
    );
    assert_eq!(
        arbitration
            .check_primary(7, ("x", 0), id(5))
            .unwrap_err()
            .code,
        Code::NotFound
    );
    arbitration.disconnect(A);
    assert_eq!(denied(&arbitration, id(5)).code, Code::PermissionDenied);
}

#[test]
fn each_role_has_a_primary() {
    let mut arbitration = Arbitration::new(7);
    arbitration.update(A, &message(Some(5))).unwrap();
    // The same election id in another role.
    let told = arbitration.update(B, &of_role("r", Some(config(9)), Some(5)));
    let told = told.unwrap();
    assert_eq!(codes(&told), [(2, 0, Some(5))]);
    let role = told[0].1.role.as_ref().unwrap();
    assert_eq!((role.name.as_str(), &role.config), ("r", &Some(config(9))));
    assert_eq!(primaries(&arbitration), [1, 2]);
    let id = |low| Some(Uint128 { high: 0, low });
    let access = arbitration.check_primary(7, ("r", 0), id(5)).unwrap();
    assert!(access.includes(9) && !access.includes(8));
    // What a backup says of the role does not count.
    let c = StreamId(3);
    let told = arbitration.update(c, &of_role("r", Some(config(8)), Some(4)));
    let role = told.unwrap()[0].1.role.clone().unwrap();
    assert_eq!(role.config, Some(config(9)));
    // Its end is announced to its role only, and the role stays known.
    assert_eq!(codes(&arbitration.disconnect(B)), [(3, 5, Some(5))]);
    arbitration.disconnect(c);
    let rejection = arbitration.check_primary(7, ("r", 0), id(5)).unwrap_err();
    assert_eq!(rejection.code, Code::PermissionDenied);
}

#[test]
fn an_exclusive_id_belongs_to_one_role_with_controllers() {
    let mut arbitration = Arbitration::new(7);
    arbitration
        .update(A, &of_role("a", Some(config(9)), Some(1)))
        .unwrap();
    let mut claim = || arbitration.update(B, &of_role("b", Some(config(9)), Some(1)));
    let rejection = claim().unwrap_err();
    assert_eq!(rejection.code, Code::InvalidArgument);
    assert_eq!(
        rejection.message,
        "role `b`: role.config: id 9 is exclusive, and role `a` has it too"
    );
    arbitration.disconnect(A);
    let mut claim = || arbitration.update(B, &of_role("b", Some(config(9)), Some(1)));
    assert!(claim().is_ok());
}

#[test]
fn a_deprecated_id_is_a_name() {
    let mut arbitration = Arbitration::new(7);
    let mut update = of_role("", None, Some(1));
    #[allow(deprecated, reason = "what is tested")]
    {
        update.role.as_mut().unwrap().id = 12;
    }
    arbitration.update(A, &update).unwrap();
    let id = Some(Uint128 { high: 0, low: 1 });
    assert!(arbitration.check_primary(7, ("", 12), id).is_ok());
    assert!(arbitration.check_primary(7, ("12", 0), id).is_ok());
    let rejection = arbitration.check_primary(7, ("x", 12), id).unwrap_err();
    assert_eq!(rejection.code, Code::InvalidArgument);
}

#[test]
fn roles_are_bounded() {
    let mut arbitration = Arbitration::new(7);
    for number in 1..ROLES_MAX as u64 {
        let update = of_role(&number.to_string(), None, None);
        arbitration.update(StreamId(number), &update).unwrap();
    }
    let rejection = arbitration.update(StreamId(999), &of_role("one more", None, None));
    assert_eq!(rejection.unwrap_err().code, Code::ResourceExhausted);
    let long = of_role(&"x".repeat(ROLE_NAME_BYTES_MAX + 1), None, None);
    let rejection = arbitration.update(StreamId(999), &long).unwrap_err();
    assert_eq!(rejection.code, Code::InvalidArgument);
}
