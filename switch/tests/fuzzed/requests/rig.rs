//! A P4Runtime server and its data plane in this process, called as the gRPC server calls
//! them, from one thread.

use std::cell::Cell;
use std::convert::Infallible;

use bytes::{BufMut, Bytes, BytesMut};
use http_body_util::StreamBody;
use hyper::body::Frame;
use prost::Message;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;
use tonic::codec::Codec;
use tonic::{Code, Request, Status, Streaming};
use tonic_prost::ProstCodec;

use wormcast_switch_dataplane::log::Log;
use wormcast_switch_dataplane::{Dataplane, DataplaneHandle, DataplaneSettings, SwitchSettings};
use wormcast_switch_p4runtime::proto::p4::v1::p4_runtime_server::P4Runtime;
use wormcast_switch_p4runtime::proto::p4::v1::{
    Entity, ForwardingPipelineConfig, MasterArbitrationUpdate, ReadRequest,
    SetForwardingPipelineConfigRequest, StreamMessageRequest, StreamMessageResponse, Uint128,
    Update, WriteRequest, stream_message_request,
};
use wormcast_switch_p4runtime::{Server, ServerSettings};
use wormcast_switch_pipeline::{PipelineConfig, PortId};

pub const DEVICE_ID: u64 = 7;

/// Election ids that one session may use.
const ELECTIONS: u64 = 1_000;
const CPU_PORT: u16 = 510;

/// Messages that may wait in a stream.
const MESSAGES_MAX: usize = 64;

pub struct Rig {
    runtime: Runtime,
    pub server: Server,
    pub dataplane: DataplaneHandle,
    threads: Dataplane,
    /// The highest id that was used is remembered, so that the next controller needs a
    /// higher one.
    election: Cell<u64>,
}

/// A stream channel of a controller.
pub struct Channel {
    messages: mpsc::Sender<Result<Frame<Bytes>, Infallible>>,
    responses: ReceiverStream<Result<StreamMessageResponse, Status>>,
}

/// No status tells of a bug of the switch.
pub fn check_status(status: &Status) {
    let code = status.code();
    let is_bug = matches!(code, Code::Internal | Code::Unavailable | Code::DataLoss)
        || (code == Code::Unknown && status.details().is_empty());
    assert!(!is_bug, "{status:?}");
}

impl Rig {
    /// Starts the threads; nothing is set.
    pub fn start() -> Self {
        let settings = SwitchSettings {
            cpu_port: Some(PortId(CPU_PORT)),
            ..SwitchSettings::without_ports(DEVICE_ID, 64)
        };
        let runtime = Builder::new_current_thread()
            .enable_time()
            .build()
            .expect("a runtime");
        let (threads, from_dataplane) =
            Dataplane::start(&DataplaneSettings::single(settings, 1), Log::off())
                .expect("a data plane without interfaces");
        let dataplane = threads.handle(DEVICE_ID).expect("the switch");
        let (_, from_dataplane) = from_dataplane.into_iter().next().expect("the switch");
        let settings = ServerSettings {
            device_id: DEVICE_ID,
            pipeline: PipelineConfig {
                // To compile takes longer than all the rest.
                compiler: None,
                ..PipelineConfig::default()
            },
        };
        let handle = dataplane.clone();
        let server =
            runtime.block_on(async { Server::new(settings, handle, from_dataplane, Log::off()) });
        Self {
            runtime,
            server,
            dataplane,
            threads,
            election: Cell::new(ELECTIONS),
        }
    }

    /// The election id of the primary controller.
    pub fn election_id(&self) -> Uint128 {
        Uint128 {
            high: 0,
            low: self.election.get(),
        }
    }

    /// An election id near that of the primary controller.
    pub fn limit_election(&self, id: &mut Uint128) {
        id.high = 0;
        id.low = self.election.get() - ELECTIONS / 2 + id.low % ELECTIONS;
    }

    /// Runs to its end what awaits the server.
    pub fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }

    /// A stream that has said nothing yet.
    pub async fn open(&self) -> Channel {
        let (messages, frames) = mpsc::channel(MESSAGES_MAX);
        let body = StreamBody::new(ReceiverStream::new(frames));
        let mut codec: ProstCodec<StreamMessageResponse, StreamMessageRequest> =
            ProstCodec::default();
        let streaming = Streaming::new_request(codec.decoder(), body, None, None);
        let answered = self.server.stream_channel(Request::new(streaming)).await;
        Channel {
            messages,
            responses: answered.expect("a stream").into_inner(),
        }
    }

    /// A stream that is the primary one, by [`Self::election_id`].
    pub async fn open_primary(&self) -> Channel {
        let mut channel = self.open().await;
        self.election.set(self.election.get() + ELECTIONS);
        let update = MasterArbitrationUpdate {
            device_id: DEVICE_ID,
            election_id: Some(self.election_id()),
            ..MasterArbitrationUpdate::default()
        };
        let message = StreamMessageRequest {
            update: Some(stream_message_request::Update::Arbitration(update)),
        };
        channel.say(&message.encode_to_vec()).await;
        channel
            .responses
            .next()
            .await
            .expect("an answer")
            .expect("primary");
        channel
    }

    pub async fn set_config(
        &self,
        action: i32,
        config: Option<ForwardingPipelineConfig>,
    ) -> Result<(), Status> {
        let request = SetForwardingPipelineConfigRequest {
            device_id: DEVICE_ID,
            election_id: Some(self.election_id()),
            action,
            config,
            ..SetForwardingPipelineConfigRequest::default()
        };
        let answered = self
            .server
            .set_forwarding_pipeline_config(Request::new(request))
            .await;
        answered.map(|_| ()).inspect_err(check_status)
    }

    pub async fn write(&self, updates: Vec<Update>) -> Result<(), Status> {
        let request = WriteRequest {
            device_id: DEVICE_ID,
            election_id: Some(self.election_id()),
            updates,
            ..WriteRequest::default()
        };
        self.write_request(request).await
    }

    pub async fn write_request(&self, request: WriteRequest) -> Result<(), Status> {
        let answered = self.server.write(Request::new(request)).await;
        answered.map(|_| ()).inspect_err(check_status)
    }

    pub async fn read(&self, entities: Vec<Entity>) -> Result<Vec<Entity>, Status> {
        let request = ReadRequest {
            device_id: DEVICE_ID,
            entities,
            ..ReadRequest::default()
        };
        self.read_request(request).await
    }

    pub async fn read_request(&self, request: ReadRequest) -> Result<Vec<Entity>, Status> {
        let answered = self.server.read(Request::new(request)).await;
        let mut responses = answered.inspect_err(check_status)?.into_inner();
        let mut found = Vec::new();
        while let Some(response) = responses.next().await {
            found.extend(response.inspect_err(check_status)?.entities);
        }
        Ok(found)
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        self.threads.stop();
    }
}

impl Channel {
    /// Sends the bytes of a message; `false` if the switch listens no more.
    pub async fn say(&mut self, message: &[u8]) -> bool {
        // What comes back may be more than there is room for.
        tokio::task::yield_now().await;
        while self.responses.as_mut().try_recv().is_ok() {}
        let mut frame = BytesMut::new();
        frame.put_u8(0);
        frame.put_u32(message.len() as u32);
        frame.put_slice(message);
        self.messages
            .send(Ok(Frame::data(frame.freeze())))
            .await
            .is_ok()
    }

    /// Ends the stream and waits until the switch has ended it too.
    pub async fn close(mut self) {
        drop(self.messages);
        while let Some(response) = self.responses.next().await {
            drop(response);
        }
    }
}
