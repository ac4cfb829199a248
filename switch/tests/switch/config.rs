//! SetForwardingPipelineConfig, GetForwardingPipelineConfig, Capabilities.

use tonic::Code;

use super::messages::{
    FORWARD, RECEIVED, action, address, counter, group, insert, modify, register, table,
};
use super::rig::{Controller, DEVICE_ID, Rig, objects};
use wormcast_switch_p4runtime::proto::p4::v1::forwarding_pipeline_config::Cookie;
use wormcast_switch_p4runtime::proto::p4::v1::get_forwarding_pipeline_config_request::ResponseType;
use wormcast_switch_p4runtime::proto::p4::v1::set_forwarding_pipeline_config_request::Action;
use wormcast_switch_p4runtime::proto::p4::v1::{
    CapabilitiesRequest, ForwardingPipelineConfig, GetForwardingPipelineConfigRequest, TableEntry,
    entity,
};

async fn get(controller: &mut Controller, kind: ResponseType) -> Option<ForwardingPipelineConfig> {
    let request = GetForwardingPipelineConfigRequest {
        device_id: DEVICE_ID,
        response_type: kind as i32,
    };
    let response = controller
        .client
        .get_forwarding_pipeline_config(request)
        .await
        .unwrap();
    response.into_inner().config
}

/// As controllers expect of BMv2 that set a config only where there is none: p4-utils, say.
#[tokio::test]
async fn a_config_that_is_needed_and_not_there_is_an_error() {
    let rig = Rig::start().await;
    rig.server.need_config();
    let mut controller = Controller::open(&rig, 1).await;
    controller.arbitrate(1).await;
    let request = GetForwardingPipelineConfigRequest {
        device_id: DEVICE_ID,
        response_type: ResponseType::All as i32,
    };
    let answer = controller.client.get_forwarding_pipeline_config(request);
    let code = answer.await.unwrap_err().code();
    assert_eq!(code, Code::FailedPrecondition);
    let set = controller.set_config(Action::VerifyAndCommit, objects());
    set.await.unwrap();
    let config = get(&mut controller, ResponseType::All).await;
    assert_eq!(config, Some(objects()));
}

fn everything() -> TableEntry {
    TableEntry::default()
}

#[tokio::test]
async fn what_was_set_is_given_back() {
    let rig = Rig::start().await;
    let mut controller = Controller::open(&rig, 1).await;
    controller.arbitrate(1).await;
    assert_eq!(get(&mut controller, ResponseType::All).await, None);
    let config = ForwardingPipelineConfig {
        cookie: Some(Cookie { cookie: 99 }),
        ..objects()
    };
    controller
        .set_config(Action::VerifyAndCommit, config.clone())
        .await
        .unwrap();
    assert_eq!(
        get(&mut controller, ResponseType::All).await.unwrap(),
        config
    );
    let cookie = get(&mut controller, ResponseType::CookieOnly)
        .await
        .unwrap();
    assert_eq!((cookie.p4info, cookie.p4_device_config.len()), (None, 0));
    assert_eq!(cookie.cookie, config.cookie);
    let info = get(&mut controller, ResponseType::P4infoAndCookie)
        .await
        .unwrap();
    assert_eq!(
        (info.p4info, info.p4_device_config.len()),
        (config.p4info, 0)
    );
    let device = get(&mut controller, ResponseType::DeviceConfigAndCookie)
        .await
        .unwrap();
    assert_eq!(
        (device.p4info, device.p4_device_config),
        (None, config.p4_device_config)
    );
}

#[tokio::test]
async fn verify_changes_nothing() {
    let rig = Rig::start().await;
    let mut controller = Controller::open(&rig, 1).await;
    controller.arbitrate(1).await;
    controller
        .set_config(Action::Verify, objects())
        .await
        .unwrap();
    assert_eq!(get(&mut controller, ResponseType::All).await, None);
}

#[tokio::test]
async fn commit_takes_what_was_saved_and_written_since() {
    let rig = Rig::start().await;
    let mut controller = rig.controller().await;
    let status = controller
        .set_config(Action::Commit, None)
        .await
        .unwrap_err();
    assert_eq!(status.code(), Code::NotFound);
    controller
        .set_config(Action::VerifyAndSave, objects())
        .await
        .unwrap();
    let entry = insert(table(address(&[5], action(FORWARD, &[&[3]]))));
    controller.write(vec![entry]).await.unwrap();
    let running = |switch: &mut wormcast_switch_dataplane::Switch| {
        let pipeline = switch.pipeline().unwrap();
        let id = pipeline.program().table("ingress.addresses").unwrap();
        pipeline.entries(id).len()
    };
    assert_eq!(rig.dataplane.run(running).await, Ok(0));
    assert_eq!(
        controller
            .read(vec![table(everything())])
            .await
            .unwrap()
            .len(),
        1
    );
    controller.set_config(Action::Commit, None).await.unwrap();
    assert_eq!(rig.dataplane.run(running).await, Ok(1));
    let status = controller
        .set_config(Action::Commit, objects())
        .await
        .unwrap_err();
    assert_eq!(
        status.message(),
        "COMMIT takes no config; it commits the saved one"
    );
}

#[tokio::test]
async fn verify_and_commit_clears_reconcile_keeps() {
    let rig = Rig::start().await;
    let mut controller = rig.controller().await;
    let state = vec![
        insert(table(address(&[5], action(FORWARD, &[&[3]])))),
        insert(group(9, &[(1, 0), (2, 7)])),
        modify(counter(Some(4), Some(1234))),
        modify(register(Some(2), Some(&[0xbe, 0xef]))),
    ];
    controller.write(state).await.unwrap();
    let filters = || {
        vec![
            table(everything()),
            group(0, &[]),
            counter(Some(4), None),
            register(Some(2), None),
        ]
    };
    let before = controller.read(filters()).await.unwrap();
    assert_eq!(before.len(), 4);
    controller
        .set_config(Action::ReconcileAndCommit, objects())
        .await
        .unwrap();
    assert_eq!(controller.read(filters()).await.unwrap(), before);
    controller
        .set_config(Action::VerifyAndCommit, objects())
        .await
        .unwrap();
    let after = controller.read(filters()).await.unwrap();
    assert_eq!(after.len(), 2, "the counter and register cells, both zero");
}

#[tokio::test]
async fn a_config_that_cannot_be_is_refused_and_the_old_one_stays() {
    let rig = Rig::start().await;
    let mut controller = rig.controller().await;
    let mut refuse = async |change: fn(&mut ForwardingPipelineConfig)| {
        let mut config = objects();
        change(&mut config);
        let status = controller
            .set_config(Action::VerifyAndCommit, config)
            .await
            .unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument);
        status.message().to_owned()
    };
    assert_eq!(
        refuse(|config| config.p4info = None).await,
        "the config has no P4Info"
    );
    assert_eq!(
        refuse(|config| config.p4_device_config.clear()).await,
        "the config has no p4_device_config; it must be the JSON that p4c-bm2-ss writes"
    );
    let message = refuse(|config| config.p4_device_config = b"{]".to_vec()).await;
    assert!(message.starts_with("p4_device_config: "), "{message}");
    let message = refuse(|config| config.p4_device_config = vec![0xff]).await;
    assert!(
        message.contains("must be the JSON that p4c-bm2-ss writes"),
        "{message}"
    );
    assert_eq!(
        refuse(|config| {
            let info = config.p4info.as_mut().unwrap();
            info.tables[0].match_fields[0].bitwidth = 32;
        })
        .await,
        "the P4Info does not fit the program: table `ingress.addresses`: match field \
         `hdr.ethernet.dst` has 32 bits, in the program 48"
    );
    assert_eq!(
        refuse(|config| {
            let counters = &mut config.p4info.as_mut().unwrap().counters;
            let mut other = counters[0].clone();
            other.preamble.as_mut().unwrap().id += 1;
            counters.push(other);
        })
        .await,
        "the P4Info does not fit the program: two of its counters have the name \
         `ingress.received`"
    );
    assert_eq!(
        refuse(|config| {
            let headers = &mut config.p4info.as_mut().unwrap().controller_packet_metadata;
            headers[0].metadata[0].name = "wide".to_owned();
            headers[0].metadata[0].bitwidth = i32::MAX;
        })
        .await
        .replace("packet_out", "packet_in"),
        "the P4Info does not fit the program: packet metadata `packet_in` has 2147483654 bits, \
         more than the 526328 of the longest packet"
    );
    assert_eq!(
        refuse(|config| config.p4info.as_mut().unwrap().counters[0].size = 3).await,
        "the P4Info does not fit the program: counter `ingress.received` has 3 cells, in the \
         program 512"
    );
    // The old one still runs.
    let read = controller.read(vec![counter(Some(1), None)]).await.unwrap();
    assert!(matches!(
        &read[0].entity,
        Some(entity::Entity::CounterEntry(entry)) if entry.counter_id == RECEIVED
    ));
}

#[tokio::test]
async fn devices_and_capabilities() {
    let rig = Rig::start().await;
    let mut client = rig.connect().await;
    let response = client
        .capabilities(CapabilitiesRequest::default())
        .await
        .unwrap();
    assert_eq!(response.into_inner().p4runtime_api_version, "1.5.0");
    let other = CapabilitiesRequest { device_id: 8 };
    assert_eq!(
        client.capabilities(other).await.unwrap_err().code(),
        Code::NotFound
    );
    let other = GetForwardingPipelineConfigRequest {
        device_id: 8,
        response_type: 0,
    };
    let status = client
        .get_forwarding_pipeline_config(other)
        .await
        .unwrap_err();
    assert_eq!(status.code(), Code::NotFound);
    assert_eq!(
        status.message(),
        "there is no device 8 here; this is device 7"
    );
}
