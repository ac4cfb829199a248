//! Where the content of a file message ends, and whether it is what was sent (API.md §8).

use bytes::Bytes;
use sha2::{Digest, Sha256};
use wormcast_agent_core::transfers::file_start::DIGEST_BYTES;

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
