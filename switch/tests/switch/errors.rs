//! Refusals of what cannot be: golden codes and messages.

use prost::Message;
use tonic::Code;

use super::messages::{
    ADDRESSES, DROP, FORWARD, SIZES, SPREAD, TO_CPU, TYPES, action, address, call, counter, delete,
    exact, group, insert, lpm, member, meter, modify, of, optional, profile_group, range, register,
    session, table, ternary,
};
use super::rig::{Controller, Rig, objects};
use wormcast_switch_p4runtime::proto::google::rpc;
use wormcast_switch_p4runtime::proto::p4::v1 as p4;
use wormcast_switch_p4runtime::proto::p4::v1::set_forwarding_pipeline_config_request::Action;
use wormcast_switch_p4runtime::proto::p4::v1::{
    DigestEntry, Entity, MeterConfig, TableEntry, Update, WriteRequest, entity,
};

/// Code and message of the only update of a write.
pub async fn refusal(controller: &mut Controller, update: Update) -> (Code, String) {
    let status = controller.write(vec![update]).await.unwrap_err();
    assert_eq!(status.code(), Code::Unknown);
    let details = rpc::Status::decode(status.details()).unwrap().details;
    assert_eq!(details.len(), 1);
    let error = p4::Error::decode(details[0].value.as_slice()).unwrap();
    let start = "1 of 1 updates failed, first updates[0] of the request: ";
    assert!(status.message().starts_with(start), "{}", status.message());
    assert!(
        status.message().ends_with(&error.message),
        "{}",
        status.message()
    );
    (Code::from_i32(error.canonical_code), error.message)
}

fn entry(table_id: u32, r#match: Vec<p4::FieldMatch>, priority: i32) -> TableEntry {
    let action = action(DROP, &[]);
    TableEntry {
        table_id,
        r#match,
        priority,
        action,
        ..TableEntry::default()
    }
}

#[tokio::test]
async fn keys() {
    let rig = Rig::start().await;
    let mut controller = rig.controller().await;
    let cases = [
        (
            entry(99, vec![], 0),
            Code::NotFound,
            "there is no table with the id 99",
        ),
        (
            entry(ADDRESSES, vec![], 0),
            Code::InvalidArgument,
            "table `ingress.addresses`: match field `hdr.ethernet.dst` (id 1): it is missing; an exact \
             match cannot be left out",
        ),
        (
            entry(ADDRESSES, vec![exact(1, &[1]), exact(2, &[1])], 0),
            Code::InvalidArgument,
            "table `ingress.addresses` has no match field with the id 2; it has \
             1 (hdr.ethernet.dst)",
        ),
        (
            entry(ADDRESSES, vec![exact(1, &[1]), exact(1, &[1])], 0),
            Code::InvalidArgument,
            "table `ingress.addresses`: match field `hdr.ethernet.dst` (id 1): it is there twice",
        ),
        (
            entry(ADDRESSES, vec![exact(1, &[1, 0, 0, 0, 0, 0, 0])], 0),
            Code::OutOfRange,
            "table `ingress.addresses`: match field `hdr.ethernet.dst` (id 1): value 0x1000000000000 \
             does not fit into 48 bits (at most 0xffffffffffff)",
        ),
        (
            entry(ADDRESSES, vec![exact(1, &[])], 0),
            Code::OutOfRange,
            "table `ingress.addresses`: match field `hdr.ethernet.dst` (id 1): the value is empty; at \
             least one byte is needed for a value of 48 bits",
        ),
        (
            entry(ADDRESSES, vec![ternary(1, &[1], &[1])], 0),
            Code::InvalidArgument,
            "table `ingress.addresses`: match field `hdr.ethernet.dst` (id 1): it is matched by exact, \
             not by ternary",
        ),
        (
            entry(ADDRESSES, vec![exact(1, &[1])], 4),
            Code::InvalidArgument,
            "table `ingress.addresses`: priority 4 is not valid: 0, because the key has no \
             ternary, range or optional field",
        ),
        (
            entry(TYPES, vec![], 0),
            Code::InvalidArgument,
            "table `ingress.types`: priority 0 is not valid: at least 1, because the key has a \
             ternary, range or optional field",
        ),
        (
            entry(TYPES, vec![ternary(1, &[0], &[0])], 1),
            Code::InvalidArgument,
            "table `ingress.types`: match field `hdr.ethernet.type` (id 1): a mask of zeros matches \
             anything; leave the field out instead",
        ),
        (
            entry(TYPES, vec![ternary(1, &[3], &[2])], 1),
            Code::InvalidArgument,
            "table `ingress.types`: match field `hdr.ethernet.type` (id 1): value 0x3 has ones where \
             its mask 0x2 has zeros",
        ),
        (
            entry(TYPES, vec![optional(2, &[2, 0])], 1),
            Code::OutOfRange,
            "table `ingress.types`: match field `standard_metadata.ingress_port` (id 2): value 0x200 \
             does not fit into 9 bits (at most 0x1ff)",
        ),
        (
            entry(TYPES, vec![lpm(3, &[1], 49)], 1),
            Code::InvalidArgument,
            "table `ingress.types`: match field `hdr.ethernet.src` (id 3): a prefix of length 49 is not \
             possible: 1 to 48",
        ),
        (
            entry(TYPES, vec![lpm(3, &[1], 8)], 1),
            Code::InvalidArgument,
            "table `ingress.types`: match field `hdr.ethernet.src` (id 3): value 0x1 has ones after its \
             first 8 of 48 bits",
        ),
        (
            entry(SIZES, vec![range(1, &[9], &[8])], 1),
            Code::InvalidArgument,
            "table `ingress.sizes`: match field `standard_metadata.packet_length` (id 1): the low bound \
             0x9 is above the high bound 0x8",
        ),
    ];
    for (entry, code, message) in cases {
        let refused = refusal(&mut controller, insert(table(entry))).await;
        assert_eq!(refused, (code, message.to_owned()));
    }
}

#[tokio::test]
async fn actions_and_other_fields_of_entries() {
    let rig = Rig::start().await;
    let mut controller = rig.controller().await;
    let default = TableEntry {
        is_default_action: true,
        ..entry(SIZES, vec![], 0)
    };
    let cases = [
        (
            insert(table(address(&[1], None))),
            Code::InvalidArgument,
            "table `ingress.addresses`: the entry has no action",
        ),
        (
            insert(table(address(&[1], action(5, &[])))),
            Code::InvalidArgument,
            "table `ingress.addresses` has no action with the id 5; it has \
             16777217 (ingress.forward), 16777218 (ingress.flood), 16777219 (ingress.drop), \
             16777220 (ingress.to_cpu)",
        ),
        (
            insert(table(address(&[1], action(DROP, &[])))),
            Code::PermissionDenied,
            "table `ingress.addresses`: action `ingress.drop` is for the default action only",
        ),
        (
            insert(table(address(&[1], action(FORWARD, &[])))),
            Code::InvalidArgument,
            "table `ingress.addresses`: action `ingress.forward`: parameter `port` (id 1): it is missing",
        ),
        (
            insert(table(address(&[1], action(FORWARD, &[&[1], &[2]])))),
            Code::InvalidArgument,
            "table `ingress.addresses`: action `ingress.forward`: it has no parameter with the \
             id 2; it has 1 (port)",
        ),
        (
            insert(table(address(&[1], action(FORWARD, &[&[2, 0]])))),
            Code::OutOfRange,
            "table `ingress.addresses`: action `ingress.forward`: parameter `port` (id 1): value 0x200 \
             does not fit into 9 bits (at most 0x1ff)",
        ),
        (
            insert(table(TableEntry {
                is_const: true,
                ..address(&[1], action(TO_CPU, &[]))
            })),
            Code::InvalidArgument,
            "table `ingress.addresses`: is_const cannot be written",
        ),
        (
            insert(table(TableEntry {
                idle_timeout_ns: 5,
                ..address(&[1], action(TO_CPU, &[]))
            })),
            Code::InvalidArgument,
            "table `ingress.addresses`: there are idle timeouts only for entries, and only where the \
             P4Info has them",
        ),
        (
            modify(table(TableEntry {
                counter_data: Some(p4::CounterData::default()),
                ..entry(SIZES, vec![range(1, &[1], &[2])], 1)
            })),
            Code::InvalidArgument,
            "table `ingress.sizes`: entries have no counter",
        ),
        (
            modify(table(address(&[1], action(FORWARD, &[&[1]])))),
            Code::NotFound,
            "this entry of table ingress.addresses does not exist",
        ),
        (
            insert(table(default.clone())),
            Code::InvalidArgument,
            "table `ingress.sizes`: the default entry can only be modified",
        ),
        (
            modify(table(TableEntry {
                priority: 3,
                ..default.clone()
            })),
            Code::InvalidArgument,
            "table `ingress.sizes`: the default entry has no priority",
        ),
        (
            modify(table(TableEntry {
                table_id: ADDRESSES,
                ..default.clone()
            })),
            Code::PermissionDenied,
            "fixed by the program: the default action of table ingress.addresses",
        ),
        (
            insert(table(entry(SPREAD, vec![exact(1, &[8, 0])], 0))),
            Code::InvalidArgument,
            "table `ingress.spread`: its entries refer to members or groups of an action \
             profile, not to actions",
        ),
    ];
    for (update, code, message) in cases {
        assert_eq!(
            refusal(&mut controller, update).await,
            (code, message.to_owned())
        );
    }
}

#[tokio::test]
async fn everything_else() {
    let rig = Rig::start().await;
    let mut controller = rig.controller().await;
    let below = MeterConfig {
        cir: -1,
        ..MeterConfig::default()
    };
    let digest = of(entity::Entity::DigestEntry(DigestEntry {
        digest_id: 4,
        config: None,
    }));
    let cases = [
        (
            Update {
                r#type: 0,
                entity: Some(group(1, &[])),
            },
            Code::InvalidArgument,
            "update type 0 is not valid: INSERT, MODIFY or DELETE",
        ),
        (
            insert(Entity { entity: None }),
            Code::InvalidArgument,
            "the update has no entity",
        ),
        (
            insert(group(0, &[])),
            Code::InvalidArgument,
            "multicast group 0 is not valid: 0 stands for all of them in a read",
        ),
        (
            insert(group(1, &[(512, 0)])),
            Code::InvalidArgument,
            "multicast group 1: 512 is not a port: 0 to 511",
        ),
        (
            insert(group(1, &[(1, 65_536)])),
            Code::InvalidArgument,
            "multicast group 1: instance 65536 is not valid: 0 to 65535",
        ),
        (
            insert(group(1, &[(1, 2), (1, 2)])),
            Code::InvalidArgument,
            "multicast group 1: port 1 with instance 2 is there twice",
        ),
        (
            delete(group(1, &[])),
            Code::NotFound,
            "multicast group 1 does not exist",
        ),
        (
            insert(group(65_536, &[])),
            Code::InvalidArgument,
            "multicast group 65536 is not valid: 1 to 65535",
        ),
        (
            insert(session(0, &[], 0)),
            Code::InvalidArgument,
            "clone session 0 is not valid: 0 stands for all of them in a read",
        ),
        (
            insert(session(1, &[], -1)),
            Code::InvalidArgument,
            "clone session 1: packet length -1 is not valid: 0 to 65535 bytes",
        ),
        (
            insert(counter(Some(1), Some(1))),
            Code::InvalidArgument,
            "counter `ingress.received` can only be modified",
        ),
        (
            modify(counter(Some(512), Some(1))),
            Code::OutOfRange,
            "counter `ingress.received`: index 512 is not valid: 0 to 511",
        ),
        (
            modify(counter(Some(-1), Some(1))),
            Code::InvalidArgument,
            "counter `ingress.received`: index -1 is below 0",
        ),
        (
            modify(register(Some(0), Some(&[1, 0, 0, 0, 0]))),
            Code::OutOfRange,
            "register `ingress.marks`: value 0x100000000 does not fit into 32 bits (at most \
             0xffffffff)",
        ),
        (
            modify(meter(Some(0), Some(below))),
            Code::InvalidArgument,
            "meter `ingress.rates`: cir -1 is below 0",
        ),
        (
            insert(member(1, Some(call(FORWARD, &[&[1]])))),
            Code::InvalidArgument,
            "action profile `ingress.choice` has no action with the id 16777217; it has \
             16777222 (ingress.forward_on), 21257015 (NoAction)",
        ),
        (
            insert(profile_group(1, &[(1, 0)])),
            Code::InvalidArgument,
            "action profile `ingress.choice`: group 1: member 1: weight 0 is not valid: at least 1",
        ),
        (
            insert(digest),
            Code::NotFound,
            "there is no digest with the id 4",
        ),
    ];
    for (update, code, message) in cases {
        assert_eq!(
            refusal(&mut controller, update).await,
            (code, message.to_owned())
        );
    }
}

#[tokio::test]
async fn one_bad_update_does_not_stop_the_others() {
    let rig = Rig::start().await;
    let mut controller = rig.controller().await;
    let good = insert(table(address(&[1], action(FORWARD, &[&[1]]))));
    let other = insert(table(address(&[2], action(FORWARD, &[&[1]]))));
    let status = controller
        .write(vec![good.clone(), good, other])
        .await
        .unwrap_err();
    assert_eq!(
        status.message(),
        "1 of 3 updates failed, first updates[1] of the request: ALREADY_EXISTS: this entry of table \
         ingress.addresses exists already"
    );
    let all = TableEntry {
        table_id: ADDRESSES,
        ..TableEntry::default()
    };
    assert_eq!(controller.read(vec![table(all)]).await.unwrap().len(), 2);
}

#[tokio::test]
async fn requests_as_a_whole() {
    let rig = Rig::start().await;
    let mut controller = Controller::open(&rig, 1).await;
    controller.arbitrate(1).await;
    let good = || vec![insert(group(1, &[]))];
    let status = controller.write(good()).await.unwrap_err();
    assert_eq!(status.code(), Code::FailedPrecondition);
    assert_eq!(
        status.message(),
        "no forwarding pipeline config is set; use SetForwardingPipelineConfig first"
    );
    let status = controller.read(vec![group(0, &[])]).await.unwrap_err();
    assert_eq!(status.code(), Code::FailedPrecondition);

    controller
        .set_config(Action::VerifyAndCommit, objects())
        .await
        .unwrap();
    let mut refuse = async |change: fn(&mut WriteRequest)| {
        let mut request = controller.request(good());
        change(&mut request);
        controller.client.write(request).await.unwrap_err()
    };
    let status = refuse(|request| request.device_id = 8).await;
    assert_eq!(status.code(), Code::NotFound);
    assert_eq!(
        status.message(),
        "there is no device 8 here; this is device 7"
    );
    let status = refuse(|request| request.role = "half".to_owned()).await;
    assert_eq!(status.code(), Code::NotFound);
    let status = refuse(|request| request.election_id = None).await;
    assert_eq!(status.code(), Code::PermissionDenied);
    let status = refuse(|request| request.atomicity = 3).await;
    assert_eq!(status.code(), Code::InvalidArgument);
    assert_eq!(
        status.message(),
        "atomicity 3 is not valid: CONTINUE_ON_ERROR, ROLLBACK_ON_ERROR or DATAPLANE_ATOMIC"
    );
    let status = controller
        .read(vec![Entity { entity: None }])
        .await
        .unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
}
