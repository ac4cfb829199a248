//! What the first bytes of a message say of a file (API.md §8). Both ends of a transfer read them here.

use serde::Deserialize;

const MAGIC: &[u8] = b"WCFILE1\n";
const LENGTH_BYTES: usize = 4;
const HEADER_BYTES_MAX: usize = 4096;
/// Longest beginning of a message that does not say yet what it is.
const START_BYTES_MAX: usize = MAGIC.len() + LENGTH_BYTES + HEADER_BYTES_MAX;
/// Behind the content comes its SHA-256.
pub const DIGEST_BYTES: usize = 32;
/// Bytes kept of a file's name.
const NAME_BYTES_MAX: usize = 200;
/// What a file is called whose header gives it no name.
const UNNAMED: &str = "unnamed";

/// What the first bytes of a message are.
#[derive(PartialEq, Eq, Debug)]
pub enum Start<'a> {
    /// More of it is needed to say.
    Open,
    /// A file: its header, and behind it the first of the content.
    File { header: &'a str, rest: &'a [u8] },
    /// Something else, or a file with a header that is out of bounds.
    Other,
}

/// Looks at the first bytes of a message.
pub fn look(start: &[u8]) -> Start<'_> {
    let known = start.len().min(MAGIC.len());
    if start[..known] != MAGIC[..known] {
        return Start::Other;
    }
    let length = start
        .get(MAGIC.len()..)
        .and_then(<[u8]>::split_first_chunk::<LENGTH_BYTES>);
    let Some((length, behind)) = length else {
        return Start::Open;
    };
    let length = u32::from_be_bytes(*length) as usize;
    if length > HEADER_BYTES_MAX {
        return Start::Other;
    }
    if behind.len() < length {
        return Start::Open;
    }
    let (header, rest) = behind.split_at(length);
    match std::str::from_utf8(header) {
        Ok(header) => Start::File { header, rest },
        Err(_) => Start::Other,
    }
}

/// A file as it is sent: what its header says, to show.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileHeader {
    /// The last component, without control characters, up to 200 bytes; never empty.
    pub name: String,
    /// Bytes of the content, if they were known before.
    pub size: Option<u64>,
    /// Bytes of the message before the content.
    pub start_bytes: u64,
    /// More bytes than these may not wait for a receiver.
    pub lag_bytes: Option<u64>,
}

/// Nobody checks what is not shown: the receiver does.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Fields {
    name: String,
    size: Option<u64>,
    /// It is the list that goes before a bundle, and no file.
    offer: bool,
    lag_bytes: Option<u64>,
}

impl FileHeader {
    /// `None`: it is no file, but what goes before one.
    fn read(header: &str) -> Option<Self> {
        let fields: Fields = serde_json::from_str(header).unwrap_or_default();
        (!fields.offer).then(|| Self {
            name: shown_name(&fields.name),
            size: fields.size,
            start_bytes: (MAGIC.len() + LENGTH_BYTES + header.len()) as u64,
            lag_bytes: fields.lag_bytes,
        })
    }
}

fn shown_name(name: &str) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let last = last.replace(|character: char| character.is_control(), "_");
    let last = last.trim().trim_start_matches('.');
    let mut end = last.len().min(NAME_BYTES_MAX);
    while !last.is_char_boundary(end) {
        end -= 1;
    }
    match &last[..end] {
        "" => UNNAMED.to_owned(),
        shown => shown.to_owned(),
    }
}

/// A message that is being written, looked at until it is known what it is.
#[derive(Default, Debug)]
pub struct Beginning {
    /// What has come while that is open.
    held: Vec<u8>,
    is_known: bool,
    /// Bytes of the message so far.
    pub bytes: u64,
}

impl Beginning {
    /// More of the message has been written. Gives the header of a file, once.
    pub fn feed(&mut self, bytes: &[u8]) -> Option<FileHeader> {
        self.bytes += bytes.len() as u64;
        if self.is_known {
            return None;
        }
        let start = if self.held.is_empty() {
            bytes
        } else {
            let room = START_BYTES_MAX.saturating_sub(self.held.len());
            self.held.extend_from_slice(&bytes[..bytes.len().min(room)]);
            &self.held
        };
        let header = match look(start) {
            // Then all of it was given, and it is shorter than a beginning can be.
            Start::Open if self.held.is_empty() => {
                self.held = bytes.to_vec();
                return None;
            }
            Start::Open => return None,
            Start::File { header, .. } => FileHeader::read(header),
            Start::Other => None,
        };
        self.is_known = true;
        self.held = Vec::new();
        header
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(header: &[u8], content: &[u8]) -> Vec<u8> {
        let mut message = MAGIC.to_vec();
        message.extend_from_slice(&(header.len() as u32).to_be_bytes());
        message.extend_from_slice(header);
        message.extend_from_slice(content);
        message
    }

    #[test]
    fn a_file_is_known_once_its_header_is_there() {
        let whole = message(b"{\"name\":\"a\"}", b"content");
        let header_end = whole.len() - b"content".len();
        for length in 0..whole.len() {
            let found = look(&whole[..length]);
            if length < header_end {
                assert_eq!(found, Start::Open, "{length}");
            } else {
                let header = "{\"name\":\"a\"}";
                let rest = &whole[header_end..length];
                assert_eq!(found, Start::File { header, rest }, "{length}");
            }
        }
    }

    #[test]
    fn what_is_no_file_is_known_at_its_first_wrong_byte() {
        for other in [&b"X"[..], b"WCFILE2\n", b"WCFILE1\n\x00\x00\x10\x01"] {
            assert_eq!(look(other), Start::Other);
        }
        assert_eq!(look(&message(b"\xff", b"")), Start::Other);
    }

    #[test]
    fn a_header_is_found_once_however_the_message_is_cut() {
        let header = br#"{"name": "a.bin", "size": 7, "mode": 420, "lag_bytes": 70000}"#;
        let whole = message(header, b"content");
        let expected = FileHeader {
            name: "a.bin".to_owned(),
            size: Some(7),
            start_bytes: (whole.len() - 7) as u64,
            lag_bytes: Some(70_000),
        };
        for cut in 1..=whole.len() {
            let mut beginning = Beginning::default();
            let pieces = whole.chunks(cut);
            let found: Vec<FileHeader> = pieces.filter_map(|piece| beginning.feed(piece)).collect();
            assert_eq!(found, std::slice::from_ref(&expected), "{cut}");
            assert_eq!(beginning.bytes, whole.len() as u64);
            assert!(beginning.held.is_empty());
        }
    }

    #[test]
    fn what_is_held_of_a_beginning_is_bounded() {
        let mut beginning = Beginning::default();
        let longest = message(&[b' '; HEADER_BYTES_MAX], b"");
        for byte in &longest[..longest.len() - 1] {
            assert_eq!(beginning.feed(&[*byte]), None);
        }
        assert_eq!(beginning.held.len(), START_BYTES_MAX - 1);
        assert!(beginning.feed(&[b' '; 100_000]).is_some());
        assert!(beginning.held.is_empty());
        let mut other = Beginning::default();
        assert_eq!(other.feed(&[0; 100_000]), None);
        assert!(other.held.is_empty());
        assert_eq!(other.bytes, 100_000);
    }

    #[test]
    fn names_are_fit_to_be_shown() {
        let long = "ä".repeat(150);
        for (name, shown) in [
            ("/etc/../a\u{7}b.txt", "a_b.txt"),
            ("..\\x", "x"),
            (".hidden", "hidden"),
            ("", UNNAMED),
            ("/", UNNAMED),
            (long.as_str(), &long[..200]),
        ] {
            assert_eq!(shown_name(name), shown);
        }
        assert_eq!(FileHeader::read("no JSON").unwrap().name, UNNAMED);
        assert_eq!(FileHeader::read(r#"{"name": 4}"#).unwrap().size, None);
        assert_eq!(FileHeader::read(r#"{"name": "a", "offer": true}"#), None);
    }
}
