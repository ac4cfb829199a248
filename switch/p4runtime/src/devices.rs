//! Many devices behind one address: every call goes to the server of the device it names.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming};

use super::proto::p4::v1::{
    CapabilitiesRequest, CapabilitiesResponse, GetForwardingPipelineConfigRequest,
    GetForwardingPipelineConfigResponse, ReadRequest, SetForwardingPipelineConfigRequest,
    SetForwardingPipelineConfigResponse, StreamMessageRequest, StreamMessageResponse, WriteRequest,
    WriteResponse, p4_runtime_server::P4Runtime, stream_message_request as incoming,
};
use super::server::Server;
use super::streams::{Outgoing, STREAM_MESSAGES_MAX};
use crate::RequestCounts;
use wormcast_switch_dataplane::list;

/// The servers of all devices. Clones are the same ones.
///
/// A device that there is not is NOT_FOUND. A stream belongs to the device of its first
/// message, which must be an arbitration (P4Runtime specification, section 5).
#[derive(Clone)]
pub struct Devices {
    servers: Arc<BTreeMap<u64, Server>>,
    requests: RequestCounts,
}

impl Devices {
    /// Servers by device id.
    pub fn new(servers: impl IntoIterator<Item = (u64, Server)>) -> Self {
        Self {
            servers: Arc::new(servers.into_iter().collect()),
            requests: RequestCounts::default(),
        }
    }

    /// Where calls to all of them are counted.
    pub fn requests(&self) -> RequestCounts {
        self.requests.clone()
    }

    /// All servers, by device id.
    pub fn servers(&self) -> impl Iterator<Item = (u64, &Server)> {
        self.servers.iter().map(|(id, server)| (*id, server))
    }

    /// The server of a device. One that is alone answers for all and says itself what it
    /// is not.
    fn server(&self, device_id: u64) -> Result<&Server, Status> {
        if let Some(only) = self.only() {
            return Ok(only);
        }
        self.servers.get(&device_id).ok_or_else(|| {
            let known = list(self.servers.keys().map(u64::to_string));
            Status::not_found(format!("there is no device {device_id}; there are {known}"))
        })
    }

    fn only(&self) -> Option<&Server> {
        let mut servers = self.servers.values();
        servers.next().filter(|_| self.servers.len() == 1)
    }

    /// The server of the device that the first message of a stream names.
    fn server_of_stream(&self, first: &StreamMessageRequest) -> Result<&Server, Status> {
        match &first.update {
            Some(incoming::Update::Arbitration(update)) => self.server(update.device_id),
            _ => Err(Status::invalid_argument(
                "the first message of a stream must be an arbitration: it names the device",
            )),
        }
    }

    async fn serve_stream(self, mut messages: Streaming<StreamMessageRequest>, outgoing: Outgoing) {
        if let Some(only) = self.only() {
            return only.serve_stream(None, messages, outgoing).await;
        }
        let first = tokio::select! {
            message = messages.message() => message,
            () = outgoing.closed() => return,
        };
        let Ok(Some(first)) = first else { return };
        match self.server_of_stream(&first) {
            Ok(server) => server.serve_stream(Some(first), messages, outgoing).await,
            // Nobody listens any more if it cannot be sent.
            Err(status) => drop(outgoing.send(Err(status)).await),
        }
    }
}

impl From<Server> for Devices {
    /// One alone; calls are counted where it says.
    fn from(server: Server) -> Self {
        Self {
            requests: server.requests(),
            servers: Arc::new(BTreeMap::from([(server.device_id(), server)])),
        }
    }
}

#[tonic::async_trait]
impl P4Runtime for Devices {
    async fn write(
        &self,
        request: Request<WriteRequest>,
    ) -> Result<Response<WriteResponse>, Status> {
        let server = self.server(request.get_ref().device_id)?;
        P4Runtime::write(server, request).await
    }

    type ReadStream = <Server as P4Runtime>::ReadStream;

    async fn read(
        &self,
        request: Request<ReadRequest>,
    ) -> Result<Response<Self::ReadStream>, Status> {
        let server = self.server(request.get_ref().device_id)?;
        P4Runtime::read(server, request).await
    }

    async fn set_forwarding_pipeline_config(
        &self,
        request: Request<SetForwardingPipelineConfigRequest>,
    ) -> Result<Response<SetForwardingPipelineConfigResponse>, Status> {
        let server = self.server(request.get_ref().device_id)?;
        server.set_forwarding_pipeline_config(request).await
    }

    async fn get_forwarding_pipeline_config(
        &self,
        request: Request<GetForwardingPipelineConfigRequest>,
    ) -> Result<Response<GetForwardingPipelineConfigResponse>, Status> {
        let server = self.server(request.get_ref().device_id)?;
        server.get_forwarding_pipeline_config(request).await
    }

    type StreamChannelStream = ReceiverStream<Result<StreamMessageResponse, Status>>;

    async fn stream_channel(
        &self,
        request: Request<Streaming<StreamMessageRequest>>,
    ) -> Result<Response<Self::StreamChannelStream>, Status> {
        let (outgoing, stream) = mpsc::channel(STREAM_MESSAGES_MAX);
        let devices = self.clone();
        tokio::spawn(devices.serve_stream(request.into_inner(), outgoing));
        Ok(Response::new(ReceiverStream::new(stream)))
    }

    async fn capabilities(
        &self,
        request: Request<CapabilitiesRequest>,
    ) -> Result<Response<CapabilitiesResponse>, Status> {
        let device_id = request.get_ref().device_id;
        // Without a device id any of them answers: they are all alike in this.
        let server = match self.servers.values().next() {
            Some(first) if device_id == 0 => first,
            _ => self.server(device_id)?,
        };
        server.capabilities(request).await
    }
}
