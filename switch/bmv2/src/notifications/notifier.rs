//! One switch that publishes: asks the data plane what there is to tell, and tells it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use wormcast_switch_dataplane::{NotificationCounts, Observer, Snapshot};

use tokio::sync::Notify;
use tokio::time::{Instant, MissedTickBehavior};

use super::ageing::Ageing;
use super::learning::{Buffer, LearnLists};
use super::message::Notification;
use super::ports::PortWatch;
use crate::nanomsg::Publisher;
use wormcast_switch_dataplane::{DataplaneHandle, DigestMessage, Installed, Stopped};
use wormcast_switch_program::{Program, TableId};

/// Time between two looks at entries that age, as BMv2's `AgeingMonitor` has it.
const AGES_INTERVAL: Duration = Duration::from_secs(1);

/// Entries that are looked at in one operation of the data plane.
const AGES_A_TURN: usize = 1_024;

/// Time between two looks at ports, as BMv2's `PortMonitorActive` has it.
const PORTS_INTERVAL: Duration = Duration::from_millis(200);

/// Whether changes of ports are published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watched {
    /// They are interfaces, or links in memory.
    Ports,
    /// They are captures, which BMv2 does not watch either.
    NoPorts,
}

/// Publishes for one switch. What it learned is kept here, for acknowledgements.
#[derive(Debug)]
pub struct Notifier {
    device_id: u64,
    publisher: Arc<Publisher>,
    learning: Mutex<Learning>,
    /// Notified when a buffer may be due earlier than before.
    due: Notify,
    start: Instant,
}

/// Learning lists of the program that was installed last.
#[derive(Debug, Default)]
struct Learning {
    installed: Option<Installed>,
    lists: LearnLists,
}

impl Learning {
    /// Whether something is of the program that runs, now that it is known. Programs are
    /// installed with new lists; the same one, as `bm_reset_state` does, with empty ones.
    fn is_of(&mut self, installed: &Installed) -> bool {
        match &self.installed {
            Some(known) if known.number == installed.number => return true,
            // It was on its way when the program was replaced.
            Some(known) if known.number > installed.number => return false,
            Some(known) if Arc::ptr_eq(&known.program, &installed.program) => self.lists.reset(),
            _ => self.lists.replace(installed.program.digest_list_ids()),
        }
        self.installed = Some(installed.clone());
        true
    }
}

impl Observer for Notifier {
    fn learn(&self, digest: &DigestMessage) {
        Notifier::learn(self, digest);
    }

    fn complete(&self, snapshot: &mut Snapshot) {
        snapshot.notifications = Some(self.counts());
    }
}

impl Notifier {
    /// Publishes under a device id. Nothing happens by itself before
    /// [`watch`](Self::watch).
    pub fn new(device_id: u64, publisher: Arc<Publisher>) -> Self {
        Self {
            device_id,
            publisher,
            learning: Mutex::default(),
            due: Notify::new(),
            start: Instant::now(),
        }
    }

    pub fn address(&self) -> String {
        self.publisher.address().to_string()
    }

    /// What became of notifications so far.
    pub fn counts(&self) -> NotificationCounts {
        NotificationCounts {
            published: self.publisher.counts(),
            learned: self.learning().lists.counts(),
        }
    }

    fn learning(&self) -> MutexGuard<'_, Learning> {
        self.learning.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now_us(&self) -> u64 {
        self.start.elapsed().as_micros() as u64
    }

    fn publish(&self, notification: &Notification) {
        self.publisher
            .publish(&notification.to_bytes(self.device_id));
    }

    fn publish_all(&self, due: impl IntoIterator<Item = Buffer>) {
        for buffer in due {
            self.publish(&buffer);
        }
    }

    /// Takes a digest of the data plane.
    pub fn learn(&self, message: &DigestMessage) {
        let Some((list, sample)) = sample_of(message) else {
            return;
        };
        let mut learning = self.learning();
        if !learning.is_of(&message.installed) {
            return;
        }
        let before = learning.lists.due_us();
        // Published before the next one may come, so that buffers are sent in order.
        self.publish_all(learning.lists.offer(list, &sample, self.now_us()));
        if learning.lists.due_us() != before {
            self.due.notify_one();
        }
    }

    /// Samples of a buffer may come again.
    pub fn acknowledge(&self, installed: &Installed, list: u16, buffer: u64, samples: &[i32]) {
        let mut learning = self.learning();
        if learning.is_of(installed) {
            learning.lists.acknowledge(list, buffer, samples);
        }
    }

    /// All samples of a buffer may come again.
    pub fn acknowledge_buffer(&self, installed: &Installed, list: u16, buffer: u64) {
        let mut learning = self.learning();
        if learning.is_of(installed) {
            learning.lists.acknowledge_buffer(list, buffer);
        }
    }

    /// How long samples of a list wait for others, milliseconds; 0: until there are enough.
    pub fn set_timeout(&self, installed: &Installed, list: u16, timeout_ms: u32) {
        let mut learning = self.learning();
        if learning.is_of(installed) {
            learning.lists.set_timeout(list, timeout_ms);
            self.due.notify_one();
        }
    }

    /// How many samples of a list are sent together.
    pub fn set_buffer_samples(&self, installed: &Installed, list: u16, samples: u32) {
        let mut learning = self.learning();
        if learning.is_of(installed) {
            self.publish_all(learning.lists.set_buffer_samples(list, samples));
        }
    }

    /// Publishes what is due by its time, on tasks of the present runtime, until the data
    /// plane ends.
    pub fn watch(self: Arc<Self>, dataplane: DataplaneHandle, watched: Watched) {
        if watched == Watched::Ports {
            tokio::spawn(Arc::clone(&self).watch_ports(dataplane.clone()));
        }
        let watching = Arc::clone(&self);
        tokio::spawn(async move {
            tokio::select! {
                // Ends with the data plane.
                Err(Stopped) = watching.watch_ages(&dataplane) => {}
                () = self.watch_due() => {}
            }
        });
    }

    /// Publishes buffers whose samples have waited; never ends.
    async fn watch_due(&self) {
        loop {
            let due_us = self.learning().lists.due_us();
            let due = self.start + Duration::from_micros(due_us.unwrap_or_default());
            tokio::select! {
                () = tokio::time::sleep_until(due), if due_us.is_some() => {}
                () = self.due.notified() => {}
            }
            let mut learning = self.learning();
            self.publish_all(learning.lists.poll(self.now_us()));
        }
    }

    /// Publishes idle entries, as long as somebody listens.
    async fn watch_ages(&self, dataplane: &DataplaneHandle) -> Result<(), Stopped> {
        let mut sweeps = Sweeps::default();
        let mut interval = tokio::time::interval(AGES_INTERVAL);
        interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            interval.tick().await;
            if !self.publisher.is_heard() {
                sweeps.ageing.forget();
                // It is noticed at the next command otherwise.
                dataplane.run(|_| ()).await?;
                continue;
            }
            let installed = dataplane.run(|switch| switch.installed()).await?;
            for (table, number) in sweeps.tables(installed) {
                let idle = idle_entries(dataplane, table).await?;
                if let Some(notification) = sweeps.ageing.sweep(number, &idle) {
                    self.publish(&notification);
                }
            }
        }
    }

    /// Publishes ports that go up and down.
    async fn watch_ports(self: Arc<Self>, dataplane: DataplaneHandle) {
        let mut watch = PortWatch::default();
        let mut interval = tokio::time::interval(PORTS_INTERVAL);
        interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // As BMv2 does, it waits before the first look too.
        interval.tick().await;
        loop {
            interval.tick().await;
            let ports = dataplane.run(|switch| switch.look_at_ports());
            let Ok(ports) = ports.await else { return };
            let ports = ports.iter().map(|port| (port.number.0, port.up));
            if let Some(notification) = watch.look(ports) {
                self.publish(&notification);
            }
        }
    }
}

/// List and bytes of a digest, as BMv2 puts the fields together: each of whole bytes.
fn sample_of(message: &DigestMessage) -> Option<(u16, Vec<u8>)> {
    let program = &message.installed.program;
    let list = program.digest_list_id(message.digest)?;
    let info = &program.digests()[message.digest.index()];
    let fields = message.fields.iter().zip(&info.fields_bits);
    let bytes = fields.flat_map(|(field, &width)| field.to_padded_bytes(width));
    Some((list, bytes.collect()))
}

/// What is remembered between two looks at the entries of a program.
#[derive(Default)]
struct Sweeps {
    ageing: Ageing,
    /// What the tables are of.
    installed: Option<Installed>,
    /// Tables whose entries age, with their ids in the JSON.
    tables: Vec<(TableId, i32)>,
}

impl Sweeps {
    /// The tables to look at.
    fn tables(&mut self, installed: Option<Installed>) -> Vec<(TableId, i32)> {
        if self.installed != installed {
            self.ageing = Ageing::default();
            let program = installed.as_ref().map(|installed| &installed.program);
            self.tables = program.map_or_else(Vec::new, |program| ageing_tables(program));
            self.installed = installed;
        }
        self.tables.clone()
    }
}

/// Tables whose entries age, with their ids in the JSON, by which BMv2 orders them.
fn ageing_tables(program: &Program) -> Vec<(TableId, i32)> {
    let ids = program.object_ids("tables");
    let tables = program.tables().iter().enumerate();
    let tables = tables.filter(|(_, table)| table.supports_timeout);
    let tables = tables.filter_map(|(index, table)| {
        let id = i32::try_from(*ids.get(&table.name)?).ok()?;
        Some((TableId::from_index(index), id))
    });
    let mut tables: Vec<_> = tables.collect();
    tables.sort_by_key(|(_, id)| *id);
    tables
}

/// Handles of the entries of a table that are idle now, by ascending number.
async fn idle_entries(dataplane: &DataplaneHandle, table: TableId) -> Result<Vec<u32>, Stopped> {
    let mut idle = Vec::new();
    let mut from = Some(0);
    while let Some(first) = from {
        let look = dataplane.run(move |switch| {
            let pipeline = switch.pipeline()?;
            Some(pipeline.idle_entries(table, first, AGES_A_TURN))
        });
        let (found, next) = look.await?.unwrap_or_default();
        idle.extend(found.iter().map(|handle| handle.to_u32()));
        from = next;
    }
    Ok(idle)
}
