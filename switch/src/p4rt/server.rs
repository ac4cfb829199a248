//! The P4Runtime service.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use prost::Message;
use tokio::sync::{Notify, mpsc};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Request, Response, Status, Streaming};

use super::arbitration::StreamId;
use super::batch::{Atomicity, Batch};
use super::configs::Configs;
use super::digests::DigestCounts;
use super::forwarding::{Forwarding, Verified, no_config};
use super::notifications::{deliver, watch_ages};
use super::packet_io::frame_of_packet_out;
use super::proto::p4::v1::{
    CapabilitiesRequest, CapabilitiesResponse, DigestListAck, DigestListAckError, Entity,
    ForwardingPipelineConfig, GetForwardingPipelineConfigRequest,
    GetForwardingPipelineConfigResponse, MasterArbitrationUpdate, PacketOut, PacketOutError,
    ReadRequest, ReadResponse, SetForwardingPipelineConfigRequest,
    SetForwardingPipelineConfigResponse, StreamError, StreamMessageRequest, StreamMessageResponse,
    StreamOtherError, WriteRequest, WriteResponse,
    get_forwarding_pipeline_config_request::ResponseType, p4_runtime_server::P4Runtime,
    set_forwarding_pipeline_config_request::Action, stream_error,
    stream_message_request as incoming, stream_message_response as outgoing,
};
use super::rejection::{Rejection, code_name, write_status};
use super::roles::Access;
use super::streams::{Outgoing, STREAM_MESSAGES_MAX, Streams};
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

pub(super) struct Shared {
    device_id: u64,
    pub(super) dataplane: DataplaneHandle,
    pub(super) log: Log,
    streams: Mutex<Streams>,
    /// Held by whoever reads, writes or changes the config, one after another.
    forwarding: tokio::sync::Mutex<Forwarding>,
    /// The config that packets see; a copy of what is in `forwarding`.
    running: Mutex<Option<Arc<Verified>>>,
    requests: RequestCounts,
    /// Told when an entry may have got an idle timeout.
    pub(super) ages: Notify,
}

impl Shared {
    pub(super) fn streams(&self) -> MutexGuard<'_, Streams> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn running(&self) -> MutexGuard<'_, Option<Arc<Verified>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Server {
    /// A server without a config. Spawns tasks that send `from_dataplane` and idle entries
    /// to the primary controllers.
    pub fn new(
        settings: ServerSettings,
        dataplane: DataplaneHandle,
        from_dataplane: mpsc::Receiver<ToController>,
        log: Log,
    ) -> Self {
        Self::sharing(settings, dataplane, from_dataplane, log, Arc::default())
    }

    /// The same, which shares configs with the other servers that were given `configs`.
    pub fn sharing(
        settings: ServerSettings,
        dataplane: DataplaneHandle,
        from_dataplane: mpsc::Receiver<ToController>,
        log: Log,
        configs: Arc<Configs>,
    ) -> Self {
        let forwarding = Forwarding::new(dataplane.clone(), settings.pipeline, configs);
        let shared = Arc::new(Shared {
            device_id: settings.device_id,
            dataplane,
            log,
            streams: Mutex::new(Streams::new(settings.device_id)),
            forwarding: tokio::sync::Mutex::new(forwarding),
            running: Mutex::new(None),
            requests: RequestCounts::default(),
            ages: Notify::new(),
        });
        tokio::spawn(deliver(Arc::clone(&shared), from_dataplane));
        tokio::spawn(watch_ages(Arc::clone(&shared)));
        Self { shared }
    }

    /// The device that controllers must name.
    pub fn device_id(&self) -> u64 {
        self.shared.device_id
    }

    /// Where its calls are counted.
    pub fn requests(&self) -> RequestCounts {
        self.shared.requests.clone()
    }

    /// Digest messages that were not sent, for the config that runs.
    pub fn digest_counts(&self) -> DigestCounts {
        let running = self.shared.running().clone();
        running.map_or_else(DigestCounts::default, |running| running.digests().counts())
    }

    /// Packet-ins, digests and idle entries that reached no controller: they were for no
    /// primary, or a primary did not read them.
    pub fn undelivered(&self) -> (u64, u64) {
        let streams = self.shared.streams();
        (streams.no_primary, streams.queue_full)
    }
}

impl Server {
    /// Serves one stream channel until it ends: a message that was taken from it already,
    /// then the others.
    pub(super) async fn serve_stream(
        &self,
        first: Option<StreamMessageRequest>,
        mut messages: Streaming<StreamMessageRequest>,
        outgoing: Outgoing,
    ) {
        let shared = &self.shared;
        let opened = shared.streams().open(outgoing.clone());
        let id = match opened {
            Ok(id) => id,
            Err(rejection) => {
                // Nobody listens any more if it cannot be sent.
                let _ = outgoing.try_send(Err(rejection.into()));
                return;
            }
        };
        let mut next = first;
        loop {
            let message = match next.take() {
                Some(message) => message,
                None => tokio::select! {
                    message = messages.message() => match message {
                        Ok(Some(message)) => message,
                        Ok(None) | Err(_) => break,
                    },
                    () = outgoing.closed() => break,
                },
            };
            if let Err(rejection) = shared.handle(id, message).await {
                shared.streams().refuse(id, rejection);
                break;
            }
        }
        let mut streams = shared.streams();
        let notifications = streams.close(id);
        streams.notify(notifications);
    }
}

impl Shared {
    async fn set_config(
        &self,
        request: SetForwardingPipelineConfigRequest,
    ) -> Result<(), Rejection> {
        let mut forwarding = self.forwarding.lock().await;
        #[allow(deprecated, reason = "controllers of version 1.3 set the id")]
        let role = (request.role.as_str(), request.role_id);
        let access = self.streams().arbitration.check_primary(
            request.device_id,
            role,
            request.election_id,
        )?;
        access.check_push()?;
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
            (Action::Verify, Some(config)) => forwarding.verify(config),
            (Action::VerifyAndSave, Some(config)) => forwarding.save(config),
            (Action::VerifyAndCommit, Some(config)) => forwarding.replace(config).await,
            (Action::ReconcileAndCommit, Some(config)) => forwarding.reconcile(config).await,
            _ => forwarding.commit().await,
        };
        self.running().clone_from(&forwarding.running().cloned());
        self.ages.notify_one();
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
        #[allow(deprecated, reason = "controllers of version 1.3 set the id")]
        let role = (request.role.as_str(), request.role_id);
        let access = self.streams().arbitration.check_primary(
            request.device_id,
            role,
            request.election_id,
        )?;
        let batch = Batch {
            updates: request.updates,
            atomicity: Atomicity::parse(request.atomicity)?,
            access,
        };
        let ages = forwarding.current().is_some_and(|config| config.has_ages());
        let results = forwarding.write(batch).await?;
        if ages {
            self.ages.notify_one();
        }
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
        let access = {
            let streams = self.streams();
            streams.arbitration.check_device(request.device_id)?;
            streams.arbitration.check_role(&request.role, 0)?.clone()
        };
        let mut forwarding = self.forwarding.lock().await;
        if forwarding.current().is_none() {
            return Err(no_config());
        }
        let mut found = forwarding.read(request.entities).await?;
        found.retain(|entity| access.shows(entity));
        Ok(found)
    }

    /// Handles one message of a stream; `Err` ends the stream.
    async fn handle(
        &self,
        stream: StreamId,
        message: StreamMessageRequest,
    ) -> Result<(), Rejection> {
        match message.update {
            Some(incoming::Update::Arbitration(update)) => {
                self.arbitrate(stream, &update).await?;
            }
            Some(incoming::Update::Packet(packet)) => {
                if let Err(rejection) = self.send_packet(stream, &packet).await {
                    let details = stream_error::Details::PacketOut(PacketOutError {
                        packet_out: Some(packet),
                    });
                    self.report(stream, rejection, details);
                }
            }
            Some(incoming::Update::DigestAck(ack)) => {
                if let Err(rejection) = self.acknowledge(stream, &ack) {
                    let details = stream_error::Details::DigestListAck(DigestListAckError {
                        digest_list_ack: Some(ack),
                    });
                    self.report(stream, rejection, details);
                }
            }
            Some(incoming::Update::Other(_)) | None => {
                let rejection = Rejection::unimplemented(
                    "this message is not supported: arbitration, packet or digest_ack",
                );
                let details = stream_error::Details::Other(StreamOtherError::default());
                self.report(stream, rejection, details);
            }
        }
        Ok(())
    }

    async fn arbitrate(
        &self,
        stream: StreamId,
        update: &MasterArbitrationUpdate,
    ) -> Result<(), Rejection> {
        let mut notifications = self.streams().arbitrate(stream, update)?;
        let own = notifications.pop();
        self.streams().notify(notifications);
        // Writes of the primary so far are finished before the new one hears that it is.
        drop(self.forwarding.lock().await);
        let is_primary = self.streams().arbitration.access_of(stream).is_some();
        if let Some(running) = self.running().clone().filter(|_| is_primary) {
            running.digests().forget_sent();
        }
        self.streams().notify(own.into_iter().collect());
        Ok(())
    }

    fn acknowledge(&self, stream: StreamId, ack: &DigestListAck) -> Result<(), Rejection> {
        let access = self.primary_access(stream, "acknowledge digests")?;
        let running = self.running().clone().ok_or_else(no_config)?;
        let Some(digest) = running.schema.digest(ack.digest_id) else {
            return Err(Rejection::invalid(format!(
                "there is no digest with the id {}",
                ack.digest_id
            )));
        };
        if !access.includes(digest.id) {
            return Err(Rejection::new(
                Code::PermissionDenied,
                format!("digest `{}` is not among the ids of the role", digest.name),
            ));
        }
        running.digests().acknowledge(ack.digest_id, ack.list_id);
        Ok(())
    }

    /// What a stream may do, if it is the primary of its role.
    fn primary_access(&self, stream: StreamId, what: &str) -> Result<Access, Rejection> {
        let streams = self.streams();
        streams
            .arbitration
            .access_of(stream)
            .cloned()
            .ok_or_else(|| {
                Rejection::new(
                    Code::PermissionDenied,
                    format!("only the primary controller may {what}"),
                )
            })
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
        self.primary_access(stream, "send packets")?;
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
        let (outgoing, stream) = mpsc::channel(STREAM_MESSAGES_MAX);
        let server = self.clone();
        let messages = request.into_inner();
        tokio::spawn(async move { server.serve_stream(None, messages, outgoing).await });
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
