//! Puts the parts together: data planes on threads of their own; the controller's streams and
//! the local APIs on this one.

use crate::dataplane::{
    Command, Crew, DataPlane, DataPlaneError, DataPlaneHandle, DataPlaneSettings,
};
use crate::directory::{
    ControllerAddress, DirectoryClient, Introduction, Secret, SharedControllerState,
};
use crate::link::InterfaceError;
use crate::local::{AgentFacts, LocalServer, ServerError, SocketMode};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc::Sender;
use tokio::task::JoinSet;

/// All settings of an agent.
#[derive(Clone, Debug)]
pub struct AgentSettings {
    pub dataplane: DataPlaneSettings,
    pub controller: ControllerAddress,
    /// Worms of others are not to be routed through this host.
    pub no_transit: bool,
    /// Where the local API is to be.
    pub socket: PathBuf,
    /// Who may connect to it.
    pub socket_mode: SocketMode,
    /// Where its secret is kept.
    pub state_directory: PathBuf,
}

/// Why an agent does not start, or ends.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    #[error("{0}")]
    Interface(InterfaceError),
    #[error("{0}")]
    DataPlane(DataPlaneError),
    #[error("{0}")]
    Local(ServerError),
    /// The runtime or a thread.
    #[error("cannot {step}: {source}")]
    System {
        step: &'static str,
        source: io::Error,
    },
    /// The data plane's thread ended by a bug.
    #[error("the data plane has ended unexpectedly")]
    Crashed,
}

/// Runs agents until SIGTERM or SIGINT; one has a thread of its own for its frames, several
/// are spread over `workers`.
///
/// # Errors
/// [`AgentError`].
pub fn run(agents: Vec<AgentSettings>, workers: usize) -> Result<(), AgentError> {
    let system = |step| move |source| AgentError::System { step, source };
    if agents.len() > 1 {
        raise_descriptors().map_err(system("raise the limit of open files"))?;
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(system("start the runtime"))?;
    runtime.block_on(async {
        let mut terminate = signal(SignalKind::terminate()).map_err(system("handle SIGTERM"))?;
        let mut interrupt = signal(SignalKind::interrupt()).map_err(system("handle SIGINT"))?;
        let mut planes = Vec::new();
        let mut handles = Vec::new();
        let mut tasks = JoinSet::new();
        for settings in agents {
            let (dataplane, handle) = begin(settings, &mut tasks)?;
            planes.push(dataplane);
            handles.push(handle);
        }
        let (ended, mut end) = tokio::sync::mpsc::channel(1);
        let threads = spread(planes, workers, &ended)?;
        tokio::select! {
            _ = terminate.recv() => crate::log::info!("SIGTERM: ending"),
            _ = interrupt.recv() => crate::log::info!("SIGINT: ending"),
            _ = end.recv() => {}
        }
        for handle in handles {
            let _ = handle.send(Command::Stop).await;
        }
        tasks.shutdown().await;
        for thread in threads {
            match thread.join() {
                Ok(result) => result.map_err(system("wait for frames"))?,
                Err(_) => return Err(AgentError::Crashed),
            }
        }
        Ok(())
    })
}

/// Opens an agent's sockets, and serves its clients and its controller from now on.
fn begin(
    settings: AgentSettings,
    tasks: &mut JoinSet<()>,
) -> Result<(DataPlane, DataPlaneHandle), AgentError> {
    let server =
        LocalServer::bind(&settings.socket, settings.socket_mode).map_err(AgentError::Local)?;
    let (dataplane, handle, reports) =
        DataPlane::open(settings.dataplane.clone()).map_err(AgentError::DataPlane)?;
    let controller_state = SharedControllerState::default();
    let facts = Arc::new(AgentFacts {
        name: settings.dataplane.name.clone(),
        interface: settings.dataplane.interface.name.clone(),
        socket: settings.socket.display().to_string(),
        controller: settings.controller.to_string(),
        controller_state: controller_state.clone(),
    });
    let secret = Secret::keep(&settings.state_directory, &settings.dataplane.name);
    let secret = secret.map(Arc::new).map_err(|error| {
        crate::log::warning!(
            "\"{}\" keeps no secret: {error}; a controller that was told one before refuses it, and others know \
             it by its hardware address alone. --state-dir says where to keep one",
            facts.name
        );
    });
    let introduction = Introduction {
        name: settings.dataplane.name.clone(),
        host: settings.dataplane.host,
        mac: settings.dataplane.interface.mac.0,
        mtu_bytes: settings.dataplane.agent.mtu_bytes,
        no_transit: settings.no_transit,
        secret: secret.ok(),
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
    tasks.spawn(directory.run());
    let clients = handle.clone();
    tasks.spawn(async move { server.run(clients, facts).await });
    Ok((dataplane, handle))
}

/// Says that a thread has ended, by a panic too.
struct Ended(Sender<()>);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.try_send(());
    }
}

/// Starts the threads that move frames.
fn spread(
    mut planes: Vec<DataPlane>,
    workers: usize,
    ended: &Sender<()>,
) -> Result<Vec<JoinHandle<io::Result<()>>>, AgentError> {
    let system = |step| move |source| AgentError::System { step, source };
    let each = planes.len().div_ceil(workers.max(1));
    let mut threads = Vec::new();
    while !planes.is_empty() {
        let rest = planes.split_off(each.min(planes.len()));
        let mut mine = std::mem::replace(&mut planes, rest);
        let ended = Ended(ended.clone());
        let work: Box<dyn FnOnce() -> io::Result<()> + Send> = match (mine.pop(), mine.is_empty()) {
            (Some(only), true) => Box::new(move || only.run()),
            (last, _) => {
                mine.extend(last);
                let crew = Crew::new(mine).map_err(system("make an epoll set"))?;
                Box::new(move || crew.run())
            }
        };
        let thread = std::thread::Builder::new()
            .name("dataplane".to_owned())
            .spawn(move || {
                let _ended = ended;
                work()
            })
            .map_err(system("start a thread of the data plane"))?;
        threads.push(thread);
    }
    Ok(threads)
}

/// Each agent has a handful of descriptors, and a handful for each client.
fn raise_descriptors() -> io::Result<()> {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the structure outlives both calls.
    let done = unsafe {
        libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) == 0 && {
            limit.rlim_cur = limit.rlim_max;
            libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) == 0
        }
    };
    if done {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
