//! Why a data plane cannot start.

use std::io;

use wormcast_switch_ports::InterfaceError;

/// A data plane that cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("{0}")]
    Settings(String),
    /// An interface that cannot be used.
    #[error(transparent)]
    Interface(#[from] InterfaceError),
    /// The system refused something else.
    #[error("data plane: {step}: {error}")]
    System {
        /// What was asked of it.
        step: &'static str,
        error: io::Error,
    },
}
