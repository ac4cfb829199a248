//! A P4Runtime server: who may do what, and where it is done.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use tokio::sync::{Notify, mpsc};
use tonic::{Code, Status, Streaming};

use super::arbitration::StreamId;
use super::batch::{Atomicity, Batch};
use super::configs::Configs;
use super::digests::DigestCounts;
use super::fit::Object;
use super::forwarding::{Forwarding, no_config};
use super::notifications::{deliver, watch_ages};
use super::packet_io::{frame_of_packet_out, missing};
use super::proto::p4::v1::{
    DigestListAck, DigestListAckError, Entity, MasterArbitrationUpdate, PacketOut, PacketOutError,
    ReadRequest, SetForwardingPipelineConfigRequest, StreamError, StreamMessageRequest,
    StreamOtherError, WriteRequest, set_forwarding_pipeline_config_request::Action, stream_error,
    stream_message_request as incoming, stream_message_response as outgoing,
};
use super::rejection::{Rejection, code_name, write_status};
use super::roles::Access;
use super::shared::Shared;
use super::streams::{Outgoing, Streams};
use super::translation::TranslationTables;
use crate::RequestCounts;
use wormcast_switch_dataplane::log::{Level, Log};
use wormcast_switch_dataplane::{DataplaneHandle, Observer, Snapshot, ToController};
use wormcast_switch_pipeline::PipelineConfig;

/// Settings of the server.
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
    pub(super) shared: Arc<Shared>,
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
            started: Instant::now(),
            ages: Notify::new(),
            needs_config: AtomicBool::new(false),
            observers: Mutex::default(),
        });
        tokio::spawn(deliver(Arc::clone(&shared), from_dataplane));
        tokio::spawn(watch_ages(Arc::clone(&shared)));
        Self { shared }
    }

    /// What translated types of the configs that are set from now on stand for; nothing
    /// unless this says so.
    pub async fn translate_with(&self, translations: TranslationTables) {
        let mut forwarding = self.shared.forwarding.lock().await;
        forwarding.translate_with(Arc::new(translations));
    }

    /// From now on, asking for the config while none is set is FAILED_PRECONDITION, by which
    /// controllers of BMv2 tell that they have to set one; P4Runtime wants an answer without
    /// a config (§"GetForwardingPipelineConfig").
    pub fn need_config(&self) {
        self.shared.needs_config.store(true, Ordering::Relaxed);
    }

    /// From now on, `observer` gets digests, whether controllers want them or not, and
    /// adds its counts to snapshots.
    pub fn observe(&self, observer: Arc<dyn Observer>) {
        self.shared.observers().push(observer);
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

    /// Adds to the counts of the data plane messages to controllers and subscribers.
    pub fn complete(&self, snapshot: &mut Snapshot) {
        let streams = self.shared.streams();
        snapshot.packet_ins_no_primary = streams.no_primary;
        snapshot.packet_ins_stream_full = streams.queue_full;
        snapshot.packet_ins_too_short = streams.too_short;
        snapshot.stream_messages_refused = streams.refusals.count;
        drop(streams);
        for observer in self.shared.observers().iter() {
            observer.complete(snapshot);
        }
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
        let (id, mut cut_off) = match opened {
            Ok(opened) => opened,
            Err(rejection) => {
                shared.log_refusal("a stream is refused", &rejection);
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
                    _ = &mut cut_off => break,
                },
            };
            if let Err(rejection) = shared.handle(id, message).await {
                shared.log_refusal("a stream is ended", &rejection);
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
    pub(super) async fn set_config(
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
        let set = forwarding
            .current()
            .filter(|_| done.is_ok() && action != Action::Verify);
        if let Some(summary) = set.and_then(|config| config.schema.absent.summary()) {
            self.log.write(Level::Warn, format_args!("{summary}"));
        }
        done
    }

    pub(super) async fn write(&self, request: WriteRequest) -> Result<(), Status> {
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

    pub(super) async fn read(&self, request: ReadRequest) -> Result<Vec<Entity>, Rejection> {
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
            let absent = &running.schema.absent;
            let rejection = absent.rejection(Object::Digest, ack.digest_id);
            return Err(Rejection::invalid(rejection.message));
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

    /// Counts a refusal, and logs it unless there are too many.
    fn log_refusal(&self, what: &str, rejection: &Rejection) {
        let silent = self.streams().refusals.take(self.started.elapsed());
        let Some(silent) = silent else {
            return;
        };
        let code = code_name(rejection.code);
        let before = match silent {
            0 => String::new(),
            count => format!(" ({count} refusals before this one were not logged)"),
        };
        self.log.write(
            Level::Warn,
            format_args!("{what}: {code}: {rejection}{before}"),
        );
    }

    fn report(&self, stream: StreamId, rejection: Rejection, details: stream_error::Details) {
        let what = match &details {
            stream_error::Details::PacketOut(_) => "a packet-out is refused",
            stream_error::Details::DigestListAck(_) => "an acknowledgement of digests is refused",
            _ => "a stream message is refused",
        };
        self.log_refusal(what, &rejection);
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
        let fields = &running.schema.packet_out;
        let frame = frame_of_packet_out(packet, fields)?;
        let missing = missing(packet, fields);
        if !missing.is_empty() && !running.warned_left_out.swap(true, Ordering::Relaxed) {
            let missing = missing.join("`, `");
            let text = format_args!(
                "a packet-out leaves out the metadata `{missing}`, which are 0 therefore; of \
                 others that leave some out nothing is said"
            );
            self.log.write(Level::Warn, text);
        }
        let injected = self.dataplane.run(move |switch| {
            let has_port = switch.cpu_port().is_some();
            switch.inject(&frame);
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
