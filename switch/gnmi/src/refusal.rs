//! Refusals of requests for what is not there.

use std::time::Duration;

use tonic::{Code, Status};

use crate::limits::{
    LEAVES_MAX, PATH_ELEMENTS_MAX, PATHS_MAX, SAMPLE_INTERVAL_MAX, SAMPLE_INTERVAL_MIN,
    SCHEDULES_MAX, STREAMS_MAX,
};

/// A request that is not answered, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("{path}: {problem}")]
    BadPath { path: String, problem: String },
    #[error("the path has {count} elements with its prefix: at most {PATH_ELEMENTS_MAX}")]
    LongPath { count: usize },
    #[error("{count} paths: a request has at most {PATHS_MAX}")]
    ManyPaths { count: usize },
    #[error("there is no {path} here; {choices}")]
    NoPath { path: String, choices: String },
    #[error("there is no interface `{name}`; {choices}")]
    NoInterface { name: String, choices: String },
    #[error("origin `{0}` is not served: openconfig, or none")]
    Origin(String),
    #[error("encoding {0} is not supported: JSON, JSON_IETF or PROTO")]
    Encoding(String),
    #[error("{field} {value} is not valid: {choices}")]
    Enumeration {
        field: &'static str,
        value: i32,
        choices: &'static str,
    },
    #[error("model `{name}` is not served: {choices}")]
    Model { name: String, choices: String },
    #[error("extension {0} is not supported here")]
    Extension(&'static str),
    #[error(
        "{field} of {value:?} for {path}: {SAMPLE_INTERVAL_MIN:?} to {SAMPLE_INTERVAL_MAX:?}, in \
         nanoseconds, or 0 for {zero}"
    )]
    Interval {
        field: &'static str,
        value: Duration,
        path: String,
        zero: &'static str,
    },
    #[error(
        "sample_interval for {path} with mode TARGET_DEFINED, which leaves it to the switch: ask \
         for SAMPLE, or give none"
    )]
    TargetDefinedInterval { path: String },
    #[error(
        "{path} has counters alone, which are not sent on change: subscribe to it with SAMPLE or \
         TARGET_DEFINED"
    )]
    OnChangeCounters { path: String },
    #[error("a subscription without paths: give 1 to {PATHS_MAX}")]
    NoPaths,
    #[error(
        "{count} different pairs of mode and intervals in one subscription: at most \
         {SCHEDULES_MAX}; open another stream for more"
    )]
    ManySchedules { count: usize },
    #[error("the answer has more than {LEAVES_MAX} leaves: ask for fewer paths, or subscribe ONCE")]
    ManyLeaves,
    #[error(
        "{STREAMS_MAX} streams of Subscribe are open, which is the most: end one, or try later"
    )]
    ManyStreams,
    #[error("the first message of a stream must be a subscription, not a poll or nothing")]
    NoSubscription,
    #[error("the stream has its subscription: open another stream for more paths")]
    SecondSubscription,
    #[error("a poll on a stream whose mode is {0}: only POLL has them")]
    UnexpectedPoll(&'static str),
    #[error("there is no target `{name}`; there are {known}")]
    NoTarget { name: String, known: String },
    /// UNIMPLEMENTED, for clients go on without gNMI then: finsy asks every P4Runtime switch.
    #[error(
        "gNMI without a target is not implemented where several switches have one address: name \
         one in the prefix, by device id or name; there are {known}"
    )]
    TargetNeeded { known: String },
    #[error("Set is not implemented: the switch is read over gNMI, not configured")]
    Set,
    #[error("{0}")]
    Stopped(#[from] wormcast_switch_dataplane::Stopped),
}

impl Refusal {
    fn code(&self) -> Code {
        match self {
            Self::BadPath { .. }
            | Self::LongPath { .. }
            | Self::ManyPaths { .. }
            | Self::Origin(_)
            | Self::Enumeration { .. }
            | Self::Model { .. }
            | Self::Interval { .. }
            | Self::TargetDefinedInterval { .. }
            | Self::OnChangeCounters { .. }
            | Self::NoPaths
            | Self::NoSubscription
            | Self::SecondSubscription
            | Self::UnexpectedPoll(_) => Code::InvalidArgument,
            Self::NoPath { .. } | Self::NoInterface { .. } | Self::NoTarget { .. } => {
                Code::NotFound
            }
            Self::Encoding(_) | Self::Extension(_) | Self::TargetNeeded { .. } | Self::Set => {
                Code::Unimplemented
            }
            Self::ManySchedules { .. } | Self::ManyLeaves | Self::ManyStreams => {
                Code::ResourceExhausted
            }
            Self::Stopped(_) => Code::Unavailable,
        }
    }
}

impl From<Refusal> for Status {
    fn from(refusal: Refusal) -> Self {
        Status::new(refusal.code(), refusal.to_string())
    }
}
