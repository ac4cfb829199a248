//! Frames over gRPC.

use std::sync::Arc;

use tokio::sync::{Mutex, OwnedMutexGuard, mpsc};
use tokio_stream::wrappers::{ReceiverStream, UnixListenerStream};
use tonic::transport::Server as Transport;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status, Streaming};

use super::MessageSwitch;
use crate::proto::dataplane_interface_server::{DataplaneInterface, DataplaneInterfaceServer};
use crate::proto::{
    PacketStreamRequest, PacketStreamResponse, PortOperStatus, SetPortOperStatusRequest,
    SetPortOperStatusResponse,
};
use wormcast_switch_dataplane::{PortChange, SentFrame, Stopped};
use wormcast_switch_listen::{
    CONNECTION_WINDOW, KEEPALIVE_INTERVAL, KEEPALIVE_TIMEOUT, Listener, bounded,
};

/// Responses that wait for the client to read.
const RESPONSES_MAX: usize = 64;

/// BMv2's `DataplaneInterface` of one switch.
#[derive(Debug)]
pub struct DataplaneService {
    switch: MessageSwitch,
    /// Whoever streams has it.
    frames: Arc<Mutex<mpsc::Receiver<SentFrame>>>,
}

impl DataplaneService {
    /// `frames`: what leaves the switch.
    pub fn new(switch: MessageSwitch, frames: mpsc::Receiver<SentFrame>) -> Self {
        Self {
            switch,
            frames: Arc::new(Mutex::new(frames)),
        }
    }

    /// Answers for ever.
    ///
    /// # Errors
    /// Those of the transport.
    pub async fn serve(self, listener: Listener) -> Result<(), tonic::transport::Error> {
        let service = DataplaneInterfaceServer::new(self);
        let router = Transport::builder()
            .initial_connection_window_size(CONNECTION_WINDOW)
            .http2_keepalive_interval(Some(KEEPALIVE_INTERVAL))
            .http2_keepalive_timeout(Some(KEEPALIVE_TIMEOUT))
            .add_service(service);
        match listener {
            Listener::Tcp(listener) => {
                let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
                router.serve_with_incoming(bounded(incoming)).await
            }
            Listener::Unix(listener, _file) => {
                let incoming = UnixListenerStream::new(listener);
                router.serve_with_incoming(bounded(incoming)).await
            }
        }
    }
}

#[tonic::async_trait]
impl DataplaneInterface for DataplaneService {
    type PacketStreamStream = ReceiverStream<Result<PacketStreamResponse, Status>>;

    async fn packet_stream(
        &self,
        request: Request<Streaming<PacketStreamRequest>>,
    ) -> Result<Response<Self::PacketStreamStream>, Status> {
        let frames = Arc::clone(&self.frames).try_lock_owned();
        let frames = frames.map_err(|_| {
            Status::resource_exhausted("another client streams already; one at a time")
        })?;
        let mut frames = frames;
        // What left while nobody was there, or for whoever was there before, is nobody's.
        while frames.try_recv().is_ok() {}
        let (responses, stream) = mpsc::channel(RESPONSES_MAX);
        let served = Served {
            switch: self.switch.clone(),
            responses,
            frames,
        };
        tokio::spawn(served.run(request.into_inner()));
        Ok(Response::new(ReceiverStream::new(stream)))
    }

    async fn set_port_oper_status(
        &self,
        request: Request<SetPortOperStatusRequest>,
    ) -> Result<Response<SetPortOperStatusResponse>, Status> {
        let request = request.into_inner();
        let (asked, own) = (request.device_id, self.switch.device_id);
        if asked != own {
            let text = format!("there is no device {asked}; possible: {own}");
            return Err(Status::invalid_argument(text));
        }
        let change = match request.oper_status() {
            PortOperStatus::OperStatusUp => PortChange::Up,
            PortOperStatus::OperStatusDown => PortChange::Down,
            PortOperStatus::OperStatusUnknown => {
                let text = format!(
                    "oper_status {}; possible: OPER_STATUS_DOWN, OPER_STATUS_UP",
                    request.oper_status
                );
                return Err(Status::invalid_argument(text));
            }
        };
        for change in [PortChange::Add, change] {
            let changed = self.switch.change(request.port, change).await;
            let changed = changed.map_err(|stopped| Status::unavailable(stopped.to_string()))?;
            changed.map_err(Status::invalid_argument)?;
        }
        Ok(Response::new(SetPortOperStatusResponse {}))
    }
}

struct Served {
    switch: MessageSwitch,
    responses: mpsc::Sender<Result<PacketStreamResponse, Status>>,
    frames: OwnedMutexGuard<mpsc::Receiver<SentFrame>>,
}

/// Why a stream ends.
enum End {
    Gone,
    Stopped,
}

impl From<Stopped> for End {
    fn from(_: Stopped) -> Self {
        Self::Stopped
    }
}

impl Served {
    async fn run(mut self, mut requests: Streaming<PacketStreamRequest>) {
        if let Err(End::Stopped) = self.exchange(&mut requests).await {
            let text = "the data plane has ended";
            // The client may have gone too.
            let _ = self.responses.send(Err(Status::unavailable(text))).await;
        }
    }

    /// Until the client has said all and heard what that led to.
    async fn exchange(&mut self, requests: &mut Streaming<PacketStreamRequest>) -> Result<(), End> {
        loop {
            tokio::select! {
                // What leaves goes first: then there is room for what the next one leads to.
                biased;
                frame = self.frames.recv() => {
                    self.respond(frame.ok_or(End::Stopped)?).await?;
                }
                () = self.responses.closed() => return Err(End::Gone),
                request = requests.message() => match request {
                    Ok(Some(request)) => self.take(request).await?,
                    Ok(None) => break,
                    Err(_) => return Err(End::Gone),
                },
            }
        }
        while let Ok(frame) = self.frames.try_recv() {
            self.respond(frame).await?;
        }
        Ok(())
    }

    async fn take(&mut self, request: PacketStreamRequest) -> Result<(), End> {
        let own = self.switch.device_id;
        if request.device_id != own {
            // BMv2 passes over it too, without a word.
            let text = format!("there is no device {}; possible: {own}", request.device_id);
            self.switch.complain(Err(text));
            return Ok(());
        }
        let brought = self.switch.bring(request.port, request.packet, request.id);
        Ok(brought.await?)
    }

    async fn respond(&mut self, sent: SentFrame) -> Result<(), End> {
        let response = PacketStreamResponse {
            id: sent.mark,
            device_id: self.switch.device_id,
            port: sent.port.0.into(),
            packet: sent.frame,
        };
        let sent = self.responses.send(Ok(response)).await;
        sent.map_err(|_| End::Gone)
    }
}
