//! What receivers say of a message to its origin. It goes by the controller, may get lost, and is only a hint: what
//! became of a message at a member the protocol tells.

use crate::api::{ApiError, ErrorCode};
use crate::clients::limits::ANSWER_BYTES_MAX;
use std::collections::VecDeque;
use wormcast_wire::{GroupId, HostId};

/// To the origin of a message, or from a receiver of one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Answer {
    pub group: GroupId,
    /// The other host.
    pub host: HostId,
    /// At most [`ANSWER_BYTES_MAX`].
    pub text: String,
}

/// Those of receivers here, until the controller gets them: at most one for each request of a turn.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    waiting: VecDeque<Answer>,
    /// Answers of other hosts that nobody here has asked for.
    pub(crate) refused: u64,
}

impl Answers {
    pub(crate) fn put(&mut self, answer: Answer) {
        self.waiting.push_back(answer);
    }

    pub(crate) fn poll(&mut self) -> Option<Answer> {
        self.waiting.pop_front()
    }
}

/// # Errors
/// If it is too long.
pub(crate) fn check(text: &str) -> Result<(), ApiError> {
    let bytes = text.len();
    if bytes > ANSWER_BYTES_MAX {
        let text = format!("an answer of {bytes} bytes; at most {ANSWER_BYTES_MAX}");
        return Err(ApiError::new(ErrorCode::OutOfRange, text));
    }
    Ok(())
}
