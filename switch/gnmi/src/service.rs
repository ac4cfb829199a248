//! The calls of the service, one by one.

use std::sync::Arc;

use tokio::sync::{Semaphore, mpsc};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming};

use crate::device::Targets;
use crate::encoding::Encoding;
use crate::get::Get;
use crate::limits::{ANSWER_BYTES_MAX, MESSAGES_WAITING_MAX, REQUEST_BYTES_MAX, STREAMS_MAX};
use crate::proto::gnmi::g_nmi_server::{GNmi, GNmiServer};
use crate::proto::gnmi::{
    CapabilityRequest, CapabilityResponse, GetRequest, GetResponse, ModelData, SetRequest,
    SetResponse, SubscribeRequest, SubscribeResponse,
};
use crate::refusal::Refusal;
use crate::schema::Model;
use crate::stream::serve_stream;
use crate::subscription::check_extensions;

/// The version of gNMI that the protocol files are of (their option `gnmi_service`).
const GNMI_VERSION: &str = "0.10.0";

/// The service. Clones are the same one.
#[derive(Clone, Debug)]
pub struct Gnmi {
    targets: Targets,
    streams: Arc<Semaphore>,
}

impl Gnmi {
    pub fn new(targets: Targets) -> Self {
        Self {
            targets,
            streams: Arc::new(Semaphore::new(STREAMS_MAX)),
        }
    }

    /// What a gRPC server answers calls with.
    pub fn into_server(self) -> GNmiServer<Self> {
        GNmiServer::new(self)
            .max_decoding_message_size(REQUEST_BYTES_MAX)
            .max_encoding_message_size(ANSWER_BYTES_MAX)
    }
}

#[tonic::async_trait]
impl GNmi for Gnmi {
    async fn capabilities(
        &self,
        _request: Request<CapabilityRequest>,
    ) -> Result<Response<CapabilityResponse>, Status> {
        let models = Model::ALL.map(|model| ModelData {
            name: model.name().to_owned(),
            organization: model.organization().to_owned(),
            version: model.version().to_owned(),
        });
        Ok(Response::new(CapabilityResponse {
            supported_models: models.to_vec(),
            supported_encodings: Encoding::NUMBERS.map(|encoding| encoding as i32).to_vec(),
            g_nmi_version: GNMI_VERSION.to_owned(),
            extension: Vec::new(),
        }))
    }

    async fn get(&self, request: Request<GetRequest>) -> Result<Response<GetResponse>, Status> {
        let request = request.into_inner();
        let device = self.targets.of(request.prefix.as_ref())?;
        check_extensions(&request.extension)?;
        let get = Get::read(&request)?;
        let reading = device.look().await.map_err(Refusal::from)?;
        Ok(Response::new(get.answer(&reading)?))
    }

    async fn set(&self, _request: Request<SetRequest>) -> Result<Response<SetResponse>, Status> {
        Err(Refusal::Set.into())
    }

    type SubscribeStream = ReceiverStream<Result<SubscribeResponse, Status>>;

    async fn subscribe(
        &self,
        request: Request<Streaming<SubscribeRequest>>,
    ) -> Result<Response<Self::SubscribeStream>, Status> {
        let place = Arc::clone(&self.streams).try_acquire_owned();
        let place = place.map_err(|_| Refusal::ManyStreams)?;
        let (outgoing, stream) = mpsc::channel(MESSAGES_WAITING_MAX);
        let targets = self.targets.clone();
        tokio::spawn(async move {
            serve_stream(&targets, request.into_inner(), outgoing).await;
            drop(place);
        });
        Ok(Response::new(ReceiverStream::new(stream)))
    }
}
