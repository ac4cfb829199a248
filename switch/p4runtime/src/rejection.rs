//! Why a request, or one update of it, is refused.

use std::fmt;

use prost::Message;
use tonic::{Code, Status};

use super::proto::google::protobuf::Any;
use super::proto::google::rpc;
use super::proto::p4::v1::Error as UpdateError;
use wormcast_switch_dataplane::Stopped;
use wormcast_switch_pipeline::ControlError;

/// A canonical code (§"Error Reporting Messages" of the P4Runtime specification) and a
/// message that names what was wrong with which value, and what would be right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Rejection {
    /// Canonical code, never OK.
    pub code: Code,
    /// For a developer.
    pub message: String,
}

impl Rejection {
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }

    /// The request itself is wrong.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(Code::InvalidArgument, message)
    }

    /// A value does not fit the type of the P4 program.
    pub fn out_of_range(message: impl Into<String>) -> Self {
        Self::new(Code::OutOfRange, message)
    }

    /// Something named does not exist.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(Code::NotFound, message)
    }

    /// This server does not do that.
    pub fn unimplemented(message: impl Into<String>) -> Self {
        Self::new(Code::Unimplemented, message)
    }

    /// The same with words in front of the message.
    pub fn within(self, context: impl fmt::Display) -> Self {
        Self {
            code: self.code,
            message: format!("{context}: {}", self.message),
        }
    }
}

impl From<ControlError> for Rejection {
    fn from(error: ControlError) -> Self {
        let code = match error {
            ControlError::AlreadyExists { .. } => Code::AlreadyExists,
            ControlError::NotFound { .. } => Code::NotFound,
            ControlError::InvalidArgument { .. } => Code::InvalidArgument,
            ControlError::ResourceExhausted { .. } => Code::ResourceExhausted,
            ControlError::InUse { .. } => Code::FailedPrecondition,
            ControlError::Immutable { .. } => Code::PermissionDenied,
        };
        Self::new(code, error.to_string())
    }
}

impl From<Stopped> for Rejection {
    fn from(stopped: Stopped) -> Self {
        Self::new(Code::Unavailable, stopped.to_string())
    }
}

impl From<Rejection> for Status {
    fn from(rejection: Rejection) -> Self {
        Status::new(rejection.code, rejection.message)
    }
}

/// Name of the codes in [`UpdateError::space`].
const ERROR_SPACE: &str = "wormcast-switch";

const UPDATE_ERROR_TYPE: &str = "type.googleapis.com/p4.v1.Error";

/// The status of a `Write`: OK if every update was, else UNKNOWN with one `p4.v1.Error`
/// for each update in its details (§"Error Reporting" of `Write`).
pub fn write_status(results: &[Result<(), Rejection>]) -> Result<(), Status> {
    let mut failed = results.iter().enumerate().filter_map(|(index, result)| {
        let rejection = result.as_ref().err()?;
        Some((index, rejection))
    });
    let Some((first, rejection)) = failed.next() else {
        return Ok(());
    };
    let count = 1 + failed.count();
    let message = format!(
        "{count} of {} updates failed, first updates[{first}] of the request: {}: {}",
        results.len(),
        code_name(rejection.code),
        rejection.message,
    );
    let details = results.iter().map(|result| {
        let error = match result {
            Ok(()) => UpdateError::default(),
            Err(rejection) => UpdateError {
                canonical_code: rejection.code as i32,
                message: rejection.message.clone(),
                space: ERROR_SPACE.to_owned(),
                ..UpdateError::default()
            },
        };
        Any {
            type_url: UPDATE_ERROR_TYPE.to_owned(),
            value: error.encode_to_vec(),
        }
    });
    let status = rpc::Status {
        code: Code::Unknown as i32,
        message: message.clone(),
        details: details.collect(),
    };
    Err(Status::with_details(
        Code::Unknown,
        message,
        status.encode_to_vec().into(),
    ))
}

/// The name that the specification uses for a code.
pub fn code_name(code: Code) -> &'static str {
    match code {
        Code::Ok => "OK",
        Code::Cancelled => "CANCELLED",
        Code::Unknown => "UNKNOWN",
        Code::InvalidArgument => "INVALID_ARGUMENT",
        Code::DeadlineExceeded => "DEADLINE_EXCEEDED",
        Code::NotFound => "NOT_FOUND",
        Code::AlreadyExists => "ALREADY_EXISTS",
        Code::PermissionDenied => "PERMISSION_DENIED",
        Code::ResourceExhausted => "RESOURCE_EXHAUSTED",
        Code::FailedPrecondition => "FAILED_PRECONDITION",
        Code::Aborted => "ABORTED",
        Code::OutOfRange => "OUT_OF_RANGE",
        Code::Unimplemented => "UNIMPLEMENTED",
        Code::Internal => "INTERNAL",
        Code::Unavailable => "UNAVAILABLE",
        Code::DataLoss => "DATA_LOSS",
        Code::Unauthenticated => "UNAUTHENTICATED",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_updates_fine_is_ok() {
        assert!(write_status(&[]).is_ok());
        assert!(write_status(&[Ok(()), Ok(())]).is_ok());
    }

    #[test]
    fn one_error_for_each_update_in_order() {
        let full = Rejection::new(Code::ResourceExhausted, "table t is full");
        let status = write_status(&[Ok(()), Err(full), Ok(())]).unwrap_err();
        assert_eq!(status.code(), Code::Unknown);
        assert_eq!(
            status.message(),
            "1 of 3 updates failed, first updates[1] of the request: RESOURCE_EXHAUSTED: table t is \
             full"
        );
        let details = rpc::Status::decode(status.details()).unwrap();
        let codes: Vec<i32> = details
            .details
            .iter()
            .map(|any| {
                assert_eq!(any.type_url, "type.googleapis.com/p4.v1.Error");
                UpdateError::decode(any.value.as_slice())
                    .unwrap()
                    .canonical_code
            })
            .collect();
        assert_eq!(codes, [0, 8, 0]);
    }
}
