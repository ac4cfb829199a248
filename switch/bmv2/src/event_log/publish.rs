//! Publishes what is traced, as long as somebody listens.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use wormcast_switch_dataplane::{EventLogCounts, Observer, Snapshot};

use tokio::time::MissedTickBehavior;

use super::ids::EventIds;
use super::message::LogMessage;
use super::translate::messages;
use crate::nanomsg::{Address, Publisher};
use wormcast_switch_dataplane::log::{Level, Log};
use wormcast_switch_dataplane::trace::{RECORDS_MAX, TraceReader, trace_channel};
use wormcast_switch_dataplane::{DataplaneHandle, Installed, Stopped};
use wormcast_switch_pipeline::LoadedProgram;
use wormcast_switch_pipeline::trace::{Filter, TraceRecord};

/// Time between two looks at whether somebody listens, and which program runs.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

/// Time between two looks at whether the switch is still there while nobody listens.
const IDLE_INTERVAL: Duration = Duration::from_secs(1);

/// The event log of the switches of a process.
#[derive(Debug)]
pub struct EventLog {
    publisher: Publisher,
    log: Log,
    records_lost: AtomicU64,
}

impl Observer for EventLog {
    fn complete(&self, snapshot: &mut Snapshot) {
        snapshot.event_log = Some(self.counts());
    }
}

impl EventLog {
    /// Events go to a socket. Nothing happens before [`watch`](Self::watch).
    pub fn new(publisher: Publisher, log: Log) -> Self {
        Self {
            publisher,
            log,
            records_lost: AtomicU64::new(0),
        }
    }

    pub fn address(&self) -> &Address {
        self.publisher.address()
    }

    /// What became of them so far.
    pub fn counts(&self) -> EventLogCounts {
        EventLogCounts {
            published: self.publisher.counts(),
            records_lost: self.records_lost.load(Ordering::Relaxed),
        }
    }

    /// Publishes for one switch, on a task of the present runtime, until its data plane
    /// ends.
    pub fn watch(self: Arc<Self>, device_id: u64, dataplane: DataplaneHandle) {
        tokio::spawn(async move {
            // Ends with the data plane.
            let Err(Stopped) = self.follow(device_id, &dataplane).await;
        });
    }

    async fn follow(
        &self,
        device_id: u64,
        dataplane: &DataplaneHandle,
    ) -> Result<std::convert::Infallible, Stopped> {
        let mut refused = false;
        loop {
            let heard = tokio::time::timeout(IDLE_INTERVAL, self.publisher.wait_until_heard());
            if heard.await.is_err() {
                dataplane.run(|_| ()).await?;
                continue;
            }
            let (sink, reader) = trace_channel(RECORDS_MAX);
            let added = dataplane.run(move |switch| {
                let added = switch.tracing().add(Filter::default(), sink);
                added.map(|()| switch.installed())
            });
            match added.await? {
                Ok(installed) => {
                    refused = false;
                    let following = Following::new(self, device_id, installed);
                    following.run(dataplane, reader).await?;
                }
                Err(full) => {
                    if !refused {
                        let text = format_args!("no event log: {full}");
                        self.log.write(Level::Warn, text);
                    }
                    refused = true;
                    tokio::time::sleep(IDLE_INTERVAL).await;
                }
            }
        }
    }
}

/// From when somebody listens to one switch until nobody does.
struct Following<'l> {
    event_log: &'l EventLog,
    device_id: u64,
    installed: Option<Installed>,
    /// Ids of the program of the last packet.
    ids: Option<(Arc<LoadedProgram>, EventIds)>,
}

impl<'l> Following<'l> {
    fn new(event_log: &'l EventLog, device_id: u64, installed: Option<Installed>) -> Self {
        Self {
            event_log,
            device_id,
            installed,
            ids: None,
        }
    }

    async fn run(
        mut self,
        dataplane: &DataplaneHandle,
        mut reader: TraceReader,
    ) -> Result<(), Stopped> {
        let mut interval = tokio::time::interval(LOOK_INTERVAL);
        interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let read = tokio::select! {
                read = reader.read() => read,
                _ = interval.tick() => {
                    if !self.event_log.publisher.is_heard() {
                        return Ok(());
                    }
                    self.look(dataplane).await?;
                    continue;
                }
            };
            let Some((record, lost)) = read else {
                // The data plane has dropped the trace: it is about to end.
                return dataplane.run(|_| ()).await;
            };
            let lost_before = &self.event_log.records_lost;
            lost_before.fetch_add(lost, Ordering::Relaxed);
            let is_known = (self.installed.as_ref())
                .is_some_and(|installed| Arc::ptr_eq(&installed.program, &record.program));
            if !is_known {
                self.look(dataplane).await?;
            }
            self.publish(&record);
            // Those who send to subscribers share the thread.
            tokio::task::yield_now().await;
        }
    }

    /// Tells if another program runs now.
    async fn look(&mut self, dataplane: &DataplaneHandle) -> Result<(), Stopped> {
        let installed = dataplane.run(|switch| switch.installed()).await?;
        if installed != self.installed {
            self.installed = installed;
            let message = LogMessage::config_change(self.device_id);
            self.event_log.publisher.publish(&message.to_bytes());
        }
        Ok(())
    }

    fn publish(&mut self, record: &TraceRecord) {
        let program = &record.program;
        let known = self.ids.take();
        let known = known.filter(|(known, _)| Arc::ptr_eq(known, program));
        let (_, ids) = &*self
            .ids
            .insert(known.unwrap_or_else(|| (Arc::clone(program), EventIds::of(program))));
        for message in messages(record, ids, self.device_id) {
            self.event_log.publisher.publish(&message.to_bytes());
        }
    }
}
