//! What the calls of a server and the tasks beside them share.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::sync::Notify;

use super::forwarding::{Forwarding, Verified};
use super::requests::RequestCounts;
use super::streams::Streams;
use wormcast_switch_dataplane::log::Log;
use wormcast_switch_dataplane::{DataplaneHandle, Observer};

/// The state of one server.
pub(super) struct Shared {
    pub(super) device_id: u64,
    pub(super) dataplane: DataplaneHandle,
    pub(super) log: Log,
    pub(super) streams: Mutex<Streams>,
    /// Held by whoever reads, writes or changes the config, one after another.
    pub(super) forwarding: tokio::sync::Mutex<Forwarding>,
    /// The config that packets see; a copy of what is in `forwarding`.
    pub(super) running: Mutex<Option<Arc<Verified>>>,
    pub(super) requests: RequestCounts,
    pub(super) started: Instant,
    /// Notified when an entry may have got an idle timeout.
    pub(super) ages: Notify,
    /// Asking for the config without one is an error.
    pub(super) needs_config: AtomicBool,
    /// Services that watch the switch besides controllers.
    pub(super) observers: Mutex<Vec<Arc<dyn Observer>>>,
}

impl Shared {
    pub(super) fn streams(&self) -> MutexGuard<'_, Streams> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn observers(&self) -> MutexGuard<'_, Vec<Arc<dyn Observer>>> {
        self.observers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn running(&self) -> MutexGuard<'_, Option<Arc<Verified>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
