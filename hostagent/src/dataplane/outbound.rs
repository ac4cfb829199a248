//! What waits for local clients: a queue a connection, emptied by its writer.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::mpsc;
use wormcast_agent_core::api::Notice;
use wormcast_agent_core::clients::Outbound;
use wormcast_agent_core::clients::limits::{ANSWERS_WAITING_BYTES_MAX, OUTBOUND_BUSY};

/// The sending end of a connection's outbound queue. What is in the queue is bounded by
/// what the client may have open: answers by its unanswered requests, data by windows.
#[derive(Clone, Debug)]
pub struct OutboundSender {
    queue: mpsc::UnboundedSender<Outbound>,
    waiting: Arc<AtomicUsize>,
    /// Bytes of answers that wait.
    answers: Arc<AtomicUsize>,
}

#[derive(Debug)]
pub struct OutboundReceiver {
    queue: mpsc::UnboundedReceiver<Outbound>,
    waiting: Arc<AtomicUsize>,
    answers: Arc<AtomicUsize>,
}

pub fn outbound_queue() -> (OutboundSender, OutboundReceiver) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let waiting = Arc::new(AtomicUsize::new(0));
    let answers = Arc::new(AtomicUsize::new(0));
    let sender = OutboundSender {
        queue: sender,
        waiting: Arc::clone(&waiting),
        answers: Arc::clone(&answers),
    };
    let receiver = OutboundReceiver {
        queue: receiver,
        waiting,
        answers,
    };
    (sender, receiver)
}

impl OutboundSender {
    /// Queues; if the client is gone, nothing happens (its disconnection is on its way).
    /// A client that is behind with reading gets no progress, and answers up to
    /// [`ANSWERS_WAITING_BYTES_MAX`]; all else waits for it, however much there is. False: an answer was dropped.
    pub fn send(&self, outbound: Outbound) -> bool {
        let answer = answer_bytes(&outbound);
        if answer > 0 && self.answers.load(Ordering::Relaxed) + answer > ANSWERS_WAITING_BYTES_MAX {
            return false;
        }
        let may_be_left_out = matches!(outbound, Outbound::Notice(Notice::Progress { .. }));
        if may_be_left_out && self.waiting.load(Ordering::Relaxed) > OUTBOUND_BUSY {
            return true;
        }
        self.waiting.fetch_add(1, Ordering::Relaxed);
        self.answers.fetch_add(answer, Ordering::Relaxed);
        let _ = self.queue.send(outbound);
        true
    }
}

impl OutboundReceiver {
    /// The next to be written; `None` when the data plane has let go of the connection.
    pub async fn receive(&mut self) -> Option<Outbound> {
        let outbound = self.queue.recv().await;
        self.note(outbound)
    }

    /// The next, if there is one already.
    pub fn try_receive(&mut self) -> Option<Outbound> {
        let outbound = self.queue.try_recv().ok();
        self.note(outbound)
    }

    fn note(&self, outbound: Option<Outbound>) -> Option<Outbound> {
        if let Some(outbound) = &outbound {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            let answer = answer_bytes(outbound);
            self.answers.fetch_sub(answer, Ordering::Relaxed);
        }
        outbound
    }
}

fn answer_bytes(outbound: &Outbound) -> usize {
    match outbound {
        Outbound::Notice(Notice::Answer { text, .. }) => text.len() + 1,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_that_nobody_reads_are_bounded() {
        let (sender, mut receiver) = outbound_queue();
        let answer = || {
            Outbound::Notice(Notice::Answer {
                handle: 1,
                host: 2,
                text: "x".repeat(64 << 10),
            })
        };
        let taken = (0..100).filter(|_| sender.send(answer())).count();
        assert_eq!(taken, 63);
        let lost = || {
            Outbound::Notice(Notice::MessageLost {
                handle: 1,
                reason: String::new(),
            })
        };
        assert!(sender.send(lost()), "all else waits");
        assert!(receiver.try_receive().is_some());
        assert!(sender.send(answer()));
        assert!(!sender.send(answer()));
    }
}
