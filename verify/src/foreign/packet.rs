//! Packets that are followed.

/// A packet that takes a channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    pub src: String,
    /// Node it goes to, if the file says so.
    pub dst: Option<String>,
    /// The destination as the tables have it, such as a LID.
    pub key: Option<String>,
    /// Line of its path in the CSV file.
    pub line: Option<usize>,
}
