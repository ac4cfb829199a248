//! What waits for local clients: a queue a connection, emptied by its writer.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::mpsc;
use wormcast_agent_core::api::Notice;
use wormcast_agent_core::clients::Outbound;
use wormcast_agent_core::clients::limits::OUTBOUND_BUSY;

/// The sending end of a connection's outbound queue. What is in the queue is bounded by
/// what the client may have open: answers by its unanswered requests, data by windows.
#[derive(Clone, Debug)]
pub struct OutboundSender {
    queue: mpsc::UnboundedSender<Outbound>,
    waiting: Arc<AtomicUsize>,
}

#[derive(Debug)]
pub struct OutboundReceiver {
    queue: mpsc::UnboundedReceiver<Outbound>,
    waiting: Arc<AtomicUsize>,
}

pub fn outbound_queue() -> (OutboundSender, OutboundReceiver) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let waiting = Arc::new(AtomicUsize::new(0));
    let sender = OutboundSender {
        queue: sender,
        waiting: Arc::clone(&waiting),
    };
    let receiver = OutboundReceiver {
        queue: receiver,
        waiting,
    };
    (sender, receiver)
}

impl OutboundSender {
    /// Queues; if the client is gone, nothing happens (its disconnection is on its way).
    /// A client that is behind with reading gets no progress; all else waits for it, however much there is.
    pub fn send(&self, outbound: Outbound) {
        let may_be_left_out = matches!(outbound, Outbound::Notice(Notice::Progress { .. }));
        if may_be_left_out && self.waiting.load(Ordering::Relaxed) > OUTBOUND_BUSY {
            return;
        }
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let _ = self.queue.send(outbound);
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
        if outbound.is_some() {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
        }
        outbound
    }
}
