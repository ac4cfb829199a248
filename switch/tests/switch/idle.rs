//! Entries with an idle timeout.

use tonic::Code;

use super::messages::{ADDRESSES, FORWARD, action, address, delete, insert, modify, table};
use super::rig::{Controller, Rig, objects};
use wormcast_switch_p4runtime::proto::p4::config::v1::table::IdleTimeoutBehavior;
use wormcast_switch_p4runtime::proto::p4::v1::set_forwarding_pipeline_config_request::Action;
use wormcast_switch_p4runtime::proto::p4::v1::table_entry::IdleTimeout;
use wormcast_switch_p4runtime::proto::p4::v1::{
    ForwardingPipelineConfig, IdleTimeoutNotification, TableEntry, entity, stream_message_response,
};

/// `objects.p4` with entries of `addresses` that age.
fn aging() -> ForwardingPipelineConfig {
    let mut config = objects();
    let mut json: serde_json::Value = serde_json::from_slice(&config.p4_device_config).unwrap();
    for pipeline in json["pipelines"].as_array_mut().unwrap() {
        for table in pipeline["tables"].as_array_mut().unwrap() {
            table["support_timeout"] = true.into();
        }
    }
    config.p4_device_config = json.to_string().into_bytes();
    let tables = &mut config.p4info.as_mut().unwrap().tables;
    for table in tables {
        if table.preamble.as_ref().unwrap().id == ADDRESSES {
            table.idle_timeout_behavior = IdleTimeoutBehavior::NotifyControl as i32;
        }
    }
    config
}

async fn controller(rig: &Rig) -> Controller {
    let mut controller = Controller::open(rig, 1).await;
    controller.arbitrate(1).await;
    controller
        .set_config(Action::VerifyAndCommit, aging())
        .await
        .unwrap();
    controller
}

fn entry(last: u8, idle_timeout_ns: i64) -> TableEntry {
    TableEntry {
        idle_timeout_ns,
        metadata: vec![last],
        ..address(&[2, 0, 0, 0, 0, last], action(FORWARD, &[&[3]]))
    }
}

async fn hear(controller: &mut Controller) -> IdleTimeoutNotification {
    match controller.hear().await.unwrap() {
        stream_message_response::Update::IdleTimeoutNotification(idle) => idle,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn an_entry_without_packets_is_told_again_and_again() {
    let rig = Rig::start().await;
    let mut controller = controller(&rig).await;
    let hour_ns = 3_600_000_000_000;
    controller
        .write(vec![
            insert(table(entry(1, 2_000_000))),
            insert(table(entry(2, hour_ns))),
            insert(table(entry(3, 0))),
        ])
        .await
        .unwrap();
    for _ in 0..3 {
        let idle = hear(&mut controller).await;
        assert!(idle.timestamp > 0);
        let expected = TableEntry {
            action: None,
            ..entry(1, 2_000_000)
        };
        assert_eq!(idle.table_entry, [expected]);
    }
    controller
        .write(vec![delete(table(entry(1, 0)))])
        .await
        .unwrap();
    // It shows a timeout exactly as it was written.
    let found = controller.read(vec![table(TableEntry::default())]).await;
    assert_eq!(
        found.unwrap(),
        [table(entry(2, hour_ns)), table(entry(3, 0))]
    );
    // A modified entry has the timeout that it is given then.
    controller
        .write(vec![modify(table(entry(3, 3_000_001)))])
        .await
        .unwrap();
    let mut heard = hear(&mut controller).await;
    while heard.table_entry[0].idle_timeout_ns == 2_000_000 {
        heard = hear(&mut controller).await; // sent before the deletion
    }
    assert_eq!(heard.table_entry[0].idle_timeout_ns, 3_000_001);
}

#[tokio::test]
async fn the_time_since_the_last_hit_is_told_when_asked_for() {
    let rig = Rig::start().await;
    let mut controller = controller(&rig).await;
    controller
        .write(vec![insert(table(entry(1, 0)))])
        .await
        .unwrap();
    let asked = TableEntry {
        table_id: ADDRESSES,
        time_since_last_hit: Some(IdleTimeout::default()),
        ..TableEntry::default()
    };
    let elapsed_ns = async |controller: &mut Controller| {
        let found = controller.read(vec![table(asked.clone())]).await.unwrap();
        match &found[0].entity {
            Some(entity::Entity::TableEntry(entry)) => {
                entry.time_since_last_hit.unwrap().elapsed_ns
            }
            other => panic!("{other:?}"),
        }
    };
    let first = elapsed_ns(&mut controller).await;
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    let second = elapsed_ns(&mut controller).await;
    assert!(second >= first + 50_000_000, "{first} {second}");
    // The packet goes to the data plane after this time was read, so it is later than that.
    let hit = rig.dataplane.run(|switch| {
        let mut frame = vec![0xff, 0x80, 2, 0, 0, 0, 0, 1];
        frame.resize(60, 0);
        let pipeline = switch.pipeline().expect("a program");
        let now_us = pipeline.now_us();
        let mut sink = Nowhere;
        let port = wormcast_switch_pipeline::PortId(1);
        pipeline.ingress(&frame[2..], port, now_us, &mut sink);
        now_us
    });
    let hit_us = hit.await.unwrap();
    let later_us = rig
        .dataplane
        .run(|switch| switch.pipeline().expect("a program").now_us());
    let bound = later_us.await.unwrap() - hit_us;
    let after = elapsed_ns(&mut controller).await;
    assert!(after as u64 / 1_000 >= bound, "{after} {bound}");
    assert!(after < second, "{after} {second}");
}

/// Where packets of the test end.
struct Nowhere;

impl wormcast_switch_pipeline::TrafficSink for Nowhere {
    fn enqueue(
        &mut self,
        _: wormcast_switch_pipeline::Queued,
    ) -> Result<(), wormcast_switch_pipeline::Queued> {
        Ok(())
    }

    fn digest(
        &mut self,
        _: wormcast_switch_program::DigestId,
        _: &[wormcast_switch_program::Bits],
    ) {
    }
}

impl wormcast_switch_pipeline::EmitSink for Nowhere {
    fn transmit(&mut self, _: wormcast_switch_pipeline::PortId, _: &[u8]) {}
}

#[tokio::test]
async fn timeouts_are_refused_where_entries_do_not_age() {
    let rig = Rig::start().await;
    let mut controller = rig.controller().await;
    let status = controller.write(vec![insert(table(entry(1, 5)))]).await;
    assert_eq!(
        status.unwrap_err().message(),
        "1 of 1 updates failed, first updates[0] of the request: INVALID_ARGUMENT: table `ingress.addresses`: \
         there are idle timeouts only for entries, and only where the P4Info has them"
    );
    let asked = TableEntry {
        table_id: ADDRESSES,
        time_since_last_hit: Some(IdleTimeout::default()),
        ..TableEntry::default()
    };
    let status = controller.read(vec![table(asked)]).await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
    // A P4Info with idle timeouts does not fit a program without.
    let mut config = aging();
    config.p4_device_config = objects().p4_device_config;
    let status = controller.set_config(Action::Verify, config).await;
    assert_eq!(
        status.unwrap_err().message(),
        "the P4Info does not fit the program: table `ingress.addresses` has idle timeouts, in \
         the program not"
    );
}
