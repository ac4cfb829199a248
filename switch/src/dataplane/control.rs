//! How other threads reach the data plane.

use std::fmt;
use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};

use super::engine::Engine;
use super::mailbox::Mailbox;

/// Operations that may wait for one worker; whoever has another one waits for room.
pub const COMMANDS_MAX: usize = 256;

/// An operation that runs on the thread of a switch, between two batches.
pub(super) struct Command {
    /// Position of the switch at its worker.
    pub(super) engine: usize,
    pub(super) run: Box<dyn FnOnce(&mut Engine) + Send>,
}

/// The data plane has stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopped;

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the data plane has stopped")
    }
}

impl std::error::Error for Stopped {}

/// Runs operations on one switch. Clones reach the same one.
#[derive(Clone, Debug)]
pub struct DataplaneHandle {
    commands: mpsc::Sender<Command>,
    mailbox: Arc<Mailbox>,
    engine: usize,
}

impl DataplaneHandle {
    pub(super) fn new(
        commands: mpsc::Sender<Command>,
        mailbox: Arc<Mailbox>,
        engine: usize,
    ) -> Self {
        Self {
            commands,
            mailbox,
            engine,
        }
    }

    /// Runs an operation and gives its result. Operations run in the order in which they
    /// were handed over.
    pub async fn run<T: Send + 'static>(
        &self,
        operation: impl FnOnce(&mut Engine) -> T + Send + 'static,
    ) -> Result<T, Stopped> {
        let (answer, result) = oneshot::channel();
        let command = Command {
            engine: self.engine,
            run: Box::new(move |engine| {
                // Whoever asked may have gone; the operation is done all the same.
                let _ = answer.send(operation(engine));
            }),
        };
        self.commands.send(command).await.map_err(|_| Stopped)?;
        self.mailbox.ring();
        result.await.map_err(|_| Stopped)
    }
}
