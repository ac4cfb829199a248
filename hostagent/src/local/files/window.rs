//! How much of a sender's window is left, while the agent reads a file into its message.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use wormcast_agent_core::api::{ApiError, DATA_BYTES_MAX, ErrorCode};

/// How many bytes more the data plane takes.
#[derive(Debug, Default)]
pub(in crate::local) struct Window {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    room: u32,
    /// Why no more is to be read.
    ended: Option<String>,
    /// The client has its answer.
    answered: bool,
}

impl Window {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The data plane takes so many bytes more.
    pub(super) fn open(&self, bytes: u32) {
        let mut state = self.lock();
        state.room = state.room.saturating_add(bytes);
        drop(state);
        self.changed.notify_one();
    }

    /// No more is to be read: when this returns nothing more is passed on.
    pub(in crate::local) fn end(&self, reason: &str) {
        self.lock().ended.get_or_insert_with(|| reason.to_owned());
        self.changed.notify_one();
    }

    /// The client gets its answer; what is left of the window is the client's.
    pub(super) fn answer(&self) -> u32 {
        let mut state = self.lock();
        state.answered = true;
        std::mem::take(&mut state.room)
    }

    /// Whether the client has its answer.
    pub(in crate::local) fn is_answered(&self) -> bool {
        self.lock().answered
    }

    /// Whether no more is to be read.
    pub(super) fn is_ended(&self) -> bool {
        self.lock().ended.is_some()
    }

    /// Waits until there is room; how much of `wanted` there is.
    pub(super) fn await_room(&self, wanted: u64) -> Result<usize, ApiError> {
        let state = self.lock();
        let state = self
            .changed
            .wait_while(state, |state| state.room == 0 && state.ended.is_none())
            .unwrap_or_else(PoisonError::into_inner);
        state.go_on()?;
        let most = u64::from(state.room).min(DATA_BYTES_MAX as u64);
        Ok(wanted.min(most) as usize)
    }

    /// Passes so many bytes on, unless no more is to be read.
    pub(super) fn pass(&self, length: usize, pass: impl FnOnce()) -> Result<(), ApiError> {
        let mut state = self.lock();
        state.go_on()?;
        state.room -= length as u32;
        pass();
        Ok(())
    }
}

impl State {
    fn go_on(&self) -> Result<(), ApiError> {
        match &self.ended {
            Some(reason) => Err(ApiError::new(ErrorCode::Closed, reason.clone())),
            None => Ok(()),
        }
    }
}
