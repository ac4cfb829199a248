//! The HTTP server of `--metrics-addr`: `/metrics`, `/healthz`, `/trace`.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{ALLOW, CONTENT_TYPE};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use super::exposition::{Exposition, Family, Kind};
use super::families::{device_families, request_families};
use super::process::process_families;
use wormcast_switch_dataplane::{DataplaneHandle, Snapshot};
use wormcast_switch_listen::patience::{Patience, PatientStream};
use wormcast_switch_p4runtime::RequestCounts;

/// Connections served at a time; one more waits until one of them ends.
pub const CONNECTIONS_MAX: usize = 32;

/// How long a client has for the head of its request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a client may leave what it is sent unread.
const PATIENCE: Patience = Patience {
    greeting: None,
    silence: None, // of requests the head has its own time, and /trace may be listened to for ever
    unread: Duration::from_secs(60),
};

/// How long a data plane has to tell its counts.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// How long after a failed `accept` the next one follows.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The media type of the text format.
const EXPOSITION_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

pub(super) const PLAIN_TYPE: &str = "text/plain; charset=utf-8";

const PATHS: &str = "/metrics, /healthz, /trace";

pub(super) type Answer = Response<UnsyncBoxBody<Bytes, Infallible>>;

/// Adds to the counts of a data plane what its server knows.
pub type Complete = Arc<dyn Fn(&mut Snapshot) + Send + Sync>;

/// A switch of this process.
#[derive(Clone)]
pub struct Device {
    /// What the label `device` says.
    pub id: u64,
    pub dataplane: DataplaneHandle,
    /// Adds what its server knows.
    pub complete: Complete,
}

/// Gives the switches there are at the moment.
pub type Devices = Arc<dyn Fn() -> Vec<Device> + Send + Sync>;

/// A server that listens but does not answer yet.
pub struct MetricsServer {
    listener: TcpListener,
    shared: Shared,
}

#[derive(Clone)]
pub(super) struct Shared {
    pub(super) devices: Devices,
    requests: RequestCounts,
}

impl MetricsServer {
    /// Listens on `HOST:PORT`.
    pub async fn bind(
        address: &str,
        devices: Devices,
        requests: RequestCounts,
    ) -> io::Result<Self> {
        Ok(Self {
            listener: TcpListener::bind(address).await?,
            shared: Shared { devices, requests },
        })
    }

    pub fn local_address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Answers as long as it is polled; connections end with it.
    pub async fn serve(self) {
        let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        let mut connections = tokio::task::JoinSet::new();
        loop {
            // Whoever waits for room waits in the kernel's queue, which is bounded too.
            let Ok(permit) = Arc::clone(&room).acquire_owned().await else {
                return;
            };
            while connections.try_join_next().is_some() {}
            let Ok((stream, _)) = self.listener.accept().await else {
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            };
            let shared = self.shared.clone();
            let stream = PatientStream::new(stream, PATIENCE, permit);
            connections.spawn(async move {
                let service = service_fn(move |request| {
                    let shared = shared.clone();
                    async move { Ok::<_, Infallible>(shared.answer(request).await) }
                });
                // A client that breaks off is its own business.
                let _ = http1::Builder::new()
                    .timer(TokioTimer::new())
                    .header_read_timeout(HEAD_TIMEOUT)
                    .serve_connection(TokioIo::new(stream), service)
                    .await;
            });
        }
    }
}

impl Shared {
    async fn answer(&self, request: Request<Incoming>) -> Answer {
        if request.method() != Method::GET {
            let mut answer = text(
                StatusCode::METHOD_NOT_ALLOWED,
                PLAIN_TYPE,
                "only GET is answered\n".to_owned(),
            );
            let allowed = hyper::header::HeaderValue::from_static("GET");
            answer.headers_mut().insert(ALLOW, allowed);
            return answer;
        }
        match request.uri().path() {
            "/metrics" => self.metrics().await,
            "/healthz" => self.health().await,
            "/trace" => self.trace(request.uri().query().unwrap_or_default()).await,
            path => text(
                StatusCode::NOT_FOUND,
                PLAIN_TYPE,
                format!("there is no {path}; there are {PATHS}\n"),
            ),
        }
    }

    async fn metrics(&self) -> Answer {
        let mut exposition = Exposition::default();
        let mut build = Family::new(
            Kind::Gauge,
            "wormcast_switch_build_info",
            "1; the label is the version.",
        );
        build.add(&[("version", env!("CARGO_PKG_VERSION"))], 1.0);
        let mut up = Family::new(
            Kind::Gauge,
            "wormcast_switch_dataplane_up",
            "1 if the data plane has told its counts, 0 if it has stopped or does not answer.",
        );
        let mut families = Vec::new();
        for (device, snapshot) in self.snapshots().await {
            let answered = f64::from(u8::from(snapshot.is_some()));
            up.add(&[("device", &device.to_string())], answered);
            if let Some(snapshot) = snapshot {
                families.extend(device_families(device, &snapshot));
            }
        }
        exposition.extend([build, up]);
        exposition.extend(families);
        exposition.extend(request_families(&self.requests.all()));
        exposition.extend(process_families());
        text(StatusCode::OK, EXPOSITION_TYPE, exposition.text())
    }

    async fn health(&self) -> Answer {
        let snapshots = self.snapshots().await;
        let dead: Vec<String> = snapshots
            .iter()
            .filter(|(_, snapshot)| snapshot.is_none())
            .map(|(device, _)| device.to_string())
            .collect();
        if dead.is_empty() {
            return text(StatusCode::OK, PLAIN_TYPE, "ok\n".to_owned());
        }
        text(
            StatusCode::SERVICE_UNAVAILABLE,
            PLAIN_TYPE,
            format!(
                "no answer from the data plane of device {}\n",
                dead.join(", ")
            ),
        )
    }

    /// Counts of every device; `None` for one that does not answer.
    async fn snapshots(&self) -> Vec<(u64, Option<Snapshot>)> {
        let mut snapshots = Vec::new();
        for device in (self.devices)() {
            let counts = device.dataplane.run(|switch| switch.counts());
            let counts = tokio::time::timeout(ANSWER_TIMEOUT, counts).await;
            let snapshot = counts.ok().and_then(Result::ok).map(|counts| {
                let mut snapshot = Snapshot::from(counts);
                (device.complete)(&mut snapshot);
                snapshot
            });
            snapshots.push((device.id, snapshot));
        }
        snapshots
    }
}

pub(super) fn text(status: StatusCode, kind: &'static str, body: String) -> Answer {
    let body = Full::new(Bytes::from(body)).boxed_unsync();
    let mut answer = Response::new(body);
    *answer.status_mut() = status;
    let kind = hyper::header::HeaderValue::from_static(kind);
    answer.headers_mut().insert(CONTENT_TYPE, kind);
    answer
}
