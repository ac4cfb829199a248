//! Answers where a listener takes connections.

use std::future::Future;

use tokio_stream::wrappers::UnixListenerStream;
use tonic::service::Routes;
use tonic::transport::Server as Transport;
use tonic::transport::server::TcpIncoming;

use super::devices::Devices;
use super::proto::p4::v1::p4_runtime_server::P4RuntimeServer;
use super::requests::RequestCountLayer;
use super::tls::TlsSettings;
use wormcast_switch_listen::{
    CONNECTION_WINDOW, KEEPALIVE_INTERVAL, KEEPALIVE_TIMEOUT, Listener, bounded,
};

/// Longest message of a client: a program and its P4Info.
pub const MESSAGE_BYTES_MAX: usize = 64 << 20;

/// Answers until `stop` is ready, with TLS if there are settings for it.
///
/// # Errors
/// Those of the transport.
pub async fn serve(
    listener: Listener,
    tls: Option<&TlsSettings>,
    devices: impl Into<Devices>,
    stop: impl Future<Output = ()>,
) -> Result<(), tonic::transport::Error> {
    serve_beside(listener, tls, devices, Routes::default(), stop).await
}

/// The same, with other services at the same address.
///
/// # Errors
/// Those of the transport.
pub async fn serve_beside(
    listener: Listener,
    tls: Option<&TlsSettings>,
    devices: impl Into<Devices>,
    others: Routes,
    stop: impl Future<Output = ()>,
) -> Result<(), tonic::transport::Error> {
    let devices = devices.into();
    let requests = RequestCountLayer::new(devices.requests());
    let service = P4RuntimeServer::new(devices)
        .max_decoding_message_size(MESSAGE_BYTES_MAX)
        .max_encoding_message_size(MESSAGE_BYTES_MAX);
    let mut transport = Transport::builder();
    if let Some(tls) = tls {
        transport = transport.tls_config(tls.config())?;
    }
    let router = transport
        .layer(requests)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .http2_keepalive_interval(Some(KEEPALIVE_INTERVAL))
        .http2_keepalive_timeout(Some(KEEPALIVE_TIMEOUT))
        .add_routes(others.add_service(service));
    match listener {
        Listener::Tcp(listener) => {
            let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
            router
                .serve_with_incoming_shutdown(bounded(incoming), stop)
                .await
        }
        Listener::Unix(listener, _file) => {
            let incoming = UnixListenerStream::new(listener);
            router
                .serve_with_incoming_shutdown(bounded(incoming), stop)
                .await
        }
    }
}
