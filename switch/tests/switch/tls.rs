//! TLS and mutual TLS between controllers and the server, with certificates made here.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tempfile::TempDir;
use tonic::service::Routes;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};

use super::rig::{DEVICE_ID, settings, targets};
use wormcast_switch_dataplane::log::Log;
use wormcast_switch_dataplane::{Dataplane, DataplaneSettings};
use wormcast_switch_gnmi::Gnmi;
use wormcast_switch_gnmi::proto::gnmi::CapabilityRequest;
use wormcast_switch_gnmi::proto::gnmi::g_nmi_client::GNmiClient;
use wormcast_switch_listen::{Address, Listener};
use wormcast_switch_p4runtime::proto::p4::v1::CapabilitiesRequest;
use wormcast_switch_p4runtime::proto::p4::v1::p4_runtime_client::P4RuntimeClient;
use wormcast_switch_p4runtime::{Server, ServerSettings, TlsArguments};
use wormcast_switch_pipeline::PipelineConfig;

/// An authority, and what it signs, in files.
struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

/// A certificate and its key, PEM.
#[derive(Clone)]
struct Signed {
    certificate: String,
    key: String,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        Self {
            issuer: CertifiedIssuer::self_signed(params, key).unwrap(),
        }
    }

    fn certificate(&self) -> String {
        self.issuer.pem()
    }

    fn sign(&self, name: &str) -> Signed {
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        let key = KeyPair::generate().unwrap();
        Signed {
            certificate: params.signed_by(&key, &self.issuer).unwrap().pem(),
            key: key.serialize_pem(),
        }
    }
}

struct Files {
    directory: TempDir,
}

impl Files {
    fn new() -> Self {
        Self {
            directory: tempfile::tempdir().unwrap(),
        }
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.directory.path().join(name);
        fs::write(&path, text).unwrap();
        path
    }

    fn arguments(&self, authority: &Authority, client_auth: bool) -> TlsArguments {
        let signed = authority.sign("localhost");
        TlsArguments {
            ssl: true,
            authority: Some(self.write("ca.pem", &authority.certificate())),
            certificate: Some(self.write("cert.pem", &signed.certificate)),
            key: Some(self.write("key.pem", &signed.key)),
            client_auth,
        }
    }
}

/// A server, and its port.
struct Served {
    dataplane: Dataplane,
    port: u16,
}

impl Drop for Served {
    fn drop(&mut self) {
        self.dataplane.stop();
    }
}

async fn serve(arguments: &TlsArguments) -> Served {
    let settings = DataplaneSettings::single(settings(), 1);
    let (dataplane, from_dataplane) = Dataplane::start(&settings, Log::off()).unwrap();
    let handle = dataplane.handle(DEVICE_ID).unwrap();
    let (_, from_dataplane) = from_dataplane.into_iter().next().unwrap();
    let settings = ServerSettings {
        device_id: DEVICE_ID,
        pipeline: PipelineConfig::default(),
    };
    let server = Server::new(settings, handle, from_dataplane, Log::off());
    let address: Address = "127.0.0.1:0".parse().unwrap();
    let listener = Listener::bind(&address).await.unwrap();
    let port = listener.local_address().unwrap().port();
    let tls = arguments.settings().unwrap();
    let gnmi = Routes::new(Gnmi::new(targets(&dataplane)).into_server());
    tokio::spawn(async move {
        let served = wormcast_switch_p4runtime::serve_beside(
            listener,
            tls.as_ref(),
            server,
            gnmi,
            std::future::pending(),
        );
        served.await.unwrap();
    });
    Served { dataplane, port }
}

/// Whether a call to the server succeeds.
async fn call(served: &Served, tls: Option<ClientTlsConfig>) -> Result<(), String> {
    let scheme = if tls.is_some() { "https" } else { "http" };
    let endpoint = Endpoint::from_shared(format!("{scheme}://localhost:{}", served.port)).unwrap();
    let mut endpoint = endpoint.connect_timeout(Duration::from_secs(10));
    if let Some(tls) = tls {
        endpoint = endpoint.tls_config(tls).unwrap();
    }
    let channel: Channel = endpoint
        .connect()
        .await
        .map_err(|error| error.to_string())?;
    let mut gnmi = GNmiClient::new(channel.clone());
    let mut client = P4RuntimeClient::new(channel);
    let answer = client.capabilities(CapabilitiesRequest {
        device_id: DEVICE_ID,
    });
    answer.await.map_err(|status| status.to_string())?;
    // gNMI is at the same address.
    let answer = gnmi.capabilities(CapabilityRequest::default()).await;
    answer.map(|_| ()).map_err(|status| status.to_string())
}

fn trusting(authority: &Authority) -> ClientTlsConfig {
    ClientTlsConfig::new().ca_certificate(Certificate::from_pem(authority.certificate()))
}

fn with_identity(config: ClientTlsConfig, signed: &Signed) -> ClientTlsConfig {
    config.identity(Identity::from_pem(&signed.certificate, &signed.key))
}

#[tokio::test]
async fn controllers_that_trust_the_authority_are_served() {
    let (files, authority) = (Files::new(), Authority::new());
    let served = serve(&files.arguments(&authority, false)).await;
    assert_eq!(call(&served, Some(trusting(&authority))).await, Ok(()));
    // One without TLS is not, nor does one that trusts others accept the server.
    assert!(call(&served, None).await.is_err());
    assert!(
        call(&served, Some(trusting(&Authority::new())))
            .await
            .is_err()
    );
}

#[tokio::test]
async fn controllers_without_a_certificate_are_refused_when_it_is_asked_for() {
    let (files, authority) = (Files::new(), Authority::new());
    let served = serve(&files.arguments(&authority, true)).await;
    let known = authority.sign("controller");
    let config = with_identity(trusting(&authority), &known);
    assert_eq!(call(&served, Some(config)).await, Ok(()));
    assert!(call(&served, Some(trusting(&authority))).await.is_err());
    let unknown = Authority::new().sign("controller");
    let config = with_identity(trusting(&authority), &unknown);
    assert!(call(&served, Some(config)).await.is_err());
}

fn refusal(arguments: &TlsArguments) -> String {
    wormcast_words::plain(&arguments.settings().unwrap_err().to_string()).into_owned()
}

#[test]
fn without_options_there_is_no_tls() {
    assert!(TlsArguments::default().settings().unwrap().is_none());
}

#[test]
fn options_that_lack_another_say_so() {
    let (files, authority) = (Files::new(), Authority::new());
    let good = files.arguments(&authority, true);
    let certificate = TlsArguments {
        certificate: None,
        ..good.clone()
    };
    assert_eq!(
        refusal(&certificate),
        "--grpc-server-ssl needs --grpc-server-cert too"
    );
    let key = TlsArguments {
        key: None,
        ..good.clone()
    };
    assert_eq!(
        refusal(&key),
        "--grpc-server-ssl needs --grpc-server-key too"
    );
    let unsigned = TlsArguments {
        authority: None,
        ..good.clone()
    };
    assert_eq!(
        refusal(&unsigned),
        "--grpc-server-with-client-auth needs --grpc-server-cacert too"
    );
    let plain = TlsArguments { ssl: false, ..good };
    assert_eq!(
        refusal(&plain),
        "--grpc-server-cert needs --grpc-server-ssl too"
    );
}

#[test]
fn files_that_cannot_be_used_are_named() {
    let (files, authority) = (Files::new(), Authority::new());
    let good = files.arguments(&authority, true);
    let path = |path: &Option<PathBuf>| path.as_deref().map(Path::display).unwrap().to_string();
    let missing = TlsArguments {
        key: Some("/nowhere/key.pem".into()),
        ..good.clone()
    };
    assert_eq!(
        refusal(&missing),
        "--grpc-server-key /nowhere/key.pem: No such file or directory"
    );
    let swapped = TlsArguments {
        certificate: good.key.clone(),
        ..good.clone()
    };
    assert_eq!(
        refusal(&swapped),
        format!(
            "--grpc-server-cert {}: not a PEM file with `-----BEGIN CERTIFICATE-----`",
            path(&good.key)
        )
    );
    let other = files.write("other.pem", &authority.sign("localhost").key);
    let mismatched = TlsArguments {
        key: Some(other),
        ..good.clone()
    };
    let message = refusal(&mismatched);
    assert!(message.starts_with("--grpc-server-cert "), "{message}");
    assert!(message.to_lowercase().contains("mismatch"), "{message}");
    let broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    let broken = files.write("broken.pem", broken);
    let bad_authority = TlsArguments {
        authority: Some(broken),
        ..good
    };
    let message = refusal(&bad_authority);
    assert!(message.starts_with("--grpc-server-cacert "), "{message}");
}
