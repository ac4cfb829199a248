//! How other threads reach the data plane.

use std::fmt;
use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};

use super::engine::Engine;
use crate::ports::Waker;

/// Operations that may wait for the data plane; whoever has another one waits for room.
pub const COMMANDS_MAX: usize = 256;

/// An operation that runs on the thread of the data plane, between two batches.
pub(super) type Command = Box<dyn FnOnce(&mut Engine) + Send>;

/// The data plane has stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopped;

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the data plane has stopped")
    }
}

impl std::error::Error for Stopped {}

/// Runs operations on the data plane. Clones reach the same one.
#[derive(Clone, Debug)]
pub struct DataplaneHandle {
    commands: mpsc::Sender<Command>,
    waker: Arc<Waker>,
}

impl DataplaneHandle {
    pub(super) fn new(commands: mpsc::Sender<Command>, waker: Arc<Waker>) -> Self {
        Self { commands, waker }
    }

    /// Runs an operation and gives its result. Operations run in the order in which they
    /// were handed over.
    pub async fn run<T: Send + 'static>(
        &self,
        operation: impl FnOnce(&mut Engine) -> T + Send + 'static,
    ) -> Result<T, Stopped> {
        let (answer, result) = oneshot::channel();
        let command: Command = Box::new(move |engine| {
            // Whoever asked may have gone; the operation is done all the same.
            let _ = answer.send(operation(engine));
        });
        self.commands.send(command).await.map_err(|_| Stopped)?;
        self.waker.wake();
        result.await.map_err(|_| Stopped)
    }
}
