//! The P4Runtime service.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use prost::Message;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Request, Response, Status, Streaming};

use super::arbitration::{Arbitration, StreamId};
use super::forwarding::{Forwarding, Verified, no_config};
use super::packet_io::{frame_of_packet_out, packet_in_of_frame};
use super::proto::p4::v1::{
    CapabilitiesRequest, CapabilitiesResponse, Entity, ForwardingPipelineConfig,
    GetForwardingPipelineConfigRequest, GetForwardingPipelineConfigResponse, PacketOut,
    PacketOutError, ReadRequest, ReadResponse, SetForwardingPipelineConfigRequest,
    SetForwardingPipelineConfigResponse, StreamError, StreamMessageRequest, StreamMessageResponse,
    StreamOtherError, WriteRequest, WriteResponse,
    get_forwarding_pipeline_config_request::ResponseType, p4_runtime_server::P4Runtime,
    set_forwarding_pipeline_config_request::Action, stream_error,
    stream_message_request as incoming, stream_message_response as outgoing, write_request,
};
use super::rejection::{Rejection, code_name, write_status};
use super::streams::{STREAM_MESSAGES_MAX, Streams};
use super::translation::TranslationTables;
use crate::dataplane::{DataplaneHandle, ToController};
use crate::log::{Level, Log};
use crate::metrics::RequestCounts;
use crate::pipeline::PipelineConfig;

/// Version of the P4Runtime specification this follows.
const API_VERSION: &str = "1.5.0";

/// Bytes of one `ReadResponse`, roughly; clients take 4 MiB.
const READ_RESPONSE_BYTES: usize = 1 << 19;

/// `ReadResponse`s that may wait for a client that reads slowly.
const READ_RESPONSES_MAX: usize = 4;

/// What the server is told before it starts.
#[derive(Clone, Copy, Debug)]
pub struct ServerSettings {
    /// The device that controllers must name.
    pub device_id: u64,
    /// For every pipeline that is installed.
    pub pipeline: PipelineConfig,
}

/// The service. Clones are the same one.
#[derive(Clone)]
pub struct Server {
    shared: Arc<Shared>,
}

struct Shared {
    dataplane: DataplaneHandle,
    log: Log,
    streams: Mutex<Streams>,
    /// Held by whoever reads, writes or changes the config, one after another.
    forwarding: tokio::sync::Mutex<Forwarding>,
    /// The config that packets see; a copy of what is in `forwarding`.
    running: Mutex<Option<Arc<Verified>>>,
    requests: RequestCounts,
}

impl Shared {
    fn streams(&self) -> MutexGuard<'_, Streams> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn running(&self) -> MutexGuard<'_, Option<Arc<Verified>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Server {
    /// A server without a config. Spawns a task that sends `from_dataplane` to the
    /// primary controller.
    pub fn new(
        settings: ServerSettings,
        dataplane: DataplaneHandle,
        mut from_dataplane: mpsc::Receiver<ToController>,
        log: Log,
    ) -> Self {
        let forwarding = Forwarding::new(dataplane.clone(), settings.pipeline);
        let shared = Arc::new(Shared {
            dataplane,
            log,
            streams: Mutex::new(Streams::new(settings.device_id)),
            forwarding: tokio::sync::Mutex::new(forwarding),
            running: Mutex::new(None),
            requests: RequestCounts::default(),
        });
        let server = Self {
            shared: Arc::clone(&shared),
        };
        tokio::spawn(async move {
            while let Some(message) = from_dataplane.recv().await {
                shared.send_to_controller(message);
            }
        });
        server
    }

    /// What translated types of the configs that are set from now on stand for; nothing
    /// unless this says so.
    pub async fn translate_with(&self, translations: TranslationTables) {
        let mut forwarding = self.shared.forwarding.lock().await;
        forwarding.translate_with(Arc::new(translations));
    }

    /// Where its calls are counted.
    pub fn requests(&self) -> RequestCounts {
        self.shared.requests.clone()
    }

    /// Packet-ins and digests that reached no controller: none was primary, or the
    /// primary did not read them.
    pub fn undelivered(&self) -> (u64, u64) {
        let streams = self.shared.streams();
        (streams.no_primary, streams.queue_full)
    }
}

impl Shared {
    fn send_to_controller(&self, message: ToController) {
        let Some(running) = self.running().clone() else {
            self.streams().no_primary += 1;
            return;
        };
        match message {
            ToController::PacketIn(frame) => {
                match packet_in_of_frame(&frame, &running.schema.packet_in) {
                    Some(packet) => {
                        self.streams()
                            .send_to_primary(outgoing::Update::Packet(packet));
                    }
                    None => self.log.write(
                        Level::Debug,
                        format_args!("a packet-in of {} bytes is too short", frame.len()),
                    ),
                }
            }
            // No digest is configured: digest entries cannot be written.
            ToController::Digest(_) => {}
        }
    }

    async fn set_config(
        &self,
        request: SetForwardingPipelineConfigRequest,
    ) -> Result<(), Rejection> {
        let mut forwarding = self.forwarding.lock().await;
        self.streams().arbitration.check_primary(
            request.device_id,
            &request.role,
            request.election_id,
        )?;
        let action = Action::try_from(request.action).unwrap_or(Action::Unspecified);
        let config = match (action, request.config) {
            (Action::Unspecified, _) => {
                return Err(Rejection::invalid(format!(
                    "action {} is not valid: VERIFY, VERIFY_AND_SAVE, VERIFY_AND_COMMIT, \
                     COMMIT or RECONCILE_AND_COMMIT",
                    request.action
                )));
            }
            (Action::Commit, None) => None,
            (Action::Commit, Some(_)) => {
                return Err(Rejection::invalid(
                    "COMMIT takes no config; it commits the saved one",
                ));
            }
            (_, Some(config)) => Some(config),
            (_, None) => return Err(Rejection::invalid("the request has no config")),
        };
        let done = match (action, config) {
            (Action::Verify, Some(config)) => forwarding.verify(config).map(|_| ()),
            (Action::VerifyAndSave, Some(config)) => forwarding.save(config),
            (Action::VerifyAndCommit, Some(config)) => forwarding.replace(config).await,
            (Action::ReconcileAndCommit, Some(config)) => forwarding.reconcile(config).await,
            _ => forwarding.commit().await,
        };
        self.running().clone_from(&forwarding.running().cloned());
        let outcome = match &done {
            Ok(()) => "done".to_owned(),
            Err(rejection) => format!("{}: {rejection}", code_name(rejection.code)),
        };
        let name = action.as_str_name();
        self.log.write(
            Level::Info,
            format_args!("set forwarding pipeline config, {name}: {outcome}"),
        );
        done
    }

    async fn write(&self, request: WriteRequest) -> Result<(), Status> {
        let mut forwarding = self.forwarding.lock().await;
        self.streams().arbitration.check_primary(
            request.device_id,
            &request.role,
            request.election_id,
        )?;
        if request.atomicity != write_request::Atomicity::ContinueOnError as i32 {
            return Err(Rejection::unimplemented(format!(
                "atomicity {} is not supported: CONTINUE_ON_ERROR",
                write_request::Atomicity::try_from(request.atomicity).map_or_else(
                    |_| request.atomicity.to_string(),
                    |known| { known.as_str_name().to_owned() }
                )
            ))
            .into());
        }
        let results = forwarding.write(request.updates).await?;
        if self.log.enabled(Level::Debug) {
            for rejection in results.iter().filter_map(|result| result.as_ref().err()) {
                let code = code_name(rejection.code);
                self.log
                    .write(Level::Debug, format_args!("write: {code}: {rejection}"));
            }
        }
        write_status(&results)
    }

    async fn read(&self, request: ReadRequest) -> Result<Vec<Entity>, Rejection> {
        self.streams().arbitration.check_device(request.device_id)?;
        Arbitration::check_role(&request.role)?;
        let mut forwarding = self.forwarding.lock().await;
        if forwarding.current().is_none() {
            return Err(no_config());
        }
        forwarding.read(request.entities).await
    }

    /// Handles one message of a stream; `Err` ends the stream.
    async fn handle(
        &self,
        stream: StreamId,
        message: StreamMessageRequest,
    ) -> Result<(), Rejection> {
        match message.update {
            Some(incoming::Update::Arbitration(update)) => {
                let notifications = self.streams().arbitrate(stream, &update)?;
                // Writes of the primary so far are finished before anyone hears of another.
                let forwarding = self.forwarding.lock().await;
                drop(forwarding);
                self.streams().notify(notifications);
            }
            Some(incoming::Update::Packet(packet)) => {
                if let Err(rejection) = self.send_packet(stream, &packet).await {
                    let details = stream_error::Details::PacketOut(PacketOutError {
                        packet_out: Some(packet),
                    });
                    self.report(stream, rejection, details);
                }
            }
            Some(incoming::Update::DigestAck(_) | incoming::Update::Other(_)) | None => {
                let rejection = Rejection::unimplemented(
                    "this message is not supported: arbitration or packet",
                );
                let details = stream_error::Details::Other(StreamOtherError::default());
                self.report(stream, rejection, details);
            }
        }
        Ok(())
    }

    fn report(&self, stream: StreamId, rejection: Rejection, details: stream_error::Details) {
        let error = StreamError {
            canonical_code: rejection.code as i32,
            message: rejection.message,
            details: Some(details),
            ..StreamError::default()
        };
        self.streams().send(stream, outgoing::Update::Error(error));
    }

    async fn send_packet(&self, stream: StreamId, packet: &PacketOut) -> Result<(), Rejection> {
        if self.streams().arbitration.primary() != Some(stream) {
            return Err(Rejection::new(
                Code::PermissionDenied,
                "only the primary controller may send packets",
            ));
        }
        let running = self.running().clone().ok_or_else(no_config)?;
        let frame = frame_of_packet_out(packet, &running.schema.packet_out)?;
        let injected = self.dataplane.run(move |engine| {
            let has_port = engine.cpu_port().is_some();
            engine.inject(&frame);
            has_port
        });
        if injected.await? {
            return Ok(());
        }
        Err(Rejection::new(
            Code::FailedPrecondition,
            "this switch was started without --cpu-port, so there are no packet-outs",
        ))
    }
}

#[tonic::async_trait]
impl P4Runtime for Server {
    async fn write(
        &self,
        request: Request<WriteRequest>,
    ) -> Result<Response<WriteResponse>, Status> {
        let shared = Arc::clone(&self.shared);
        // In a task of its own, so that it is finished even if the client goes away.
        let task = tokio::spawn(async move { shared.write(request.into_inner()).await });
        task.await
            .map_err(|error| Status::internal(error.to_string()))??;
        Ok(Response::new(WriteResponse::default()))
    }

    type ReadStream = ReceiverStream<Result<ReadResponse, Status>>;

    async fn read(
        &self,
        request: Request<ReadRequest>,
    ) -> Result<Response<Self::ReadStream>, Status> {
        let found = self.shared.read(request.into_inner()).await?;
        let (responses, stream) = mpsc::channel(READ_RESPONSES_MAX);
        tokio::spawn(async move {
            for response in split(found) {
                if responses.send(Ok(response)).await.is_err() {
                    return; // the client has gone
                }
            }
        });
        Ok(Response::new(ReceiverStream::new(stream)))
    }

    async fn set_forwarding_pipeline_config(
        &self,
        request: Request<SetForwardingPipelineConfigRequest>,
    ) -> Result<Response<SetForwardingPipelineConfigResponse>, Status> {
        let shared = Arc::clone(&self.shared);
        let task = tokio::spawn(async move { shared.set_config(request.into_inner()).await });
        task.await
            .map_err(|error| Status::internal(error.to_string()))??;
        Ok(Response::new(SetForwardingPipelineConfigResponse::default()))
    }

    async fn get_forwarding_pipeline_config(
        &self,
        request: Request<GetForwardingPipelineConfigRequest>,
    ) -> Result<Response<GetForwardingPipelineConfigResponse>, Status> {
        let request = request.into_inner();
        self.shared
            .streams()
            .arbitration
            .check_device(request.device_id)?;
        let Ok(wanted) = ResponseType::try_from(request.response_type) else {
            return Err(Rejection::invalid(format!(
                "response type {} is not valid: ALL, COOKIE_ONLY, P4INFO_AND_COOKIE or \
                 DEVICE_CONFIG_AND_COOKIE",
                request.response_type
            ))
            .into());
        };
        let forwarding = self.shared.forwarding.lock().await;
        let config = forwarding.current().map(|verified| {
            let config = &verified.config;
            let info = matches!(wanted, ResponseType::All | ResponseType::P4infoAndCookie);
            let device = matches!(
                wanted,
                ResponseType::All | ResponseType::DeviceConfigAndCookie
            );
            ForwardingPipelineConfig {
                p4info: config.p4info.clone().filter(|_| info),
                p4_device_config: if device {
                    config.p4_device_config.clone()
                } else {
                    Vec::new()
                },
                cookie: config.cookie,
            }
        });
        Ok(Response::new(GetForwardingPipelineConfigResponse {
            config,
        }))
    }

    type StreamChannelStream = ReceiverStream<Result<StreamMessageResponse, Status>>;

    async fn stream_channel(
        &self,
        request: Request<Streaming<StreamMessageRequest>>,
    ) -> Result<Response<Self::StreamChannelStream>, Status> {
        let mut messages = request.into_inner();
        let (outgoing, stream) = mpsc::channel(STREAM_MESSAGES_MAX);
        let shared = Arc::clone(&self.shared);
        let id = shared.streams().open(outgoing.clone());
        tokio::spawn(async move {
            loop {
                let message = tokio::select! {
                    message = messages.message() => message,
                    () = outgoing.closed() => break,
                };
                let Ok(Some(message)) = message else { break };
                if let Err(rejection) = shared.handle(id, message).await {
                    shared.streams().refuse(id, rejection);
                    break;
                }
            }
            let mut streams = shared.streams();
            let notifications = streams.close(id);
            streams.notify(notifications);
        });
        Ok(Response::new(ReceiverStream::new(stream)))
    }

    async fn capabilities(
        &self,
        request: Request<CapabilitiesRequest>,
    ) -> Result<Response<CapabilitiesResponse>, Status> {
        let device_id = request.into_inner().device_id;
        if device_id != 0 {
            self.shared.streams().arbitration.check_device(device_id)?;
        }
        Ok(Response::new(CapabilitiesResponse {
            p4runtime_api_version: API_VERSION.to_owned(),
            ..CapabilitiesResponse::default()
        }))
    }
}

/// Responses of about [`READ_RESPONSE_BYTES`]; at least one, as clients expect.
fn split(entities: Vec<Entity>) -> Vec<ReadResponse> {
    let mut responses = Vec::new();
    let mut response = ReadResponse::default();
    let mut bytes = 0;
    for entity in entities {
        bytes += entity.encoded_len();
        response.entities.push(entity);
        if bytes >= READ_RESPONSE_BYTES {
            responses.push(std::mem::take(&mut response));
            bytes = 0;
        }
    }
    if !response.entities.is_empty() || responses.is_empty() {
        responses.push(response);
    }
    responses
}
