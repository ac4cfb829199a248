//! P4Runtime requests, decoded from bytes, against a loaded program: no answer tells of a bug
//! of the switch, a write that is refused changes nothing, one that is done is read back, and
//! all that can be read can be written again.
//!
//! Input: a [`Session`] in the encoding of protocol buffers.

pub mod building;
mod found;
pub mod rig;
mod seeds;
pub mod state;

use std::cell::RefCell;

use prost::Message;

use found::found_by;
use rig::{Channel, DEVICE_ID, Rig};
pub use seeds::seeds;
use state::{assert_same, check_read_write_symmetry, read_all};
use wormcast_switch_p4runtime::proto::p4::config::v1::P4Info;
use wormcast_switch_p4runtime::proto::p4::v1::p4_runtime_server::P4Runtime;
use wormcast_switch_p4runtime::proto::p4::v1::set_forwarding_pipeline_config_request::Action;
use wormcast_switch_p4runtime::proto::p4::v1::{
    Entity, ForwardingPipelineConfig, GetForwardingPipelineConfigRequest, ReadRequest,
    SetForwardingPipelineConfigRequest, StreamMessageRequest, Update, WriteRequest,
    stream_message_request, update,
};

/// Steps of one input.
const STEPS_MAX: usize = 16;

/// Updates of one write.
const UPDATES_MAX: usize = 64;

/// What a controller does.
#[derive(Clone, PartialEq, Message)]
struct Session {
    /// Program that is loaded first.
    #[prost(uint32, tag = "1")]
    program: u32,
    #[prost(message, repeated, tag = "2")]
    steps: Vec<Step>,
}

/// One request or message.
#[derive(Clone, PartialEq, Message)]
struct Step {
    /// One of the constants below.
    #[prost(uint32, tag = "1")]
    kind: u32,
    #[prost(bytes = "vec", tag = "2")]
    payload: Vec<u8>,
    /// Device, election and role of the request are left as they are, not made right.
    #[prost(bool, tag = "3")]
    as_it_is: bool,
}

const WRITE: u32 = 0;
const READ: u32 = 1;
const SET_CONFIG: u32 = 2;
const GET_CONFIG: u32 = 3;
const PRIMARY_STREAM: u32 = 4;
const OTHER_STREAM: u32 = 5;
const PACKET: u32 = 6;

/// Programs with their P4Info.
pub fn configs() -> [ForwardingPipelineConfig; 2] {
    let folder = super::programs_folder();
    ["objects", "entities"].map(|name| {
        let read = |end: &str| {
            let path = folder.join(format!("{name}.{end}"));
            std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
        };
        ForwardingPipelineConfig {
            p4info: Some(P4Info::decode(read("p4info.bin").as_slice()).expect("a P4Info")),
            p4_device_config: read("json"),
            cookie: None,
        }
    })
}

thread_local! {
    static CONFIGS: [ForwardingPipelineConfig; 2] = configs();
    static RIG: RefCell<Option<Rig>> = const { RefCell::new(None) };
}

/// Runs with the rig of this thread, whose streams are closed afterwards. After a panic the
/// next one gets another rig.
pub fn with_rig(run: impl FnOnce(&Rig)) {
    let rig = RIG.take().unwrap_or_else(Rig::start);
    run(&rig);
    RIG.set(Some(rig));
}

pub fn config(number: u32) -> ForwardingPipelineConfig {
    CONFIGS.with(|configs| configs[number as usize % configs.len()].clone())
}

pub fn run(data: &[u8]) {
    let Ok(session) = Session::decode(data) else {
        return;
    };
    with_rig(|rig| rig.block_on(serve(rig, session)));
}

async fn serve(rig: &Rig, session: Session) {
    let primary = rig.open_primary().await;
    let set = rig.set_config(
        Action::VerifyAndCommit as i32,
        Some(config(session.program)),
    );
    set.await.expect("a program of the repository");
    let mut controller = Controller {
        rig,
        program: session.program,
        primary,
        other: rig.open().await,
        packets: false,
        known: None,
        saved: false,
    };
    for step in session.steps.into_iter().take(STEPS_MAX) {
        controller.step(step).await;
    }
    let Controller {
        primary,
        other,
        packets,
        ..
    } = controller;
    other.close().await;
    primary.close().await;
    // Another controller, since the messages may have made somebody else the primary one.
    let primary = rig.open_primary().await;
    if !packets {
        check_read_write_symmetry(rig).await;
    }
    primary.close().await;
}

struct Controller<'a> {
    rig: &'a Rig,
    program: u32,
    primary: Channel,
    other: Channel,
    /// Packets were sent, which change counters and registers when they like.
    packets: bool,
    /// What there is to read, if it is known.
    known: Option<Vec<Entity>>,
    /// A config waits for its COMMIT; reads and writes refer to it.
    saved: bool,
}

impl Controller<'_> {
    async fn step(&mut self, step: Step) {
        let bytes = step.payload.as_slice();
        match step.kind {
            WRITE => {
                if let Ok(request) = WriteRequest::decode(bytes) {
                    self.write(request, step.as_it_is).await;
                }
            }
            READ => {
                if let Ok(mut request) = ReadRequest::decode(bytes) {
                    if !step.as_it_is {
                        request.device_id = DEVICE_ID;
                        request.role.clear();
                    }
                    // The status is looked at by the rig.
                    let _ = self.rig.read_request(request).await;
                }
            }
            SET_CONFIG => self.set_config(bytes).await,
            GET_CONFIG => {
                if let Ok(mut request) = GetForwardingPipelineConfigRequest::decode(bytes) {
                    request.device_id = DEVICE_ID;
                    let request = tonic::Request::new(request);
                    let answered = self
                        .rig
                        .server
                        .get_forwarding_pipeline_config(request)
                        .await;
                    if let Err(status) = answered {
                        rig::check_status(&status);
                    }
                }
            }
            PRIMARY_STREAM => {
                let bytes = self.limited(bytes);
                if !self.primary.say(&bytes).await {
                    self.primary = self.rig.open().await;
                }
            }
            OTHER_STREAM => {
                let bytes = self.limited(bytes);
                if !self.other.say(&bytes).await {
                    self.other = self.rig.open().await;
                }
            }
            PACKET => {
                self.packets = true;
                let frame = step.payload;
                let injected = self.rig.dataplane.run(move |switch| switch.inject(&frame));
                injected.await.expect("the data plane goes on");
            }
            _ => {}
        }
    }

    /// The message, with an election id that does not end all elections.
    fn limited(&mut self, bytes: &[u8]) -> Vec<u8> {
        use stream_message_request::Update as Kind;
        let Ok(mut message) = StreamMessageRequest::decode(bytes) else {
            return bytes.to_vec();
        };
        match &mut message.update {
            Some(Kind::Arbitration(update)) => {
                if let Some(id) = &mut update.election_id {
                    self.rig.limit_election(id);
                }
            }
            Some(Kind::Packet(_)) => self.packets = true,
            _ => return bytes.to_vec(),
        }
        message.encode_to_vec()
    }

    async fn set_config(&mut self, bytes: &[u8]) {
        let Ok(mut request) = SetForwardingPipelineConfigRequest::decode(bytes) else {
            return;
        };
        if let Some(config) = &mut request.config {
            // Short ones stand for the programs of the repository.
            let known = self::config(self.program + config.p4_device_config.len() as u32);
            if config.p4_device_config.len() < 2 {
                config.p4_device_config = known.p4_device_config;
                config.p4info = config.p4info.take().or(known.p4info);
            }
        }
        let before = match (self.packets, self.known.take()) {
            (true, _) => None,
            (false, Some(known)) => Some(known),
            (false, None) => Some(read_all(self.rig).await),
        };
        let action = request.action;
        let same = request.config == self.current().await;
        let done = self.rig.set_config(action, request.config).await;
        let kept = match (&done, Action::try_from(action)) {
            (Err(_), _) | (Ok(()), Ok(Action::Verify)) => true,
            (Ok(()), Ok(Action::ReconcileAndCommit)) => same && !self.saved,
            _ => false,
        };
        if let (true, Some(before)) = (kept, before) {
            let after = read_all(self.rig).await;
            assert_same(&before, &after, &format!("{action}: {done:?}"));
            self.known = Some(after);
        }
        if done.is_ok() && action != Action::Verify as i32 {
            self.saved = action == Action::VerifyAndSave as i32;
        }
    }

    /// The config that reads and writes refer to.
    async fn current(&self) -> Option<ForwardingPipelineConfig> {
        let request = GetForwardingPipelineConfigRequest {
            device_id: DEVICE_ID,
            ..GetForwardingPipelineConfigRequest::default()
        };
        let request = tonic::Request::new(request);
        let got = self
            .rig
            .server
            .get_forwarding_pipeline_config(request)
            .await;
        got.ok().and_then(|got| got.into_inner().config)
    }

    async fn write(&mut self, mut request: WriteRequest, as_it_is: bool) {
        request.updates.truncate(UPDATES_MAX);
        if !as_it_is {
            request.device_id = DEVICE_ID;
            request.election_id = Some(self.rig.election_id());
            request.role.clear();
            #[allow(deprecated, reason = "it is read")]
            {
                request.role_id = 0;
            }
        }
        let before = match (self.packets, self.known.take()) {
            (true, _) => None,
            (false, Some(known)) => Some(known),
            (false, None) => Some(read_all(self.rig).await),
        };
        let atomicity = request.atomicity;
        let updates = request.updates.clone();
        let done = self.rig.write_request(request).await;
        let Some(before) = before else { return };
        match done {
            Ok(()) => {
                if let [update] = &updates[..] {
                    self.check_done(update).await;
                }
            }
            Err(status) => {
                let all_refused =
                    atomicity != 0 || updates.len() < 2 || status.details().is_empty();
                if all_refused {
                    let after = read_all(self.rig).await;
                    assert_same(&before, &after, &format!("refused: {status:?}"));
                    self.known = Some(after);
                }
            }
        }
    }

    /// An entity that was inserted is there, one that was deleted is not.
    async fn check_done(&self, update: &Update) {
        let Some((filter, is_it)) = update.entity.as_ref().and_then(found_by) else {
            return;
        };
        let found = self.rig.read(vec![filter]).await;
        let found = found.unwrap_or_default();
        let count = found.iter().filter(|found| is_it(found)).count();
        match update::Type::try_from(update.r#type) {
            Ok(update::Type::Delete) => assert_eq!(count, 0, "deleted: {update:?}, {found:?}"),
            Ok(update::Type::Insert | update::Type::Modify) => {
                assert_eq!(count, 1, "written: {update:?}, {found:?}");
            }
            _ => panic!("done: {update:?}"),
        }
    }
}

/// What the seeds write is taken, one by one.
pub fn check_seeds() {
    with_rig(|rig| {
        rig.block_on(async {
            for number in 0..2 {
                let primary = rig.open_primary().await;
                let known = config(number);
                let set = rig.set_config(Action::VerifyAndCommit as i32, Some(known.clone()));
                set.await.expect("a program of the repository");
                let entities = building::entities(known.p4info.as_ref().expect("a P4Info"));
                for update in entities.into_iter().map(building::written) {
                    if let Err(status) = rig.write(vec![update.clone()]).await {
                        panic!("{update:?}: {status:?}");
                    }
                }
                check_read_write_symmetry(rig).await;
                primary.close().await;
            }
        });
    });
}
