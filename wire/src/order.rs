//! What the sequencer of an ordered group says, as bytes of a message in its stream
//! (SPEC.md §5.7).

use crate::{HostId, Seq};

/// First byte of a message of an application in an ordered group.
pub const FOR_APPLICATIONS: u8 = 0;
/// First byte of a message that says in which order messages come.
pub const ORDER: u8 = 1;

const SNAPSHOT: u8 = 1;
const HEAD_BYTES: usize = 10;
const RUN_BYTES: usize = 14;

/// Messages of one origin, one directly after another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    pub origin: HostId,
    /// In which life of its stream.
    pub stream: u32,
    /// The number of the first packet of the first of them.
    pub from: Seq,
    /// One more than that of the last of them.
    pub to: Seq,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OrderMessage {
    /// Which epoch: grows whenever the sequencer is chosen anew.
    pub epoch: u64,
    /// It says all that counts, not only what is new.
    pub snapshot: bool,
    /// The messages that come next, in their order.
    pub runs: Vec<Run>,
}

impl OrderMessage {
    /// As bytes, [`ORDER`] in front.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEAD_BYTES + RUN_BYTES * self.runs.len());
        bytes.push(ORDER);
        bytes.push(if self.snapshot { SNAPSHOT } else { 0 });
        bytes.extend(self.epoch.to_be_bytes());
        for run in &self.runs {
            bytes.extend(run.origin.0.to_be_bytes());
            bytes.extend(run.stream.to_be_bytes());
            bytes.extend(run.from.0.to_be_bytes());
            bytes.extend(run.to.0.to_be_bytes());
        }
        bytes
    }

    /// From the bytes of a message, [`ORDER`] in front; `None` if they are not exactly that.
    pub fn decode(bytes: &[u8]) -> Option<OrderMessage> {
        let (head, rest) = bytes.split_at_checked(HEAD_BYTES)?;
        if head[0] != ORDER || head[1] & !SNAPSHOT != 0 {
            return None;
        }
        let runs = rest.chunks_exact(RUN_BYTES);
        if !runs.remainder().is_empty() {
            return None;
        }
        let run = |bytes: &[u8]| Run {
            origin: HostId(u16::from_be_bytes([bytes[0], bytes[1]])),
            stream: long(&bytes[2..]),
            from: Seq(long(&bytes[6..])),
            to: Seq(long(&bytes[10..])),
        };
        let runs: Vec<Run> = runs.map(run).collect();
        let is_run = |run: &Run| run.to.is_after(run.from);
        runs.iter().all(is_run).then_some(OrderMessage {
            epoch: u64::from_be_bytes(head[2..].try_into().ok()?),
            snapshot: head[1] == SNAPSHOT,
            runs,
        })
    }
}

fn long(bytes: &[u8]) -> u32 {
    u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message() -> OrderMessage {
        OrderMessage {
            epoch: 7 << 33,
            snapshot: true,
            runs: vec![
                Run {
                    origin: HostId(1),
                    stream: 2,
                    from: Seq(u32::MAX - 1),
                    to: Seq(4),
                },
                Run {
                    origin: HostId(500),
                    stream: u32::MAX,
                    from: Seq(0),
                    to: Seq(1),
                },
            ],
        }
    }

    #[test]
    fn bytes_say_what_was_said() {
        let news = OrderMessage {
            snapshot: false,
            ..message()
        };
        for said in [message(), news, OrderMessage::default()] {
            assert_eq!(OrderMessage::decode(&said.encode()), Some(said));
        }
    }

    #[test]
    fn what_is_no_such_message_is_refused() {
        let bytes = message().encode();
        for length in 0..bytes.len() {
            let part = OrderMessage::decode(&bytes[..length]);
            let whole_runs = [HEAD_BYTES, HEAD_BYTES + RUN_BYTES];
            assert_eq!(part.is_some(), whole_runs.contains(&length), "{length}");
        }
        let changed = |at: usize, to: u8| {
            let mut bytes = bytes.clone();
            bytes[at] = to;
            OrderMessage::decode(&bytes)
        };
        assert_eq!(changed(0, FOR_APPLICATIONS), None);
        assert_eq!(changed(1, 2), None, "an unknown kind");
        let last = bytes.len() - 1;
        assert_eq!(changed(last, 0), None, "a run without messages");
    }
}
