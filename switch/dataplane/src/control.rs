//! How other threads reach the data plane.

use std::sync::Arc;

use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot};

use super::mailbox::Mailbox;
use super::switch::Switch;

/// Operations that may wait for one worker; whoever has another one waits for room.
pub const COMMANDS_MAX: usize = 256;

/// An operation that runs on the thread of a switch, between two batches.
pub(super) struct Command {
    /// Position of the switch at its worker.
    pub(super) switch: usize,
    pub(super) run: Box<dyn FnOnce(&mut Switch) + Send>,
}

/// The data plane has stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the data plane has stopped")]
pub struct Stopped;

/// Runs operations on one switch. Clones reach the same one.
#[derive(Clone, Debug)]
pub struct DataplaneHandle {
    commands: mpsc::Sender<Command>,
    mailbox: Arc<Mailbox>,
    switch: usize,
}

impl DataplaneHandle {
    pub(super) fn new(
        commands: mpsc::Sender<Command>,
        mailbox: Arc<Mailbox>,
        switch: usize,
    ) -> Self {
        Self {
            commands,
            mailbox,
            switch,
        }
    }

    /// Runs an operation and gives its result. Operations run in the order in which they
    /// were handed over.
    pub async fn run<T: Send + 'static>(
        &self,
        operation: impl FnOnce(&mut Switch) -> T + Send + 'static,
    ) -> Result<T, Stopped> {
        let result = self.hand_over(operation).await?;
        self.mailbox.wake();
        result.await.map_err(|_| Stopped)
    }

    /// Runs one operation on each of some switches; those that share a thread have theirs
    /// when that is woken once. Results are in the order of the switches.
    pub(super) async fn run_on_all<'h, T: Send + 'static>(
        handles: impl Iterator<Item = &'h Self> + Clone,
        operation: impl Fn(&mut Switch) -> T + Clone + Send + 'static,
    ) -> Vec<Result<T, Stopped>> {
        let mut results = Vec::new();
        for handle in handles.clone() {
            results.push(handle.hand_over(operation.clone()).await);
        }
        handles.for_each(|handle| handle.mailbox.wake());
        let mut answers = Vec::with_capacity(results.len());
        for result in results {
            answers.push(match result {
                Ok(result) => result.await.map_err(|_| Stopped),
                Err(stopped) => Err(stopped),
            });
        }
        answers
    }

    /// Hands an operation over without waking the thread of the switch, unless there is no
    /// room for another one.
    async fn hand_over<T: Send + 'static>(
        &self,
        operation: impl FnOnce(&mut Switch) -> T + Send + 'static,
    ) -> Result<oneshot::Receiver<T>, Stopped> {
        let (answer, result) = oneshot::channel();
        let command = Command {
            switch: self.switch,
            run: Box::new(move |switch| {
                // Whoever asked may have gone; the operation is done all the same.
                let _ = answer.send(operation(switch));
            }),
        };
        if let Err(TrySendError::Full(command)) = self.commands.try_send(command) {
            self.mailbox.wake();
            self.commands.send(command).await.map_err(|_| Stopped)?;
        }
        Ok(result)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::Log;
    use crate::{Dataplane, DataplaneSettings, SwitchSettings};

    /// More switches than operations that may wait for a thread.
    #[tokio::test]
    async fn all_switches_are_asked_at_once_and_answer_in_order() {
        let count = COMMANDS_MAX as u64 + 50;
        let mut settings = DataplaneSettings::single(SwitchSettings::without_ports(0, 16), 1);
        let switches = (0..count).map(|id| SwitchSettings::without_ports(id, 16));
        settings.switches = switches.collect();
        settings.workers = 2;
        let (dataplane, _from_dataplane) = Dataplane::start(&settings, Log::off()).unwrap();
        let handles: Vec<DataplaneHandle> = dataplane
            .handles()
            .map(|(_, handle)| handle.clone())
            .collect();
        let ask = || DataplaneHandle::run_on_all(handles.iter(), |switch| switch.device_id());
        let expected: Vec<_> = (0..count).map(Ok).collect();
        assert_eq!(ask().await, expected);
        dataplane.stop();
        assert!(dataplane.join());
        assert!(ask().await.iter().all(|answer| *answer == Err(Stopped)));
    }
}
