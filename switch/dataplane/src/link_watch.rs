//! Keeps switches informed of their interfaces: as soon as the kernel says that one has
//! changed, its switch looks after it.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::watch;

use super::control::{DataplaneHandle, Stopped};
use super::switch::Switch;
use crate::log::{Level, Log};
use wormcast_switch_ports::{ChangedLinks, LinkEvents};

/// How often all interfaces are looked at where the kernel does not tell of them.
const LOOK_INTERVAL: Duration = Duration::from_millis(250);

/// Watches the interfaces of all switches of a process.
pub struct LinkWatch {
    handles: Vec<DataplaneHandle>,
    log: Log,
}

impl LinkWatch {
    pub(super) fn new(handles: Vec<DataplaneHandle>, log: Log) -> Self {
        Self { handles, log }
    }

    /// Watches the interfaces in the network namespace of this thread. Ends when the data
    /// plane does.
    pub async fn run(self) {
        // Before the first look, so that nothing happens unseen between the two.
        let mut events = self.warned(open());
        let Ok(mut switches) = Watched::all(&self.handles).await else {
            return;
        };
        let mut changed = ChangedLinks::All;
        loop {
            let told = tell(&mut switches, Arc::new(changed)).await;
            if told.is_err() {
                return;
            }
            changed = match &events {
                Some(ready) => match self.warned(next(ready).await) {
                    Some(changed) => changed,
                    None => {
                        events = None;
                        ChangedLinks::All
                    }
                },
                None => {
                    tokio::time::sleep(LOOK_INTERVAL).await;
                    ChangedLinks::All
                }
            };
        }
    }

    fn warned<T>(&self, result: io::Result<T>) -> Option<T> {
        if let Err(error) = &result {
            let text = format_args!(
                "the kernel does not tell of links ({error}); they are looked at every \
                 {LOOK_INTERVAL:?}"
            );
            self.log.write(Level::Warn, text);
        }
        result.ok()
    }
}

/// A switch, and which interfaces it has.
struct Watched {
    handle: DataplaneHandle,
    names: BTreeSet<String>,
    port_changes: watch::Receiver<u64>,
}

impl Watched {
    async fn all(handles: &[DataplaneHandle]) -> Result<Vec<Self>, Stopped> {
        let mut switches = Vec::with_capacity(handles.len());
        for handle in handles {
            let port_changes = handle.run(|switch| switch.port_changes()).await?;
            let mut watched = Self {
                handle: handle.clone(),
                names: BTreeSet::new(),
                port_changes,
            };
            watched.read_names().await?;
            switches.push(watched);
        }
        Ok(switches)
    }

    /// Ports are added and removed at run time.
    async fn read_names(&mut self) -> Result<(), Stopped> {
        self.port_changes.mark_unchanged();
        let names = |switch: &mut Switch| switch.interface_names().cloned().collect();
        self.names = self.handle.run(names).await?;
        Ok(())
    }
}

fn open() -> io::Result<AsyncFd<LinkEvents>> {
    let events = LinkEvents::open()?;
    // SAFETY: the events own their descriptor, give the same one each time, and are not taken
    // out again.
    Ok(unsafe { AsyncFd::register_with_interest(events, Interest::READABLE) }?)
}

async fn next(events: &AsyncFd<LinkEvents>) -> io::Result<ChangedLinks> {
    let mut ready = events.readable().await?;
    let changed = events.get_ref().take();
    // It was read until there was no more; what comes from now on makes it ready again.
    ready.clear_ready();
    changed
}

/// Has those switches look after their interfaces that have one which has changed. The
/// others are not woken.
async fn tell(switches: &mut [Watched], changed: Arc<ChangedLinks>) -> Result<(), Stopped> {
    for watched in switches {
        if watched.port_changes.has_changed().unwrap_or(true) {
            watched.read_names().await?;
        }
        if watched.names.iter().any(|name| changed.has(name)) {
            let changed = Arc::clone(&changed);
            let look = watched
                .handle
                .run(move |switch| switch.links_changed(&changed));
            look.await?;
        }
    }
    Ok(())
}
