//! Control messages of the local API as types (API.md §3–§5).

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::fmt;

/// Version of the local API.
pub const API_VERSION: u32 = 1;

/// Characters of a name that an answer repeats at most.
const NAME_CHARS_SHOWN: usize = 64;

/// A group, by number or by name.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum GroupSelector {
    /// By number; any integer is taken here, so that the answer can name its bounds.
    Number(i64),
    /// By the name the controller gave it.
    Name(String),
}

impl From<&str> for GroupSelector {
    fn from(name: &str) -> Self {
        Self::Name(name.to_owned())
    }
}

impl From<u16> for GroupSelector {
    fn from(number: u16) -> Self {
        Self::Number(number.into())
    }
}

impl fmt::Display for GroupSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "group {number}"),
            Self::Name(name) => {
                let shown: String = name.chars().take(NAME_CHARS_SHOWN).collect();
                write!(f, "group \"{shown}\"")
            }
        }
    }
}

/// Why an application gives a message up.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AbortReason {
    /// No space left on device.
    NoSpace,
    /// Another input or output error.
    Storage,
    /// Any other reason.
    #[default]
    Cancelled,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// First on every connection.
    Hello {
        /// [`API_VERSION`].
        version: u32,
        /// Name of the program, for the status of others.
        #[serde(default)]
        client: String,
    },
    Status {},
    /// The groups this host is a member of, as many as an answer holds.
    Groups {
        /// Only those with a greater number; absent: from the first.
        #[serde(default)]
        after: Option<u32>,
        /// The client wants a [`Notice::GroupsChanged`] when the answer is not true any more.
        #[serde(default)]
        watch: bool,
    },
    OpenSender {
        group: GroupSelector,
        /// Interval of progress events, ms; 0: none.
        #[serde(default)]
        progress_ms: u32,
        /// Most bits of messages a second; absent: any.
        #[serde(default)]
        rate_bits: Option<u64>,
    },
    /// How long the message will be whose data frames follow.
    AnnounceMessage {
        handle: u32,
        bytes: u64,
    },
    /// The agent reads what comes next of the message from a file; its descriptor comes with the request. With the
    /// answer the sender's window is 0; what is left of it comes behind.
    SendFile {
        handle: u32,
        /// All of the file.
        bytes: u64,
    },
    /// Ends the message that the data frames so far make.
    EndMessage {
        handle: u32,
    },
    /// Gives up the message being written.
    CancelMessage {
        handle: u32,
    },
    /// Answers when a message is stable.
    WaitStable {
        handle: u32,
        message: u64,
        /// Longest wait, ms; absent: none.
        #[serde(default)]
        timeout_ms: Option<u64>,
    },
    /// What is known now of a message at each member.
    MessageState {
        handle: u32,
        /// The message; absent: the one being written, or ended last.
        #[serde(default)]
        message: Option<u64>,
    },
    OpenReceiver {
        group: GroupSelector,
        /// One origin alone; absent: all.
        #[serde(default)]
        origin: Option<u32>,
        /// The client takes files by [`Request::ReceiveFile`].
        #[serde(default)]
        files: bool,
    },
    /// The agent writes the content of a file that arrives into a file; its descriptor comes with the request.
    ReceiveFile {
        handle: u32,
        /// How much content there is to be; absent: as much as comes.
        #[serde(default)]
        bytes: Option<u64>,
    },
    /// The application has the whole message and keeps it.
    Confirm {
        handle: u32,
    },
    /// The application does not take the message.
    Abort {
        handle: u32,
        #[serde(default)]
        reason: AbortReason,
    },
    /// The application is still at work on a message whose end has come: its time for that begins anew.
    Extend {
        handle: u32,
    },
    /// A message is given up once more than so many bytes of it wait for its receiver.
    BoundLag {
        handle: u32,
        bytes: u64,
    },
    /// Says something of a message to its origin, once.
    Answer {
        handle: u32,
        text: String,
    },
    /// Closes a sender or receiver.
    Close {
        handle: u32,
    },
}

/// A request with the number its answer carries.
#[derive(Clone, PartialEq, Debug)]
pub struct NumberedRequest {
    /// Chosen by the client.
    pub id: u64,
    pub request: Request,
}

impl NumberedRequest {
    /// Parses a control message of a client.
    ///
    /// # Errors
    /// With the id, if that much can be read, and an [`ApiError`] for the answer.
    pub fn parse(json: &[u8]) -> Result<Self, (Option<u64>, ApiError)> {
        let bad = |text: String| ApiError::new(ErrorCode::BadRequest, text);
        let mut object: Map<String, Value> = serde_json::from_slice(json)
            .map_err(|error| (None, bad(format!("not a JSON object: {error}"))))?;
        let id = match object.shift_remove("id") {
            Some(value) => value.as_u64().ok_or_else(|| {
                (
                    None,
                    bad(format!(
                        "id is {value}; it must be an integer of 0 to 2^64-1"
                    )),
                )
            })?,
            None => return Err((None, bad("the request has no id".to_owned()))),
        };
        let request = serde_json::from_value(Value::Object(object))
            .map_err(|error| (Some(id), bad(error.to_string())))?;
        Ok(Self { id, request })
    }
}

/// Kinds of refusal; programs decide by these.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorCode {
    BadRequest,
    /// The first request must be hello.
    HelloFirst,
    /// The agent speaks another version.
    Version,
    /// This host is not a member of such a group.
    UnknownGroup,
    /// No plan from the controller yet.
    NoPlan,
    /// A number out of its range.
    OutOfRange,
    /// Somebody else has it.
    Busy,
    /// No such handle on this connection.
    UnknownHandle,
    /// The handle is of another kind.
    WrongHandle,
    /// More bytes than the window allows.
    WindowExceeded,
    /// A named maximum is reached.
    LimitReached,
    /// It took longer than the request allows.
    Timeout,
    /// The thing it is about ended.
    Closed,
    /// The request does not fit the state.
    WrongState,
    /// No space left on device.
    NoSpace,
    /// A file cannot be read or written, or changed while it was sent.
    Storage,
    /// Content that is not as its sender said.
    Damaged,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct ApiError {
    pub code: ErrorCode,
    /// For people: names the value, the bound and the choices.
    pub message: String,
    /// Valid choices, where there is a list of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<Value>,
}

impl ApiError {
    /// Without choices.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            choices: Vec::new(),
        }
    }
}

/// Outcome of a message at one member.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct MemberOutcome {
    pub host: u16,
    /// Its application has confirmed the message.
    pub delivered: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// It took no part in the group when the message began.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub left_out: bool,
}

/// How far the stream of this host in a group has come; totals since the agent started.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct StreamProgress {
    /// Bytes the engine has taken from applications.
    pub accepted_bytes: u64,
    /// Bytes sent at least once.
    pub sent_bytes: u64,
    /// Bytes that every living member has.
    pub stable_bytes: u64,
    /// Packets sent again.
    pub retransmissions: u64,
}

/// How long a message took to come over the network, whenever it was read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Arrival {
    /// From its first moment to its last.
    pub us: u64,
    /// Bytes that came after the first moment.
    pub bytes: u64,
}

/// Content that the agent has written into a file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct WrittenFile {
    pub bytes: u64,
    /// Of what was written, in hex; the one that came behind it is the same.
    pub sha256: String,
}

/// What the agent tells without being asked.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Notice {
    Progress {
        handle: u32,
        #[serde(flatten)]
        progress: StreamProgress,
    },
    /// A member will not have a message of this sender.
    MemberFailed {
        handle: u32,
        message: u64,
        host: u16,
        reason: String,
    },
    /// A message of this sender has come to a member where nobody receives.
    MemberUnclaimed {
        handle: u32,
        message: u64,
        host: u16,
    },
    /// At a member a message of this sender is taken slower than it comes.
    MemberSlow {
        handle: u32,
        message: u64,
        host: u16,
    },
    /// A receiver says something of a message that a sender of this group has sent.
    Answer {
        handle: u32,
        host: u16,
        text: String,
    },
    /// A message begins to arrive.
    MessageBegin {
        receiver: u32,
        /// A new handle; data frames carry it.
        handle: u32,
        origin: u16,
        /// Which it is of this origin in this group, the same at all members.
        #[serde(default)]
        message: u64,
        /// Data bytes that may come before the client must send window updates.
        window_bytes: u32,
        /// For how long it has been arriving, µs.
        #[serde(default)]
        age_us: u64,
        /// Of a file, for a receiver that takes files: its header (API.md §8). The content waits for
        /// [`Request::ReceiveFile`].
        #[serde(default, skip_serializing_if = "Option::is_none")]
        header: Option<String>,
        /// The receiver takes files. Not told.
        #[serde(skip)]
        files: bool,
    },
    /// So much of a file's content is written.
    FileProgress { handle: u32, bytes: u64 },
    /// No more of a file's content will be written; the client is to abort it.
    FileFailed {
        handle: u32,
        code: ErrorCode,
        reason: String,
    },
    /// All data of the message has been sent; confirm or abort must follow.
    MessageEnd {
        handle: u32,
        /// Bytes in all.
        length: u64,
        /// How long they took to come over the network.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        arrival: Option<Arrival>,
        /// What was written, if the agent did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        file: Option<WrittenFile>,
    },
    /// The rest of the message will not come; the handle is gone.
    MessageLost { handle: u32, reason: String },
    /// The sender or receiver is gone.
    HandleClosed { handle: u32, reason: String },
    /// Other groups than when they were asked for with `watch`, other members, or a receiver is gone. Told once.
    GroupsChanged {},
    /// The connection ends; no answer is due.
    Goodbye { reason: String },
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(json: &str) -> (Option<u64>, String) {
        let (id, error) = NumberedRequest::parse(json.as_bytes()).unwrap_err();
        assert_eq!(error.code, ErrorCode::BadRequest);
        (id, error.message)
    }

    #[test]
    fn requests_are_read() {
        let parsed =
            NumberedRequest::parse(br#"{"id":7,"op":"open_sender","group":"images"}"#).unwrap();
        assert_eq!(
            parsed,
            NumberedRequest {
                id: 7,
                request: Request::OpenSender {
                    group: GroupSelector::Name("images".to_owned()),
                    progress_ms: 0,
                    rate_bits: None,
                }
            }
        );
        let parsed =
            NumberedRequest::parse(br#"{"op":"abort","handle":1,"reason":"no_space","id":0}"#);
        assert_eq!(
            parsed.unwrap().request,
            Request::Abort {
                handle: 1,
                reason: AbortReason::NoSpace
            }
        );
    }

    #[test]
    fn a_name_of_any_length_is_repeated_in_short() {
        let long = GroupSelector::Name("ä".repeat(1 << 19)).to_string();
        assert_eq!(long.chars().count(), "group \"\"".len() + NAME_CHARS_SHOWN);
        assert_eq!(
            GroupSelector::Name("images".to_owned()).to_string(),
            "group \"images\""
        );
    }

    #[test]
    fn refusals_name_the_choices() {
        let (id, text) = refusal(r#"{"id":1,"op":"fly"}"#);
        assert_eq!(id, Some(1));
        assert!(
            text.contains("fly") && text.contains("open_receiver"),
            "{text}"
        );
        let (_, text) = refusal(r#"{"id":1,"op":"abort","handle":1,"reason":"bored"}"#);
        assert!(
            text.contains("bored") && text.contains("no_space"),
            "{text}"
        );
        let (_, text) = refusal(r#"{"id":1,"op":"close","handle":1,"colour":2}"#);
        assert!(text.contains("colour"), "{text}");
        assert_eq!(refusal("[]").0, None);
        assert_eq!(refusal(r#"{"op":"status"}"#).1, "the request has no id");
        assert!(refusal(r#"{"id":-1,"op":"status"}"#).1.contains("-1"));
    }
}
