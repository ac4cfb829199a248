//! Batches that are applied all or none.

use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore, SeedableRng};
use tonic::{Code, Status};

use super::messages::{
    ADDRESSES, FORWARD, FORWARD_ON, SIZES, SPREAD, TYPES, action, address, call, counter, delete,
    exact, group, insert, member, meter, modify, optional, profile_group, range, register, session,
    table, ternary,
};
use super::rig::{Controller, Rig};
use prost::Message;
use wormcast_switch_p4runtime::proto::google::rpc;
use wormcast_switch_p4runtime::proto::p4::v1::write_request::Atomicity;
use wormcast_switch_p4runtime::proto::p4::v1::{
    CounterData, Entity, Error, MeterConfig, TableAction, TableEntry, Update, table_action,
};
use wormcast_switch_program::Bits;

async fn write(
    controller: &mut Controller,
    atomicity: Atomicity,
    updates: Vec<Update>,
) -> Result<(), Status> {
    let mut request = controller.request(updates);
    request.atomicity = atomicity as i32;
    controller.client.write(request).await.map(|_| ())
}

fn errors(status: &Status) -> Vec<(Code, String)> {
    assert_eq!(status.code(), Code::Unknown);
    let details = rpc::Status::decode(status.details()).unwrap().details;
    let errors = details.iter().map(|any| {
        let error = Error::decode(any.value.as_slice()).unwrap();
        (Code::from_i32(error.canonical_code), error.message)
    });
    errors.collect()
}

fn entry(last: u8, port: u8) -> Entity {
    table(TableEntry {
        metadata: vec![port],
        ..address(&[2, 0, 0, 0, 0, last], action(FORWARD, &[&[port]]))
    })
}

/// Everything that can be read.
async fn state(controller: &mut Controller) -> Vec<Entity> {
    let entries = TableEntry {
        counter_data: Some(CounterData::default()),
        ..TableEntry::default()
    };
    let filters = vec![
        table(TableEntry::default()),
        table(TableEntry {
            table_id: ADDRESSES,
            ..entries
        }),
        table(TableEntry {
            is_default_action: true,
            ..TableEntry::default()
        }),
        counter(None, None),
        register(None, None),
        meter(None, None),
        member(0, None),
        profile_group(0, &[]),
        group(0, &[]),
        session(0, &[], 0),
    ];
    controller.read(filters).await.unwrap()
}

#[tokio::test]
async fn one_that_fails_takes_all_back() {
    let rig = Rig::start().await;
    let mut controller = rig.controller().await;
    controller.write(vec![insert(entry(1, 3))]).await.unwrap();
    let before = state(&mut controller).await;
    for atomicity in [Atomicity::RollbackOnError, Atomicity::DataplaneAtomic] {
        let updates = vec![
            delete(entry(1, 3)),
            insert(entry(2, 4)),
            insert(entry(2, 5)),
            insert(entry(3, 5)),
        ];
        let status = write(&mut controller, atomicity, updates).await;
        let expected = [
            (
                Code::Aborted,
                "taken back because updates[2] of the request failed: ALREADY_EXISTS",
            ),
            (
                Code::Aborted,
                "taken back because updates[2] of the request failed: ALREADY_EXISTS",
            ),
            (
                Code::AlreadyExists,
                "this entry of table ingress.addresses exists already",
            ),
            (
                Code::Aborted,
                "not tried because updates[2] of the request failed: ALREADY_EXISTS",
            ),
        ];
        let expected = expected.map(|(code, message)| (code, message.to_owned()));
        assert_eq!(errors(&status.unwrap_err()), expected);
        assert_eq!(state(&mut controller).await, before);
    }
    let updates = vec![delete(entry(1, 3)), insert(entry(2, 4))];
    write(&mut controller, Atomicity::DataplaneAtomic, updates)
        .await
        .unwrap();
    let entries = controller.read(vec![table(TableEntry::default())]).await;
    assert_eq!(entries.unwrap(), [entry(2, 4)]);
}

#[tokio::test]
async fn an_unknown_atomicity_is_refused() {
    let rig = Rig::start().await;
    let mut controller = rig.controller().await;
    let mut request = controller.request(vec![insert(entry(1, 3))]);
    request.atomicity = 9;
    let status = controller.client.write(request).await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
    assert_eq!(
        status.message(),
        "atomicity 9 is not valid: CONTINUE_ON_ERROR, ROLLBACK_ON_ERROR or DATAPLANE_ATOMIC"
    );
}

/// One of all updates that a controller can make; many of them are refused.
fn random_update(random: &mut ChaCha8Rng) -> Update {
    let mut number = |below: u32| random.next_u32() % below;
    let (kind, id, value) = (number(3), 1 + number(3), 1 + number(3));
    let byte = [value as u8];
    let by_profile = |kind| Some(TableAction { r#type: Some(kind) });
    let config = MeterConfig {
        cir: i64::from(value),
        cburst: 1,
        pir: 9,
        pburst: 1,
        ..MeterConfig::default()
    };
    let entity = match number(13) {
        0 => entry(id as u8, value as u8),
        1 => table(TableEntry {
            table_id: TYPES,
            r#match: vec![ternary(1, &[id as u8], &[0xff]), optional(2, &byte)],
            priority: id as i32,
            action: action(super::messages::COPY_TO_CPU, &[]),
            ..TableEntry::default()
        }),
        2 => table(TableEntry {
            table_id: SIZES,
            r#match: vec![range(1, &[id as u8], &[9])],
            priority: value as i32,
            action: action(super::messages::DROP, &[]),
            ..TableEntry::default()
        }),
        3 => table(TableEntry {
            table_id: TYPES,
            is_default_action: true,
            action: (value > 1)
                .then(|| action(super::messages::COPY_TO_CPU, &[]))
                .flatten(),
            ..TableEntry::default()
        }),
        4 => counter(Some(i64::from(id)), Some(i64::from(value))),
        5 => register((id > 1).then_some(i64::from(id)), Some(&byte)),
        6 => meter(Some(i64::from(id)), (value > 1).then_some(config)),
        7 => member(id, Some(call(FORWARD_ON, &[&byte]))),
        8 => profile_group(id, &[(value, 1)]),
        9 => group(id, &[(value, 1)]),
        10 => session(id, &[(value, 1)], 0),
        11 => table(TableEntry {
            table_id: SPREAD,
            r#match: vec![exact(1, &byte)],
            action: by_profile(table_action::Type::ActionProfileGroupId(id)),
            ..TableEntry::default()
        }),
        _ => table(TableEntry {
            table_id: SPREAD,
            r#match: vec![exact(1, &byte)],
            action: by_profile(table_action::Type::ActionProfileMemberId(id)),
            ..TableEntry::default()
        }),
    };
    match kind {
        0 => insert(entity),
        1 => modify(entity),
        _ => delete(entity),
    }
}

/// After a batch that failed everything reads as before, whatever was in it.
#[tokio::test]
async fn a_failed_batch_changes_nothing() {
    let rig = Rig::start().await;
    let mut controller = rig.controller().await;
    for seed in 0..60 {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut updates = || -> Vec<Update> {
            (0..1 + random.next_u32() % 12)
                .map(|_| random_update(&mut random))
                .collect()
        };
        // Some state; what is refused is refused.
        let _ = controller.write(updates()).await;
        let before = state(&mut controller).await;
        let mut batch = Vec::new();
        for update in updates() {
            batch.push(update.clone());
            // Each that works on top of those before it is kept in the batch.
            let mut trial = batch.clone();
            trial.push(delete(entry(9, 9)));
            let status = write(&mut controller, Atomicity::RollbackOnError, trial).await;
            let errors = errors(&status.unwrap_err());
            assert_eq!(
                state(&mut controller).await,
                before,
                "seed {seed}: {batch:?}"
            );
            if errors.last().unwrap().0 != Code::NotFound {
                batch.pop();
            }
        }
        // What works as a batch works the same without the one that failed.
        write(&mut controller, Atomicity::RollbackOnError, batch.clone())
            .await
            .unwrap_or_else(|status| panic!("seed {seed}: {batch:?}: {status}"));
    }
}

/// Whoever looks at the data plane between two operations sees all of a batch or none.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_atomic_batch_is_seen_whole() {
    let rig = Rig::start().await;
    let mut controller = rig.controller().await;
    let dataplane = rig.dataplane.clone();
    let (stop, mut stopped) = tokio::sync::oneshot::channel::<()>();
    let observer = tokio::spawn(async move {
        while stopped.try_recv().is_err() {
            let seen = dataplane.run(|switch| {
                let pipeline = switch.pipeline().expect("a program");
                let marks = pipeline.program().register("ingress.marks");
                let marks = marks.expect("a register");
                [0, 15].map(|index| pipeline.read_register(marks, index).unwrap())
            });
            let [first, last]: [Bits; 2] = seen.await.unwrap();
            assert_eq!(first, last);
        }
    });
    for value in 1..=20u8 {
        let write_all =
            |index| (0..400).map(move |_| modify(register(Some(index), Some(&[value]))));
        let updates = write_all(0).chain(write_all(15)).collect();
        write(&mut controller, Atomicity::DataplaneAtomic, updates)
            .await
            .unwrap();
    }
    stop.send(()).unwrap();
    observer.await.unwrap();
}
