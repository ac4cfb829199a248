//! Puts the parts together: the data plane on its own thread; the controller's stream and
//! the local API on this one.

use crate::dataplane::{Command, DataPlane, DataPlaneError, DataPlaneSettings};
use crate::directory::{ControllerAddress, DirectoryClient, Introduction, SharedControllerState};
use crate::link::InterfaceError;
use crate::local::{AgentFacts, LocalServer, ServerError, SocketMode};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::signal::unix::{SignalKind, signal};

/// Everything an agent is told.
#[derive(Clone, Debug)]
pub struct AgentSettings {
    /// The data plane's part.
    pub dataplane: DataPlaneSettings,
    /// Where the controller is.
    pub controller: ControllerAddress,
    /// Worms of others are not to be routed through this host.
    pub no_transit: bool,
    /// Where the local API is to be.
    pub socket: PathBuf,
    /// Who may connect to it.
    pub socket_mode: SocketMode,
}

/// Why an agent does not start, or ends.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The interface.
    #[error("{0}")]
    Interface(InterfaceError),
    /// The data plane.
    #[error("{0}")]
    DataPlane(DataPlaneError),
    /// The local API.
    #[error("{0}")]
    Local(ServerError),
    /// The runtime or a thread.
    #[error("cannot {step}: {source}")]
    System {
        /// What was tried.
        step: &'static str,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The data plane's thread ended by a bug.
    #[error("the data plane has ended unexpectedly")]
    Crashed,
}

/// Runs an agent until SIGTERM or SIGINT.
///
/// # Errors
/// [`AgentError`].
pub fn run(settings: AgentSettings) -> Result<(), AgentError> {
    let system = |step| move |source| AgentError::System { step, source };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(system("start the runtime"))?;
    runtime.block_on(async {
        let mut terminate = signal(SignalKind::terminate()).map_err(system("handle SIGTERM"))?;
        let mut interrupt = signal(SignalKind::interrupt()).map_err(system("handle SIGINT"))?;
        let server =
            LocalServer::bind(&settings.socket, settings.socket_mode).map_err(AgentError::Local)?;
        let (dataplane, handle, reports) =
            DataPlane::open(settings.dataplane.clone()).map_err(AgentError::DataPlane)?;
        let (ended, mut end) = tokio::sync::oneshot::channel();
        let thread = std::thread::Builder::new()
            .name("dataplane".to_owned())
            .spawn(move || {
                // Dropped when the thread ends, by a panic too.
                let _ended: tokio::sync::oneshot::Sender<()> = ended;
                dataplane.run()
            })
            .map_err(system("start the data plane's thread"))?;

        let controller_state = SharedControllerState::default();
        let facts = Arc::new(AgentFacts {
            name: settings.dataplane.name.clone(),
            interface: settings.dataplane.interface.name.clone(),
            socket: settings.socket.display().to_string(),
            controller: settings.controller.to_string(),
            controller_state: controller_state.clone(),
        });
        let introduction = Introduction {
            name: settings.dataplane.name.clone(),
            host: settings.dataplane.host,
            mac: settings.dataplane.interface.mac.0,
            mtu_bytes: settings.dataplane.agent.mtu_bytes,
            no_transit: settings.no_transit,
        };
        let directory = DirectoryClient::new(
            settings.controller,
            introduction,
            handle.clone(),
            reports,
            controller_state,
        );
        crate::log::info!(
            "agent \"{}\" on {}, local API at {}",
            facts.name,
            settings.dataplane.interface.name,
            settings.socket.display()
        );
        tokio::select! {
            () = directory.run() => {}
            () = server.run(handle.clone(), facts) => {}
            _ = terminate.recv() => crate::log::info!("SIGTERM: ending"),
            _ = interrupt.recv() => crate::log::info!("SIGINT: ending"),
            _ = &mut end => {}
        }
        let _ = handle.send(Command::Stop).await;
        match thread.join() {
            Ok(result) => result.map_err(system("wait for frames")),
            Err(_) => Err(AgentError::Crashed),
        }
    })
}
