//! TLS between controllers and the server: options, the files they name, what is wrong
//! with them.

use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};

use clap::Args;
use tonic::transport::{Certificate, Identity, Server as Transport, ServerTlsConfig};

/// Options of `simple_switch_grpc` for TLS.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsArguments {
    /// Speak TLS with controllers (needs a certificate and its key)
    #[arg(long = "grpc-server-ssl")]
    pub ssl: bool,

    /// Certificates of the authority that signs those of controllers (PEM)
    #[arg(long = "grpc-server-cacert", value_name = "FILE")]
    pub authority: Option<PathBuf>,

    /// Certificate of this server, then those in between to the authority (PEM)
    #[arg(long = "grpc-server-cert", value_name = "FILE")]
    pub certificate: Option<PathBuf>,

    /// Private key of the certificate (PEM)
    #[arg(long = "grpc-server-key", value_name = "FILE")]
    pub key: Option<PathBuf>,

    /// Refuse controllers without a certificate of the authority (mutual TLS)
    #[arg(long = "grpc-server-with-client-auth")]
    pub client_auth: bool,
}

const SSL: &str = "--grpc-server-ssl";
const AUTHORITY: &str = "--grpc-server-cacert";
const CERTIFICATE: &str = "--grpc-server-cert";
const KEY: &str = "--grpc-server-key";
const CLIENT_AUTH: &str = "--grpc-server-with-client-auth";

/// Why TLS cannot be spoken.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// An option is there without one that it needs.
    #[error("{option} needs {needed} too")]
    Missing {
        option: &'static str,
        needed: &'static str,
    },
    /// A file cannot be read.
    #[error("{option} {}: {error}", path.display())]
    Unread {
        /// The option that names it.
        option: &'static str,
        path: PathBuf,
        error: io::Error,
    },
    /// A file does not hold what it should.
    #[error("{option} {}: not a PEM file with `{expected}`", path.display())]
    NotPem {
        /// The option that names it.
        option: &'static str,
        path: PathBuf,
        /// The first line of what it should hold.
        expected: &'static str,
    },
    /// Files that were read cannot be used.
    #[error("{files}: {reason}")]
    Unusable {
        /// Options and paths of the files.
        files: String,
        reason: String,
    },
}

/// Certificates and key, found good.
#[derive(Clone, Debug)]
pub struct TlsSettings {
    config: ServerTlsConfig,
}

impl TlsSettings {
    pub(super) fn config(&self) -> ServerTlsConfig {
        self.config.clone()
    }
}

impl TlsArguments {
    /// Reads the files; `None` without `--grpc-server-ssl`.
    ///
    /// # Errors
    /// An option without one that it needs, a file that cannot be read or used, a key that
    /// is not that of the certificate.
    pub fn settings(&self) -> Result<Option<TlsSettings>, TlsError> {
        if !self.ssl {
            // Whoever names a certificate expects to be safe.
            let given = [
                (CERTIFICATE, self.certificate.is_some()),
                (KEY, self.key.is_some()),
                (AUTHORITY, self.authority.is_some()),
                (CLIENT_AUTH, self.client_auth),
            ];
            return match given.into_iter().find(|(_, given)| *given) {
                Some((option, _)) => Err(TlsError::Missing {
                    option,
                    needed: SSL,
                }),
                None => Ok(None),
            };
        }
        let need = |option, needed, path: &Option<PathBuf>| {
            path.clone().ok_or(TlsError::Missing { option, needed })
        };
        let certificate_path = need(SSL, CERTIFICATE, &self.certificate)?;
        let key_path = need(SSL, KEY, &self.key)?;
        let certificate = read(CERTIFICATE, &certificate_path, CERTIFICATE_LINE)?;
        let key = read(KEY, &key_path, KEY_LINE)?;
        let config = ServerTlsConfig::new().identity(Identity::from_pem(certificate, key));
        let files = format!(
            "{CERTIFICATE} {} and {KEY} {}",
            certificate_path.display(),
            key_path.display()
        );
        check(&config, files)?;
        if !self.client_auth {
            return Ok(Some(TlsSettings { config }));
        }
        let path = need(CLIENT_AUTH, AUTHORITY, &self.authority)?;
        let authority = read(AUTHORITY, &path, CERTIFICATE_LINE)?;
        let config = config.client_ca_root(Certificate::from_pem(authority));
        check(&config, format!("{AUTHORITY} {}", path.display()))?;
        Ok(Some(TlsSettings { config }))
    }
}

const CERTIFICATE_LINE: &str = "-----BEGIN CERTIFICATE-----";
const KEY_LINE: &str = "-----BEGIN PRIVATE KEY-----";

fn read(option: &'static str, path: &Path, expected: &'static str) -> Result<String, TlsError> {
    let text = std::fs::read(path).map_err(|error| TlsError::Unread {
        option,
        path: path.to_owned(),
        error,
    })?;
    let text = String::from_utf8(text).unwrap_or_default();
    // Keys come as RSA PRIVATE KEY and EC PRIVATE KEY too.
    let holds = match expected {
        KEY_LINE => text.contains("PRIVATE KEY-----"),
        _ => text.contains(expected),
    };
    if holds {
        return Ok(text);
    }
    Err(TlsError::NotPem {
        option,
        path: path.to_owned(),
        expected,
    })
}

/// Whether a server can be made with these.
fn check(config: &ServerTlsConfig, files: String) -> Result<(), TlsError> {
    let Err(error) = Transport::builder().tls_config(config.clone()) else {
        return Ok(());
    };
    let mut reason = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        reason = cause.to_string();
        source = cause.source();
    }
    Err(TlsError::Unusable { files, reason })
}
