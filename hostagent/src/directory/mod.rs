//! The controller's side of the agent: one gRPC stream, dialled again after every break.
//! The data plane goes on without it.

mod address;
mod connection;
mod lag;
mod questions;
mod reports;
pub mod rpc;
mod secret;
mod trace;
mod transfers;

pub use address::{ControllerAddress, SOCKET_PATH_BYTES_MAX};
pub use secret::{STATE_DIRECTORY_DEFAULT, Secret};

use crate::dataplane::{Command, DataPlaneGone, DataPlaneHandle, NewPlan, Reports};
use crate::link::Prover;
use connection::Connection;
use hyper_util::rt::TokioIo;
use rpc::agent_directory_client::AgentDirectoryClient;
use rpc::agent_message::Body as AgentBody;
use rpc::controller_message::Body as ControllerBody;
use rpc::{
    AgentMessage, ControllerMessage, Counter, PlanApplied, Register, Registered, Statistics,
};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot};
use tokio::time::MissedTickBehavior;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;
use tonic::transport::{Channel, Endpoint, Uri};
use wormcast_agent_core::figures::{Figure, RouteUse};
use wormcast_agent_core::plan::{AgentPlan, GROUPS_MAX, MEMBERS_MAX, PlanRejected, RefusedGroup};
use wormcast_wire::{HOST_ID_MAX, HostId};

/// First pause before dialling again; doubles up to [`BACKOFF_MAX`].
pub const BACKOFF_MIN: Duration = Duration::from_millis(100);
pub const BACKOFF_MAX: Duration = Duration::from_secs(2);
/// Time a controller has to accept.
pub const ANSWER_TIME: Duration = Duration::from_secs(5);
/// Time it has to answer Register. Of hundreds that ask at once it answers the first ones first: who gave up soon, and
/// asked again, would be behind all that have given up.
pub const REGISTER_TIME: Duration = Duration::from_secs(60);
pub const STATISTICS_INTERVAL: Duration = Duration::from_secs(1);
/// Messages on their way to the controller; with more, the sender waits.
const OUTGOING_MAX: usize = 64;
/// The longest plan, bytes. A controller does not send longer ones.
const PLAN_BYTES_MAX: usize = 64 << 20;
/// Refused groups named to the controller at most; the text says how many there are. The others are named when a plan
/// comes without these.
const REFUSED_MAX: usize = 1024;
/// Counters of one Statistics at most: what the controller keeps of an agent.
const COUNTERS_MAX: usize = 4096;
/// Counters whose last value is remembered; with more, all are reported again.
const REPORTED_MAX: usize = 2 * COUNTERS_MAX;
/// Of the messages of agent.proto, as this agent knows them.
const REVISION: u32 = 3;
/// Characters of a controller's refusal that are shown.
const REFUSAL_CHARS_MAX: usize = 1000;

/// What this agent says of itself.
#[derive(Clone, Debug)]
pub struct Introduction {
    /// Unique name.
    pub name: String,
    /// Host ID asked for.
    pub host: Option<HostId>,
    /// Hardware address of the interface.
    pub mac: [u8; 6],
    pub mtu_bytes: u32,
    /// Worms of others are not to be routed through this host.
    pub no_transit: bool,
    /// What the controller knows this agent by, if it keeps one.
    pub secret: Option<Arc<Secret>>,
}

/// How it stands with the controller.
#[derive(Clone, Debug)]
pub struct ControllerState {
    /// Registered, the stream is open.
    pub connected: bool,
    pub since: Instant,
    pub last_error: Option<String>,
    /// Streams opened so far.
    pub attachments: u64,
}

/// The state, shared with the local API.
#[derive(Clone, Debug)]
pub struct SharedControllerState(Arc<Mutex<ControllerState>>);

impl Default for SharedControllerState {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(ControllerState {
            connected: false,
            since: Instant::now(),
            last_error: None,
            attachments: 0,
        })))
    }
}

impl SharedControllerState {
    pub fn get(&self) -> ControllerState {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn change(&self, change: impl FnOnce(&mut ControllerState)) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = state.connected;
        change(&mut state);
        if state.connected != before {
            state.since = Instant::now();
        }
    }
}

/// Why a stream ended.
#[derive(Debug)]
enum Break {
    /// Dialling failed or the stream broke.
    Lost(String),
    /// The controller does not take this agent.
    Refused(String),
    /// The data plane has ended; so does the client.
    Stopping,
}

impl From<DataPlaneGone> for Break {
    fn from(_: DataPlaneGone) -> Self {
        Self::Stopping
    }
}

/// Keeps a stream to the controller until the data plane ends.
pub struct DirectoryClient {
    address: ControllerAddress,
    introduction: Introduction,
    dataplane: DataPlaneHandle,
    reports: Reports,
    state: SharedControllerState,
    /// Tells the lives of this agent apart.
    life: u64,
}

impl DirectoryClient {
    /// `reports` come from the data plane.
    pub fn new(
        address: ControllerAddress,
        introduction: Introduction,
        dataplane: DataPlaneHandle,
        reports: Reports,
        state: SharedControllerState,
    ) -> Self {
        Self {
            address,
            introduction,
            dataplane,
            reports,
            state,
            life: transfers::new_life(),
        }
    }

    /// Dials, serves the stream, dials again.
    pub async fn run(mut self) {
        let mut backoff = BACKOFF_MIN;
        let mut complained = String::new();
        loop {
            let before = self.state.get().attachments;
            let end = match self.attach().await {
                Ok(never) => match never {},
                Err(end) => end,
            };
            self.state.change(|state| state.connected = false);
            let text = match end {
                Break::Stopping => return,
                Break::Lost(text) => text,
                Break::Refused(text) => {
                    let shown: String = text.chars().take(REFUSAL_CHARS_MAX).collect();
                    format!("refused: {shown}")
                }
            };
            self.state
                .change(|state| state.last_error = Some(text.clone()));
            if self.state.get().attachments > before {
                backoff = BACKOFF_MIN;
                complained.clear();
            }
            // Once for each kind of trouble, not for each attempt.
            if complained != text {
                crate::log::warning!(
                    "\"{}\": controller {}: {text}; trying again every {} s at the latest, forwarding goes on",
                    self.introduction.name,
                    self.address,
                    BACKOFF_MAX.as_secs()
                );
                complained = text;
            }
            tokio::time::sleep(backoff).await;
            backoff = (backoff * 2).min(BACKOFF_MAX);
        }
    }

    /// Registers and serves one stream to its end.
    async fn attach(&mut self) -> Result<std::convert::Infallible, Break> {
        let channel = tokio::time::timeout(ANSWER_TIME, self.dial())
            .await
            .map_err(|_| {
                Break::Lost(format!("no connection within {} s", ANSWER_TIME.as_secs()))
            })??;
        let figures = self.dataplane.figures().await?;
        let (outgoing, messages) = mpsc::channel(OUTGOING_MAX);
        let register = Register {
            name: self.introduction.name.clone(),
            host_id: self.introduction.host.map(|host| host.0.into()),
            mac: self.introduction.mac.to_vec(),
            mtu: self.introduction.mtu_bytes,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            plan_epoch: figures.plan_epoch,
            groups_max: GROUPS_MAX as u32,
            members_max: MEMBERS_MAX as u32,
            no_transit: self.introduction.no_transit,
            revision: REVISION,
            secret: (self.introduction.secret.iter())
                .flat_map(|secret| *secret.bytes())
                .collect(),
        };
        send(&outgoing, AgentBody::Register(register)).await?;
        let mut client =
            AgentDirectoryClient::new(channel).max_decoding_message_size(PLAN_BYTES_MAX);
        let answer_late = || {
            Break::Lost(format!(
                "no answer to Register within {} s",
                REGISTER_TIME.as_secs()
            ))
        };
        let attached = async {
            let stream = client
                .attach(ReceiverStream::new(messages))
                .await
                .map_err(lost)?;
            let mut stream = stream.into_inner();
            let first = stream.message().await.map_err(lost)?;
            Ok::<_, Break>((stream, first))
        };
        let (stream, first) = tokio::time::timeout(REGISTER_TIME, attached)
            .await
            .map_err(|_| answer_late())??;
        match first.and_then(|message| message.body) {
            Some(ControllerBody::Registered(registered)) => {
                self.accept_registration(registered).await?
            }
            Some(ControllerBody::Refused(refused)) => return Err(Break::Refused(refused.reason)),
            _ => {
                return Err(Break::Lost(
                    "the first answer was not to Register".to_owned(),
                ));
            }
        }
        self.serve(stream, outgoing).await
    }

    async fn accept_registration(&self, registered: Registered) -> Result<(), Break> {
        let host_id = registered.host_id;
        let host = match u16::try_from(host_id) {
            Ok(id) if id <= HOST_ID_MAX => HostId(id),
            _ => {
                return Err(Break::Lost(format!(
                    "registered as host {host_id}; hosts are 0 to {HOST_ID_MAX}"
                )));
            }
        };
        // A controller of an older version asks for no proofs.
        let secret =
            (self.introduction.secret.as_ref()).filter(|_| !registered.challenge.is_empty());
        let prover = secret.map(|secret| Prover::new(secret.bytes(), &registered.challenge));
        let command = Command::SetHost { host, prover };
        self.dataplane.send(command).await?;
        self.state.change(|state| {
            state.connected = true;
            state.attachments += 1;
            state.last_error = None;
        });
        crate::log::info!(
            "controller {}: registered \"{}\" as host {host}",
            self.address,
            self.introduction.name
        );
        Ok(())
    }

    async fn serve(
        &mut self,
        mut stream: Streaming<ControllerMessage>,
        outgoing: mpsc::Sender<AgentMessage>,
    ) -> Result<std::convert::Infallible, Break> {
        let mut reported = BTreeMap::new();
        let mut tick = tokio::time::interval(STATISTICS_INTERVAL);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        self.tell_receivers(&outgoing).await?;
        loop {
            tokio::select! {
                message = stream.message() => {
                    let body = match message {
                        Ok(Some(message)) => message.body,
                        Ok(None) => return Err(Break::Lost("the stream was closed".to_owned())),
                        Err(status) => return Err(lost(status)),
                    };
                    match body {
                        Some(ControllerBody::Plan(plan)) => {
                            let epoch = plan.epoch;
                            let plan = AgentPlan::parse(&plan);
                            let plan = plan.map(|plan| NewPlan::Whole(Box::new(plan)));
                            let applied = self.apply(epoch, plan).await?;
                            self.tell_changed_receivers(&outgoing).await?;
                            send(&outgoing, AgentBody::PlanApplied(applied)).await?;
                        }
                        Some(ControllerBody::PlanChange(change)) => {
                            let epoch = change.epoch;
                            let change = NewPlan::Change(Box::new(change));
                            let applied = self.apply(epoch, Ok(change)).await?;
                            self.tell_changed_receivers(&outgoing).await?;
                            send(&outgoing, AgentBody::PlanApplied(applied)).await?;
                        }
                        Some(ControllerBody::Trace(trace)) => {
                            let sent = trace::answer(&self.dataplane, &trace).await?;
                            send(&outgoing, AgentBody::TraceSent(sent)).await?;
                        }
                        Some(ControllerBody::AskLag(asked)) => {
                            let reported = lag::answer(&self.dataplane, asked).await?;
                            send(&outgoing, AgentBody::LagAnswer(reported)).await?;
                        }
                        Some(ControllerBody::Answer(answer)) => {
                            // One that names no group or host is for nobody.
                            if let Ok(answer) = questions::read_answer(answer) {
                                self.dataplane.send(Command::Answer(answer)).await?;
                            }
                        }
                        Some(ControllerBody::Refused(refused)) => return Err(Break::Refused(refused.reason)),
                        Some(ControllerBody::Registered(registered)) => {
                            self.accept_registration(registered).await?;
                        }
                        // A newer controller may say things this agent does not know.
                        None => {}
                    }
                }
                report = self.reports.events.recv() => {
                    let report = report.ok_or(Break::Stopping)?;
                    send(&outgoing, reports::body(report, self.life)).await?;
                }
                changed = self.reports.receivers.changed() => {
                    changed.map_err(|_| Break::Stopping)?;
                    self.tell_receivers(&outgoing).await?;
                }
                _ = tick.tick() => {
                    let mut statistics = self.statistics().await?;
                    statistics.counters.retain(|counter| is_news(&mut reported, counter));
                    // What has ended is missing in it, and is told before.
                    while let Ok(report) = self.reports.events.try_recv() {
                        send(&outgoing, reports::body(report, self.life)).await?;
                    }
                    send(&outgoing, AgentBody::Statistics(statistics)).await?;
                }
            }
        }
    }

    /// What a plan has closed is told before its answer.
    async fn tell_changed_receivers(
        &mut self,
        outgoing: &mpsc::Sender<AgentMessage>,
    ) -> Result<(), Break> {
        match self.reports.receivers.has_changed() {
            Ok(true) => self.tell_receivers(outgoing).await,
            Ok(false) => Ok(()),
            Err(_) => Err(Break::Stopping),
        }
    }

    async fn tell_receivers(&mut self, outgoing: &mpsc::Sender<AgentMessage>) -> Result<(), Break> {
        let open = reports::open_receivers(&self.reports.receivers.borrow_and_update());
        send(outgoing, AgentBody::OpenReceivers(open)).await
    }

    async fn apply(
        &self,
        epoch: u64,
        plan: Result<NewPlan, PlanRejected>,
    ) -> Result<PlanApplied, Break> {
        let result = match plan {
            Ok(plan) => {
                let (done, applied) = oneshot::channel();
                self.dataplane
                    .send(Command::ApplyPlan { plan, done })
                    .await?;
                match applied.await {
                    Ok(result) => result,
                    Err(_) => return Err(Break::Stopping),
                }
            }
            Err(rejected) => Err(rejected.to_string()),
        };
        let (error, refused) = match result {
            Ok(refused) => (describe_refused(&refused), refused),
            Err(error) => {
                crate::log::warning!("plan {epoch} is refused: {error}");
                (error, Vec::new())
            }
        };
        if !refused.is_empty() {
            crate::log::warning!("plan {epoch} is applied but for: {error}");
        }
        let refused = refused.into_iter().map(|refused| rpc::RefusedGroup {
            group: refused.group,
            reason: refused.reason,
        });
        Ok(PlanApplied {
            epoch,
            error,
            refused: refused.take(REFUSED_MAX).collect(),
        })
    }

    async fn statistics(&self) -> Result<Statistics, Break> {
        let figures = self.dataplane.figures().await?;
        Ok(Statistics {
            counters: sum_counters(&figures.figures),
            routes: figures.routes.iter().map(route_use).collect(),
            routes_left_out: figures.routes_left_out as u32,
            transfers: Some(transfers::count(self.life, figures.transfers)),
        })
    }

    async fn dial(&self) -> Result<Channel, Break> {
        // The name is for the HTTP/2 authority alone; the connector knows the address.
        let endpoint = Endpoint::from_static("http://controller");
        let address = self.address.clone();
        let connector = tower::service_fn(move |_: Uri| {
            let address = address.clone();
            async move { Connection::open(&address).await.map(TokioIo::new) }
        });
        endpoint
            .connect_with_connector(connector)
            .await
            .map_err(|error| Break::Lost(innermost(&error)))
    }
}

/// The first group that is refused, and how many more are. Empty: none is.
fn describe_refused(refused: &[RefusedGroup]) -> String {
    match refused {
        [] => String::new(),
        [one] => one.reason.clone(),
        [first, rest @ ..] => format!("{}; {} more groups are refused", first.reason, rest.len()),
    }
}

/// The counters of the proto file have a group but no origin: streams of a group are summed.
/// Those of groups are left out while they are 0, and beyond [`COUNTERS_MAX`].
fn sum_counters(figures: &[Figure]) -> Vec<Counter> {
    let mut sums = BTreeMap::new();
    for figure in figures {
        *sums
            .entry((figure.group, figure.name.as_str()))
            .or_insert(0_u64) += figure.value;
    }
    sums.into_iter()
        .filter(|((group, _), value)| group.is_none() || *value > 0)
        .take(COUNTERS_MAX)
        .map(|((group, name), value)| Counter {
            name: name.to_owned(),
            group: group.unwrap_or_default().into(),
            value,
        })
        .collect()
}

/// Whether a counter has another value than was reported before on this stream.
fn is_news(reported: &mut BTreeMap<(String, u32), u64>, counter: &Counter) -> bool {
    if reported.len() >= REPORTED_MAX {
        reported.clear();
    }
    let before = reported.insert((counter.name.clone(), counter.group), counter.value);
    before != Some(counter.value)
}

fn route_use(routes: &RouteUse) -> rpc::RouteUse {
    rpc::RouteUse {
        host: routes.host.into(),
        messages: routes.messages.clone(),
    }
}

async fn send(outgoing: &mpsc::Sender<AgentMessage>, body: AgentBody) -> Result<(), Break> {
    let message = AgentMessage { body: Some(body) };
    outgoing
        .send(message)
        .await
        .map_err(|_| Break::Lost("the stream was closed".to_owned()))
}

fn lost(status: tonic::Status) -> Break {
    Break::Lost(match status.message() {
        "" => status.code().description().to_owned(),
        text => text.to_owned(),
    })
}

/// The error that says what really happened, without its wrappings.
fn innermost(error: &(dyn std::error::Error + 'static)) -> String {
    let mut deepest = error;
    while let Some(source) = deepest.source() {
        deepest = source;
    }
    deepest.to_string()
}
