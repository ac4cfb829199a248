//! A socket that is bound and says the same to all that subscribe.

use std::collections::BTreeMap;
use std::io;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use wormcast_switch_dataplane::PublishedCounts;

use bytes::Bytes;
use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt, WriteHalf};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinHandle;

use super::listener::{Listener, Stream, greet};
use super::{Address, MESSAGE_BYTES_MAX, SocketType, message_head};
use wormcast_switch_listen::socket_file::SocketFile;

/// Connections at a time, whether they have introduced themselves or not; more are closed.
pub const SUBSCRIBERS_MAX: usize = 64;

/// Messages that may wait for one subscriber; what comes then is dropped for it.
pub const QUEUE_MESSAGES_MAX: usize = 1_024;

/// Bytes that may wait for one subscriber, so that long messages do not pile up either.
pub const QUEUE_BYTES_MAX: usize = 8 << 20;

/// The socket. Its tasks and its file end with the value.
#[derive(Debug)]
pub struct Publisher {
    shared: Arc<Shared>,
    address: Address,
    accepting: JoinHandle<()>,
    _file: Option<SocketFile>,
}

#[derive(Debug, Default)]
struct Shared {
    subscribers: Mutex<BTreeMap<u64, Subscriber>>,
    /// Notified when there is one more.
    joined: Notify,
    /// Connections that are open.
    open: AtomicUsize,
    published: AtomicU64,
    delivered: AtomicU64,
    dropped: AtomicU64,
    refused: AtomicU64,
}

/// The way to one subscriber.
#[derive(Debug)]
struct Subscriber {
    queue: mpsc::Sender<Bytes>,
    /// Bytes in the queue.
    waiting: Arc<AtomicUsize>,
}

impl Publisher {
    /// Listens, on tasks of the present runtime.
    ///
    /// # Errors
    /// Those of the system; `AddrInUse` if another process listens there.
    pub async fn bind(address: &Address) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let (listener, address, file) = Listener::bind(address).await?;
        let accepting = tokio::spawn(accept(listener, Arc::clone(&shared)));
        Ok(Self {
            shared,
            address,
            accepting,
            _file: file,
        })
    }

    /// Where it listens, with the port it got.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Sends a message to all subscribers that have room for it; waits for none of them.
    /// Messages longer than [`MESSAGE_BYTES_MAX`] are dropped.
    pub fn publish(&self, body: &[u8]) {
        let shared = &self.shared;
        shared.published.fetch_add(1, Ordering::Relaxed);
        let subscribers = shared.subscribers();
        if subscribers.is_empty() {
            return;
        }
        let mut message = message_head(self.address.is_ipc(), body.len());
        message.extend_from_slice(body);
        let message = Bytes::from(message);
        for subscriber in subscribers.values() {
            let waiting = subscriber.waiting.load(Ordering::Acquire);
            let has_room = waiting.saturating_add(message.len()) <= QUEUE_BYTES_MAX
                && body.len() <= MESSAGE_BYTES_MAX;
            // Counted before it is sent, since it may be taken out at once.
            subscriber
                .waiting
                .fetch_add(message.len(), Ordering::AcqRel);
            if has_room && subscriber.queue.try_send(message.clone()).is_ok() {
                shared.delivered.fetch_add(1, Ordering::Relaxed);
            } else {
                subscriber
                    .waiting
                    .fetch_sub(message.len(), Ordering::AcqRel);
                shared.dropped.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Whether somebody listens.
    pub fn is_heard(&self) -> bool {
        !self.shared.subscribers().is_empty()
    }

    pub async fn wait_until_heard(&self) {
        loop {
            let mut joined = pin!(self.shared.joined.notified());
            // From here on, so that nobody joins unseen after the look.
            joined.as_mut().enable();
            if self.is_heard() {
                return;
            }
            joined.await;
        }
    }

    /// What became of messages and connections so far.
    pub fn counts(&self) -> PublishedCounts {
        let shared = &self.shared;
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        PublishedCounts {
            published: count(&shared.published),
            delivered: count(&shared.delivered),
            dropped: count(&shared.dropped),
            refused: count(&shared.refused),
            subscribers: shared.subscribers().len() as u64,
        }
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        self.accepting.abort();
        // Without its queue, a connection ends.
        self.shared.subscribers().clear();
    }
}

impl Shared {
    fn subscribers(&self) -> MutexGuard<'_, BTreeMap<u64, Subscriber>> {
        self.subscribers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn refuse(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// Serves a connection on a task of its own, if there are not too many.
    fn begin(self: &Arc<Self>, number: u64, stream: Box<dyn Stream>) {
        if self.open.load(Ordering::Acquire) >= SUBSCRIBERS_MAX {
            return self.refuse();
        }
        self.open.fetch_add(1, Ordering::AcqRel);
        let open = Open {
            shared: Arc::clone(self),
            number,
        };
        tokio::spawn(async move { open.serve(stream).await });
    }
}

async fn accept(listener: Listener, shared: Arc<Shared>) {
    for number in 0.. {
        shared.begin(number, listener.accept().await);
    }
}

/// A connection that is open.
struct Open {
    shared: Arc<Shared>,
    number: u64,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.shared.subscribers().remove(&self.number);
        self.shared.open.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Open {
    async fn serve(&self, stream: Box<dyn Stream>) {
        let (mut from, mut to) = tokio::io::split(stream);
        let greeted = greet(SocketType::Publisher, &mut from, &mut to);
        if greeted.await.is_err() {
            return self.shared.refuse();
        }
        let (queue, messages) = mpsc::channel(QUEUE_MESSAGES_MAX);
        let waiting = Arc::new(AtomicUsize::new(0));
        let subscriber = Subscriber {
            queue,
            waiting: Arc::clone(&waiting),
        };
        self.shared.subscribers().insert(self.number, subscriber);
        self.shared.joined.notify_waiters();
        // A subscriber has nothing to say: what it sends ends the connection as its end does.
        let mut said = [0];
        tokio::select! {
            _ = from.read(&mut said) => {}
            _ = send(&mut to, messages, &waiting) => {}
        }
    }
}

/// Sends what comes until the queue or the connection ends.
async fn send<S: AsyncWrite>(
    to: &mut WriteHalf<S>,
    mut messages: mpsc::Receiver<Bytes>,
    waiting: &AtomicUsize,
) -> io::Result<()> {
    while let Some(message) = messages.recv().await {
        waiting.fetch_sub(message.len(), Ordering::AcqRel);
        to.write_all(&message).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
