//! One stream of Subscribe.
//!
//! Nothing is queued for a client that reads slowly but a few messages: what is sent next is
//! how things are when there is room for it.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};
use tonic::{Status, Streaming};

use crate::device::{Device, Targets};
use crate::notify::News;
use crate::proto::gnmi::subscribe_request::Request as Incoming;
use crate::proto::gnmi::subscribe_response::Response as Outgoing;
use crate::proto::gnmi::{SubscribeRequest, SubscribeResponse, SubscriptionList};
use crate::reading::Reading;
use crate::refusal::Refusal;
use crate::schedule::{Schedule, all};
use crate::subscription::{Mode, Subscription, check_extensions};

type Sender = mpsc::Sender<Result<SubscribeResponse, Status>>;

/// Why a stream ends before its client ends it.
enum Ended {
    Refused(Refusal),
    ClientGone,
}

impl<R: Into<Refusal>> From<R> for Ended {
    fn from(refusal: R) -> Self {
        Self::Refused(refusal.into())
    }
}

/// Answers until the client goes, or what it asks for is refused.
pub(crate) async fn serve_stream(
    targets: &Targets,
    messages: Streaming<SubscribeRequest>,
    outgoing: Sender,
) {
    if let Err(Ended::Refused(refusal)) = serve(targets, messages, &outgoing).await {
        // Nobody listens any more if it cannot be sent.
        let _ = outgoing.send(Err(refusal.into())).await;
    }
}

async fn serve(
    targets: &Targets,
    mut messages: Streaming<SubscribeRequest>,
    outgoing: &Sender,
) -> Result<(), Ended> {
    let first = next(&mut messages, outgoing).await?;
    let Some(Incoming::Subscribe(list)) = first else {
        return Err(Refusal::NoSubscription.into());
    };
    let stream = Stream::new(targets, &list, outgoing)?;
    match stream.subscription.mode {
        Mode::Once => stream.send_all().await,
        Mode::Poll => stream.poll(messages).await,
        Mode::Stream => stream.follow(messages).await,
    }
}

/// The next message of a client; none when it has no more.
async fn next(
    messages: &mut Streaming<SubscribeRequest>,
    outgoing: &Sender,
) -> Result<Option<Incoming>, Ended> {
    let message = tokio::select! {
        message = messages.message() => message,
        () = outgoing.closed() => return Err(Ended::ClientGone),
    };
    match message {
        Ok(Some(message)) => {
            check_extensions(&message.extension)?;
            // A message without a request asks for nothing that there is.
            Ok(Some(message.request.ok_or(Refusal::NoSubscription)?))
        }
        Ok(None) => Ok(None),
        Err(_) => Err(Ended::ClientGone),
    }
}

/// A stream that has its subscription.
struct Stream<'s> {
    device: &'s Device,
    subscription: Subscription,
    outgoing: &'s Sender,
}

impl<'s> Stream<'s> {
    fn new(
        targets: &'s Targets,
        list: &SubscriptionList,
        outgoing: &'s Sender,
    ) -> Result<Self, Refusal> {
        Ok(Self {
            device: targets.of(list.prefix.as_ref())?,
            subscription: Subscription::read(list)?,
            outgoing,
        })
    }

    async fn send_all(&self) -> Result<(), Ended> {
        let reading = self.device.look().await?;
        self.send_reading(&reading).await
    }

    async fn send_reading(&self, reading: &Reading) -> Result<(), Ended> {
        if !self.subscription.updates_only {
            let news = all(&self.subscription.wanted, reading);
            self.notify(news).await?;
        }
        self.send(Outgoing::SyncResponse(true)).await
    }

    /// All there is now, and whenever the client asks for it again.
    async fn poll(&self, mut messages: Streaming<SubscribeRequest>) -> Result<(), Ended> {
        loop {
            self.send_all().await?;
            match next(&mut messages, self.outgoing).await? {
                Some(Incoming::Poll(_)) => {}
                Some(Incoming::Subscribe(_)) => return Err(Refusal::SecondSubscription.into()),
                None => return Ok(()),
            }
        }
    }

    /// All there is now, and then what changes or is due.
    async fn follow(&self, mut messages: Streaming<SubscribeRequest>) -> Result<(), Ended> {
        let mut changes = self.device.changes().await?;
        let reading = Arc::new(self.device.look().await?);
        let start = Instant::now();
        let mut schedules = self.subscription.schedules(&reading);
        self.send_reading(&reading).await?;
        drop(reading);
        // A client that has no more to ask for may still listen.
        let mut may_ask = true;
        loop {
            let due = schedules.iter().filter_map(Schedule::due).min();
            tokio::select! {
                message = next(&mut messages, self.outgoing), if may_ask => match message? {
                    None => may_ask = false,
                    Some(Incoming::Poll(_)) => {
                        let mode = self.subscription.mode.name();
                        return Err(Refusal::UnexpectedPoll(mode).into());
                    }
                    Some(Incoming::Subscribe(_)) => {
                        return Err(Refusal::SecondSubscription.into());
                    }
                },
                () = self.outgoing.closed() => return Err(Ended::ClientGone),
                changed = changes.changed() => {
                    // The switch has ended; reading it says so.
                    if changed.is_err() {
                        self.device.read().await?;
                        return Ok(());
                    }
                    self.look(&mut schedules, start).await?;
                }
                () = sleep_to(start, due) => self.look(&mut schedules, start).await?,
            }
        }
    }

    /// Tells what there is to tell now.
    async fn look(&self, schedules: &mut [Schedule], start: Instant) -> Result<(), Ended> {
        let at = start.elapsed();
        let reading = Arc::new(self.device.read().await?);
        for schedule in schedules {
            let news = schedule.look(at, &reading);
            self.notify(news).await?;
        }
        Ok(())
    }

    /// A message for each interface; waits while the client has not read those before.
    async fn notify(&self, news: Vec<News>) -> Result<(), Ended> {
        for news in &news {
            let notification = self.subscription.style.notification_of(news);
            self.send(Outgoing::Update(notification)).await?;
        }
        Ok(())
    }

    async fn send(&self, response: Outgoing) -> Result<(), Ended> {
        let response = SubscribeResponse {
            response: Some(response),
            ..SubscribeResponse::default()
        };
        let sent = self.outgoing.send(Ok(response)).await;
        sent.map_err(|_| Ended::ClientGone)
    }
}

/// Waits until a time of the stream; for ever without one.
async fn sleep_to(start: Instant, at: Option<Duration>) {
    match at {
        Some(at) => sleep_until(start + at).await,
        None => std::future::pending().await,
    }
}
