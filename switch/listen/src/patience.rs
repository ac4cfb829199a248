//! Connections that end when their client keeps them waiting, and are only so many at a time.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, Sleep, sleep_until};
use tonic::transport::server::Connected;

/// How long a client may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// For its first `bytes`.
    pub greeting: Option<Greeting>,
    /// Between two things it says.
    pub silence: Option<Duration>,
    /// To read anything of what it is sent.
    pub unread: Duration,
}

/// What a client has to say before anything else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Greeting {
    /// How many bytes it has at least.
    pub bytes: usize,
    /// How long they may take.
    pub within: Duration,
}

/// A connection that errs when its client takes too long. Its place is free when it is dropped.
#[derive(Debug)]
pub struct PatientStream<S> {
    inner: S,
    patience: Patience,
    opened: Instant,
    heard: Instant,
    /// Bytes read, as far as they count for the greeting.
    bytes: usize,
    reading: Option<Pin<Box<Sleep>>>,
    writing: Option<Pin<Box<Sleep>>>,
    _place: OwnedSemaphorePermit,
}

impl<S> PatientStream<S> {
    /// A connection that has just been accepted.
    pub fn new(inner: S, patience: Patience, place: OwnedSemaphorePermit) -> Self {
        let opened = Instant::now();
        Self {
            inner,
            patience,
            opened,
            heard: opened,
            bytes: 0,
            reading: None,
            writing: None,
            _place: place,
        }
    }

    /// When the client must have said something.
    fn reading_due(&self) -> Option<Instant> {
        let silence = self.patience.silence.map(|silence| self.heard + silence);
        match self.patience.greeting {
            Some(greeting) if self.bytes < greeting.bytes => {
                let greeted = self.opened + greeting.within;
                Some(silence.map_or(greeted, |silent| silent.min(greeted)))
            }
            _ => silence,
        }
    }

    fn poll_reading_due(&mut self, context: &mut Context<'_>) -> Poll<()> {
        loop {
            // What is due moves on with everything that is heard; the timer follows when it is up.
            let Some(due) = self.reading_due() else {
                self.reading = None;
                return Poll::Pending;
            };
            let timer = self
                .reading
                .get_or_insert_with(|| Box::pin(sleep_until(due)));
            if timer.deadline() > due {
                timer.as_mut().reset(due);
            }
            ready!(timer.as_mut().poll(context));
            if Instant::now() >= due {
                return Poll::Ready(());
            }
            timer.as_mut().reset(due);
        }
    }

    /// Passes on what a write came to; one that waits too long is an error.
    fn watch_write<T>(
        &mut self,
        context: &mut Context<'_>,
        outcome: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if outcome.is_ready() {
            self.writing = None;
            return outcome;
        }
        let unread = self.patience.unread;
        let timer = self
            .writing
            .get_or_insert_with(|| Box::pin(sleep_until(Instant::now() + unread)));
        ready!(timer.as_mut().poll(context));
        Poll::Ready(Err(too_long("the client does not read")))
    }
}

fn too_long(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, what.to_owned())
}

impl<S: AsyncRead + Unpin> AsyncRead for PatientStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        // What has come counts, however late this process looks at it.
        if let Poll::Ready(outcome) = Pin::new(&mut self.inner).poll_read(context, buffer) {
            self.heard = Instant::now();
            self.bytes = self.bytes.saturating_add(buffer.filled().len() - before);
            return Poll::Ready(outcome);
        }
        ready!(self.poll_reading_due(context));
        Poll::Ready(Err(too_long("the client says nothing")))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for PatientStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.inner).poll_write(context, data);
        self.watch_write(context, outcome)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        data: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.inner).poll_write_vectored(context, data);
        self.watch_write(context, outcome)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.inner).poll_flush(context);
        self.watch_write(context, outcome)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.inner).poll_shutdown(context);
        self.watch_write(context, outcome)
    }
}

impl<S: Connected> Connected for PatientStream<S> {
    type ConnectInfo = S::ConnectInfo;

    fn connect_info(&self) -> Self::ConnectInfo {
        self.inner.connect_info()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
    use tokio::sync::Semaphore;

    const PATIENCE: Patience = Patience {
        greeting: Some(Greeting {
            bytes: 4,
            within: Duration::from_millis(100),
        }),
        silence: Some(Duration::from_millis(500)),
        unread: Duration::from_millis(200),
    };

    async fn pair() -> (DuplexStream, PatientStream<DuplexStream>) {
        let (client, server) = duplex(8);
        let place = Arc::new(Semaphore::new(1)).acquire_owned().await.unwrap();
        (client, PatientStream::new(server, PATIENCE, place))
    }

    #[tokio::test]
    async fn a_greeting_has_its_time_however_it_trickles() {
        let (mut client, mut server) = pair().await;
        let start = Instant::now();
        client.write_all(b"xx").await.unwrap();
        server.read_u16().await.unwrap();
        let error = server.read_u8().await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(start.elapsed() >= Duration::from_millis(100));
        drop(client);
    }

    #[tokio::test]
    async fn who_has_greeted_may_be_silent_for_longer() {
        let (mut client, mut server) = pair().await;
        client.write_all(b"hello").await.unwrap();
        let mut greeting = [0; 5];
        server.read_exact(&mut greeting).await.unwrap();
        let start = Instant::now();
        let error = server.read_u8().await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(start.elapsed() >= Duration::from_millis(490));
        drop(client);
    }

    #[tokio::test]
    async fn what_has_come_counts_however_late_it_is_looked_at() {
        let (mut client, mut server) = pair().await;
        client.write_all(b"hello").await.unwrap();
        // As by SIGSTOP: every timer is over.
        std::thread::sleep(Duration::from_millis(700));
        let mut greeting = [0; 5];
        server.read_exact(&mut greeting).await.unwrap();
        assert_eq!(&greeting, b"hello");
    }

    #[tokio::test]
    async fn who_does_not_read_is_given_up() {
        let (client, mut server) = pair().await;
        let error = server.write_all(&[0; 100]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        drop(client);
    }
}
