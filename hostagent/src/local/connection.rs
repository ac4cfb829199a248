//! One client: frames in become commands, what the data plane queues becomes frames out.

use super::facts::AgentFacts;
use super::files::{Arrivals, Descriptors, Going, Order, Reading, Unchecked, Window, Writing};
use crate::dataplane::{
    Command, DataPlaneGone, DataPlaneHandle, OutboundReceiver, OutboundSender, outbound_queue,
};
use bytes::{Bytes, BytesMut};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{Notify, Semaphore, mpsc};
use tokio::time::Instant;
use wormcast_agent_core::api::{
    API_VERSION, ApiError, CONTROL_BYTES_MAX, DATA_BYTES_MAX, ErrorCode, Frame, Notice,
    NumberedRequest, Request,
};
use wormcast_agent_core::clients::limits::{
    CONNECTIONS_MAX, HANDLES_MAX, HELLO_PATIENCE, MESSAGE_WINDOW_BYTES, REQUESTS_MAX,
    SENDER_WINDOW_BYTES,
};
use wormcast_agent_core::clients::{ConnectionId, Outbound};

/// Bytes gathered for one write to a client.
const WRITE_BYTES_GATHERED: usize = 256 << 10;
/// Time a client has to take what is left for it when the connection ends.
const LINGER: Duration = Duration::from_secs(2);

/// Serves a client to the end. One that is not admitted is told why.
pub(super) async fn serve_connection(
    stream: UnixStream,
    id: ConnectionId,
    admitted: bool,
    dataplane: DataPlaneHandle,
    facts: Arc<AgentFacts>,
) {
    let process = describe_process(&stream);
    let (read, write) = stream.into_split();
    let (outbound, queue) = outbound_queue();
    let (orders, ordered) = mpsc::unbounded_channel();
    let (unanswered, unchecked) = (Unanswered::default(), Unchecked::default());
    let arrivals = Arrivals::new(id, dataplane.clone(), orders.clone(), unchecked.clone());
    let answered = Arc::new(Semaphore::new(REQUESTS_MAX));
    let ended = Arc::new(Notify::new());
    let writer = tokio::spawn(write_frames(
        write,
        Incoming {
            queue,
            ordered,
            arrivals,
            unanswered: unanswered.clone(),
        },
        Arc::clone(&answered),
        Arc::clone(&ended),
    ));
    if admitted {
        crate::log::debug!("local client {} connected: {process}", id.0);
        let connect = Command::Connect {
            id,
            outbound: outbound.clone(),
            process,
        };
        let mut reader = Reader {
            id,
            dataplane,
            facts,
            outbound,
            answered,
            greeted: false,
            descriptors: Descriptors::default(),
            orders,
            unanswered,
            unchecked,
            windows: BTreeMap::new(),
        };
        if reader.dataplane.send(connect).await.is_ok() {
            tokio::select! {
                () = reader.read_frames(read) => {}
                () = ended.notified() => {}
            }
            for window in reader.windows.values() {
                window.end("the connection has ended");
            }
            let _ = reader.dataplane.send(Command::Disconnect(id)).await;
        }
        crate::log::debug!("local client {} is gone", id.0);
    } else {
        let reason =
            format!("{CONNECTIONS_MAX} local clients are connected, the most this agent serves");
        outbound.send(Outbound::Close { reason });
        drop(outbound);
    }
    let stop = writer.abort_handle();
    if tokio::time::timeout(LINGER, writer).await.is_err() {
        stop.abort();
    }
}

fn describe_process(stream: &UnixStream) -> String {
    let Some(pid) = stream
        .peer_cred()
        .ok()
        .and_then(|credentials| credentials.pid())
    else {
        return "an unknown process".to_owned();
    };
    match std::fs::read_to_string(format!("/proc/{pid}/comm")) {
        Ok(name) => format!("process {pid} ({})", name.trim_end()),
        Err(_) => format!("process {pid}"),
    }
}

struct Reader {
    id: ConnectionId,
    dataplane: DataPlaneHandle,
    facts: Arc<AgentFacts>,
    outbound: OutboundSender,
    answered: Arc<Semaphore>,
    greeted: bool,
    descriptors: Descriptors,
    /// To the writer.
    orders: mpsc::UnboundedSender<Order>,
    unanswered: Unanswered,
    /// Messages that cannot be confirmed.
    unchecked: Unchecked,
    /// Of senders of which files are read.
    windows: BTreeMap<u32, Arc<Window>>,
}

impl Reader {
    /// Until the client is gone or breaks the rules.
    async fn read_frames(&mut self, read: OwnedReadHalf) {
        let mut buffer = BytesMut::with_capacity(64 << 10);
        // Who says nothing takes a place that others may need.
        let hello_due = Instant::now() + HELLO_PATIENCE;
        loop {
            let held = buffer.len();
            match Frame::decode(&mut buffer) {
                Ok(Some(frame)) => {
                    self.descriptors.begin_frame(held - buffer.len());
                    match self.take_frame(frame).await {
                        Ok(true) => {}
                        Ok(false) | Err(DataPlaneGone) => return,
                    }
                    if let Some(reason) = self.descriptors.fault() {
                        self.outbound.send(Outbound::Close { reason });
                        return;
                    }
                    continue;
                }
                Ok(None) => {}
                Err(error) => {
                    self.outbound.send(Outbound::Close {
                        reason: error.to_string(),
                    });
                    return;
                }
            }
            let came = self.descriptors.read(read.as_ref(), &mut buffer);
            let came = if self.greeted {
                came.await
            } else if let Ok(came) = tokio::time::timeout_at(hello_due, came).await {
                came
            } else {
                let reason = format!("no hello within {} s", HELLO_PATIENCE.as_secs());
                self.outbound.send(Outbound::Close { reason });
                return;
            };
            match came {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
            if let Some(reason) = self.descriptors.fault() {
                self.outbound.send(Outbound::Close { reason });
                return;
            }
        }
    }

    /// False ends the connection.
    async fn take_frame(&mut self, frame: Frame) -> Result<bool, DataPlaneGone> {
        let connection = self.id;
        match frame {
            Frame::Control(json) => return self.take_request(&json).await,
            _ if !self.greeted => {
                let reason = "the first frame must be a hello request".to_owned();
                self.outbound.send(Outbound::Close { reason });
                return Ok(false);
            }
            Frame::Data { handle, .. } if self.is_read(handle) => {
                let reason = format!("data frames for sender {handle}, of which a file is read");
                self.outbound.send(Outbound::Close { reason });
                return Ok(false);
            }
            Frame::Data { handle, bytes } => {
                self.dataplane
                    .send(Command::Data {
                        connection,
                        handle,
                        bytes,
                    })
                    .await?;
            }
            Frame::Window { handle, bytes } => {
                self.dataplane
                    .send(Command::Window {
                        connection,
                        handle,
                        bytes,
                    })
                    .await?;
            }
        }
        Ok(true)
    }

    async fn take_request(&mut self, json: &[u8]) -> Result<bool, DataPlaneGone> {
        // Given back by the writer with the answer.
        match self.answered.acquire().await {
            Ok(permit) => permit.forget(),
            Err(_) => return Ok(false),
        }
        let parsed = NumberedRequest::parse(json);
        let id = match &parsed {
            Ok(request) => Some(request.id),
            Err((id, _)) => *id,
        };
        if let Some(id) = id.filter(|&id| !self.unanswered.begin(id)) {
            let reason = format!("request {id} has no answer yet; another may not have its id");
            self.outbound.send(Outbound::Close { reason });
            return Ok(false);
        }
        let request = match parsed {
            Ok(request) => request,
            Err((Some(id), error)) => {
                self.refuse(id, error);
                return Ok(true);
            }
            Err((None, error)) => {
                self.outbound.send(Outbound::Close {
                    reason: error.message,
                });
                return Ok(false);
            }
        };
        let id = request.id;
        match request.request {
            Request::Hello { version, .. } => {
                let result = self.greet(version).await?;
                let agreed = result.is_ok();
                self.outbound.send(Outbound::Reply { id, result });
                Ok(agreed)
            }
            _ if !self.greeted => {
                let error = ApiError::new(ErrorCode::HelloFirst, "the first request must be hello");
                self.outbound.send(Outbound::Reply {
                    id,
                    result: Err(error),
                });
                Ok(true)
            }
            Request::Status {} => {
                let figures = self.dataplane.figures_with_groups().await?;
                let result = Ok(self.facts.describe(&figures));
                self.outbound.send(Outbound::Reply { id, result });
                Ok(true)
            }
            Request::SendFile { handle, bytes } => self.read_file(request, handle, bytes).await,
            Request::ReceiveFile { handle, bytes } => {
                match self.descriptors.take_own() {
                    Ok(descriptor) => {
                        let writing = Writing { descriptor, bytes };
                        let _ = self.orders.send(Order::Write {
                            id,
                            handle,
                            writing,
                        });
                    }
                    Err(error) => self.refuse(id, error),
                }
                Ok(true)
            }
            Request::EndMessage { handle } | Request::AnnounceMessage { handle, .. }
                if self.is_read(handle) =>
            {
                self.refuse(id, being_read(handle));
                Ok(true)
            }
            Request::Confirm { handle } if self.unchecked.contains(handle) => {
                let text = format!("the file of message {handle} is not whole");
                self.refuse(id, ApiError::new(ErrorCode::WrongState, text));
                Ok(true)
            }
            _ => {
                self.let_go(id, &request.request);
                self.pass_on(request).await?;
                Ok(true)
            }
        }
    }

    async fn greet(&mut self, version: u32) -> Result<Result<Value, ApiError>, DataPlaneGone> {
        if version != API_VERSION {
            let text =
                format!("version {version} of the local API; this agent speaks {API_VERSION}");
            let choices = vec![API_VERSION.into()];
            return Ok(Err(ApiError {
                code: ErrorCode::Version,
                message: text,
                choices,
            }));
        }
        self.greeted = true;
        let figures = self.dataplane.figures().await?;
        Ok(Ok(json!({
            "version": API_VERSION,
            "agent_version": env!("CARGO_PKG_VERSION"),
            "name": self.facts.name,
            "host": figures.host,
            "plan_epoch": figures.plan_epoch,
            "limits": {
                "control_bytes": CONTROL_BYTES_MAX,
                "data_bytes": DATA_BYTES_MAX,
                "handles": HANDLES_MAX,
                "requests": REQUESTS_MAX,
                "sender_window_bytes": SENDER_WINDOW_BYTES,
                "message_window_bytes": MESSAGE_WINDOW_BYTES,
            },
        })))
    }

    fn refuse(&self, id: u64, error: ApiError) {
        let result = Err(error);
        self.outbound.send(Outbound::Reply { id, result });
    }

    /// A file goes into the message of a sender, when the data plane has said how much it takes.
    async fn read_file(
        &mut self,
        request: NumberedRequest,
        handle: u32,
        bytes: u64,
    ) -> Result<bool, DataPlaneGone> {
        let id = request.id;
        let descriptor = match self.descriptors.take_own() {
            Ok(descriptor) => descriptor,
            Err(error) => {
                let reason = error.message;
                self.outbound.send(Outbound::Close { reason });
                return Ok(false);
            }
        };
        if self.is_read(handle) {
            self.refuse(id, being_read(handle));
            return Ok(true);
        }
        self.windows.retain(|_, window| !window.is_answered());
        let window = Arc::new(Window::default());
        self.windows.insert(handle, Arc::clone(&window));
        let reading = Reading {
            descriptor,
            bytes,
            handle,
            window,
        };
        let _ = self.orders.send(Order::Read { id, reading });
        self.pass_on(request).await?;
        Ok(true)
    }

    /// Whether a file is being read for this sender.
    fn is_read(&self, sender: u32) -> bool {
        let window = self.windows.get(&sender);
        window.is_some_and(|window| !window.is_answered())
    }

    /// Hands a request to the data plane, which gives the answer.
    async fn pass_on(&self, request: NumberedRequest) -> Result<(), DataPlaneGone> {
        let connection = self.id;
        self.dataplane
            .send(Command::Request {
                connection,
                request,
            })
            .await
    }

    /// Ends what is done with files that a request gives up.
    fn let_go(&self, id: u64, request: &Request) {
        let end = |handle: &u32| {
            if let Some(window) = self.windows.get(handle) {
                // Nothing may come behind the request that would be taken for another message.
                window.end("the message was given up");
            }
        };
        let going = match request {
            Request::CancelMessage { handle } => return end(handle),
            Request::Close { handle } => {
                end(handle);
                Going::Receiver(*handle)
            }
            Request::Abort { handle, .. } => Going::Message(*handle),
            _ => return,
        };
        let _ = self.orders.send(Order::GivenUp { id, going });
    }
}

fn being_read(sender: u32) -> ApiError {
    let text =
        format!("a file is being read for sender {sender}; wait for the answer to send_file");
    ApiError::new(ErrorCode::WrongState, text)
}

/// What comes for the client, from the data plane and from files.
struct Incoming {
    queue: OutboundReceiver,
    ordered: mpsc::UnboundedReceiver<Order>,
    arrivals: Arrivals,
    unanswered: Unanswered,
}

/// Requests that have no answer yet, by their ids.
#[derive(Clone, Default)]
struct Unanswered(Arc<Mutex<BTreeSet<u64>>>);

impl Unanswered {
    /// False if another with this id has no answer yet.
    fn begin(&self, id: u64) -> bool {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(id)
    }

    fn end(&self, id: u64) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&id);
    }
}

impl Incoming {
    /// The next to be written; `None` when the data plane has let go of the connection.
    async fn receive(&mut self) -> Option<Outbound> {
        loop {
            if let Some(outbound) = self.try_receive() {
                return Some(outbound);
            }
            tokio::select! {
                outbound = self.queue.receive() => self.pass(outbound?),
                Some(order) = self.ordered.recv() => self.arrivals.take(order),
            }
        }
    }

    /// The next, if there is one already.
    fn try_receive(&mut self) -> Option<Outbound> {
        loop {
            if let Some(outbound) = self.arrivals.poll() {
                return Some(outbound);
            }
            if let Ok(order) = self.ordered.try_recv() {
                self.arrivals.take(order);
            } else {
                let outbound = self.queue.try_receive()?;
                self.pass(outbound);
            }
        }
    }

    fn pass(&mut self, outbound: Outbound) {
        // What the reader ordered before it asked the data plane comes before the answer.
        while let Ok(order) = self.ordered.try_recv() {
            self.arrivals.take(order);
        }
        self.arrivals.pass(outbound);
    }
}

/// Until the queue ends, the client is gone, or the connection is to be closed.
async fn write_frames(
    mut write: OwnedWriteHalf,
    mut queue: Incoming,
    answered: Arc<Semaphore>,
    ended: Arc<Notify>,
) {
    let mut buffer = BytesMut::with_capacity(64 << 10);
    let mut open = true;
    while open {
        let mut next = queue.receive().await;
        open = next.is_some();
        while let Some(outbound) = next {
            open = !matches!(outbound, Outbound::Close { .. });
            if let Outbound::Reply { id, .. } = &outbound {
                queue.unanswered.end(*id);
                answered.add_permits(1);
            }
            encode(outbound, &mut buffer);
            if !open || buffer.len() >= WRITE_BYTES_GATHERED {
                break;
            }
            next = queue.try_receive();
        }
        if write.write_all(&buffer).await.is_err() {
            break;
        }
        buffer.clear();
    }
    let _ = write.shutdown().await;
    ended.notify_one();
}

fn encode(outbound: Outbound, buffer: &mut BytesMut) {
    let control = |value: &Value| {
        let mut json = value.to_string();
        if json.len() > CONTROL_BYTES_MAX {
            // Only a status of very many groups can be that long.
            let error = ApiError::new(
                ErrorCode::LimitReached,
                format!(
                    "the answer has {} bytes; at most {CONTROL_BYTES_MAX}",
                    json.len()
                ),
            );
            json = json!({ "id": value["id"], "error": error }).to_string();
        }
        Frame::Control(Bytes::from(json))
    };
    let frame = match outbound {
        Outbound::Reply {
            id,
            result: Ok(result),
        } => control(&json!({ "id": id, "result": result })),
        Outbound::Reply {
            id,
            result: Err(error),
        } => control(&json!({ "id": id, "error": error })),
        Outbound::Notice(notice) => control(&json!(notice)),
        Outbound::Close { reason } => control(&json!(Notice::Goodbye { reason })),
        Outbound::Data { handle, bytes } => Frame::Data { handle, bytes },
        Outbound::Window { handle, bytes } => Frame::Window { handle, bytes },
    };
    frame.encode(buffer);
}
