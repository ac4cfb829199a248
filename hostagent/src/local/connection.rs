//! One client: frames in become commands, what the data plane queues becomes frames out.

use super::facts::AgentFacts;
use crate::dataplane::{
    Command, DataPlaneGone, DataPlaneHandle, OutboundReceiver, OutboundSender, outbound_queue,
};
use bytes::{Bytes, BytesMut};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{Notify, Semaphore};
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
    let answered = Arc::new(Semaphore::new(REQUESTS_MAX));
    let ended = Arc::new(Notify::new());
    let writer = tokio::spawn(write_frames(
        write,
        queue,
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
        };
        if reader.dataplane.send(connect).await.is_ok() {
            tokio::select! {
                () = reader.read_frames(read) => {}
                () = ended.notified() => {}
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
}

impl Reader {
    /// Until the client is gone or breaks the rules.
    async fn read_frames(&mut self, mut read: OwnedReadHalf) {
        let mut buffer = BytesMut::with_capacity(64 << 10);
        // Who says nothing takes a place that others may need.
        let hello_due = Instant::now() + HELLO_PATIENCE;
        loop {
            match Frame::decode(&mut buffer) {
                Ok(Some(frame)) => match self.take_frame(frame).await {
                    Ok(true) => continue,
                    Ok(false) | Err(DataPlaneGone) => return,
                },
                Ok(None) => {}
                Err(error) => {
                    self.outbound.send(Outbound::Close {
                        reason: error.to_string(),
                    });
                    return;
                }
            }
            buffer.reserve(32 << 10);
            let came = read.read_buf(&mut buffer);
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
        let request = match NumberedRequest::parse(json) {
            Ok(request) => request,
            Err((Some(id), error)) => {
                self.outbound.send(Outbound::Reply {
                    id,
                    result: Err(error),
                });
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
            _ => {
                self.dataplane
                    .send(Command::Request {
                        connection: self.id,
                        request,
                    })
                    .await?;
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
}

/// Until the queue ends, the client is gone, or the connection is to be closed.
async fn write_frames(
    mut write: OwnedWriteHalf,
    mut queue: OutboundReceiver,
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
            if matches!(outbound, Outbound::Reply { .. }) {
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
