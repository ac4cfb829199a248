//! Where the content of a file message begins and ends (API.md §8).

use bytes::{Buf, Bytes, BytesMut};
use sha2::{Digest, Sha256};

const MAGIC: &[u8] = b"WCFILE1\n";
const LENGTH_BYTES: usize = 4;
const HEADER_BYTES_MAX: usize = 4096;
pub(super) const DIGEST_BYTES: usize = 32;

/// What the first bytes of a message are.
#[derive(PartialEq, Eq, Debug)]
pub(super) enum Start {
    /// More of it is needed to say.
    Open,
    /// A file: its header, and behind it the first of the content.
    File { header: String, rest: Bytes },
    /// Something else, or a file with a header that is out of bounds.
    Other,
}

/// Looks at the first bytes of a message.
pub(super) fn look(start: &BytesMut) -> Start {
    let known = start.len().min(MAGIC.len());
    if start[..known] != MAGIC[..known] {
        return Start::Other;
    }
    let Some(mut behind) = start
        .get(MAGIC.len()..)
        .filter(|rest| rest.len() >= LENGTH_BYTES)
    else {
        return Start::Open;
    };
    let length = behind.get_u32() as usize;
    if length > HEADER_BYTES_MAX {
        return Start::Other;
    }
    if behind.len() < length {
        return Start::Open;
    }
    let (header, rest) = behind.split_at(length);
    match std::str::from_utf8(header) {
        Ok(header) => Start::File {
            header: header.to_owned(),
            rest: Bytes::copy_from_slice(rest),
        },
        Err(_) => Start::Other,
    }
}

/// Content as it comes, of which the last bytes are its digest.
#[derive(Default)]
pub(super) struct Content {
    held: Vec<u8>,
    hash: Sha256,
}

impl Content {
    /// What of `bytes`, and of what was held back before, is content for certain: two runs of bytes.
    pub(super) fn feed(&mut self, bytes: &mut Bytes) -> (Bytes, Bytes) {
        let ready = (self.held.len() + bytes.len()).saturating_sub(DIGEST_BYTES);
        let before = ready.min(self.held.len());
        let first = Bytes::from_iter(self.held.drain(..before));
        let second = bytes.split_to(ready - before);
        self.held.extend_from_slice(bytes);
        self.hash.update(&first);
        self.hash.update(&second);
        (first, second)
    }

    /// At the end: the digest, in hex.
    ///
    /// # Errors
    /// If it is not the one that came.
    pub(super) fn finish(self) -> Result<String, String> {
        if self.held.len() != DIGEST_BYTES {
            return Err("the message is not a file: it is too short".to_owned());
        }
        let (found, sent) = (hex(&self.hash.finalize()), hex(&self.held));
        if found != sent {
            return Err(format!(
                "the SHA-256 of the content is {found}, the sender's was {sent}"
            ));
        }
        Ok(found)
    }
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(header: &[u8], content: &[u8]) -> BytesMut {
        let mut message = BytesMut::from(MAGIC);
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
            let found = look(&BytesMut::from(&whole[..length]));
            if length < header_end {
                assert_eq!(found, Start::Open, "{length}");
            } else {
                let header = "{\"name\":\"a\"}".to_owned();
                let rest = Bytes::copy_from_slice(&whole[header_end..length]);
                assert_eq!(found, Start::File { header, rest }, "{length}");
            }
        }
    }

    #[test]
    fn what_is_no_file_is_known_at_its_first_wrong_byte() {
        for other in [&b"X"[..], b"WCFILE2\n", b"WCFILE1\n\x00\x00\x10\x01"] {
            assert_eq!(look(&BytesMut::from(other)), Start::Other);
        }
        assert_eq!(look(&message(b"\xff", b"")), Start::Other);
    }

    #[test]
    fn content_comes_out_as_it_went_in_however_it_is_cut() {
        let content: Vec<u8> = (0..200_u8).collect();
        let mut whole = content.clone();
        whole.extend_from_slice(&Sha256::digest(&content));
        for cut in 1..whole.len() {
            let mut reader = Content::default();
            let mut out = Vec::new();
            for piece in whole.chunks(cut) {
                let (first, second) = reader.feed(&mut Bytes::copy_from_slice(piece));
                out.extend_from_slice(&first);
                out.extend_from_slice(&second);
            }
            assert_eq!(out, content);
            assert_eq!(reader.finish().unwrap(), hex(&Sha256::digest(&content)));
        }
    }

    #[test]
    fn another_digest_and_a_missing_one_are_told() {
        let mut reader = Content::default();
        reader.feed(&mut Bytes::from(vec![7; 100]));
        assert!(
            reader
                .finish()
                .unwrap_err()
                .contains("the sender's was 0707")
        );
        let mut reader = Content::default();
        reader.feed(&mut Bytes::from(vec![7; 31]));
        assert!(reader.finish().unwrap_err().contains("too short"));
    }
}
