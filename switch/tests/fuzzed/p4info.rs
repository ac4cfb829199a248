//! P4Info with a program of the repository: a binding that is refused says why, and with one
//! that is taken everything can be read, written as it was read, and got back.
//!
//! Input: the number of a program, then the P4Info in the encoding of protocol buffers.

use prost::Message;

use super::requests::rig::{DEVICE_ID, Rig};
use super::requests::state::check_read_write_symmetry;
use super::requests::{building, config, with_rig};
use wormcast_switch_p4runtime::proto::p4::config::v1::P4Info;
use wormcast_switch_p4runtime::proto::p4::v1::p4_runtime_server::P4Runtime;
use wormcast_switch_p4runtime::proto::p4::v1::set_forwarding_pipeline_config_request::Action;
use wormcast_switch_p4runtime::proto::p4::v1::{
    ForwardingPipelineConfig, GetForwardingPipelineConfigRequest,
};

pub fn run(data: &[u8]) {
    let Some((number, bytes)) = data.split_first() else {
        return;
    };
    let Ok(p4info) = P4Info::decode(bytes) else {
        return;
    };
    let known = config(u32::from(*number));
    let config = ForwardingPipelineConfig {
        p4info: Some(p4info),
        ..known
    };
    with_rig(|rig| rig.block_on(bind(rig, config)));
}

async fn bind(rig: &Rig, config: ForwardingPipelineConfig) {
    let primary = rig.open_primary().await;
    let set = rig
        .set_config(Action::VerifyAndCommit as i32, Some(config.clone()))
        .await;
    match set {
        Err(status) => assert!(!status.message().is_empty()),
        Ok(()) => {
            let request = tonic::Request::new(GetForwardingPipelineConfigRequest {
                device_id: DEVICE_ID,
                ..GetForwardingPipelineConfigRequest::default()
            });
            let got = rig.server.get_forwarding_pipeline_config(request).await;
            let got = got.expect("there is a config").into_inner().config;
            assert_eq!(got.as_ref(), Some(&config));
            let entities = building::entities(config.p4info.as_ref().expect("it was set"));
            let updates = entities.into_iter().map(building::written);
            // Some of them may not suit what the tables became; the status is looked at.
            let _ = rig.write(updates.collect()).await;
            check_read_write_symmetry(rig).await;
        }
    }
    primary.close().await;
}

pub fn seeds() -> Vec<Vec<u8>> {
    let numbered = (0..2u8).map(|number| {
        let info = config(u32::from(number)).p4info.expect("a P4Info");
        [&[number][..], &info.encode_to_vec()].concat()
    });
    numbered.collect()
}
