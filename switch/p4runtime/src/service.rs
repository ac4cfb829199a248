//! The calls of the P4Runtime service, one by one.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use prost::Message;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming};

use super::forwarding::no_config;
use super::proto::p4::v1::{
    CapabilitiesRequest, CapabilitiesResponse, Entity, ForwardingPipelineConfig,
    GetForwardingPipelineConfigRequest, GetForwardingPipelineConfigResponse, ReadRequest,
    ReadResponse, SetForwardingPipelineConfigRequest, SetForwardingPipelineConfigResponse,
    StreamMessageRequest, StreamMessageResponse, WriteRequest, WriteResponse,
    get_forwarding_pipeline_config_request::ResponseType, p4_runtime_server::P4Runtime,
};
use super::rejection::Rejection;
use super::server::Server;
use super::streams::STREAM_MESSAGES_MAX;

/// Version of the P4Runtime specification this follows.
const API_VERSION: &str = "1.5.0";

/// Bytes of one `ReadResponse`, roughly; clients take 4 MiB.
const READ_RESPONSE_BYTES: usize = 1 << 19;

/// `ReadResponse`s that may wait for a client that reads slowly.
const READ_RESPONSES_MAX: usize = 4;

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
        if forwarding.current().is_none() && self.shared.needs_config.load(Ordering::Relaxed) {
            return Err(no_config().into());
        }
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
